"""RTTM, the list of who speaks when: our label is its speaker; several sequences per file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File
from dugong.formats.lists import ListStyle, read_list, written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, placed
from dugong.segments import Segments

_STYLE = ListStyle(
    names=("type", "file", "channel", "onset", "duration", "text", "kind", "speaker", "confidence", "lookahead"),
    ours={
        "file": "sequence",
        "onset": "start",
        "duration": "duration",
        "speaker": "label",
        "confidence": "probability",
    },
    delimiter=None,
    comments=(";;",),
)


def _fits(file: File) -> bool:
    return next((line for line in file.lines if line.strip()), "").startswith(("SPEAKER ", ";;", "SPKR-INFO"))


def _read(file: File) -> Segments:
    return read_list(file, _STYLE)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "rttm").sort()
    forbid(found, r"\s", "rttm", sequences=True)
    lines = [
        f"SPEAKER {name} 1 {start:.6f} {end - start:.6f} <NA> <NA> {label} {'<NA>' if p is None else p} <NA>"
        for name, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability")
    ]
    return {f"{stem}.rttm": written(lines) if lines else b""}


FORMATS = (
    Format(
        name="rttm",
        title="RTTM",
        suffixes=(".rttm",),
        unit="seconds, 1 µs",
        keeps="sequence, start, end, label, probability; instants",
        loses="source; sequences without intervals; names with white space are refused",
        checked="structure of the sample (pyannote)",
        fits=_fits,
        read=_read,
        write=_write,
    ),
)

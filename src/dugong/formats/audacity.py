"""Audacity label tracks: start, end and label between tabs, in seconds; one sequence per file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File
from dugong.formats.lists import ListStyle, read_list, written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, placed
from dugong.segments import Segments

_STYLE = ListStyle(
    names=("start", "end", "label"),
    ours={"start": "start", "end": "end", "label": "label"},
    comments=("\\",),  # lines of frequency ranges begin so
)


def _fits(file: File) -> bool:
    first = next((line.split("\t") for line in file.lines if line.strip()), [])
    return len(first) >= 2 and all(cell.replace(".", "", 1).isdigit() for cell in first[:2])


def _read(file: File) -> Segments:
    return read_list(file, _STYLE, file.stem)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "audacity").sort()
    forbid(found, r"\t\n\r", "audacity")
    lines = [f"{start:.6f}\t{end:.6f}\t{label}" for start, end, label in columns(found, "start", "end", "label")]
    return {f"{stem}.txt": written(lines) if lines else b""}


FORMATS = (
    Format(
        name="audacity",
        title="Audacity label track",
        suffixes=(".txt",),
        unit="seconds, 1 µs",
        keeps="start, end, label; instants",
        loses="probability, source",
        checked="structure of the sample (crowsetta)",
        fits=_fits,
        read=_read,
        write=_write,
        single=True,
    ),
)

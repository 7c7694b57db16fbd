"""WFDB annotations (PhysioNet): rhythm changes in samples; one sequence per file [extra].

An interval begins with ``+`` and ``(label`` and lasts until the next ``+``; ``(N`` is normal, which is no interval.
Files without rhythm changes give their beats as instants.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dugong.exceptions import FormatError, import_extra
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import apart, columns, only, placed
from dugong.segments import Recording, Segments

_NORMAL = "N"
_SUFFIX = "atr"


def _wfdb() -> Any:
    return import_extra("wfdb", "wfdb", "reading and writing WFDB annotations")


def _read(file: File) -> Segments:
    wfdb, rows = _wfdb(), Intervals(file, "element")
    with tempfile.TemporaryDirectory() as folder:  # the library reads files, and ours may be at a URL
        (Path(folder) / f"record.{_SUFFIX}").write_bytes(file.data)
        try:
            found = wfdb.rdann(str(Path(folder) / "record"), _SUFFIX)
        except Exception as error:  # noqa: BLE001  (damaged bytes raise many kinds)
            raise file.error(f"these are no WFDB annotations, or they are damaged: {error}.") from None
    marks = list(zip(found.sample.tolist(), found.symbol, found.aux_note, strict=True))
    changes = [(sample, note.strip("\0").removeprefix("(")) for sample, symbol, note in marks if symbol == "+"]
    for number, (start, label) in enumerate(changes):
        end = changes[number + 1][0] if number + 1 < len(changes) else float("inf")
        if label != _NORMAL:
            rows.add(f"annotation {number + 1}", file.stem, start, end, label)
    for number, (sample, symbol, _) in enumerate([] if changes else marks, start=1):
        rows.add(f"annotation {number}", file.stem, sample, sample, symbol)
    return rows.done({file.stem: Recording(rate=None if found.fs is None else float(found.fs))})


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    wfdb = _wfdb()
    import numpy as np

    found = apart(placed(segments, "element", "wfdb"), "wfdb", of=("sequence",))
    if _NORMAL in found.labels:
        raise FormatError("the format 'wfdb' takes the label 'N' for normal, which is no interval; rename it.")
    marks: list[tuple[int, str]] = []
    for start, end, label in columns(found, "start", "end", "label"):
        if marks and marks[-1][0] == int(start):
            marks.pop()  # the next interval begins where this one ends
        marks += [(int(start), f"({label}"), (int(end), f"({_NORMAL}")]
    about = found.recordings[only(found)]
    with tempfile.TemporaryDirectory() as folder:
        wfdb.wrann(
            "record",
            _SUFFIX,
            np.array([sample for sample, _ in marks] or [0]),
            symbol=["+"] * max(len(marks), 1),
            aux_note=[note for _, note in marks] or [f"({_NORMAL}"],
            fs=about.rate,
            write_dir=folder,
        )
        return {f"{stem}.{_SUFFIX}": (Path(folder) / f"record.{_SUFFIX}").read_bytes()}


FORMATS = (
    Format(
        name="wfdb",
        title="WFDB annotations",
        suffixes=(f".{_SUFFIX}",),
        unit="elements (samples), exact",
        keeps="start, end, label, rate",
        loses="probability, source; overlaps are refused, and so is the label N",
        checked="wfdb",
        fits=lambda file: len(file.data) >= 2 and file.data[-2:] == b"\0\0",
        read=_read,
        write=_write,
        single=True,
        extra="wfdb",
    ),
)

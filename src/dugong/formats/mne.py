"""Annotations of MNE-Python as text: onset, duration and description; one sequence per file.

MNE's CSV files are not read: they hold dates, and the offset of the recording is lost in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File
from dugong.formats.lists import ListStyle, read_list, written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, placed
from dugong.segments import Segments

_STYLE = ListStyle(
    names=("onset", "duration", "description"),
    ours={"onset": "start", "duration": "duration", "description": "label"},
    delimiter=",",
    comments=("#",),
)


def _fits(file: File) -> bool:
    return file.text.lstrip("\ufeff").startswith("# MNE-Annotations")


def _read(file: File) -> Segments:
    return read_list(file, _STYLE, file.stem)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "mne").sort()
    forbid(found, r",\n\r#", "mne")
    lines = [f"{start:.6f},{end - start:.6f},{label}" for start, end, label in columns(found, "start", "end", "label")]
    return {f"{stem}.txt": written(["# MNE-Annotations", "# onset, duration, description", *lines])}


FORMATS = (
    Format(
        name="mne",
        title="MNE annotations (.txt)",
        suffixes=(".txt",),
        unit="seconds, 1 µs",
        keeps="start, end, label; instants",
        loses="probability, source; labels with commas are refused",
        checked="mne",
        fits=_fits,
        read=_read,
        write=_write,
        single=True,
    ),
)

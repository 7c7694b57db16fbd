"""Put what a format makes of segments under its names, all of it or nothing.

In: segments and a format. Out: files. Everything is made in memory first, so that segments that a format cannot hold
leave nothing behind; a folder is filled aside and moved into place.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from dugong.exceptions import FormatError
from dugong.formats.registry import Files, Format
from dugong.paths import Place, Url, write_atomically
from dugong.segments import Segments

__all__ = ["put"]


def put(segments: Segments, place: Place, wanted: Format, options: Mapping[str, Any]) -> tuple[Place, ...]:
    """Write segments in a format; returns the files."""
    ending = next((one for one in wanted.suffixes if place.name.lower().endswith(one.lower())), None)
    several = wanted.single and len(segments.recordings) != 1
    if ending is not None and not place.is_dir() and not several:
        made = wanted.write(segments, place.name[: -len(ending)], options)
        renamed = {_ending(name, wanted, ending): data for name, data in made.items()}
        return _into(place.parent, renamed)
    if ending is not None and not place.is_dir() and several:
        raise FormatError(
            f"a file of the format {wanted.name!r} holds one sequence, and there are {len(segments.recordings)}.\n"
            f"  Name a folder in place of {place.name!r}: it gets one file per sequence."
        )
    if not wanted.single:
        return _folder(place, wanted.write(segments, "segments", options))
    made = {} if wanted.shared is None else dict(wanted.shared(segments))
    for name in segments.recordings:
        made |= wanted.write(segments.select(sequences=[name]), file_name(name), options)
    return _folder(place, made)


def file_name(sequence: str) -> str:
    """The id of a sequence as the name of a file; never a way out of the folder."""
    if sequence in ("", ".", "..") or any(one in sequence for one in "/\\\0") or len(sequence.encode()) > 200:
        raise FormatError(
            f"the sequence {sequence!r} cannot be the name of a file.\n"
            "  Choose a format that holds several sequences per file, or rename it."
        )
    return sequence


def _ending(name: str, wanted: Format, ending: str) -> str:
    """The name that the caller asked for, where the format would use another ending."""
    return name.removesuffix(wanted.suffixes[0]) + ending if name.endswith(wanted.suffixes[0]) else name


def _into(folder: Place, made: Files) -> tuple[Place, ...]:
    for name, data in made.items():
        write_atomically(folder / name, partial(_write, data))
    return tuple(folder / name for name in made)


def _write(data: bytes, handle: BinaryIO) -> object:
    return handle.write(data)


def _folder(place: Place, made: Files) -> tuple[Place, ...]:
    if isinstance(place, Url) or place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return _into(place, made)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as draft:
        new = Path(draft) / "new"
        new.mkdir()
        for name, data in made.items():
            (new / name).write_bytes(data)
        shutil.move(new, place)
    return tuple(place / name for name in made)

"""Several files as one value: their segments one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dugong.exceptions import FormatError
from dugong.paths import Place
from dugong.segments import Recording, Segments
from dugong.segments.container import Asked

__all__ = ["joined"]


def joined(folder: Place, parts: Sequence[Segments]) -> Segments:
    """All segments of the files of a folder."""
    units = {part.unit for part in parts}
    if len(units) != 1:
        raise FormatError(f"{folder}: all files must count the same; found {' and '.join(sorted(units))}.")
    recordings: dict[str, Recording] = {}
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for part in parts:
        twice = [name for name in part.recordings if name in recordings]
        if twice:
            raise FormatError(f"{folder}: the sequence {twice[0]!r} is in two files.")
        recordings |= part.recordings
        asked |= part.asked if part.asked is not None else _all_of(part)
    voices = {frozenset(part.sources) for part in parts if part.sources}
    plain = all(part.asked is None for part in parts) and len(voices) <= 1
    words: dict[str, Any] = {
        name: tuple(value for part in parts for value in getattr(part, name))
        for name in ("sequence", "label", "source", "resolution", "attributes")
    }
    numbers: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "probability")
    }
    return Segments(**words, **numbers, unit=units.pop(), recordings=recordings, asked=None if plain else asked)


def _all_of(part: Segments) -> Asked:
    return {(source, name): ((0.0, np.inf),) for source in part.sources or ("",) for name in part.recordings}

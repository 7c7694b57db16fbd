"""Intervals as they are read, each with its place in the file, so that an error can name it.

In: one call of `add` per interval. Out: `Segments`, or a `FormatError` with the file and the line or path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dugong.formats.files import File
from dugong.segments import Recording, Segments
from dugong.segments.container import Asked, Unit, find_bad
from dugong.types import FloatArray

__all__ = ["Intervals"]

_SLACK = {"second": 1e-3, "element": 0.0, "character": 0.0}  # clocks of media and annotations differ by a millisecond
_NOTHING: Mapping[str, str] = {}
_COLUMNS = ("where", "sequence", "start", "end", "label", "probability", "source", "resolution", "attributes")


class Intervals:
    """Collects the intervals of one file."""

    def __init__(self, file: File, unit: Unit) -> None:
        self.file = file
        self.unit: Unit = unit
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self,
        where: object,
        sequence: str,
        start: float,
        end: float,
        label: str,
        probability: float | None = None,
        *,
        source: str = "",
        resolution: str = "element",
        attributes: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Note one interval; `where` is a line number, or a path inside the file."""
        self._rows.append((where, sequence, start, end, label, probability, source, resolution, attributes))

    def done(self, recordings: Mapping[str, Recording] | None = None, asked: Asked | None = None) -> Segments:
        """The segments, once all of them are known to be intervals inside their recordings."""
        given: Any = zip(*self._rows, strict=True) if self._rows else [()] * len(_COLUMNS)
        columns: dict[str, Any] = dict(zip(_COLUMNS, given, strict=True))
        where = columns.pop("where")
        for name in ("start", "end", "probability"):
            columns[name] = self._numbers(columns[name], name, where)
        bad = find_bad(columns["start"], columns["end"], columns["probability"])
        if bad is not None:
            raise self.file.error(f"{bad[1]}.", where[bad[0]])
        known = dict(recordings or {})
        self._check_ends(columns, known, where)
        return Segments(**columns, unit=self.unit, recordings=known, asked=asked)

    def _numbers(self, values: tuple[Any, ...], name: str, where: tuple[Any, ...]) -> FloatArray:
        try:
            return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
        except (TypeError, ValueError):
            for value, place in zip(values, where, strict=True):
                self.file.number(np.nan if value is None else value, f"the {name}", place)
            raise

    def _check_ends(self, columns: dict[str, Any], recordings: Mapping[str, Recording], where: tuple[Any, ...]) -> None:
        sizes = {name: about.size(self.unit) for name, about in recordings.items()}
        if all(size is None for size in sizes.values()):
            return
        start, end, names = columns["start"], columns["end"], columns["sequence"]
        limits = np.array([np.inf if sizes.get(name) is None else sizes[name] for name in names], dtype=np.float64)
        late = np.where(np.isinf(end), start, end) > limits + _SLACK[self.unit]
        if late.any():
            row = int(np.argmax(late))
            raise self.file.error(
                f"an interval must not reach beyond the end of its recording; found {start[row]:g} to {end[row]:g} in "
                f"{names[row]!r}, which ends at {limits[row]:g} ({self.unit}s).",
                where[row],
            )

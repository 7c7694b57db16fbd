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

__all__ = ["Rows"]

_SLACK = {"second": 1e-3, "element": 0.0, "character": 0.0}  # clocks of media and annotations differ by a millisecond
_NOTHING: Mapping[str, str] = {}


class Rows:
    """Collects the intervals of one file."""

    def __init__(self, file: File, unit: Unit) -> None:
        self.file = file
        self.unit: Unit = unit
        self.where: list[object] = []
        self.columns: dict[str, list[Any]] = {
            name: []
            for name in ("sequence", "start", "end", "label", "probability", "source", "resolution", "attributes")
        }
        self._append = tuple(column.append for column in self.columns.values())

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
        self.where.append(where)
        values = (sequence, start, end, label, probability, source, resolution, attributes)
        for append, value in zip(self._append, values, strict=True):
            append(value)

    def done(self, recordings: Mapping[str, Recording] | None = None, asked: Asked | None = None) -> Segments:
        """The segments, once all of them are known to be intervals inside their recordings."""
        given = self.columns["probability"]
        probability = np.array([np.nan if one is None else one for one in given], dtype=np.float64)
        start, end = (np.array(self.columns[name], dtype=np.float64) for name in ("start", "end"))
        bad = find_bad(start, end, probability)
        if bad is not None:
            raise self.file.error(f"{bad[1]}.", self.where[bad[0]])
        known = dict(recordings or {})
        self._check_ends(start, end, known)
        words: dict[str, Any] = {
            name: tuple(self.columns[name]) for name in ("sequence", "label", "source", "resolution", "attributes")
        }
        return Segments(
            **words,
            start=start,
            end=end,
            probability=probability,
            unit=self.unit,
            recordings=known,
            asked=asked,
        )

    def _check_ends(self, start: Any, end: Any, recordings: Mapping[str, Recording]) -> None:
        sizes = {name: about.size(self.unit) for name, about in recordings.items()}
        if all(size is None for size in sizes.values()):
            return
        limits = np.array([sizes.get(name) or np.inf for name in self.columns["sequence"]], dtype=np.float64)
        late = np.where(np.isinf(end), start, end) > limits + _SLACK[self.unit]
        if late.any():
            row = int(np.argmax(late))
            raise self.file.error(
                f"an interval must not reach beyond the end of its recording; found {start[row]:g} to {end[row]:g} in "
                f"{self.columns['sequence'][row]!r}, which ends at {limits[row]:g} ({self.unit}s).",
                self.where[row],
            )

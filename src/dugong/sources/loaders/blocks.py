"""A fast sensor at the pace of the rules: rows become blocks of a fixed time, one element each.

In: columns with a time column or a known rate, and how long an element is to be. Out: `Rows` with one row per block
(the mean, median or another summary of its rows), or `Blocks`, where an element is the block of rows itself. A block
without any row is missing: NaN, never zero and never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from dugong.sources.loaders.errors import LoaderError, in_file
from dugong.sources.loaders.regular import UNITS, Clock, seconds_since_start
from dugong.sources.loaders.rows import Rows
from dugong.types import AnyArray, FloatArray, IntArray

Reduce = str | Callable[[AnyArray], Any] | None
_SUMMARIES: Mapping[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
    "std": np.std,
    "sum": np.sum,
}
_UNITS = {**UNITS, "min": 60.0, "h": 3600.0}


def read_duration(text: object, what: str = "every=") -> float:
    """Seconds of ``"0.5s"``, ``"250ms"``, ``"1min"`` or of a plain number."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text)
    else:
        found = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z]+)\s*", str(text))
        if found is None or found[2] not in _UNITS or found[1].count(".") > 1:
            raise LoaderError(f'{what} must be a time such as "1s", "250ms" or "1min"; found {text!r}.')
        seconds = float(found[1]) * _UNITS[found[2]]
    if not 0 < seconds < np.inf:
        raise LoaderError(f"{what} must be longer than nothing; found {text!r}.")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How rows become elements.

    Attributes
    ----------
    seconds : float
        Length of an element.
    reduce : str, function or None
        What becomes of the numbers of a block; None keeps the block as it is.
    """

    seconds: float
    reduce: Reduce = "mean"

    def __post_init__(self) -> None:
        if self.reduce is not None and not callable(self.reduce) and self.reduce not in _SUMMARIES:
            known = ", ".join(map(repr, _SUMMARIES))
            raise LoaderError(f"reduce= must be {known}, a function of an array, or None; found {self.reduce!r}.")


class Blocks:
    """A recording as blocks of rows: ``blocks[3]`` are the `Rows` of its fourth element.

    ``blocks["force"]`` is that column of all its rows, so that a rule about a window need not know of blocks.

    Attributes
    ----------
    rows : all rows
    offsets : (n_blocks + 1,) first row of every block
    clock : (start in seconds, blocks per second)
    """

    __slots__ = ("clock", "offsets", "rows")

    def __init__(self, rows: Rows, offsets: IntArray, clock: tuple[float, float]) -> None:
        self.rows = rows
        self.offsets = offsets
        self.clock = clock

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, key: int) -> Rows: ...
    @overload
    def __getitem__(self, key: slice) -> Blocks: ...
    @overload
    def __getitem__(self, key: str) -> AnyArray: ...
    def __getitem__(self, key: int | slice | str) -> Rows | Blocks | AnyArray:
        if isinstance(key, str):
            return self.rows[key][self.offsets[0] : self.offsets[-1]]
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step != 1:
                raise IndexError("blocks of rows are cut in steps of 1")
            start = self.clock[0] + first / self.clock[1]
            return Blocks(self.rows, self.offsets[first : max(first, last) + 1], (start, self.clock[1]))
        if not -len(self) <= key < len(self):
            raise IndexError(f"block {key} of a recording with {len(self)} blocks")
        place = int(key) % len(self)
        return self.rows[int(self.offsets[place]) : int(self.offsets[place + 1])]

    def __iter__(self) -> Iterator[Rows]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"Blocks({len(self)} blocks of {1 / self.clock[1]:g} s; {', '.join(self.rows.columns)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, (self.rows, self.offsets, self.clock)


def cut(columns: dict[str, AnyArray], clock: Clock | float, cutting: Cutting, path: Path) -> Rows | Blocks:
    """Cut the rows of one file into blocks of time; `clock` is the time column, or rows per second without one."""
    start, seconds = _times(columns, clock, path)
    _check_forward(seconds, path)
    # A time at the border of two blocks belongs to the later one, also where its last digit was rounded down.
    owner = np.floor(seconds / cutting.seconds + 1e-9).astype(np.int64)
    n_blocks = int(owner[-1]) + 1 if len(owner) else 0
    if n_blocks > 1000 * max(1, len(owner)):
        text = f"{len(owner)} rows cover {seconds[-1]:g} s, which is {n_blocks} blocks.\n  Check time_unit= and every="
        raise in_file(path, text)
    offsets = np.searchsorted(owner, np.arange(n_blocks + 1))
    found = (start, 1.0 / cutting.seconds)
    if cutting.reduce is None:
        return Blocks(Rows(columns), offsets, found)
    summary = _SUMMARIES[cutting.reduce] if isinstance(cutting.reduce, str) else cutting.reduce
    missing = np.diff(offsets) == 0
    reduced = {name: _reduced(column, offsets, summary) for name, column in columns.items()}
    if isinstance(clock, Clock):
        reduced[clock.column] = _starts(columns[clock.column], cutting.seconds, n_blocks, clock)
    return Rows(reduced, missing=missing, clock=found)


def _times(columns: dict[str, AnyArray], clock: Clock | float, path: Path) -> tuple[float, FloatArray]:
    if isinstance(clock, Clock):
        return seconds_since_start(columns, clock, path)
    return 0.0, np.arange(len(next(iter(columns.values())))) / clock


def _check_forward(seconds: FloatArray, path: Path) -> None:
    backwards = np.diff(seconds) < 0
    if backwards.any():
        row = int(np.argmax(backwards)) + 1
        raise in_file(
            path,
            f"times must go forward; found {int(backwards.sum())} rows that do not, the first is row {row}: "
            f"{seconds[row]:g} s after {seconds[row - 1]:g} s.\n  Sort the file by time, or remove repeated rows.",
        )


def _reduced(column: AnyArray, offsets: IntArray, summary: Callable[..., Any]) -> AnyArray:
    """One value per block: the summary of numbers that are there, the first of words and times."""
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    if column.dtype.kind not in "biuf":
        empty = np.datetime64("NaT") if column.dtype.kind == "M" else None
        values = [column[first] if last > first else empty for first, last in bounds]
        return np.array(values, dtype=column.dtype if column.dtype.kind == "M" else object)
    numbers = column.astype(np.float64)
    out = np.full((len(bounds), *column.shape[1:]), np.nan)
    for place, (first, last) in enumerate(bounds):
        block = numbers[first:last]
        block = block[~np.isnan(block).any(axis=tuple(range(1, block.ndim)))]
        if len(block):
            out[place] = summary(block, axis=0) if column.ndim > 1 else summary(block)
    return out


def _starts(stamps: AnyArray, seconds: float, n_blocks: int, clock: Clock) -> AnyArray:
    """The time column: when each block begins, in the unit of the file."""
    steps = np.arange(n_blocks) * seconds
    if stamps.dtype.kind == "M":
        return np.asarray(stamps[:1] + np.rint(steps * 1e9).astype("timedelta64[ns]"))
    return np.asarray(stamps[:1] + steps / UNITS[clock.unit])

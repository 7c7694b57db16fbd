"""When rows happen: gaps in time become missing rows, and a fast sensor becomes blocks of a fixed time.

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

from dugong.exceptions import LoaderError
from dugong.sources.loaders.arrow import Rows, in_file
from dugong.types import AnyArray, FloatArray, IntArray

# --- a sensor that pauses: from rows with gaps in time to a regular grid with missing values -------------------------
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NO_DATE = 1e11  # seconds, in the year 5138; milliseconds since 1970 are beyond it from 1973 on
_TOO_SPARSE = 1000  # grid points per row, beyond which the rate or the unit must be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time column of a file, and how many rows there should be per second.

    Attributes
    ----------
    rate : rows per second
    unit : of the time column, if it holds numbers; timestamps know theirs
    tolerance : how far a row may be from its grid point, in rows
    """

    column: str
    rate: float
    unit: str = "s"
    tolerance: float = 0.25

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise LoaderError(f"time_unit= must be one of {', '.join(map(repr, UNITS))}; found {self.unit!r}.")
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise LoaderError(f"rate= must be a positive number of rows per second; found {self.rate}.")


def regularise(columns: dict[str, AnyArray], clock: Clock, path: Path) -> Rows:
    """Put every row on its grid point and fill the others with missing values."""
    start, seconds = seconds_since_start(columns, clock, path)
    if len(seconds) == 0:
        return Rows(columns, clock=(0.0, clock.rate))
    stamps = columns[clock.column]
    places = _places(seconds, clock, path)
    present = np.zeros(int(places[-1]) + 1, dtype=np.bool_)
    present[places] = True
    filled = {name: _spread(column, places, present) for name, column in columns.items()}
    if not present.all():
        filled[clock.column] = _grid_times(stamps, filled[clock.column], present, clock)
    return Rows(filled, missing=~present, clock=(start, clock.rate))


def seconds_since_start(columns: dict[str, AnyArray], clock: Clock, path: Path) -> tuple[float, FloatArray]:
    """The first time, and the seconds since then."""
    if clock.column not in columns:
        raise in_file(path, f"there is no time column {clock.column!r}; known are {', '.join(map(repr, columns))}.")
    stamps = columns[clock.column]
    if len(stamps) == 0:
        return 0.0, np.zeros(0)
    unknown = np.isnat(stamps) if stamps.dtype.kind == "M" else _not_finite(stamps, clock, path)
    if unknown.any():
        raise in_file(
            path,
            f"every row needs a time; column {clock.column!r} has none in {int(unknown.sum())} rows, "
            f"the first is row {int(np.argmax(unknown))}.",
        )
    if stamps.dtype.kind == "M":
        nanoseconds = stamps.astype("datetime64[ns]").astype(np.int64)
        return float(nanoseconds[0]) * 1e-9, (nanoseconds - nanoseconds[0]) * 1e-9
    if clock.unit == "s" and stamps[0] > _NO_DATE:
        raise in_file(
            path,
            f"column {clock.column!r} begins with {stamps[0]:.0f}, which is no date in seconds. Say what it counts, as "
            'in time_unit="ms".',
        )
    scale = UNITS[clock.unit]
    return float(stamps[0]) * scale, np.asarray((stamps - stamps[0]) * scale, dtype=np.float64)


def _not_finite(stamps: AnyArray, clock: Clock, path: Path) -> AnyArray:
    if stamps.dtype.kind not in "iuf":
        raise in_file(
            path,
            f"column {clock.column!r} must hold numbers, or dates such as 2024-03-01 12:00:00.5; found {stamps[0]!r}.",
        )
    return np.asarray(~np.isfinite(stamps))


def _places(seconds: FloatArray, clock: Clock, path: Path) -> IntArray:
    exact = seconds * clock.rate
    nearest = np.rint(exact)
    backwards = np.diff(nearest) < 1
    if backwards.any():
        row = int(np.argmax(backwards)) + 1
        raise in_file(
            path,
            f"times must go forward, one row per 1/{clock.rate:g} s; found {int(backwards.sum())} rows that "
            f"do not, the first is row {row}: {seconds[row]:g} s after {seconds[row - 1]:g} s.\n"
            "  Check rate= and time_unit=, or remove repeated rows.",
        )
    if nearest[-1] > _TOO_SPARSE * len(seconds):
        raise in_file(
            path,
            f"{len(seconds)} rows cover {seconds[-1]:g} s, which is {nearest[-1]:.0f} rows at {clock.rate:g} "
            "per second.\n  Check rate= and time_unit=.",
        )
    away = np.abs(exact - nearest)
    if away.max() > clock.tolerance:
        row = int(np.argmax(away))
        raise in_file(
            path,
            f"times must lie within {clock.tolerance:g} rows of a grid of {clock.rate:g} per second; "
            f"row {row} is {away[row]:.2f} away.\n"
            "  Check rate= and time_unit=, resample the file, or pass a larger tolerance=.",
        )
    return nearest.astype(np.int64)


def _spread(column: AnyArray, places: IntArray, present: AnyArray) -> AnyArray:
    if present.all():
        return column
    empty = {
        "f": np.nan,
        "i": np.nan,
        "u": np.nan,
        "b": np.nan,
        "M": np.datetime64("NaT"),
        "m": np.timedelta64("NaT"),
    }
    kind = column.dtype.kind
    dtype = np.dtype(np.float64) if kind in "iub" else column.dtype if kind in "fMm" else np.dtype(object)
    spread = np.full((len(present), *column.shape[1:]), empty.get(kind), dtype=dtype)
    spread[places] = column
    return spread


def _grid_times(stamps: AnyArray, spread: AnyArray, present: AnyArray, clock: Clock) -> AnyArray:
    """The time column without holes: measured where a row was, of the grid where none was."""
    gaps = np.flatnonzero(~present) / clock.rate
    times = spread.copy()
    if stamps.dtype.kind == "M":
        times[~present] = stamps[0] + np.rint(gaps * 1e9).astype("timedelta64[ns]")
    else:
        times[~present] = stamps[0] + gaps / UNITS[clock.unit]
    return times


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


def check_reduce(reduce: Reduce) -> None:
    """Raise unless blocks can be reduced like this."""
    if reduce is not None and not callable(reduce) and reduce not in _SUMMARIES:
        known = ", ".join(map(repr, _SUMMARIES))
        raise LoaderError(f"reduce= must be {known}, a function of an array, or None; found {reduce!r}.")


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


def cut(columns: dict[str, AnyArray], clock: Clock | float, every: float, reduce: Reduce, path: Path) -> Rows | Blocks:
    """Cut the rows of one file into blocks of `every` seconds; `clock` is the time column, or rows per second."""
    start, seconds = _times(columns, clock, path)
    _check_forward(seconds, path)
    # A time at the border of two blocks belongs to the later one, also where its last digit was rounded down.
    owner = np.floor(seconds / every + 1e-9).astype(np.int64)
    n_blocks = int(owner[-1]) + 1 if len(owner) else 0
    if n_blocks > 1000 * max(1, len(owner)):
        text = f"{len(owner)} rows cover {seconds[-1]:g} s, which is {n_blocks} blocks.\n  Check time_unit= and every="
        raise in_file(path, text)
    offsets = np.searchsorted(owner, np.arange(n_blocks + 1))
    found = (start, 1.0 / every)
    if reduce is None:
        return Blocks(Rows(columns), offsets, found)
    summary = _SUMMARIES[reduce] if isinstance(reduce, str) else reduce
    missing = np.diff(offsets) == 0
    reduced = {name: _reduced(column, offsets, summary) for name, column in columns.items()}
    if isinstance(clock, Clock):
        reduced[clock.column] = _starts(columns[clock.column], every, n_blocks, clock)
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

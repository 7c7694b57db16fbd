"""When rows happen: gaps in time become missing rows, and a fast sensor becomes blocks of a fixed time.

In: columns with a time column or a known rate, and how long an element is to be. Out: `Rows` with one row per block
(the mean, median or another summary of its rows), or `Blocks`, where an element is the block of rows itself. A block
without any row is missing: NaN, never zero and never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from dugong.exceptions import LoaderError
from dugong.sources.loaders.arrow import Rows, in_file, unknown_column
from dugong.types import AnyArray, FloatArray, IntArray

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DURATIONS = {**UNITS, "min": 60.0, "h": 3600.0}
_NO_DATE = 1e11  # seconds, in the year 5138; milliseconds since 1970 are beyond it from 1973 on
_TOO_SPARSE = 1000  # grid points or blocks per row, beyond which the rate or the unit must be wrong
Reduce = str | Callable[[AnyArray], Any] | None
_SUMMARIES: dict[str, Callable[..., Any]] = {
    name: getattr(np, name) for name in ("mean", "median", "min", "max", "std", "sum")
}


def read_duration(text: object, what: str = "every=") -> float:
    """Seconds of ``"0.5s"``, ``"250ms"``, ``"1min"`` or of a plain number."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text)
    else:
        found = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z]+)\s*", str(text))
        if found is None or found[2] not in _DURATIONS or found[1].count(".") > 1:
            raise LoaderError(f'{what} must be a time such as "1s", "250ms" or "1min"; found {text!r}.')
        seconds = float(found[1]) * _DURATIONS[found[2]]
    if not 0 < seconds < np.inf:
        raise LoaderError(f"{what} must be longer than nothing; found {text!r}.")
    return seconds


@dataclass(frozen=True, slots=True)
class Timing:
    """When the rows of a file happen, and how they become elements: of a row each, or of some time.

    Attributes
    ----------
    time : the column that holds it, if there is one
    rate : rows per second, where that is known
    unit : of the time column, if it holds numbers; timestamps know theirs
    tolerance : how far a row may be from its grid point, in rows
    every : how long an element is, if not a row
    reduce : what the rows of an element become
    """

    time: str | None
    rate: float | None
    unit: str
    tolerance: float
    every: str | float | None
    reduce: Reduce

    def __post_init__(self) -> None:
        known, reduce = self.seconds is not None, self.reduce
        if known and reduce is not None and not callable(reduce) and reduce not in _SUMMARIES:
            names = ", ".join(map(repr, _SUMMARIES))
            raise LoaderError(f"reduce= must be {names}, a function of an array, or None; found {reduce!r}.")
        if self.time is not None and self.rate is None and not known:
            raise LoaderError(
                f'time={self.time!r} needs every= (the length of an element, as in every="1s") or rate= (rows per '
                'second, never guessed from the file).\n  In a project.toml: a line such as every = "1s", or rate = 64.'
            )
        if known and self.time is None and self.rate is None:
            raise LoaderError(
                f"every={self.every!r} needs time= (the column with the times) or rate= (rows per second).\n"
                '  In a project.toml: a line such as time = "t".'
            )
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise LoaderError(f"rate= must be a positive number of rows per second; found {self.rate}.")
        if self.time is not None and self.unit not in UNITS:
            raise LoaderError(f"time_unit= must be one of {', '.join(map(repr, UNITS))}; found {self.unit!r}.")

    @property
    def seconds(self) -> float | None:
        """How long an element is, if not a row."""
        return None if self.every is None else read_duration(self.every)

    @property
    def element_rate(self) -> float | None:
        """Elements per second."""
        return self.rate if self.seconds is None else 1.0 / self.seconds

    def elements(self, columns: dict[str, AnyArray], path: Path) -> Rows | Blocks:
        """The rows of one file as elements."""
        if self.seconds is not None:
            return cut(columns, self, self.seconds, path)
        if self.rate is None or self.time is None:
            return Rows(columns, clock=None if self.rate is None else (0.0, self.rate))
        return regularise(columns, self, self.rate, path)

    def stamps_at(self, stamps: AnyArray, seconds: AnyArray) -> AnyArray:
        """The time column so many seconds after its first row, in the unit of the file."""
        if stamps.dtype.kind == "M":
            return np.asarray(stamps[:1] + np.rint(seconds * 1e9).astype("timedelta64[ns]"))
        return np.asarray(stamps[:1] + seconds / UNITS[self.unit])


# --- a sensor that pauses: from rows with gaps in time to a regular grid with missing values -------------------------
def regularise(columns: dict[str, AnyArray], timing: Timing, rate: float, path: Path) -> Rows:
    """Put every row on its grid point and fill the others with missing values."""
    start, seconds = _seconds(columns, timing, path)
    if len(seconds) == 0:
        return Rows(columns, clock=(0.0, rate))
    places = _places(seconds, rate, timing.tolerance, path)
    present = np.zeros(int(places[-1]) + 1, dtype=np.bool_)
    present[places] = True
    if present.all():
        return Rows(columns, missing=~present, clock=(start, rate))
    filled = {name: _spread(column, places, present) for name, column in columns.items()}
    name = timing.time or ""
    times = filled[name].copy()  # without holes: measured where a row was, of the grid where none was
    times[~present] = timing.stamps_at(columns[name], np.flatnonzero(~present) / rate)
    return Rows(filled | {name: times}, missing=~present, clock=(start, rate))


def _seconds(columns: dict[str, AnyArray], timing: Timing, path: Path) -> tuple[float, FloatArray]:
    """The first time, and the seconds since then."""
    name = timing.time or ""
    if name not in columns:
        raise in_file(path, f"there is no time column {name!r}; known are {', '.join(map(repr, columns))}.")
    stamps = columns[name]
    if len(stamps) == 0:
        return 0.0, np.zeros(0)
    unknown = np.isnat(stamps) if stamps.dtype.kind == "M" else _not_finite(stamps, name, path)
    if unknown.any():
        raise in_file(
            path,
            f"every row needs a time; column {name!r} has none in {int(unknown.sum())} rows, "
            f"the first is row {int(np.argmax(unknown))}.",
        )
    if stamps.dtype.kind == "M":
        nanoseconds = stamps.astype("datetime64[ns]").astype(np.int64)
        return float(nanoseconds[0]) * 1e-9, (nanoseconds - nanoseconds[0]) * 1e-9
    if timing.unit == "s" and stamps[0] > _NO_DATE:
        raise in_file(
            path,
            f"column {name!r} begins with {stamps[0]:.0f}, which is no date in seconds. Say what it counts, as "
            'in time_unit="ms".',
        )
    scale = UNITS[timing.unit]
    return float(stamps[0]) * scale, np.asarray((stamps - stamps[0]) * scale, dtype=np.float64)


def _not_finite(stamps: AnyArray, name: str, path: Path) -> AnyArray:
    if stamps.dtype.kind not in "iuf":
        raise in_file(
            path, f"column {name!r} must hold numbers, or dates such as 2024-03-01 12:00:00.5; found {stamps[0]!r}."
        )
    return np.asarray(~np.isfinite(stamps))


def _places(seconds: FloatArray, rate: float, tolerance: float, path: Path) -> IntArray:
    exact = seconds * rate
    nearest = np.rint(exact)
    _check_forward(seconds, np.diff(nearest) < 1, path, f", one row per 1/{rate:g} s", "Check rate= and time_unit=")
    if nearest[-1] > _TOO_SPARSE * len(seconds):
        raise in_file(
            path,
            f"{len(seconds)} rows cover {seconds[-1]:g} s, which is {nearest[-1]:.0f} rows at {rate:g} "
            "per second.\n  Check rate= and time_unit=.",
        )
    away = np.abs(exact - nearest)
    if away.max() > tolerance:
        row = int(np.argmax(away))
        raise in_file(
            path,
            f"times must lie within {tolerance:g} rows of a grid of {rate:g} per second; "
            f"row {row} is {away[row]:.2f} away.\n"
            "  Check rate= and time_unit=, resample the file, or pass a larger tolerance=.",
        )
    return nearest.astype(np.int64)


def _check_forward(seconds: FloatArray, backwards: AnyArray, path: Path, how: str, hint: str) -> None:
    if backwards.any():
        row = int(np.argmax(backwards)) + 1
        raise in_file(
            path,
            f"times must go forward{how}; found {int(backwards.sum())} rows that do not, the first is row {row}: "
            f"{seconds[row]:g} s after {seconds[row - 1]:g} s.\n  {hint}, or remove repeated rows.",
        )


def _spread(column: AnyArray, places: IntArray, present: AnyArray) -> AnyArray:
    kind = column.dtype.kind
    empty = dict.fromkeys("fiub", np.nan) | {"M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}
    dtype = np.dtype(np.float64) if kind in "iub" else column.dtype if kind in "fMm" else np.dtype(object)
    spread = np.full((len(present), *column.shape[1:]), empty.get(kind), dtype=dtype)
    spread[places] = column
    return spread


# --- a fast sensor: blocks of rows, or one row for each --------------------------------------------------------------
class Blocks:
    """A recording as blocks of rows: ``blocks[3]`` are the `Rows` of its fourth element.

    ``blocks["force"]`` or ``blocks.force`` is that column of all its rows, so that a rule about a window need not know
    of blocks.

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

    def __getattr__(self, name: str) -> AnyArray:
        if name in Blocks.__slots__ or name not in self.rows.columns:
            raise AttributeError(name if name in Blocks.__slots__ else unknown_column(name, self.rows.columns))
        return self[name]

    def __iter__(self) -> Iterator[Rows]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"Blocks({len(self)} blocks of {1 / self.clock[1]:g} s; {', '.join(self.rows.columns)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, (self.rows, self.offsets, self.clock)


def cut(columns: dict[str, AnyArray], timing: Timing, every: float, path: Path) -> Rows | Blocks:
    """Cut the rows of one file into blocks of `every` seconds, by their times or, without these, their rate."""
    if timing.time is not None:
        start, seconds = _seconds(columns, timing, path)
    else:
        start, seconds = 0.0, np.arange(len(next(iter(columns.values())))) / (timing.rate or 1.0)
    _check_forward(seconds, np.diff(seconds) < 0, path, "", "Sort the file by time")
    # A time at the border of two blocks belongs to the later one, also where its last digit was rounded down.
    owner = np.floor(seconds / every + 1e-9)
    n_blocks = float(owner[-1]) + 1 if len(owner) else 0.0  # may be more than whole numbers count
    if n_blocks > _TOO_SPARSE * max(1, len(owner)):
        covered = f"{len(owner)} rows cover {seconds[-1]:g} s, which is {n_blocks:.0f} blocks"
        raise in_file(path, f"{covered}.\n  Check time_unit= and every=")
    offsets = np.searchsorted(owner, np.arange(n_blocks + 1))
    clock = (start, 1.0 / every)
    if timing.reduce is None:
        return Blocks(Rows(columns), offsets, clock)
    summary = _SUMMARIES[timing.reduce] if isinstance(timing.reduce, str) else timing.reduce
    reduced = {name: _reduced(column, offsets, summary) for name, column in columns.items()}
    if timing.time is not None:
        reduced[timing.time] = timing.stamps_at(columns[timing.time], np.arange(n_blocks) * every)
    return Rows(reduced, missing=np.diff(offsets) == 0, clock=clock)


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

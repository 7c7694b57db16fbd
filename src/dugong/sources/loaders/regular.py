"""A sensor that pauses: from rows with gaps in time to a regular grid with missing values.

In: columns, one of which is the time, and the known rate. Out: `Rows` with one row per grid point. A pause
becomes NaN, never zero and never a jump in time. The rate is not guessed, and a file that does not fit it is
an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dugong.sources.loaders.errors import LoaderError, in_file
from dugong.sources.loaders.rows import Rows
from dugong.types import AnyArray, FloatArray, IntArray

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NO_DATE = 1e11  # seconds, in the year 5138; milliseconds since 1970 are beyond it from 1973 on
_TOO_SPARSE = 1000  # grid points per row, beyond which the rate or the unit must be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time column of a file, and how many rows there should be per second.

    Attributes
    ----------
    column : str
    rate : float
        Rows per second.
    unit : {"s", "ms", "us", "ns"}
        Of the time column, if it holds numbers; timestamps know theirs.
    tolerance : float
        How far a row may be from its grid point, in rows.
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

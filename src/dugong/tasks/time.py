"""When the elements happen: the explicit way from seconds to elements.

In: a rate (elements per second) or timestamps for every sequence, and a start offset. Out: element bounds,
with a report of every bound that had to move. Without a rate or timestamps nothing is converted: a frame rate
is never guessed. An element at a rate is a piece of time and belongs to a span if its centre does, so that
spans that tile the time also tile the elements; an element with a timestamp belongs to a span if that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.codec import Restorable, show
from dugong.exceptions import TaskError
from dugong.tasks.layout import offsets_of, pieces_of
from dugong.types import AnyArray, FloatArray, IntArray, read_only

_ARRAYS = ("start", "rate", "stamps", "offsets")
_REGULAR = 0.01  # by how much of a step the steps of one rate may differ
_SAME = 1e-9  # seconds: closer than this, a bound is the time stamp of an element
_SNAP = 6  # decimals of an element: closer than this, a bound lies on the border of an element


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """What the conversion from seconds to elements moved.

    Attributes
    ----------
    n_bounds : starts and ends that were converted
    n_moved : those that did not lie on the border of an element
    largest : the largest distance that one of them moved, in seconds
    n_empty : spans that hold no element at all (shorter than an element, between two centres)
    """

    n_bounds: int = 0
    n_moved: int = 0
    largest: float = 0.0
    n_empty: int = 0

    def __str__(self) -> str:
        text = f"{self.n_moved:,} of {self.n_bounds:,} bounds moved to an element border"
        text += f", by {self.largest:.3g} s at most" if self.n_moved else ""
        return text if self.n_empty == 0 else f"{text}; {self.n_empty:,} spans hold no element"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElementSpans:
    """Half-open element spans, and what rounding did to them."""

    starts: IntArray
    stops: IntArray
    rounding: Rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeAxis(Restorable):
    """The clock of every sequence; build it with `from_rate` or `from_timestamps`.

    Attributes
    ----------
    start : (n_sequences,) seconds at which each sequence begins
    rate : (n_sequences,) elements per second, or None with timestamps
    stamps : (n_elements,) seconds after `start` at which each element happens, flat, or None with rates
    offsets : (n_sequences + 1,) place of each sequence in `stamps`, or None with rates
    rounding : what was moved when votes in seconds were read onto this axis
    """

    start: FloatArray
    rate: FloatArray | None = None
    stamps: FloatArray | None = None
    offsets: IntArray | None = None
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        for field in _ARRAYS:
            value = getattr(self, field)
            if value is not None:
                dtype = np.int64 if field == "offsets" else np.float64
                object.__setattr__(self, field, read_only(np.ascontiguousarray(value, dtype=dtype)))
        _check_axis(self)

    # --- constructors ------------------------------------------------------------------------------
    @classmethod
    def from_rate(
        cls,
        rate: float | ArrayLike | Mapping[Any, float],
        *,
        n_sequences: int | None = None,
        ids: Iterable[Any] | None = None,
        start: float | ArrayLike | Mapping[Any, float] = 0.0,
    ) -> TimeAxis:
        """Equally spaced elements.

        Parameters
        ----------
        rate : float, array or mapping of sequence id to float
            Elements per second; one number stands for all sequences.
        n_sequences : int, optional
            How many sequences there are; needed unless `ids` are given or `rate` is an array.
        ids : iterable, optional
            Ids of the sequences in order; needed if `rate` or `start` is a mapping.
        start : float, array or mapping
            Seconds on the clock at which a sequence begins.
        """
        names = None if ids is None else list(ids)
        count = len(names) if names is not None else n_sequences
        if count is None:
            if isinstance(rate, Mapping) or np.ndim(rate) == 0:
                raise TaskError("one rate stands for any number of sequences; pass n_sequences= or ids=.")
            count = len(np.asarray(rate))
        rates = _per_sequence(rate, count, names, "rate")
        return cls(start=_per_sequence(start, count, names, "start"), rate=rates)

    @classmethod
    def from_timestamps(
        cls,
        timestamps: Iterable[ArrayLike] | Mapping[Any, ArrayLike],
        *,
        ids: Iterable[Any] | None = None,
        start: float | ArrayLike | Mapping[Any, float] = 0.0,
    ) -> TimeAxis:
        """One increasing list of seconds per sequence, or a mapping of sequence id to such a list."""
        names = None if ids is None else list(ids)
        if isinstance(timestamps, Mapping):
            names = list(timestamps) if names is None else names
            _require_known(timestamps, names, "timestamps")
            pieces = [np.asarray(timestamps[name], dtype=np.float64) for name in names]
        else:
            pieces = [np.asarray(piece, dtype=np.float64) for piece in timestamps]
        starts, stamps = _per_sequence(start, len(pieces), names, "start"), np.concatenate([np.empty(0), *pieces])
        return cls(start=starts, stamps=stamps, offsets=offsets_of([len(piece) for piece in pieces]))

    # --- reading -----------------------------------------------------------------------------------
    @property
    def n_sequences(self) -> int:
        """Number of sequences that have a clock here."""
        return len(self.start)

    @property
    def _stamped(self) -> tuple[FloatArray, IntArray]:
        """Timestamps and their offsets, of an axis that has no rates."""
        assert self.stamps is not None
        assert self.offsets is not None
        return self.stamps, self.offsets

    @property
    def common_rate(self) -> float | None:
        """Elements per second, where that is one number for all sequences; timestamps must then be regular."""
        if self.rate is not None:
            steps = 1.0 / self.rate
        else:
            stamps, offsets = self._stamped
            steps = np.delete(np.diff(stamps), offsets[1:-1][offsets[1:-1] > 0] - 1)
        if len(steps) == 0:
            return None
        step = float(np.median(steps))
        return 1.0 / step if np.abs(steps - step).max() <= _REGULAR * step else None

    def to_elements(self, sequences: ArrayLike, starts: ArrayLike, stops: ArrayLike) -> ElementSpans:
        """Convert half-open spans in seconds to half-open spans of elements, counted inside each sequence.

        Parameters
        ----------
        sequences : (n,) places of the sequences on this axis
        starts, stops : (n,) seconds
        """
        owner = np.asarray(sequences, dtype=np.int64)
        bounds = [np.asarray(bound, dtype=np.float64) for bound in (starts, stops)]
        _check_seconds(owner, bounds[0], bounds[1])
        if self.stamps is not None:
            self._check_near(owner, bounds[0], bounds[1])
        convert = self._by_rate if self.rate is not None else self._by_stamp
        (first, gap_first), (last, gap_last) = (convert(owner, bound) for bound in bounds)
        moved = np.concatenate([gap_first, gap_last])
        rounding = Rounding(
            n_bounds=len(moved),
            n_moved=int(np.count_nonzero(moved)),
            largest=float(moved.max(initial=0.0)),
            n_empty=int(np.count_nonzero(first >= last)),
        )
        return ElementSpans(starts=first, stops=last, rounding=rounding)

    def seconds(self, sequences: ArrayLike, elements: ArrayLike) -> FloatArray:
        """The time at which elements begin (rate) or happen (timestamps)."""
        owner, places = np.asarray(sequences, dtype=np.int64), np.asarray(elements, dtype=np.int64)
        if self.rate is not None:
            return np.asarray(self.start[owner] + places / self.rate[owner])
        stamps, offsets = self._stamped
        if ((places < 0) | (places >= np.diff(offsets)[owner])).any():
            raise TaskError("elements must exist to have a timestamp; found some outside of their sequence.")
        return np.asarray(self.start[owner] + stamps[offsets[owner] + places])

    def borders(self, sequences: ArrayLike, places: ArrayLike) -> FloatArray:
        """The seconds of borders between elements; with timestamps the last element lasts as long as the one before."""
        owner, wanted = np.asarray(sequences, dtype=np.int64), np.asarray(places, dtype=np.int64)
        if self.offsets is None or not len(owner):
            return self.seconds(owner, wanted)
        last = np.maximum(np.diff(self.offsets)[owner] - 1, 0)
        found = self.seconds(owner, np.minimum(wanted, last))
        step = found - self.seconds(owner, np.maximum(last - 1, 0))
        return np.asarray(np.where(wanted > last, found + step, found))

    def _by_rate(self, owner: IntArray, seconds: FloatArray) -> tuple[IntArray, FloatArray]:
        assert self.rate is not None
        exact = np.round((seconds - self.start[owner]) * self.rate[owner], _SNAP)
        elements = np.ceil(exact - 0.5)
        return elements.astype(np.int64), np.abs(exact - elements) / self.rate[owner]

    def _by_stamp(self, owner: IntArray, seconds: FloatArray) -> tuple[IntArray, FloatArray]:
        every, offsets = self._stamped
        elements = np.zeros(len(owner), dtype=np.int64)
        gaps = np.zeros(len(owner))
        by_owner = np.argsort(owner, kind="stable")
        present, first = np.unique(owner[by_owner], return_index=True)
        for sequence, rows in zip(present.tolist(), np.split(by_owner, first[1:]), strict=True):
            stamps = every[offsets[sequence] : offsets[sequence + 1]]
            elements[rows] = np.searchsorted(stamps, seconds[rows] - self.start[sequence] - _SAME, side="left")
            inside = rows[elements[rows] < len(stamps)]
            gaps[inside] = stamps[elements[inside]] - (seconds[inside] - self.start[sequence])
        return elements, np.round(gaps, 2 * _SNAP)

    def _check_near(self, owner: IntArray, starts: FloatArray, stops: FloatArray) -> None:
        """Raise if a span lies wholly before the first or after the last timestamp of its sequence."""
        stamps, offsets = self._stamped
        low, high = offsets[:-1][owner], offsets[1:][owner] - 1
        padded = np.append(stamps, 0.0)
        bad = (
            (high < low)
            | (stops - self.start[owner] <= padded[low])
            | (starts - self.start[owner] - _SAME > padded[high])
        )
        if bad.any():
            row = int(np.argmax(bad))
            raise TaskError(
                f"a span in seconds must touch the timestamps of its sequence; found {int(bad.sum())} that do not, the "
                f"first at row {row}, sequence {owner[row]}: [{starts[row]}, {stops[row]})."
            )

    # --- parts and plain data ----------------------------------------------------------------------
    def select(self, sequences: ArrayLike) -> TimeAxis:
        """The clocks of some sequences, in the given order."""
        chosen = np.asarray(sequences, dtype=np.int64)
        if self.rate is not None:
            return replace(self, start=self.start[chosen], rate=self.rate[chosen])
        stamps, offsets = self._stamped
        offsets, rows = pieces_of(offsets, chosen)
        return replace(self, start=self.start[chosen], stamps=stamps[rows], offsets=offsets)

    @classmethod
    def concat(cls, axes: Iterable[TimeAxis]) -> TimeAxis:
        """The clocks of all sequences, one axis after the other; all have rates, or all have timestamps."""
        parts = list(axes)
        start = np.concatenate([part.start for part in parts])
        if all(part.rate is not None for part in parts):
            return cls(start=start, rate=np.concatenate([part.rate for part in parts if part.rate is not None]))
        if any(part.rate is not None for part in parts):
            raise TaskError("time axes with rates and with timestamps do not go together; convert one of them.")
        counts = np.concatenate([np.diff(part.offsets) for part in parts if part.offsets is not None])
        stamps = np.concatenate([part.stamps for part in parts if part.stamps is not None])
        return cls(start=start, stamps=stamps, offsets=offsets_of(counts))

    def equals(self, other: TimeAxis | None) -> bool:
        """Whether two axes are the same clock (the rounding report is no part of it)."""
        return other is not None and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)

    def __repr__(self) -> str:
        if self.rate is not None:
            rates = np.unique(self.rate)
            clock = f"{rates[0]:g} elements/s" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g} elements/s"
        else:
            clock = "timestamps"
        report = "" if self.rounding is None else f"; {self.rounding}"
        return f"TimeAxis({self.n_sequences} sequences, {clock}{report})"


def _per_sequence(value: Any, count: int, ids: list[Any] | None, name: str) -> FloatArray:
    if isinstance(value, Mapping):
        if ids is None:
            raise TaskError(f"{name} by sequence id needs ids=, the sequences in order.")
        _require_known(value, ids, name)
        value = [value[one] for one in ids]
    try:
        array: AnyArray = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TaskError(f"{name} must be one number or one per sequence; found {show(value)}.") from None
    if array.ndim == 0:
        return np.full(count, float(array))
    if array.shape != (count,):
        raise TaskError(f"{name} must be one number or one per sequence; found {array.shape} for {count}.")
    return array


def _require_known(value: Mapping[Any, Any], ids: list[Any], name: str) -> None:
    absent = [one for one in ids if one not in value]
    if absent:
        raise TaskError(
            f"{name} must be given for every sequence; found none for {len(absent)} of them, the first {absent[0]!r}."
        )


def _check_axis(axis: TimeAxis) -> None:
    if (axis.rate is None) == (axis.stamps is None) or (axis.stamps is None) != (axis.offsets is None):
        raise TaskError("a time axis has either rates or timestamps (with offsets); pass exactly one of them.")
    if not np.isfinite(axis.start).all():
        raise TaskError("the start of a sequence must be a finite number of seconds; found NaN or infinity.")
    if axis.rate is not None:
        bad = ~(np.isfinite(axis.rate) & (axis.rate > 0))
        if bad.any():
            raise TaskError(
                f"a rate must be a positive number of elements per second; found {axis.rate[bad][0]} "
                f"for sequence {int(np.argmax(bad))}."
            )
        return
    stamps, offsets = axis._stamped  # noqa: SLF001  (our own)
    backwards = np.diff(stamps, prepend=-np.inf) <= 0
    backwards[offsets[:-1][offsets[:-1] < len(stamps)]] = False
    bad = backwards | ~np.isfinite(stamps)
    if bad.any():
        first = int(np.argmax(bad))
        owner = int(np.searchsorted(offsets, first, side="right")) - 1
        raise TaskError(
            f"timestamps must be finite and increase inside a sequence; found {int(bad.sum())} that do not, "
            f"the first in sequence {owner}, element {first - offsets[owner]}: {stamps[first]}."
        )


def _check_seconds(owner: IntArray, starts: FloatArray, stops: FloatArray) -> None:
    bad = ~(np.isfinite(starts) & np.isfinite(stops) & (starts < stops))
    if bad.any():
        first = int(np.argmax(bad))
        raise TaskError(
            f"a span in seconds must be finite and end after it starts; found {int(bad.sum())} that do not, "
            f"the first at row {first}, sequence {owner[first]}: [{starts[first]}, {stops[first]})."
        )

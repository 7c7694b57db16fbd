"""Where every task lies: from lengths and a resolution to offsets and element bounds.

Tasks run sequence after sequence, and inside a sequence in time. A `Layout` holds, for one resolution, the offset of
every sequence in that flat order; the bounds of the tasks follow from it. Windows never cross a sequence border.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dugong.exceptions import TaskError
from dugong.tasks.resolutions import Element, Resolution, Spans, Window, describe, in_elements
from dugong.types import AnyArray, BoolArray, IntArray, read_only

_ENDLESS = 1 << 60  # more elements than a sequence has


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpanTable:
    """The given pieces of every sequence, flat: `offsets` (n_sequences + 1), `starts`, `stops`."""

    offsets: IntArray
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        for field in ("offsets", "starts", "stops"):
            object.__setattr__(self, field, read_only(np.ascontiguousarray(getattr(self, field), dtype=np.int64)))

    @classmethod
    def from_lists(cls, spans: list[list[tuple[int, int]]]) -> SpanTable:
        """Build from one list of ``(start, stop)`` pairs per sequence."""
        flat = [pair for pairs in spans for pair in pairs]
        bounds = np.array(flat, dtype=np.int64).reshape(len(flat), 2)
        return cls(offsets=offsets_of([len(pairs) for pairs in spans]), starts=bounds[:, 0], stops=bounds[:, 1])

    @classmethod
    def concat(cls, tables: list[SpanTable]) -> SpanTable:
        """The pieces of all sequences, one table after the other."""
        return cls(
            offsets=offsets_of(np.concatenate([np.diff(table.offsets) for table in tables])),
            starts=np.concatenate([table.starts for table in tables]),
            stops=np.concatenate([table.stops for table in tables]),
        )

    def equals(self, other: SpanTable) -> bool:
        """Whether all pieces are the same."""
        return all(np.array_equal(getattr(self, part), getattr(other, part)) for part in self.__slots__)

    def check(self, lengths: IntArray, name: str) -> None:
        """Raise a `TaskError` unless spans are sorted, not empty, apart, and inside their sequence."""
        if len(self.offsets) != len(lengths) + 1:
            raise TaskError(
                f"spans {name!r} must be given for every sequence; "
                f"found {len(self.offsets) - 1} lists for {len(lengths)} sequences."
            )
        counts, n = np.diff(self.offsets), len(self.starts)
        if self.offsets[0] != 0 or (counts < 0).any() or self.offsets[-1] != n or len(self.stops) != n:
            raise TaskError(f"spans {name!r} must be counted by their offsets, from 0 to {n} without a step back.")
        owner = np.repeat(np.arange(len(lengths)), counts)
        outside = (self.starts < 0) | (self.stops > lengths[owner]) | (self.starts >= self.stops)
        if outside.any():
            first = int(np.argmax(outside))
            raise TaskError(
                f"spans {name!r} must lie inside their sequence and hold at least one element; found "
                f"{int(outside.sum())} that do not, the first in sequence {owner[first]}: "
                f"[{self.starts[first]}, {self.stops[first]}) of {lengths[owner[first]]} elements."
            )
        overlap = (owner[1:] == owner[:-1]) & (self.starts[1:] < self.stops[:-1])
        if overlap.any():
            first = int(np.argmax(overlap)) + 1
            raise TaskError(
                f"spans {name!r} must be sorted and must not overlap; found {int(overlap.sum())} that do, "
                f"the first in sequence {owner[first]}: [{self.starts[first]}, {self.stops[first]}) begins "
                f"before {self.stops[first - 1]}.\n"
                "  Use windows with a stride, or one Spans resolution per layer."
            )

    def select(self, sequences: IntArray) -> SpanTable:
        """The spans of some sequences, in the given order."""
        offsets, rows = pieces_of(self.offsets, sequences)
        return SpanTable(offsets=offsets, starts=self.starts[rows], stops=self.stops[rows])


def offsets_of(counts: ArrayLike) -> IntArray:
    """Where each of several pieces begins when they lie one after the other, and where the last one ends."""
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def pieces_of(offsets: IntArray, sequences: IntArray) -> tuple[IntArray, IntArray]:
    """The offsets of some sequences, and the rows of theirs."""
    counts = np.diff(offsets)[sequences]
    return offsets_of(counts), ranges(offsets[:-1][sequences], counts)


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Concatenate ``arange(start, start + count)`` for all pairs, without a Python loop."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    shift = np.repeat(starts - (ends - counts), counts)
    return np.asarray(np.arange(total, dtype=np.int64) + shift)


def stretches(values: AnyArray, offsets: IntArray, breaks: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """First and one-past-last places of the longest runs of equal values; no run crosses a sequence border.

    Parameters
    ----------
    values : (n_elements,)
    offsets : (n_sequences + 1,) where each sequence begins
    breaks : (n_elements,) where a run begins even if the value stays the same, optional
    """
    opens = np.zeros(len(values), dtype=np.bool_) if breaks is None else breaks.copy()
    opens[1:] |= values[1:] != values[:-1]
    opens[offsets[offsets < len(values)]] = True
    starts = np.flatnonzero(opens)
    return starts, np.append(starts[1:], len(values))[: len(starts)]


def count_tasks(resolution: Resolution, lengths: IntArray, spans: Mapping[str, SpanTable] | None = None) -> IntArray:
    """Number of tasks that each sequence has at a resolution, shape (n_sequences,)."""
    if isinstance(resolution, Spans):
        return np.diff(_find_spans(resolution, spans).offsets)
    lengths, (size, stride) = np.asarray(lengths, dtype=np.int64), _reach(resolution)
    further = -(-np.maximum(lengths - size, 0) // stride)
    return np.where(lengths > 0, further + 1, 0)


def _reach(resolution: Resolution) -> tuple[int, int]:
    """Size and stride of tasks: elements are windows of one element, and a sequence is a window without an end."""
    if isinstance(resolution, Window):
        in_elements(resolution, None)  # refuses a window in seconds: its size is not known here
        return resolution.size, resolution.stride
    return (1, 1) if isinstance(resolution, Element) else (_ENDLESS, _ENDLESS)


def _find_spans(resolution: Spans, spans: Mapping[str, SpanTable] | None) -> SpanTable:
    if not spans or resolution.name not in spans:
        raise TaskError(
            f"the resolution {describe(resolution)} needs its spans.\n"
            f"  Pass spans={{{resolution.name!r}: ...}}, one list of (start, stop) per sequence."
        )
    return spans[resolution.name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Offsets of the sequences in the flat task order of one resolution, and the bounds of each task."""

    resolution: Resolution
    lengths: IntArray
    offsets: IntArray
    spans: SpanTable | None = None

    @classmethod
    def of(cls, resolution: Resolution, lengths: IntArray, spans: Mapping[str, SpanTable] | None = None) -> Layout:
        """Lay out one resolution over sequences of the given lengths."""
        offsets = read_only(offsets_of(count_tasks(resolution, lengths, spans)))
        table = _find_spans(resolution, spans) if isinstance(resolution, Spans) else None
        return cls(resolution=resolution, lengths=lengths, offsets=offsets, spans=table)

    def between(self, begin: int, end: int) -> Layout:
        """The layout of sequences begin..end alone."""
        offsets = self.offsets[begin : end + 1]
        rows, offsets = slice(int(offsets[0]), int(offsets[-1])), offsets - offsets[0]
        spans = self.spans
        if spans is not None:
            spans = SpanTable(offsets=offsets, starts=spans.starts[rows], stops=spans.stops[rows])
        return Layout(resolution=self.resolution, lengths=self.lengths[begin:end], offsets=offsets, spans=spans)

    @property
    def n_tasks(self) -> int:
        """Number of tasks of all sequences."""
        return int(self.offsets[-1])

    def rows(self, sequence: int) -> slice:
        """The place of one sequence's tasks in the flat order."""
        return slice(int(self.offsets[sequence]), int(self.offsets[sequence + 1]))

    @property
    def element_offsets(self) -> IntArray:
        """Place of every sequence on the flat axis of all elements, shape (n_sequences + 1,)."""
        return offsets_of(self.lengths)

    def owners(self) -> IntArray:
        """The sequence of every task, shape (n_tasks,)."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int64), np.diff(self.offsets))

    def positions(self) -> IntArray:
        """The place of every task among the tasks of its own sequence, shape (n_tasks,)."""
        return np.arange(self.n_tasks, dtype=np.int64) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def bounds(self) -> tuple[IntArray, IntArray]:
        """First and one-past-last element of every task, counted inside its sequence; (n_tasks,) each."""
        if isinstance(self.resolution, Element):
            positions = self.positions()
            return positions, positions + 1
        return self.bounds_of(0, self.owners())

    def bounds_of(self, first: int, owners: IntArray) -> tuple[IntArray, IntArray]:
        """The bounds of consecutive tasks from `first` on, which belong to these sequences."""
        tasks = slice(first, first + len(owners))
        if self.spans is not None:
            return self.spans.starts[tasks], self.spans.stops[tasks]
        size, stride = _reach(self.resolution)
        starts = (np.arange(tasks.start, tasks.stop, dtype=np.int64) - self.offsets[owners]) * stride
        return starts, np.minimum(starts + size, self.lengths[owners])

    def flat_bounds(self) -> tuple[IntArray, IntArray]:
        """As `bounds`, but counted on the flat axis of all elements of all sequences."""
        starts, stops = self.bounds()
        shift = np.repeat(self.element_offsets[:-1], np.diff(self.offsets))
        return starts + shift, stops + shift


def containing(inner: Layout, outer: Layout) -> IntArray:
    """The task of another resolution that holds the first element of every task; -1 if none does.

    Tasks of the other resolution must not overlap.
    """
    first, _ = inner.flat_bounds()
    begins, ends = outer.flat_bounds()
    found = np.searchsorted(begins, first, side="right") - 1
    # The last entry, which index -1 reads, ends before everything.
    return np.where(first < np.append(ends, -1)[found], found, -1)


# --- Which tasks touch a piece of the flat element axis: lets passes over long data work in small pieces. -------------
# In: a layout and a half-open range of elements, counted over all sequences. Out: the tasks that share an element with
# it, with their bounds on the same axis. Tasks of one resolution begin in order and end in order, so the tasks that
# touch a range are one run of the flat task order.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskRun:
    """Consecutive tasks `first` to `first + len(starts)`, with half-open bounds on the flat element axis."""

    first: int
    starts: IntArray
    stops: IntArray

    @property
    def last(self) -> int:
        """One past the last task."""
        return self.first + len(self.starts)


class TaskFinder:
    """Finds the tasks of one layout that touch a range of elements."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._elements = layout.element_offsets

    def touching(self, begin: int, end: int) -> TaskRun:
        """All tasks that share an element with [begin, end), which must hold an element."""
        first = self._find(begin, "right")
        owners = np.searchsorted(self._layout.offsets, np.arange(first, self._find(end, "left")), side="right") - 1
        shift, (starts, stops) = self._elements[owners], self._layout.bounds_of(first, owners)
        return TaskRun(first=first, starts=starts + shift, stops=stops + shift)

    def _find(self, element: int, side: Literal["left", "right"]) -> int:
        """The first task that begins at an element or later, or that ends after it ("right")."""
        sequence = int(np.searchsorted(self._elements, element, side=side)) - 1
        rows, place = self._layout.rows(sequence), element - int(self._elements[sequence])
        if self._layout.spans is not None:
            bounds = self._layout.spans.starts if side == "left" else self._layout.spans.stops
            return int(rows.start + np.searchsorted(bounds[rows], place, side=side))
        size, stride = _reach(self._layout.resolution)
        before = -(-place // stride) if side == "left" else max(0, (place - size) // stride + 1)
        return int(min(rows.start + before, rows.stop))


class TaskCounter:
    """Counts flags of elements per task, fed with one piece of the element axis after the other."""

    def __init__(self, layout: Layout, n_flags: int) -> None:
        self._finder = TaskFinder(layout)
        self._open = np.zeros((n_flags, 0), dtype=np.int64)

    def feed(self, begin: int, flags: list[BoolArray]) -> tuple[TaskRun, IntArray]:
        """Count the flags of the elements from `begin` on; the tasks that end there, and counts (n_flags, n_tasks)."""
        end = begin + len(flags[0])
        run = self._finder.touching(begin, end)
        first, last = np.maximum(run.starts, begin) - begin, np.minimum(run.stops, end) - begin
        counts = np.zeros((len(flags), len(run.starts)), dtype=np.int64)
        counts[:, : self._open.shape[1]] = self._open
        before = np.zeros(end - begin + 1, dtype=np.int64)
        for place, flag in enumerate(flags):
            np.cumsum(flag, out=before[1:])
            counts[place] += before[last] - before[first]
        done = int(np.searchsorted(run.stops, end, side="right"))
        self._open = counts[:, done:]
        finished = TaskRun(first=run.first, starts=run.starts[:done], stops=run.stops[:done])
        return finished, counts[:, :done]

"""Which tasks touch a piece of the flat element axis: lets passes over long data work in small pieces.

In: a layout and a half-open range of elements, counted over all sequences. Out: the tasks that share an
element with it, with their bounds on the same axis. Tasks of one resolution begin in order and end in order,
so the tasks that touch a range are one run of the flat task order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.tasks.layout import Layout
from dugong.tasks.resolutions import Element, Sequence, Window
from dugong.types import BoolArray, IntArray


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
        first_sequence = int(np.searchsorted(self._elements, begin, side="right")) - 1
        last_sequence = int(np.searchsorted(self._elements, end, side="left")) - 1
        first = self._first_after(first_sequence, begin - int(self._elements[first_sequence]))
        last = self._first_from(last_sequence, end - int(self._elements[last_sequence]))
        return self._run(first, max(first, last))

    def _first_after(self, sequence: int, place: int) -> int:
        """The first task of a sequence that ends after a place."""
        resolution, rows = self._layout.resolution, self._layout.rows(sequence)
        if isinstance(resolution, Element):
            return int(rows.start + place)
        if isinstance(resolution, Window):
            return int(rows.start + max(0, (place - resolution.size) // resolution.stride + 1))
        if isinstance(resolution, Sequence):
            return int(rows.start)
        assert self._layout.spans is not None
        return int(rows.start + np.searchsorted(self._layout.spans.stops[rows], place, side="right"))

    def _first_from(self, sequence: int, place: int) -> int:
        """The first task of a sequence that begins at a place or later."""
        resolution, rows = self._layout.resolution, self._layout.rows(sequence)
        if isinstance(resolution, Element):
            return int(rows.start + place)
        if isinstance(resolution, Window):
            return int(min(rows.start + -(-place // resolution.stride), rows.stop))
        if isinstance(resolution, Sequence):
            return int(rows.stop)
        assert self._layout.spans is not None
        return int(rows.start + np.searchsorted(self._layout.spans.starts[rows], place, side="left"))

    def _run(self, first: int, last: int) -> TaskRun:
        layout, tasks = self._layout, np.arange(first, last, dtype=np.int64)
        if isinstance(layout.resolution, Element):
            return TaskRun(first=first, starts=tasks, stops=tasks + 1)
        owner = np.searchsorted(layout.offsets, tasks, side="right") - 1
        shift, ends = self._elements[owner], self._elements[owner + 1]
        if isinstance(layout.resolution, Sequence):
            return TaskRun(first=first, starts=shift, stops=ends)
        if isinstance(layout.resolution, Window):
            starts = shift + (tasks - layout.offsets[owner]) * layout.resolution.stride
            return TaskRun(first=first, starts=starts, stops=np.minimum(starts + layout.resolution.size, ends))
        assert layout.spans is not None
        starts, stops = layout.spans.starts[first:last], layout.spans.stops[first:last]
        return TaskRun(first=first, starts=starts + shift, stops=stops + shift)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedTasks:
    """Tasks that are counted to their end: which they are, and `counts` (n_flags, n_tasks)."""

    run: TaskRun
    counts: IntArray


class TaskCounter:
    """Counts flags of elements per task, fed with one piece of the element axis after the other."""

    def __init__(self, layout: Layout, n_flags: int) -> None:
        self._finder = TaskFinder(layout)
        self._open = np.zeros((n_flags, 0), dtype=np.int64)

    def feed(self, begin: int, flags: list[BoolArray]) -> CountedTasks:
        """Count the flags of the elements from `begin` on, and return the tasks that end among them."""
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
        return CountedTasks(run=finished, counts=counts[:, :done])

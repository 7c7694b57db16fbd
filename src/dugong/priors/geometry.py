"""Which pairs of tasks a row looks at, and where they lie, without a list of every sequence.

In: a resolution (or two), distinct lengths and how many sequences have each. Out: blocks of pairs, each with the bounds
of both tasks, a weight (how many sequences have that pair) and the position of the anchor. Regular resolutions repeat
with their stride and only the last window of a sequence is short, so the number of entries grows with the longest
sequence, not with the number of sequences. Given spans are listed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dugong.tasks import Element, Layout, Resolution, Spans, SpanTable, Window, count_tasks
from dugong.tasks.layout import ranges
from dugong.types import FloatArray, IntArray

_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of tasks: `bounds` (n, 4) starts and stops, `weights` (n,), `positions` (n,) of the anchors."""

    bounds: IntArray
    weights: FloatArray
    positions: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Tasks of `size` elements every `stride`, over distinct `lengths` of `counts` sequences each."""

    size: int
    stride: int
    lengths: IntArray
    counts: FloatArray

    @classmethod
    def of(cls, resolution: Resolution, lengths: IntArray, counts: FloatArray) -> Grid:
        """The grid of a regular resolution; a whole sequence is a window that is always too large."""
        # A whole sequence is a window that every sequence cuts short.
        size = stride = int(lengths.max(initial=0)) + 1
        if isinstance(resolution, Element):
            size = stride = 1
        elif isinstance(resolution, Window):
            size, stride = resolution.size, resolution.stride
        return cls(size=size, stride=stride, lengths=lengths, counts=counts)

    def last(self) -> IntArray:
        """Index of the last task by length; -1 for empty sequences."""
        further = -(-np.maximum(self.lengths - self.size, 0) // self.stride)
        return np.where(self.lengths > 0, further, -1)

    def n_full(self) -> int:
        """Tasks with all their elements in the longest sequence."""
        longest = int(self.lengths.max(initial=0))
        return max((longest - self.size) // self.stride + 1, 0) if longest >= self.size else 0

    def stops(self, tasks: IntArray) -> IntArray:
        """Where full tasks end."""
        return tasks * self.stride + self.size

    def bounds(self, tasks: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Where tasks of sequences with these ends start and stop."""
        return tasks * self.stride, np.minimum(self.stops(tasks), ends)

    def reaching(self, ends: IntArray) -> FloatArray:
        """Number of sequences with at least so many elements."""
        order = np.argsort(self.lengths)
        before = np.concatenate([[0.0], np.cumsum(self.counts[order])])
        return np.asarray(before[-1] - before[np.searchsorted(self.lengths[order], ends, side="left")])


def same_pairs(
    resolution: Resolution,
    lag: int,
    lengths: IntArray,
    counts: FloatArray,
    spans: Mapping[str, SpanTable] | None = None,
) -> Iterator[Pairs]:
    """Pairs (i, i + lag) of tasks of one resolution; the anchor is i."""
    if isinstance(resolution, Spans):
        layout = Layout.of(resolution, lengths, spans)
        first, second = _lagged(layout, lag)
        yield _listed(layout, layout, first, second, counts)
        return
    grid = Grid.of(resolution, lengths, counts)
    lower = np.arange(max(grid.n_full() - abs(lag), 0), dtype=np.int64)
    upper = lower + abs(lag)
    yield _ordered(grid, lag, lower, upper, grid.stops(upper), grid.reaching(grid.stops(upper)))
    # Only the last task of a sequence can be cut short, once per length.
    last = grid.last()
    short = (last >= abs(lag)) & (grid.stops(last) > lengths)
    yield _ordered(grid, lag, last[short] - abs(lag), last[short], lengths[short], counts[short])


def _ordered(grid: Grid, lag: int, lower: IntArray, upper: IntArray, ends: IntArray, weights: FloatArray) -> Pairs:
    low, high = grid.bounds(lower, ends), grid.bounds(upper, ends)
    bounds = np.stack([*low, *high] if lag >= 0 else [*high, *low], axis=1)
    return Pairs(bounds=bounds, weights=weights, positions=lower if lag >= 0 else upper)


def inside_pairs(
    fine: Resolution,
    coarse: Resolution,
    lengths: IntArray,
    counts: FloatArray,
    spans: Mapping[str, SpanTable] | None = None,
) -> Iterator[Pairs]:
    """Pairs of a fine task that starts inside a coarse one; the anchor is the fine task."""
    if isinstance(fine, Spans) or isinstance(coarse, Spans):
        inner, outer = Layout.of(fine, lengths, spans), Layout.of(coarse, lengths, spans)
        first, second = _contained(inner, outer)
        for begin in range(0, len(first), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            yield _listed(inner, outer, first[block], second[block], counts)
        return
    small, large = Grid.of(fine, lengths, counts), Grid.of(coarse, lengths, counts)
    yield from _full_inside(small, large)
    yield from _short_inside(small, large)


def _full_inside(small: Grid, large: Grid) -> Iterator[Pairs]:
    """Pairs in which both tasks have all their elements."""
    # So many coarse tasks at once that their pairs fill about one block of memory.
    step = max(_BLOCK * small.stride // (large.size + small.stride), 1)
    for begin in range(0, large.n_full(), step):
        outer = np.arange(begin, min(begin + step, large.n_full()), dtype=np.int64)
        low, high = -(-outer * large.stride // small.stride), -(-large.stops(outer) // small.stride)
        inner, outer = ranges(low, high - low), np.repeat(outer, high - low)
        ends = np.maximum(small.stops(inner), large.stops(outer))
        weights = small.reaching(ends)
        some = weights > 0
        yield _cut(small, large, inner[some], outer[some], ends[some], weights[some])


def _short_inside(small: Grid, large: Grid) -> Iterator[Pairs]:
    """Pairs in which at least one task is cut short by the end of its sequence."""
    lengths, last_small, last_large = small.lengths, small.last(), large.last()
    found: list[tuple[IntArray, IntArray, int]] = []
    for place in np.flatnonzero(lengths > 0).tolist():
        length, i, w = int(lengths[place]), int(last_small[place]), int(last_large[place])
        short_large = w * large.stride + large.size > length
        if short_large:
            inner = np.arange(-(-w * large.stride // small.stride), i + 1, dtype=np.int64)
            found.append((inner, np.full(len(inner), w), place))
        if i * small.stride + small.size > length:
            begin = i * small.stride
            lowest = max(-(-(begin - large.size + 1) // large.stride), 0)
            outer = np.arange(lowest, min(begin // large.stride, w - short_large) + 1, dtype=np.int64)
            found.append((np.full(len(outer), i), outer, place))
    if found:
        inner, outer = (np.concatenate([pair[k] for pair in found]) for k in range(2))
        owners = np.repeat([pair[2] for pair in found], [len(pair[0]) for pair in found])
        yield _cut(small, large, inner, outer, lengths[owners], small.counts[owners])


def _cut(small: Grid, large: Grid, inner: IntArray, outer: IntArray, ends: IntArray, weights: FloatArray) -> Pairs:
    bounds = np.stack([*small.bounds(inner, ends), *large.bounds(outer, ends)], axis=1)
    return Pairs(bounds=bounds, weights=weights, positions=inner)


def pair_indices(
    first: Resolution,
    second: Resolution,
    kind: str,
    lag: int,
    length: int,
    spans: Mapping[str, SpanTable] | None = None,
) -> tuple[IntArray, IntArray]:
    """Indices of the paired tasks of one sequence."""
    inner, outer = (Layout.of(one, np.array([length]), spans) for one in (first, second))
    return _lagged(inner, lag) if kind == "same" else _contained(inner, outer)


def _lagged(layout: Layout, lag: int) -> tuple[IntArray, IntArray]:
    tasks = np.arange(layout.n_tasks, dtype=np.int64)
    owners = layout.owners()
    within = (tasks + lag >= layout.offsets[owners]) & (tasks + lag < layout.offsets[owners + 1])
    return tasks[within], tasks[within] + lag


def _contained(inner: Layout, outer: Layout) -> tuple[IntArray, IntArray]:
    shift = np.concatenate([[0], np.cumsum(inner.lengths)])
    begins = inner.bounds()[0] + shift[inner.owners()]
    starts, stops = (bound + shift[outer.owners()] for bound in outer.bounds())
    low, high = np.searchsorted(begins, starts), np.searchsorted(begins, stops)
    return ranges(low, high - low), np.repeat(np.arange(outer.n_tasks, dtype=np.int64), high - low)


def _listed(inner: Layout, outer: Layout, first: IntArray, second: IntArray, counts: FloatArray) -> Pairs:
    bounds = [bound[first] for bound in inner.bounds()] + [bound[second] for bound in outer.bounds()]
    return Pairs(
        bounds=np.stack(bounds, axis=1),
        weights=np.asarray(counts[inner.owners()[first]], dtype=np.float64),
        positions=inner.positions()[first],
    )


def parts_of_whole(
    resolution: Resolution, length: int, spans: Mapping[str, SpanTable] | None = None
) -> tuple[IntArray, IntArray, IntArray]:
    """Tasks inside a whole sequence: begins, ends if not cut short, and lengths above which they exist."""
    if isinstance(resolution, Spans):
        starts, stops = Layout.of(resolution, np.array([length]), spans).bounds()
        return starts.copy(), stops.copy(), starts.copy()
    grid = Grid.of(resolution, np.array([length]), np.ones(1))
    tasks = np.arange(int(count_tasks(resolution, np.array([length]))[0]), dtype=np.int64)
    births = np.where(tasks > 0, grid.stops(tasks - 1), 0)
    return tasks * grid.stride, grid.stops(tasks), births

"""One pass over the votes: from a plan to its sums.

The pass goes block by block, so that memory does not grow with the data, and fills integer tables by group. Singles
and pairs on the same task go through `pairs`; rows with lags, more slots, positions or two resolutions through a
general kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dugong.exceptions import VoteError
from dugong.sums._kernels import add_digit, count_cells, count_pairs, find_groups, find_owners, find_places
from dugong.sums.groups import Grouping, assign_groups
from dugong.sums.pairs import PairCounter, Runs
from dugong.sums.sums import MomentRow, Moments, Plan, Shapes, Slot
from dugong.tasks import Element, Layout, Resolution, describe
from dugong.tasks.layout import ranges
from dugong.types import MISSING, BoolArray, Int8Array, IntArray
from dugong.votes import Votes, class_indices

# Tasks that are looked up at once, so that memory does not grow with the data.
_BLOCK = 1 << 15
_MOST_CELLS = 2**31 - 1  # of the counts of one row
_FEW_CELLS = 2**15  # in so many every place is a short number: half of the memory, which costs more than counting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Resolved:
    """What counting needs to know about one resolution."""

    layout: Layout
    bounds: tuple[IntArray, IntArray] | None  # flat element indices of each task; None for elements: the index itself
    n_columns: int
    longest: int  # most tasks of a sequence


class _CodeReader:
    """Gives codes, groups and positions of any tasks of the votes."""

    def __init__(self, votes: Votes, grouping: Grouping) -> None:
        self.votes, self.grouping = votes, grouping
        self.resolutions = {info.name: info.resolution for info in votes.sources}
        self.blocked = bool((grouping.blocks > 1).any())
        # Without a rest the total need not be counted: it is the sum of the groups.
        self.has_rest = bool((grouping.base == 0).any())
        self.element_offsets = votes.layout("element").offsets
        self.resolved: dict[Resolution, _Resolved] = {}
        for resolution in votes.resolutions:
            layout, element = votes.layout(resolution), isinstance(resolution, Element)
            self.resolved[resolution] = _Resolved(
                layout=layout,
                bounds=None if element else layout.flat_bounds(),
                n_columns=votes.n_classes + 1 + len(votes.partial) if element else 3,
                longest=int(np.diff(layout.offsets).max(initial=0)),
            )
        # Different votes of every source.
        self.n_columns = {name: self.resolved[where].n_columns for name, where in self.resolutions.items()}
        self._inside: dict[tuple[Resolution, Resolution], tuple[IntArray, IntArray, bool]] = {}

    def codes(self, source: str, tasks: IntArray | slice) -> Int8Array:
        n_classes = self.votes.n_classes if isinstance(self.resolutions[source], Element) else 2
        return class_indices(self.votes, np.ascontiguousarray(self.votes.column(source)[tasks]), n_classes)

    def owners(self, resolution: Resolution, tasks: IntArray) -> IntArray:
        """Sequence of every task of a run of tasks."""
        offsets = self.resolved[resolution].layout.offsets
        owners = np.empty(len(tasks), dtype=np.int64)
        if len(tasks):
            find_owners(tasks[0], int(np.searchsorted(offsets, tasks[0], side="right")) - 1, offsets, owners)
        return owners

    def groups(self, resolution: Resolution, tasks: IntArray, owners: IntArray) -> IntArray:
        """Group of every task."""
        grouping, bounds = self.grouping, self.resolved[resolution].bounds
        if not self.blocked:
            return np.asarray(grouping.base[owners])
        groups = np.empty(len(tasks), dtype=np.int64)
        places = (tasks if bounds is None else bounds[0][tasks]) - self.element_offsets[owners]
        find_groups(places, owners, self.votes.lengths, grouping.base, grouping.blocks, groups)
        return groups

    def inside(self, fine: Resolution, coarse: Resolution) -> tuple[IntArray, IntArray, bool]:
        """First and one-past-last task inside every task of a coarser resolution, and whether these lie apart."""
        if (fine, coarse) not in self._inside:
            inner, bounds = self.resolved[fine].bounds, self.resolved[coarse].bounds
            # Of two resolutions of a pair one may be called coarse that is not: elements lie inside nothing.
            bounds = self.resolved[coarse].layout.flat_bounds() if bounds is None else bounds
            # Fine tasks are sorted by where they start, so that those inside a coarse one are a run of them.
            low, high = bounds if inner is None else (_places(inner[0], one) for one in bounds)
            self._inside[fine, coarse] = low, high, bool((low[1:] >= high[:-1]).all())
        return self._inside[fine, coarse]

    def is_pair(self, row: MomentRow) -> bool:
        """Whether a row of binary votes is two columns over the same tasks: every task is inside one at most."""
        if row.by_position or len(row.slots) > 2 or any(self.n_columns[source] != 3 for source in row.sources):
            return False
        if row.relation == "same":
            return True
        return self.inside(*_fine_and_coarse(self, row))[2]

    def column(self, resolution: Resolution, slot: Slot) -> Int8Array:
        """Votes of a slot on every task of a resolution, as they are; not asked where there is no such task."""
        where, votes, offset = self.resolutions[slot.source], self.votes.column(slot.source), slot.offset
        if where != resolution:
            low, high, _ = self.inside(resolution, where)
            spread, n_tasks = np.repeat(votes, high - low), self.resolved[resolution].layout.n_tasks
            if len(spread) == n_tasks:  # they lie apart (`is_pair`), and nothing lies outside
                return spread
            found = np.full(n_tasks, MISSING, dtype=np.int8)
            found[ranges(low, high - low)] = spread
            return found
        if not offset:
            return votes
        layout, found = self.resolved[resolution].layout, np.roll(votes, -offset)
        positions = layout.positions() + offset
        found[(positions < 0) | (positions >= np.repeat(np.diff(layout.offsets), np.diff(layout.offsets)))] = MISSING
        return found

    def runs(self, resolution: Resolution) -> Runs:
        """Runs of tasks of every group but the rest: whole sequences, or blocks inside them."""
        layout = self.resolved[resolution].layout
        # Whole sequences are runs as they stand; blocks inside sequences must be looked for.
        if not self.blocked:
            chosen = np.flatnonzero(self.grouping.base != 0)
            return Runs(
                starts=layout.offsets[chosen], stops=layout.offsets[chosen + 1], groups=self.grouping.base[chosen]
            )
        parts = []
        for tasks in _blocks(layout.n_tasks):
            groups = self.groups(resolution, tasks, self.owners(resolution, tasks))
            edges = np.concatenate([[0], 1 + np.flatnonzero(np.diff(groups)), [len(tasks)]])
            parts.append((tasks[0] + edges[:-1], tasks[0] + edges[1:], groups[edges[:-1]]))
        starts, stops, found = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Runs(starts=starts, stops=stops, groups=found)


def count(votes: Votes, plan: Plan, groups: Grouping | None = None, *, n_threads: int | None = None) -> Moments:
    """Count all rows of a plan over the votes, on as many threads as numba would use by default."""
    # All sources are looked up first, because one that is not there must be named before anything is counted.
    names = dict.fromkeys(source for row in plan.rows for source in row.sources)
    for name in names:
        votes.index(name)
    reader = _CodeReader(votes, assign_groups(votes) if groups is None else groups)
    tables, where = dict[MomentRow, IntArray](), reader.resolutions
    alike, inside = dict[Resolution, list[MomentRow]](), dict[tuple[Resolution, Resolution], list[MomentRow]]()
    for row in plan.rows:
        both = (where[row.sources[0]],) * 2 if row.relation == "same" else _fine_and_coarse(reader, row)
        if row.relation == "same" or reader.is_pair(row):
            alike.setdefault(both[0], []).append(row)
        else:
            inside.setdefault(both, []).append(row)
            tables[row] = _empty(reader, row)
    for resolution, rows in alike.items():
        _count_same(reader, resolution, rows, tables, n_threads)
    for (fine, coarse), rows in inside.items():
        _count_inside(reader, fine, coarse, rows, tables)
    return Moments(
        plan=plan,
        sources=tuple(info for info in votes.sources if info.name in names),
        n_classes=votes.n_classes,
        counts=tuple(tables[row] for row in plan.rows),
        shapes=Shapes.of(votes.lengths, votes.spans),
    )


def _empty(reader: _CodeReader, row: MomentRow) -> IntArray:
    shape = [reader.grouping.n_groups]
    if row.by_position:
        shape.append(reader.resolved[reader.resolutions[row.sources[0]]].longest)
    return np.zeros((*shape, *(reader.n_columns[source] for source in row.sources)), dtype=np.int64)


def _blocks(n_tasks: int) -> Iterator[IntArray]:
    for start in range(0, n_tasks, _BLOCK):
        yield np.arange(start, min(start + _BLOCK, n_tasks), dtype=np.int64)


def _count_same(
    reader: _CodeReader,
    resolution: Resolution,
    rows: list[MomentRow],
    tables: dict[MomentRow, IntArray],
    n_threads: int | None,
) -> None:
    resolved = reader.resolved[resolution]
    # Two classes and abstain fit bit planes, of which one instruction counts 64 votes; more go through a table.
    packed = resolved.n_columns == 3
    plain = [row for row in rows if (reader.is_pair(row) if packed else _is_plain(row))]
    chosen = set(plain)
    general = [r for r in rows if r not in chosen]
    pairs = PairCounter(plain, resolved.n_columns, reader.grouping.n_groups)
    if plain and packed:
        columns = [reader.column(resolution, slot) for slot in pairs.slots]
        counts = pairs.packed(columns, reader.runs(resolution), rest=reader.has_rest, n_threads=n_threads)
    else:
        counts = np.zeros((pairs.n_groups, len(plain), *(resolved.n_columns,) * 2), dtype=np.int64)
    tables |= {row: _empty(reader, row) for row in general}
    for tasks in _blocks(resolved.layout.n_tasks) if general or (plain and not packed) else ():
        owners = reader.owners(resolution, tasks)
        groups = reader.groups(resolution, tasks, owners)
        if plain and not packed:
            block = slice(int(tasks[0]), int(tasks[-1]) + 1)
            codes = np.stack([reader.codes(slot.source, block) for slot in pairs.slots])
            count_pairs(codes, groups, pairs.first, pairs.second, counts)
        if general:
            _count_general(reader, general, tasks, owners, groups, tables)
    for place, row in enumerate(plain):
        # A single vote is counted as a pair with itself: its counts are on the diagonal.
        own = counts[:, place]
        tables[row] = own if len(row.slots) == 2 else np.diagonal(own, axis1=1, axis2=2)


def _is_plain(row: MomentRow) -> bool:
    """Whether a row is of one or two votes on the same task."""
    return len(row.slots) <= 2 and not row.by_position and not any(slot.offset for slot in row.slots)


def _count_general(
    reader: _CodeReader,
    rows: list[MomentRow],
    tasks: IntArray,
    owners: IntArray,
    groups: IntArray,
    tables: dict[MomentRow, IntArray],
) -> None:
    """Count rows of any form over one block of tasks; what several rows read is looked up once."""
    offsets = reader.resolved[reader.resolutions[rows[0].sources[0]]].layout.offsets
    positions, left = tasks - offsets[owners], offsets[owners + 1] - tasks
    slots = dict.fromkeys(slot for row in rows for slot in row.slots)
    # As far as the slots reach: what they read of a source is looked up once, whatever their offsets.
    reach = [min(0, *(slot.offset for slot in slots)), max(0, *(slot.offset for slot in slots))]
    begin, end = max(int(tasks[0]) + reach[0], 0), min(int(tasks[-1]) + 1 + reach[1], int(offsets[-1]))
    around = {source: reader.codes(source, slice(begin, end)) for source in {slot.source for slot in slots}}
    outside = {
        offset: left <= offset if offset > 0 else positions < -offset for offset in {slot.offset for slot in slots}
    }
    first = int(tasks[0]) - begin
    shifted = {
        slot: _shifted(around[slot.source], first + slot.offset, outside[slot.offset])
        if slot.offset
        else around[slot.source][first : first + len(tasks)]
        for slot in slots
    }
    cells = _Anchors(shifted, groups, positions)
    for row in rows:
        cells.add(row, row.slots, tables[row])


def _shifted(around: Int8Array, begin: int, outside: BoolArray) -> Int8Array:
    """Codes of a run of tasks from some place on; -1 for those outside the sequence of their anchor."""
    codes: Int8Array = np.full(len(outside), -1, dtype=np.int8)
    low, high = (min(max(place, 0), len(around)) for place in (begin, begin + len(outside)))
    codes[low - begin : high - begin] = around[low:high]
    # Neighbours in memory may belong to the next sequence: those places are outside.
    np.putmask(codes, outside, -1)
    return codes


class _Anchors:
    """Anchors that many rows share: every vote by its key, and the first place of every anchor in a table.

    A cell is that of the first half of a row's votes plus that of the others; rows share halves.
    """

    def __init__(self, codes: Mapping[Any, Int8Array], groups: IntArray, positions: IntArray) -> None:
        self.codes, self.groups, self.positions = codes, groups, positions
        self._halves: dict[tuple[Any, ...], IntArray] = {}
        self._places: dict[tuple[int | None, type], IntArray] = {}

    def add(self, row: MomentRow, keys: tuple[Any, ...], table: IntArray) -> None:
        """Count one row, whose votes are those of the keys."""
        n, half = len(keys), (len(keys) + 1) // 2
        sizes, spread = table.shape[-n:], table.shape[1] if row.by_position else 0
        if table.size > _MOST_CELLS:
            raise VoteError(
                f"counts by position, group and vote take at most {_MOST_CELLS:,} cells; found {table.size:,} for "
                f"{', '.join(row.sources)}.\n  Cut the sequences, or use fewer groups of sequences."
            )
        kind = np.int16 if table.size < _FEW_CELLS else np.int32
        left = self._cells(keys[:half], sizes[:half], prod(sizes[half:]), spread, kind)
        count_cells(left, self._cells(keys[half:], sizes[half:], 1, None, kind), table.reshape(-1))

    def _cells(
        self, keys: tuple[Any, ...], sizes: tuple[int, ...], stride: int, n_positions: int | None, kind: type
    ) -> IntArray:
        """Where some votes lead, -1 if one of them was not asked; with the place of the anchor, if not None."""
        name = (keys, sizes, stride, n_positions, kind)
        if name not in self._halves:
            found = self._anchors(n_positions, kind).copy()
            for key, size in zip(keys, sizes, strict=True):
                add_digit(found, self.codes[key], size)
            self._halves[name] = found if stride == 1 else np.multiply(found, kind(stride), out=found)
        return self._halves[name]

    def _anchors(self, n_positions: int | None, kind: type) -> IntArray:
        """Place of every anchor among groups, or among groups and positions; zeros for None."""
        if (n_positions, kind) not in self._places:
            n_each, shift = (1, 0) if not n_positions else (n_positions, self.positions)
            found = np.zeros_like(self.groups) if n_positions is None else self.groups * n_each + shift
            self._places[n_positions, kind] = found.astype(kind)
        return self._places[n_positions, kind]


def _places(keys: IntArray, values: IntArray) -> IntArray:
    """Where values belong among sorted keys."""
    found = np.empty(len(values), dtype=np.int64)
    find_places(keys, np.ascontiguousarray(values), found)
    return found


def _count_inside(
    reader: _CodeReader, fine: Resolution, coarse: Resolution, rows: list[MomentRow], tables: dict[MomentRow, IntArray]
) -> None:
    """Count all rows between two resolutions; what they read is looked up once."""
    layout = reader.resolved[coarse].layout
    low, high, _ = reader.inside(fine, coarse)
    sources = dict.fromkeys(source for row in rows for source in row.sources)
    for tasks in _blocks(layout.n_tasks):
        owners, block = reader.owners(coarse, tasks), slice(int(tasks[0]), int(tasks[-1]) + 1)
        sizes = high[block] - low[block]
        inner, outer_owners = ranges(low[block], sizes), np.repeat(owners, sizes)
        codes = {
            source: reader.codes(source, inner)
            if reader.resolutions[source] == fine
            else np.repeat(reader.codes(source, block), sizes)
            for source in sources
        }
        placed = any(row.by_position for row in rows)
        positions = inner - reader.resolved[fine].layout.offsets[outer_owners] if placed else inner
        cells = _Anchors(codes, reader.groups(fine, inner, outer_owners), positions)
        for row in rows:
            cells.add(row, row.sources, tables[row])


def _fine_and_coarse(reader: _CodeReader, row: MomentRow) -> tuple[Resolution, Resolution]:
    resolutions = list(dict.fromkeys(reader.resolutions[source] for source in row.sources))
    if len(resolutions) != 2 or any(slot.offset for slot in row.slots):
        listing = ", ".join(describe(resolution) for resolution in resolutions)
        raise VoteError(f"an inside row needs sources of two resolutions and no lags; found {listing}.")
    return resolutions[0], resolutions[1]

"""How the chain engines read votes: packed into numbers (`PackedVotes`), which point into tables (`Lookup`).

Ordinary factors of one resolution are grouped, so that one look-up serves several sources: the votes of a `Group`,
packed into one number, are the row of its table, the product of its factors' tables. A factor with parents lies in one
group together with its parents' votes, so correlated sources cost nothing more. A factor that reads votes of other
tasks (temporal, crossed), has a table per position or is very large is a look-up of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.factors import Channel, FlatFactor
from dugong.tasks import Resolution
from dugong.types import AnyArray, FloatArray, read_only
from dugong.votes import Votes

# Cells of one table: 64 KB of float64, so that two tables stay in the nearest caches.
MOST_CELLS = 8192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Some factors whose votes are looked up together.

    Attributes
    ----------
    columns : places of the sources in the votes
    sizes : values of each column, "not asked" included
    places : (n_columns, 256) uint16, value by unsigned byte, times the column's stride
    members : places of the factors
    axes : for each member, which columns it reads; members count inside the factors given to `make_groups`
    table : (rows, K) product of the members' tables
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    places: AnyArray
    members: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    table: FloatArray


def is_plain(flat: FlatFactor) -> bool:
    """Whether a factor reads nothing but votes on its own task, and is small enough for the table of a group."""
    channel = flat.channel
    # A parent without votes has no column that could be packed.
    present = all(reading.column >= 0 for reading in flat.readings)
    small = len(flat.table) == 1 and flat.table.size <= MOST_CELLS
    return channel.lag == 0 and channel.parent is None and present and small


def make_groups(factors: tuple[FlatFactor, ...]) -> tuple[Group, ...]:
    """Groups of factors that fit a table each, filled one after the other."""
    # First fit: sources have few values each, so that the bins fill up whatever the order.
    bins: list[tuple[dict[int, int], list[int]]] = []
    for place, flat in enumerate(factors):
        sizes = {reading.column: reading.size for reading in flat.readings}
        for known, members in bins:
            merged = known | sizes
            if prod(merged.values()) <= MOST_CELLS // max(1, flat.table.shape[-1]):
                known.update(sizes)
                members.append(place)
                break
        else:
            bins.append((dict(sizes), [place]))
    # The same number of groups with factors spread evenly; correlated sources must stay in the bin of their parents.
    if bins and all(len(flat.readings) == 1 for flat in factors):
        parts = [members.tolist() for members in np.array_split(np.arange(len(factors)), len(bins))]
        bins = [({factors[m].readings[0].column: factors[m].readings[0].size for m in part}, part) for part in parts]
    return tuple(_group(factors, sizes, members) for sizes, members in bins)


def _group(factors: tuple[FlatFactor, ...], sizes: dict[int, int], members: list[int]) -> Group:
    columns, shape = tuple(sizes), tuple(sizes.values())
    n_codes = factors[members[0]].table.shape[-1]
    # With the stride in its places, packing is one look-up and one addition per vote.
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    table = np.ones((1,) * len(shape) + (n_codes,))
    places, axes = np.zeros((len(columns), 256), dtype=np.uint16), []
    for member in members:
        flat = factors[member]
        own = tuple(columns.index(reading.column) for reading in flat.readings)
        axes.append(own)
        wide = [shape[axis] if axis in own else 1 for axis in range(len(shape))]
        law = flat.table[0] if len(own) == 1 else flat.table[0].transpose(*np.argsort(own), len(own))
        table = table * law.reshape(*wide, n_codes)
        for axis, reading in zip(own, flat.readings, strict=True):
            places[axis] = reading.places * strides[axis]
    return Group(
        columns=columns,
        sizes=shape,
        places=read_only(places),
        members=tuple(members),
        axes=tuple(axes),
        table=read_only(table.reshape(-1, n_codes)),
    )


def pack_columns(votes: Votes, columns: tuple[int, ...], places: AnyArray, tasks: slice, rows: AnyArray) -> None:
    """Add to `rows` the places of the votes of some sources on a run of tasks."""
    kernel = kernels.pack_binary if votes.n_classes == 2 and not votes.partial else kernels.pack
    for column, own in zip(columns, places, strict=True):
        kernel(votes.columns[column][tasks], own, rows)


def split_counts(group: Group, counts: FloatArray) -> list[FloatArray]:
    """Expected counts by row of a group of sources, (G, rows * codes), as (G, *flat table) of each member."""
    n_groups, sizes = len(counts), group.sizes
    # One product for all that read their own vote alone: sums over a few short axes take several times as long.
    singles = np.matmul(_own_votes(sizes), counts.reshape(n_groups, prod(sizes), -1))
    ends, cells, found = np.cumsum((0, *sizes)).tolist(), counts.reshape(n_groups, *sizes, -1), []
    for own in group.axes:
        if len(own) == 1:
            found.append(singles[:, np.newaxis, ends[own[0]] : ends[own[0] + 1]])
        else:
            others = tuple(1 + axis for axis in range(len(sizes)) if axis not in own)
            # The remaining axes are in the order of columns; the member reads them in its own order.
            order = (1 + np.argsort(np.argsort(own))).tolist()
            found.append(cells.sum(axis=others).transpose(0, *order, 1 + len(own))[:, None])
    return found


@lru_cache(maxsize=64)
def _own_votes(sizes: tuple[int, ...]) -> FloatArray:
    """Which rows of a group's table hold which vote of each column, (votes of all columns, rows)."""
    digits = np.indices(sizes).reshape(len(sizes), -1)
    held = [one == np.arange(size)[:, np.newaxis] for one, size in zip(digits, sizes, strict=True)]
    return read_only(np.concatenate(held).astype(np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedVotes:
    """Votes of some sources at one resolution, packed: the sum of `places` (n_columns, 256), uint16, over `columns`."""

    resolution: Resolution
    columns: tuple[int, ...]
    places: AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pin:
    """One number that a look-up reads: from which slot (-1: never asked), at which task, and how it moves in the table.

    `cells` are rows of the table (all its axes but the last, flat) between neighbouring numbers; `absent` as many as
    "not asked" moves.
    """

    slot: int
    cells: int
    absent: int
    lag: int = 0
    container: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """A table (positions, ..., codes), the numbers that point into it, and the factors it stands for."""

    channel: Channel
    table: FloatArray
    pins: tuple[Pin, ...]
    members: tuple[int, ...]
    group: Group | None = None

    @property
    def rows(self) -> FloatArray:
        """The table with all axes but the last as one."""
        return self.table.reshape(-1, self.table.shape[-1])


def make_lookups(
    factors: tuple[FlatFactor, ...], resolutions: tuple[Resolution, ...]
) -> tuple[tuple[Lookup, ...], tuple[PackedVotes, ...]]:
    """All look-ups, ordered by resolution, and the slots that they read."""
    lookups: list[Lookup] = []
    slots: list[PackedVotes] = []
    for resolution in resolutions:
        own = [place for place, flat in enumerate(factors) if flat.channel.resolution == resolution]
        # These read nothing but votes on the same task, so that one number can stand for all of them.
        plain = [place for place in own if is_plain(factors[place])]
        for group in make_groups(tuple(factors[place] for place in plain)):
            pin = Pin(slot=len(slots), cells=1, absent=0)
            slots.append(PackedVotes(resolution=resolution, columns=group.columns, places=group.places))
            lookups.append(
                Lookup(
                    channel=Channel(resolution=resolution),
                    table=group.table[None],
                    pins=(pin,),
                    members=tuple(plain[member] for member in group.members),
                    group=group,
                )
            )
        lookups += [_single(factors, place, slots) for place in own if place not in plain]
    return tuple(lookups), tuple(slots)


def _single(factors: tuple[FlatFactor, ...], place: int, slots: list[PackedVotes]) -> Lookup:
    flat = factors[place]
    pins: list[Pin] = []
    for axis, reading in enumerate(flat.readings):
        cells = int(np.prod(flat.table.shape[2 + axis : -1]))
        slot = -1
        if axis and reading.column == flat.readings[axis - 1].column:
            slot = pins[-1].slot  # the same votes at another time: a source that repeats itself
        elif reading.column >= 0:
            slot = len(slots)
            where = flat.channel.resolution if reading.container is None else reading.container
            slots.append(
                PackedVotes(resolution=where, columns=(reading.column,), places=reading.places[None].astype(np.uint16))
            )
        absent = (reading.size - 1) * cells
        pins.append(Pin(slot=slot, cells=cells, absent=absent, lag=reading.lag, container=reading.container))
    return Lookup(channel=flat.channel, table=flat.table, pins=tuple(pins), members=(place,))


def pack_slot(votes: Votes, slot: PackedVotes, tasks: slice) -> AnyArray:
    """The packed votes on some tasks, uint16."""
    rows = np.zeros(tasks.stop - tasks.start, dtype=np.uint16)
    pack_columns(votes, slot.columns, slot.places, tasks, rows)
    return rows


def split_cells(lookups: tuple[Lookup, ...], cells: FloatArray) -> list[FloatArray]:
    """Expected counts by cell of all look-ups, (G, n_cells), as (G, *flat table) of every factor."""
    found: dict[int, FloatArray] = {}
    ends = np.cumsum([0, *(lookup.table.size for lookup in lookups)]).tolist()
    for lookup, piece in zip(lookups, pairwise(ends), strict=True):
        own = cells[:, slice(*piece)]
        alone = own.reshape(len(own), *lookup.table.shape)
        parts = [alone] if lookup.group is None else split_counts(lookup.group, own)
        found |= dict(zip(lookup.members, parts, strict=True))
    return [found[place] for place in range(len(found))]

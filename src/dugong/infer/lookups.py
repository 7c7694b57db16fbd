"""How the chain engine reads votes: packed into numbers (`PackedVotes`), which point into tables (`Lookup`).

Ordinary factors of one resolution are grouped, so that one look-up serves several sources. A factor that reads votes
of other tasks (temporal, crossed), has a table per position or is very large is a look-up of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.groups import Group, fits_table, make_groups, pack_columns, split_counts
from dugong.tasks import Resolution
from dugong.types import AnyArray, FloatArray
from dugong.votes import Votes


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
        plain = [place for place in own if _is_plain(factors[place])]
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


def _is_plain(flat: FlatFactor) -> bool:
    channel = flat.channel
    # A parent without votes has no column that could be packed.
    present = all(reading.column >= 0 for reading in flat.readings)
    return channel.lag == 0 and channel.parent is None and present and len(flat.table) == 1 and fits_table(flat)


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

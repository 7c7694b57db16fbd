"""Votes made ready for the chain engines, and what they say: P(votes on a task | code), for all tasks of a block.

In: votes, flat factors and a label chain. Out: `Prepared`, once for all blocks: look-ups and a recipe for packing
votes. `read_block` follows it; its `Emissions` are one flat array with a piece per channel, (n_tasks, codes) each, as
values near one and powers of 2 ** 512, and the rows of the tables that the votes pointed at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.lookups import Lookup, PackedVotes, make_lookups, pack_slot
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Layout, Resolution
from dugong.tasks.layout import containing
from dugong.types import AnyArray, FloatArray, IntArray
from dugong.votes import Votes

_LOW, _HIGH = 2.0**-256, 2.0**256
UNIT = 512.0 * np.log(2.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Codes:
    """The channels, ordered by place (0: elements, then the coarse resolutions); the first of a place is its label.

    Attributes
    ----------
    channels, places : the channels, and the places of their resolutions
    sizes, widths : how many codes a channel has, and how many with those of impossible states
    """

    channels: tuple[Channel, ...]
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]

    def ends(self, layouts: tuple[Layout, ...]) -> list[int]:
        """Where the piece of every channel ends in a flat array over tasks and codes."""
        sizes = [layouts[place].n_tasks * width for place, width in zip(self.places, self.widths, strict=True)]
        return list(accumulate(sizes))

    def begins(self, layouts: tuple[Layout, ...]) -> list[IntArray]:
        """Where the tasks of every sequence begin in the piece of every channel."""
        firsts = [0, *self.ends(layouts)[:-1]]
        return [
            first + layouts[place].offsets[:-1] * width
            for first, place, width in zip(firsts, self.places, self.widths, strict=True)
        ]

    def pieces(self, flat: AnyArray, layouts: tuple[Layout, ...]) -> list[AnyArray]:
        """Views of a flat array, (n_tasks, codes) by channel, without impossible states."""
        ends = [0, *self.ends(layouts)]
        return [
            flat[begin:end].reshape(-1, width)[:, :size]
            for (begin, end), width, size in zip(pairwise(ends), self.widths, self.sizes, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Emissions:
    """Likelihoods by task and code, flat, as `values` times 2 ** (512 `powers`), if any; table rows by look-up."""

    values: FloatArray
    powers: IntArray | None
    rows: tuple[AnyArray, ...]

    def logs(self) -> FloatArray:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values) + self.all_powers() * UNIT)

    def all_powers(self) -> IntArray:
        """The powers, zeros if there are none."""
        return np.zeros(len(self.values), dtype=np.int64) if self.powers is None else self.powers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledTable:
    """The table of a look-up, (rows, codes), as values near one and powers of 2 ** 512; None if all powers are zero."""

    values: FloatArray
    powers: IntArray | None

    @classmethod
    def of(cls, numbers: FloatArray) -> ScaledTable:
        """Split numbers into values and powers."""
        if numbers.min(initial=1.0) > _LOW and numbers.max(initial=1.0) < _HIGH:  # the most common case
            return cls(values=numbers, powers=None)
        fractions, bits = np.frexp(numbers)
        # Values within 2 ** 256 of one can be multiplied twice before they have to be scaled again.
        powers = np.floor(bits / 512 + 0.5).astype(np.int64)
        return cls(values=np.ldexp(fractions, bits - 512 * powers), powers=powers if powers.any() else None)

    @classmethod
    def exponential(cls, logs: FloatArray) -> ScaledTable:
        """Split the exponentials of some logarithms, which may be far out of the range of numbers."""
        # Minus infinity is a label that is ruled out: its exponential is zero at any scale.
        powers = np.rint(np.where(np.isfinite(logs), logs, 0.0) / UNIT).astype(np.int64)
        return cls(values=np.exp(logs - powers * UNIT), powers=powers if powers.any() else None)


def emit(
    prepared: Prepared, layouts: tuple[Layout, ...], packed: tuple[AnyArray, ...], potentials: FloatArray | None
) -> Emissions:
    """Look up what the packed votes of a block say about every task, and add potentials of its elements."""
    codes, lookups = prepared.codes, prepared.lookups
    n_cells, powers = codes.ends(layouts)[-1], None
    values = np.zeros(n_cells)
    parts = codes.pieces(values, layouts)
    for part in parts:
        part[...] = 1.0
    places = {layout.resolution: layout for layout in layouts}
    rows = tuple(_rows(lookup, places, packed) for lookup in lookups)
    factors = [
        (codes.channels.index(lookup.channel), table, own)
        for lookup, table, own in zip(lookups, prepared.tables, rows, strict=True)
    ]
    if potentials is not None:  # on the labels of the elements, which are the first channel
        factors.append((0, ScaledTable.exponential(potentials), np.arange(len(potentials))))
    for channel, table, own in factors:
        near = kernels.multiply(table.values, own, parts[channel])
        if near and table.powers is None:
            continue
        # Numbers that small or large are rare: no memory for their powers before there are any.
        powers = np.zeros(n_cells, dtype=np.int64) if powers is None else powers
        _rescale(table, own, parts[channel], codes.pieces(powers, layouts)[channel])
    return Emissions(values=values, powers=powers, rows=rows)


def _rescale(table: ScaledTable, rows: AnyArray, values: FloatArray, powers: IntArray) -> None:
    if table.powers is not None:
        powers += table.powers[rows]
    for bad, step in ((values < _LOW, 1), (values > _HIGH, -1)):
        values[bad] *= 2.0 ** (512 * step)
        powers[bad] -= step


def _rows(lookup: Lookup, layouts: dict[Resolution, Layout], packed: tuple[AnyArray, ...]) -> AnyArray:
    """The row of the table for every task."""
    if lookup.group is not None:
        return packed[lookup.pins[0].slot].astype(np.int64)  # one type of rows, so that kernels are compiled once
    layout = layouts[lookup.channel.resolution]
    n_positions, rows = len(lookup.table), np.zeros(layout.n_tasks, dtype=np.int64)
    if n_positions > 1:
        rows += np.minimum(layout.positions(), n_positions - 1) * (len(lookup.rows) // n_positions)
    for pin in lookup.pins:
        if pin.slot < 0:
            rows += pin.absent
        elif pin.container is not None:
            moves = packed[pin.slot] * np.int64(pin.cells)
            # The last entry, which index -1 reads, is that of a task that does not exist.
            rows += np.append(moves, pin.absent)[containing(layout, layouts[pin.container])]
        else:
            kernels.move_rows(packed[pin.slot], pin.cells, pin.lag, pin.absent, layout.offsets, rows)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """Votes and their look-ups; resolutions are the elements, those with votes, and those that are wanted."""

    votes: Votes
    chain: LabelChain
    resolutions: tuple[Resolution, ...]
    voted: tuple[Resolution, ...]
    layouts: tuple[Layout, ...]
    lookups: tuple[Lookup, ...]
    tables: tuple[ScaledTable, ...]
    slots: tuple[PackedVotes, ...]
    codes: Codes
    potentials: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        """Classes of the elements."""
        return self.chain.n_classes

    @property
    def lag(self) -> int:
        """How many elements back a source looks at most."""
        return max((c.lag for c in self.codes.channels if isinstance(c.resolution, Element)), default=0)

    def n_labels(self, resolution: Resolution) -> int:
        """Classes of the tasks of a resolution."""
        return self.n_classes if isinstance(resolution, Element) else 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VotesBlock:
    """Some sequences: where their tasks are among all, and what their votes say."""

    rows: tuple[slice, ...]
    layouts: tuple[Layout, ...]
    emissions: Emissions


def prepare(
    votes: Votes,
    factors: tuple[FlatFactor, ...],
    chain: LabelChain,
    wanted: tuple[Resolution, ...],
    potentials: FloatArray | None = None,
) -> Prepared:
    """Look-ups of all factors, for the resolutions that have votes or are wanted."""
    voted = [flat.channel.resolution for flat in factors]
    parents = [flat.channel.parent for flat in factors if flat.channel.parent is not None]
    resolutions = tuple(dict.fromkeys([Element(), *voted, *parents, *wanted]))
    lookups, slots = make_lookups(factors, resolutions)
    return Prepared(
        votes=votes,
        chain=chain,
        resolutions=resolutions,
        voted=tuple(dict.fromkeys(one for one in [*voted, *parents] if not isinstance(one, Element))),
        layouts=tuple(votes.layout(resolution) for resolution in resolutions),
        lookups=lookups,
        tables=tuple(ScaledTable.of(lookup.rows) for lookup in lookups),
        slots=slots,
        codes=_codes(factors, resolutions, chain.n_classes),
        potentials=potentials,
    )


def read_block(prepared: Prepared, begin: int, end: int) -> VotesBlock:
    """Sequences begin..end, with their votes looked up."""
    layouts = tuple(layout.between(begin, end) for layout in prepared.layouts)
    rows = tuple(slice(int(layout.offsets[begin]), int(layout.offsets[end])) for layout in prepared.layouts)
    places = dict(zip(prepared.resolutions, rows, strict=True))
    packed = tuple(pack_slot(prepared.votes, slot, places[slot.resolution]) for slot in prepared.slots)
    soft = None if prepared.potentials is None else prepared.potentials[rows[0]]
    return VotesBlock(rows=rows, layouts=layouts, emissions=emit(prepared, layouts, packed, soft))


def _codes(factors: tuple[FlatFactor, ...], resolutions: tuple[Resolution, ...], n_classes: int) -> Codes:
    """All channels, by resolution, and how many codes each has; the first of each resolution is its label."""
    found = [flat.channel for flat in factors]
    own = {one: [channel for channel in found if channel.resolution == one] for one in resolutions}
    channels = tuple(dict.fromkeys(c for one in resolutions for c in (Channel(resolution=one), *own[one])))
    # One more, for what cannot be, where a label is guessed before it is known.
    guessed = {Channel(resolution=channel.parent) for channel in channels if channel.parent is not None}
    sizes = tuple(_n_codes(channel, n_classes) for channel in channels)
    return Codes(
        channels=channels,
        places=tuple(resolutions.index(channel.resolution) for channel in channels),
        sizes=sizes,
        widths=tuple(size + (channel in guessed) for channel, size in zip(channels, sizes, strict=True)),
    )


def _n_codes(channel: Channel, n_classes: int) -> int:
    n_labels = n_classes if isinstance(channel.resolution, Element) else 2
    return n_labels * (n_labels if channel.lag else 2 if channel.parent is not None else 1)

"""Votes made ready for the chain engines, once for all blocks of sequences.

In: votes, flat factors and a label chain. Out: `Prepared`: look-ups and a recipe for packing blocks of votes, which
`read_block` follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from dugong.infer.emissions import Codes, Emissions, ScaledTable, emit
from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.lookups import Lookup, PackedVotes, make_lookups, pack_slot
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Layout, Resolution
from dugong.types import FloatArray
from dugong.votes import Votes


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
        codes=_codes(_channels(factors, resolutions), resolutions, chain.n_classes),
        potentials=potentials,
    )


def read_block(prepared: Prepared, begin: int, end: int) -> VotesBlock:
    """Sequences begin..end, with their votes looked up."""
    layouts = tuple(layout.between(begin, end) for layout in prepared.layouts)
    rows = tuple(slice(int(layout.offsets[begin]), int(layout.offsets[end])) for layout in prepared.layouts)
    places = dict(zip(prepared.resolutions, rows, strict=True))
    packed = tuple(pack_slot(prepared.votes, slot, places[slot.resolution]) for slot in prepared.slots)
    soft = None if prepared.potentials is None else prepared.potentials[rows[0]]
    emissions = emit(prepared.codes, prepared.lookups, prepared.tables, layouts, packed, soft)
    return VotesBlock(rows=rows, layouts=layouts, emissions=emissions)


def _channels(factors: tuple[FlatFactor, ...], resolutions: tuple[Resolution, ...]) -> tuple[Channel, ...]:
    """All channels, by resolution; the first of each resolution is its label."""
    found = [flat.channel for flat in factors]
    ordered = [
        channel
        for resolution in resolutions
        for channel in (Channel(resolution=resolution), *(c for c in found if c.resolution == resolution))
    ]
    return tuple(dict.fromkeys(ordered))


def _codes(channels: tuple[Channel, ...], resolutions: tuple[Resolution, ...], n_classes: int) -> Codes:
    """How many codes every channel has; one more, for what cannot be, where a label is guessed before it is known."""
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

"""Everything that the chain engine needs to answer questions about some votes, built once.

In: votes, flat factors and a label chain. Out: `Chained`: the product of automata, the look-ups, and a recipe for
packing blocks of votes.
"""

from __future__ import annotations

from dataclasses import dataclass

from dugong.exceptions import TaskError
from dugong.infer.emissions import Codes, Emissions, ScaledTable, emit
from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.lookups import Lookup, Slot, make_lookups, pack_slot
from dugong.infer.machine import Machine, explore
from dugong.infer.paths import Paths, find_paths
from dugong.infer.product import Coarse, Product
from dugong.priors.chain import LabelChain
from dugong.priors.labels import positive_class
from dugong.tasks import Element, Layout, Resolution, describe
from dugong.types import FloatArray
from dugong.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chained:
    """Votes, their look-ups and the product that their sequences walk through."""

    votes: Votes
    resolutions: tuple[Resolution, ...]
    layouts: tuple[Layout, ...]
    lookups: tuple[Lookup, ...]
    tables: tuple[ScaledTable, ...]
    slots: tuple[Slot, ...]
    codes: Codes
    machine: Machine
    n_classes: int
    potentials: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Some sequences: where their tasks are among all, their paths, and what their votes say."""

    rows: tuple[slice, ...]
    layouts: tuple[Layout, ...]
    paths: Paths
    emissions: Emissions


def prepare(
    votes: Votes,
    factors: tuple[FlatFactor, ...],
    chain: LabelChain,
    wanted: tuple[Resolution, ...],
    potentials: FloatArray | None = None,
) -> Chained:
    """Build the product of the resolutions that have votes, or are wanted, and walk all sequences through it."""
    voted = [flat.channel.resolution for flat in factors]
    parents = [flat.channel.parent for flat in factors if flat.channel.parent is not None]
    resolutions = tuple(dict.fromkeys([Element(), *voted, *parents, *wanted]))
    channels = _channels(factors, resolutions)
    lag = max((c.lag for c in channels if isinstance(c.resolution, Element)), default=0)
    product = Product(
        chain=chain, lag=lag, coarse=tuple(_coarse(votes, r, channels, resolutions) for r in resolutions[1:])
    )
    layouts = tuple(votes.layout(resolution) for resolution in resolutions)
    lookups, slots = make_lookups(factors, resolutions)
    return Chained(
        votes=votes,
        resolutions=resolutions,
        layouts=layouts,
        lookups=lookups,
        tables=tuple(ScaledTable.of(lookup.rows) for lookup in lookups),
        slots=slots,
        codes=_codes(channels, resolutions, product),
        machine=explore(product, channels, layouts),
        n_classes=chain.n_classes,
        potentials=potentials,
    )


def cut(chained: Chained, begin: int, end: int) -> Block:
    """Sequences begin..end, with their votes looked up."""
    layouts = tuple(layout.between(begin, end) for layout in chained.layouts)
    rows = tuple(slice(int(layout.offsets[begin]), int(layout.offsets[end])) for layout in chained.layouts)
    places = dict(zip(chained.resolutions, rows, strict=True))
    packed = tuple(pack_slot(chained.votes, slot, places[slot.resolution]) for slot in chained.slots)
    return Block(
        rows=rows,
        layouts=layouts,
        paths=find_paths(layouts, chained.machine, chained.codes),
        emissions=emit(
            chained.codes,
            chained.lookups,
            chained.tables,
            layouts,
            packed,
            None if chained.potentials is None else chained.potentials[rows[0]],
        ),
    )


def _channels(factors: tuple[FlatFactor, ...], resolutions: tuple[Resolution, ...]) -> tuple[Channel, ...]:
    """All channels, by resolution; the first of each resolution is its label."""
    found = [flat.channel for flat in factors]
    ordered = [
        channel
        for resolution in resolutions
        for channel in (Channel(resolution=resolution), *(c for c in found if c.resolution == resolution))
    ]
    return tuple(dict.fromkeys(ordered))


def _coarse(
    votes: Votes, resolution: Resolution, channels: tuple[Channel, ...], places: tuple[Resolution, ...]
) -> Coarse:
    assert not isinstance(resolution, Element)
    if resolution.link == "joint":
        raise TaskError(
            f"labels of {describe(resolution)} follow from no element: its link is joint.\n"
            "  Give a priors.Joint table that names these tasks, or use the link any, all or majority."
        )
    own = [channel for channel in channels if channel.resolution == resolution]
    carries = dict.fromkeys(places.index(c.parent) - 1 for c in own if c.parent is not None)
    return Coarse(
        resolution=resolution,
        link=resolution.link,
        positive=positive_class(resolution, votes.n_classes, votes.class_names),
        memory=max(channel.lag for channel in own),
        guess=any(channel.parent == resolution for channel in channels),
        carries=tuple(carries),
    )


def _codes(channels: tuple[Channel, ...], resolutions: tuple[Resolution, ...], product: Product) -> Codes:
    guessed = {Channel(resolution=coarse.resolution) for coarse in product.coarse if coarse.guess}
    sizes = tuple(_n_codes(channel, product.chain.n_classes) for channel in channels)
    return Codes(
        channels=channels,
        places=tuple(resolutions.index(channel.resolution) for channel in channels),
        sizes=sizes,
        widths=tuple(size + (channel in guessed) for channel, size in zip(channels, sizes, strict=True)),
    )


def _n_codes(channel: Channel, n_classes: int) -> int:
    n_labels = n_classes if isinstance(channel.resolution, Element) else 2
    return n_labels * (n_labels if channel.lag else 2 if channel.parent is not None else 1)

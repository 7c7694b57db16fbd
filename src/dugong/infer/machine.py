"""The product of automata, the factors and the votes as arrays for the kernels.

In: votes, flat factors and a label chain. Out: `Chained`, built once per question: every kind of step that some
sequence takes through the product, every look-up, and a recipe for packing blocks of votes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer import _kernels as kernels
from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.lookups import Lookup, Slot, make_lookups, pack_slot
from dugong.infer.product import Coarse, Product
from dugong.priors.chain import LabelChain
from dugong.priors.labels import positive_class
from dugong.tasks import Element, Layout, Resolution, Window, describe
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

_WHOLE = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chained:
    """Everything that the kernels need, built once for some votes."""

    votes: Votes
    factors: tuple[FlatFactor, ...]
    resolutions: tuple[Resolution, ...]
    layouts: tuple[Layout, ...]
    lookups: tuple[Lookup, ...]
    slots: tuple[Slot, ...]
    machine: kernels.Machine
    laws: kernels.Laws
    n_classes: int


def prepare(
    votes: Votes, factors: tuple[FlatFactor, ...], chain: LabelChain, wanted: tuple[Resolution, ...]
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
        factors=factors,
        lookups=lookups,
        slots=slots,
        resolutions=resolutions,
        layouts=layouts,
        machine=_explore(product, channels, layouts),
        laws=_laws(lookups, channels, resolutions, product),
        n_classes=chain.n_classes,
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


# --- tables for the kernels ----------------------------------------------------------------------------------
def _laws(
    lookups: tuple[Lookup, ...],
    channels: tuple[Channel, ...],
    resolutions: tuple[Resolution, ...],
    product: Product,
) -> kernels.Laws:
    sizes = [_channel_size(channel, product) for channel in channels]
    padded = [
        size + (channel == Channel(resolution=channel.resolution) and _guessed(channel, product))
        for channel, size in zip(channels, sizes, strict=True)
    ]
    pins = [pin for lookup in lookups for pin in lookup.pins]
    values, exponents = split_exponents(
        np.concatenate([np.zeros(0), *(lookup.table.reshape(-1) for lookup in lookups)])
    )
    return kernels.Laws(
        factor_first=_firsts([lookup.channel.resolution for lookup in lookups], resolutions),
        channel_first=_firsts([channel.resolution for channel in channels], resolutions),
        channel_code=_cumulated(padded),
        valid=_array(sizes),
        channel=_array([channels.index(lookup.channel) for lookup in lookups]),
        table=values,
        exponent=exponents,
        first=_cumulated([lookup.table.size for lookup in lookups])[:-1],
        positions=_array([len(lookup.table) for lookup in lookups]),
        stride=_array([lookup.table[0].size for lookup in lookups]),
        reading_first=_cumulated([len(lookup.pins) for lookup in lookups]),
        slot=_array([pin.slot for pin in pins]),
        lag=_array([pin.lag for pin in pins]),
        container=_array([0 if p.container is None else resolutions.index(p.container) for p in pins]),
        cells=_array([pin.cells for pin in pins]),
        absent=_array([pin.absent for pin in pins]),
    )


def split_exponents(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Numbers as values near one and powers of 2 ** 512."""
    fractions, bits = np.frexp(values)
    powers = np.floor(bits / 512 + 0.5).astype(np.int64)
    return np.ldexp(fractions, bits - 512 * powers), powers


def _guessed(channel: Channel, product: Product) -> bool:
    return any(coarse.guess for coarse in product.coarse if coarse.resolution == channel.resolution)


def _channel_size(channel: Channel, product: Product) -> int:
    n_classes = product.chain.n_classes if isinstance(channel.resolution, Element) else 2
    return n_classes * (n_classes if channel.lag else 2 if channel.parent is not None else 1)


def _firsts(owners: list[Resolution], resolutions: tuple[Resolution, ...]) -> IntArray:
    return _cumulated([owners.count(resolution) for resolution in resolutions])


def _cumulated(sizes: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(_array(sizes))]).astype(np.int64)


def _array(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


# --- exploring the product -----------------------------------------------------------------------------------
def _explore(product: Product, channels: tuple[Channel, ...], layouts: tuple[Layout, ...]) -> kernels.Machine:
    """Walk every kind of sequence through the product until no step is unknown."""
    tables = _Tables(product=product, n_coarse=len(layouts) - 1)
    block = make_block(_different(layouts), (), None, 0, None)
    path = make_path(block)
    for sequence in range(len(block.lengths)):
        path.cursor[0] = -1
        while (bits := kernels.walk(tables.machine(), block, sequence, path)) >= 0:
            tables.learn(bits, path)
    return tables.finish(channels)


def _different(layouts: tuple[Layout, ...]) -> tuple[Layout, ...]:
    """Layouts of one sequence for every length; of all sequences where given spans make each one different."""
    lengths = layouts[0].lengths
    if any(layout.spans is not None for layout in layouts):
        return layouts
    unique = np.unique(lengths) if len(layouts) > 1 else lengths.max(initial=0, keepdims=True)
    return tuple(Layout.of(layout.resolution, unique) for layout in layouts)


@dataclass(slots=True, kw_only=True, eq=False)
class _Tables:
    """The known part of the product as arrays that grow with it."""

    product: Product
    n_coarse: int
    kinds: IntArray = field(init=False)
    starts: IntArray = field(init=False)
    steps: IntArray = field(init=False)
    following: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = np.full(1 << 2 * self.n_coarse, -1, dtype=np.int64)
        self.starts = np.full(1 << self.n_coarse, -1, dtype=np.int64)
        self.steps = np.full((16, 4), -1, dtype=np.int64)
        self.following = np.zeros(64, dtype=np.int64)

    def learn(self, bits: int, path: kernels.Path) -> None:
        """Add the start or step at which a walk stopped."""
        if path.cursor[0] < 0:
            self.starts[bits] = self.product.start(bits)[0]
        else:
            layer, opening = int(path.cursor[1]), bits & ((1 << self.n_coarse) - 1)
            if self.kinds[bits] < 0:
                self.kinds[bits] = self.kinds.max() + 1
            step = self.product.step(layer, bits >> self.n_coarse, opening)
            self._grow()
            self.steps[layer, self.kinds[bits]] = step
            self.following[step] = self.product.steps[step].following

    def _grow(self) -> None:
        n_layers, n_kinds = self.steps.shape
        if len(self.product.layers) > n_layers or self.kinds.max() >= n_kinds:
            wider = np.full((2 * n_layers, 2 * n_kinds), -1, dtype=np.int64)
            wider[:n_layers, :n_kinds] = self.steps
            self.steps = wider
        if len(self.product.steps) > len(self.following):
            self.following = np.concatenate([self.following, np.zeros_like(self.following)])

    def machine(self) -> kernels.Machine:
        """What a walk needs; the edges themselves are left out."""
        none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        return kernels.Machine(
            n_coarse=self.n_coarse,
            widest=0,
            sizes=none,
            firsts=none,
            codes=none.reshape(0, 0),
            start_layer=self.starts,
            start_first=none,
            start_weights=nothing,
            kinds=self.kinds,
            steps=self.steps,
            following=self.following,
            step_first=none,
            pointers=none,
            targets=none,
            weights=nothing,
        )

    def finish(self, channels: tuple[Channel, ...]) -> kernels.Machine:
        """The whole machine, with edges and with what every channel sees."""
        layers, steps = self.product.layers, self.product.steps
        firsts = _cumulated([len(layer.rows) for layer in layers])
        edge_firsts = _cumulated([len(step.targets) for step in steps])
        start_first, start_weights = self._start_weights()
        empty = np.zeros(0, dtype=np.int64)
        codes = [
            np.concatenate([empty, *(self.product.codes(layer, channel) for layer in layers)]) for channel in channels
        ]
        pointers = [step.pointers + first for step, first in zip(steps, edge_firsts[:-1], strict=True)]
        return self.machine()._replace(
            widest=max((len(layer.rows) for layer in layers), default=0),
            sizes=_array([len(layer.rows) for layer in layers]),
            firsts=firsts,
            codes=np.array(codes, dtype=np.int64),
            start_first=start_first,
            start_weights=start_weights,
            step_first=_cumulated([len(step.pointers) for step in steps]),
            pointers=np.concatenate([empty, *pointers]),
            targets=np.concatenate([empty, *(step.targets for step in steps)]),
            weights=np.concatenate([np.zeros(0), *(step.weights for step in steps)]),
        )

    def _start_weights(self) -> tuple[IntArray, FloatArray]:
        firsts, weights, total = np.zeros(len(self.starts), dtype=np.int64), [np.zeros(0)], 0
        for bits, (_, law) in self.product.starts.items():
            firsts[bits] = total
            total += len(law)
            weights.append(law)
        return firsts, np.concatenate(weights)


# --- blocks of sequences ---------------------------------------------------------------------------------------
def make_block(
    layouts: tuple[Layout, ...], slots: tuple[Slot, ...], votes: Votes | None, begin: int, end: int | None
) -> kernels.Block:
    """Sequences begin..end with their packed votes."""
    offsets = [layout.offsets[begin : None if end is None else end + 1] for layout in layouts]
    spans = [_spans(layout, own) for layout, own in zip(layouts[1:], offsets[1:], strict=True)]
    pieces = [np.zeros(0, dtype=np.uint16)]
    if votes is not None:
        places = {layout.resolution: place for place, layout in enumerate(layouts)}
        rows = [offsets[places[slot.resolution]] for slot in slots]
        pieces = [pack_slot(votes, slot, int(own[0]), int(own[-1])) for slot, own in zip(slots, rows, strict=True)]
    return kernels.Block(
        lengths=np.array(layouts[0].lengths[begin:end]),
        packed=np.concatenate(pieces),
        slot_first=_cumulated([len(piece) for piece in pieces]),
        task_first=np.array([own - own[0] for own in offsets]),
        size=_array([_window(layout)[0] for layout in layouts[1:]]),
        stride=_array([_window(layout)[1] for layout in layouts[1:]]),
        span_first=_cumulated([len(starts) for starts, _ in spans]),
        span_starts=np.concatenate([np.zeros(0, dtype=np.int64), *(starts for starts, _ in spans)]),
        span_stops=np.concatenate([np.zeros(0, dtype=np.int64), *(stops for _, stops in spans)]),
    )


def _spans(layout: Layout, offsets: IntArray) -> tuple[IntArray, IntArray]:
    if layout.spans is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows = slice(int(offsets[0]), int(offsets[-1]))
    return layout.spans.starts[rows], layout.spans.stops[rows]


def _window(layout: Layout) -> tuple[int, int]:
    if isinstance(layout.resolution, Window):
        return layout.resolution.size, layout.resolution.stride
    return (0, 0) if layout.spans is not None else (_WHOLE, _WHOLE)


def make_path(block: kernels.Block) -> kernels.Path:
    """Scratch for the longest sequence of a block."""
    longest = int(block.lengths.max(initial=0))
    layers, steps, closing = np.zeros((3, longest), dtype=np.int64)
    cursor = np.zeros(2 + len(block.size), dtype=np.int64)
    return kernels.Path(layers=layers, steps=steps, closing=closing, cursor=cursor)

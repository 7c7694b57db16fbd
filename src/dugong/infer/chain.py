"""The chain engine: exact inference for sequences of any length, linear in their length.

In: votes, flat factors and a label chain. Out: marginals, expected counts, decoded or sampled labels. The state
space is a product of automata (`product`), the work is done block by block of sequences by `_kernels`, on threads.
Blocks do not depend on the number of threads, so results do not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numba
import numpy as np

from dugong.exceptions import PriorError, TaskError
from dugong.infer import _kernels as kernels
from dugong.infer.factors import Channel, FlatFactor
from dugong.infer.product import Coarse, Product
from dugong.priors.chain import LabelChain
from dugong.priors.labels import positive_class
from dugong.tasks import Element, Layout, Resolution, Window, describe
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes

BLOCK = 1 << 16
_WHOLE = 1 << 60

Progress = Callable[[int, int], None]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chained:
    """Everything that the kernels need, built once for some votes."""

    votes: Votes
    factors: tuple[FlatFactor, ...]
    resolutions: tuple[Resolution, ...]
    layouts: tuple[Layout, ...]
    machine: kernels.Machine
    laws: kernels.Laws
    n_classes: int


@dataclass(slots=True, kw_only=True, eq=False)
class Sums:
    """Expected counts by table cell, and of labels and pairs of labels."""

    cells: FloatArray
    initial: FloatArray
    transitions: FloatArray
    log_likelihood: FloatArray = field(default_factory=lambda: np.zeros(0))


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
    return Chained(
        votes=votes,
        factors=factors,
        resolutions=resolutions,
        layouts=layouts,
        machine=_explore(product, channels, layouts),
        laws=_laws(factors, channels, resolutions, product),
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
    factors: tuple[FlatFactor, ...],
    channels: tuple[Channel, ...],
    resolutions: tuple[Resolution, ...],
    product: Product,
) -> kernels.Laws:
    ordered = order_factors(factors, resolutions)
    sizes = [_channel_size(channel, product) for channel in channels]
    padded = [
        size + (channel == Channel(resolution=channel.resolution) and _guessed(channel, product))
        for channel, size in zip(channels, sizes, strict=True)
    ]
    readings = [reading for flat in ordered for reading in flat.readings]
    strides = [stride for flat in ordered for stride in reading_strides(flat)]
    with np.errstate(divide="ignore"):
        table = np.concatenate([np.zeros(0), *(np.log(flat.table).reshape(-1) for flat in ordered)])
    return kernels.Laws(
        factor_first=_firsts(flat.channel.resolution for flat in ordered)(resolutions),
        channel_first=_firsts(channel.resolution for channel in channels)(resolutions),
        channel_code=_cumulated(padded),
        valid=_array(sizes),
        channel=_array([channels.index(flat.channel) for flat in ordered]),
        table=table,
        first=_cumulated([flat.table.size for flat in ordered])[:-1],
        positions=_array([len(flat.table) for flat in ordered]),
        stride=_array([flat.table[0].size for flat in ordered]),
        reading_first=_cumulated([len(flat.readings) for flat in ordered]),
        column=_array([reading.column for reading in readings]),
        lag=_array([reading.lag for reading in readings]),
        container=_array([0 if r.container is None else resolutions.index(r.container) for r in readings]),
        cells=_array([reading.places * stride for reading, stride in zip(readings, strides, strict=True)]).reshape(
            -1, 256
        ),
        absent=_array([(reading.size - 1) * stride for reading, stride in zip(readings, strides, strict=True)]),
    )


def order_factors(factors: tuple[FlatFactor, ...], resolutions: tuple[Resolution, ...]) -> tuple[FlatFactor, ...]:
    """Factors by resolution: the order of the kernels' table cells."""
    return tuple(flat for resolution in resolutions for flat in factors if flat.channel.resolution == resolution)


def reading_strides(flat: FlatFactor) -> list[int]:
    """Table cells between neighbours on each vote axis."""
    shape = flat.table.shape[2:]
    return [int(np.prod(shape[axis:])) for axis in range(len(flat.readings))]


def _guessed(channel: Channel, product: Product) -> bool:
    return any(coarse.guess for coarse in product.coarse if coarse.resolution == channel.resolution)


def _channel_size(channel: Channel, product: Product) -> int:
    n_classes = product.chain.n_classes if isinstance(channel.resolution, Element) else 2
    return n_classes * (n_classes if channel.lag else 2 if channel.parent is not None else 1)


def _firsts(found: Iterator[Resolution]) -> Callable[[tuple[Resolution, ...]], IntArray]:
    owners = list(found)
    return lambda resolutions: _cumulated([owners.count(resolution) for resolution in resolutions])


def _cumulated(sizes: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(_array(sizes))]).astype(np.int64)


def _array(values: list[int] | list[IntArray]) -> IntArray:
    return np.array(values, dtype=np.int64)


# --- exploring the product -----------------------------------------------------------------------------------
def _explore(product: Product, channels: tuple[Channel, ...], layouts: tuple[Layout, ...]) -> kernels.Machine:
    """Walk every kind of sequence through the product until no step is unknown."""
    tables = _Tables(product=product, n_coarse=len(layouts) - 1)
    block = _block(_different(layouts), (), 0, None)
    path = _path(block)
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
def _block(
    layouts: tuple[Layout, ...], columns: tuple[tuple[int, Int8Array], ...], begin: int, end: int | None
) -> kernels.Block:
    """Sequences begin..end with a copy of their votes; `columns` are (place of the resolution, votes)."""
    offsets = [layout.offsets[begin : None if end is None else end + 1] for layout in layouts]
    spans = [_spans(layout, own) for layout, own in zip(layouts[1:], offsets[1:], strict=True)]
    pieces = [votes[offsets[place][0] : offsets[place][-1]] for place, votes in columns]
    return kernels.Block(
        lengths=np.array(layouts[0].lengths[begin:end]),
        votes=np.concatenate([np.zeros(0, dtype=np.int8), *pieces]),
        column_first=_cumulated([len(piece) for piece in pieces]),
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


def _path(block: kernels.Block) -> kernels.Path:
    longest = int(block.lengths.max(initial=0))
    layers, steps, closing = np.zeros((3, longest), dtype=np.int64)
    cursor = np.zeros(2 + len(block.size), dtype=np.int64)
    return kernels.Path(layers=layers, steps=steps, closing=closing, cursor=cursor)


def block_bounds(lengths: IntArray, size: int = BLOCK) -> list[tuple[int, int]]:
    """Cut the sequences into runs of about `size` elements; the same for any number of threads."""
    ends = np.cumsum(np.maximum(lengths, 1))
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(size, total, size), side="left") + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(lengths)]]))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def on_threads(
    work: Callable[[tuple[int, int]], ResultT],
    bounds: list[tuple[int, int]],
    n_threads: int | None,
    progress: Progress | None = None,
) -> Iterator[ResultT]:
    """Run the work on all blocks and yield the results in order."""
    workers = min(len(bounds), numba.get_num_threads() if n_threads is None else n_threads)
    done = 0
    if workers <= 1:
        results: Iterator[ResultT] = map(work, bounds)
        pool = None
    else:
        pool = ThreadPoolExecutor(workers)
        results = pool.map(work, bounds)
    try:
        for (begin, end), result in zip(bounds, results, strict=True):
            done += end - begin
            if progress is not None:
                progress(done, bounds[-1][1])
            yield result
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


# --- the three questions -----------------------------------------------------------------------------------------
def smooth(
    chained: Chained,
    wanted: tuple[Resolution, ...],
    *,
    counting: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[Resolution, FloatArray], Sums]:
    """Marginals of the wanted resolutions, log-likelihoods and, when counting, expected counts."""
    shapes = {r: (chained.layouts[chained.resolutions.index(r)].n_tasks, n_labels(chained, r)) for r in wanted}
    marginals = {resolution: np.empty(shape) for resolution, shape in shapes.items()}
    log_likelihood = np.zeros(chained.votes.n_sequences)
    n_classes = chained.n_classes
    total = Sums(
        cells=np.zeros(len(chained.laws.table) if counting else 0),
        initial=np.zeros(n_classes),
        transitions=np.zeros((n_classes, n_classes)),
        log_likelihood=log_likelihood,
    )
    work = partial(_smooth_block, chained, marginals, log_likelihood, len(total.cells))
    bounds = block_bounds(chained.votes.lengths)
    for part in on_threads(work, bounds, n_threads, progress):
        total.cells += part.cells
        total.initial += part.initial
        total.transitions += part.transitions
    return marginals, total


def n_labels(chained: Chained, resolution: Resolution) -> int:
    """Classes of the tasks of a resolution."""
    return chained.n_classes if isinstance(resolution, Element) else 2


def _smooth_block(
    chained: Chained,
    marginals: dict[Resolution, FloatArray],
    log_likelihood: FloatArray,
    n_cells: int,
    bounds: tuple[int, int],
) -> Sums:
    begin, end = bounds
    block = _vote_block(chained, begin, end)
    parts = [_part(chained, marginals, place, begin, end) for place in range(len(chained.resolutions))]
    out_first = _array([-1 if part is None else 0 for part in parts])
    out_first[out_first == 0] = _cumulated([part.size for part in parts if part is not None])[:-1]
    out = np.empty(sum(part.size for part in parts if part is not None))
    n_classes = chained.n_classes
    sums = Sums(cells=np.zeros(n_cells), initial=np.zeros(n_classes), transitions=np.zeros((n_classes, n_classes)))
    failed = kernels.smooth(
        chained.machine,
        chained.laws,
        block,
        _path(block),
        out,
        out_first,
        log_likelihood[begin:end],
        sums.cells,
        sums.initial,
        sums.transitions,
    )
    if failed >= 0:
        report_impossible(chained.votes, begin + failed)
    for part, first in zip(parts, out_first, strict=True):
        if part is not None:
            part[...] = out[first : first + part.size].reshape(part.shape)
    return sums


def _part(
    chained: Chained, marginals: dict[Resolution, FloatArray], place: int, begin: int, end: int
) -> FloatArray | None:
    resolution = chained.resolutions[place]
    if resolution not in marginals:
        return None
    offsets = chained.layouts[place].offsets
    return marginals[resolution][offsets[begin] : offsets[end]]


def _vote_block(chained: Chained, begin: int, end: int) -> kernels.Block:
    places = {resolution: place for place, resolution in enumerate(chained.resolutions)}
    columns = tuple(
        (places[info.resolution], column)
        for info, column in zip(chained.votes.sources, chained.votes.columns, strict=True)
    )
    return _block(chained.layouts, columns, begin, end)


def decode(chained: Chained, n_threads: int | None = None) -> Int8Array:
    """Class indices of the most likely joint labels, flat over elements."""
    labels = np.zeros(chained.votes.n_elements, dtype=np.int8)
    offsets = chained.layouts[0].offsets

    def work(bounds: tuple[int, int]) -> None:
        begin, end = bounds
        block = _vote_block(chained, begin, end)
        part = labels[offsets[begin] : offsets[end]]
        failed = kernels.decode(chained.machine, chained.laws, block, _path(block), part)
        if failed >= 0:
            report_impossible(chained.votes, begin + failed)

    for _ in on_threads(work, block_bounds(chained.votes.lengths), n_threads):
        pass
    return labels


def draw(chained: Chained, rng: np.random.Generator, n_draws: int, n_threads: int | None = None) -> Int8Array:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements)."""
    labels = np.zeros((n_draws, chained.votes.n_elements), dtype=np.int8)
    offsets = chained.layouts[0].offsets
    bounds = block_bounds(chained.votes.lengths)
    generators = dict(zip(bounds, rng.spawn(len(bounds)), strict=True))

    def work(bound: tuple[int, int]) -> None:
        begin, end = bound
        block = _vote_block(chained, begin, end)
        uniforms = generators[bound].random((n_draws, int(offsets[end] - offsets[begin])))
        drawn = np.zeros(uniforms.shape, dtype=np.int8)
        failed = kernels.draw(chained.machine, chained.laws, block, _path(block), uniforms, drawn)
        if failed >= 0:
            report_impossible(chained.votes, begin + failed)
        labels[:, offsets[begin] : offsets[end]] = drawn

    for _ in on_threads(work, bounds, n_threads):
        pass
    return labels


def report_impossible(votes: Votes, sequence: int) -> None:
    """Raise: the votes (and known labels) of a sequence have probability zero."""
    raise PriorError(
        f"the votes must be possible under the model; those of sequence {votes.sequence_ids[sequence]!r} have "
        "probability zero: a zero in the prior or in a source's table rules them out.\n"
        "  Replace zeros by small probabilities, or check the known labels of that sequence."
    )

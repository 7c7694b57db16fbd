"""The product of automata as arrays for the kernels.

In: a `Product`, the channels that look at its states and the layouts of all sequences. Out: `Machine`, with every step
that some sequence takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.blocks import block_bounds
from dugong.infer.factors import Channel
from dugong.infer.product import Product
from dugong.priors.chain import TooManyStatesError
from dugong.tasks import Layout
from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """Layers, what channels see in each of their states, and steps as sparse matrices.

    Attributes
    ----------
    sizes, code_first : by layer: its number of states, and where its codes begin in a row of `codes`
    codes : (n_channels, states of all layers)
    kinds : by crossing (see `crossings`), the column of `steps`; -1 if no sequence has it
    steps : (layers, kinds) the step, -1 if no sequence takes it
    following, step_first : by step: the layer it leads to, and where its pointers begin
    pointers, targets, weights : edges by origin: where they begin, the states they lead to, their probabilities
    pairs : by edge, ``label before * K + label after``
    n_states : by path (see `crossings`), states of all its elements; -1 if one of its layers is too wide
    """

    sizes: IntArray
    code_first: IntArray
    codes: IntArray
    kinds: IntArray
    steps: IntArray
    following: IntArray
    step_first: IntArray
    pointers: IntArray
    targets: IntArray
    weights: FloatArray
    pairs: IntArray
    n_states: IntArray

    def steps_along(self, paths: tuple[Layout, ...]) -> IntArray:
        """The step that leads to every element of some paths."""
        bits, starts = find_crossings(paths)
        found = np.empty(len(bits), dtype=np.int64)
        kernels.follow(self.kinds[bits], starts, self.steps, self.following, 0, found)
        return found


def explore(
    product: Product, channels: tuple[Channel, ...], layouts: tuple[Layout, ...], *, partly: bool = False
) -> Machine:
    """Walk every kind of sequence through the product until no step is unknown; partly, if some may be too wide."""
    known = _Known(product=product, n_coarse=len(layouts) - 1)
    given = any(layout.spans is not None for layout in layouts)
    paths, _ = different_paths(layouts)
    walk, found = known.walk_some if partly else known.walk, [np.zeros(0, dtype=np.int64)]
    # Given spans make every sequence a path of its own: some at a time.
    for begin, end in block_bounds(layouts[0].offsets) if given else [(0, len(paths[0].lengths))]:
        found.append(walk(tuple(layout.between(begin, end) for layout in paths)))
    return known.machine(channels, np.concatenate(found))


@dataclass(slots=True, kw_only=True, eq=False)
class _Known:
    """The known part of the product, as arrays that grow with it."""

    product: Product
    n_coarse: int
    kinds: IntArray = field(init=False)
    steps: IntArray = field(init=False)
    following: IntArray = field(init=False)
    refused: set[tuple[int, int]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.kinds = np.full(1 << 2 * self.n_coarse, -1, dtype=np.int64)
        self.steps = np.full((16, 4), -1, dtype=np.int64)
        self.following = np.zeros(64, dtype=np.int64)

    def walk_some(self, paths: tuple[Layout, ...]) -> IntArray:
        """As `walk`, -1 for a path that has too wide a layer."""
        n_paths = len(paths[0].lengths)
        try:
            return self.walk(paths)
        except TooManyStatesError:
            if n_paths == 1:
                return np.array([-1])
        # Halves of halves: few paths are tried one by one where few are too wide.
        halves = ((0, n_paths // 2), (n_paths // 2, n_paths))
        return np.concatenate([self.walk_some(tuple(one.between(*half) for one in paths)) for half in halves])

    def walk(self, paths: tuple[Layout, ...]) -> IntArray:
        """Learn all steps of some paths; returns the states of all elements of each."""
        bits, starts = find_crossings(paths)
        for crossing in np.unique(bits):
            if self.kinds[crossing] < 0:
                self.kinds[crossing] = self.kinds.max() + 1
        self._grow()
        kinds, found, e = self.kinds[bits], np.empty(len(bits), dtype=np.int64), 0
        # The kernel follows known steps to the first unknown one, which is learned here; regular windows have few.
        while (e := kernels.follow(kinds, starts, self.steps, self.following, e, found)) < len(kinds):
            self._learn(0 if starts[e] else int(self.following[found[e - 1]]), int(bits[e]))
        sizes = np.array([len(layer.rows) for layer in self.product.layers], dtype=np.int64)
        return np.diff(cumulated(sizes[self.following[found]])[paths[0].offsets])

    def _learn(self, layer: int, crossing: int) -> None:
        opening = crossing & ((1 << self.n_coarse) - 1)
        if (layer, crossing) in self.refused:
            raise TooManyStatesError
        try:
            step = self.product.step(layer, crossing >> self.n_coarse, opening)
        except TooManyStatesError:
            self.refused.add((layer, crossing))
            raise
        self._grow()
        self.steps[layer, self.kinds[crossing]] = step
        self.following[step] = self.product.steps[step].following

    def _grow(self) -> None:
        n_layers, n_kinds = self.steps.shape
        if len(self.product.layers) > n_layers or self.kinds.max() >= n_kinds:
            # Doubled, so that growing costs no more than the steps themselves.
            shape = 2 * max(n_layers, len(self.product.layers)), 2 * max(n_kinds, int(self.kinds.max()) + 1)
            wider = np.full(shape, -1, dtype=np.int64)
            wider[:n_layers, :n_kinds] = self.steps
            self.steps = wider
        if len(self.product.steps) > len(self.following):
            self.following = np.concatenate([self.following, np.zeros_like(self.following)])

    def machine(self, channels: tuple[Channel, ...], n_states: IntArray) -> Machine:
        """All that is known, with edges and with what every channel sees."""
        layers, steps = self.product.layers, self.product.steps
        sizes = np.array([len(layer.rows) for layer in layers], dtype=np.int64)
        codes = [np.concatenate([self.product.codes(layer, channel) for layer in layers]) for channel in channels]
        edge_first = cumulated([len(step.targets) for step in steps])
        pointers = [step.pointers + first for step, first in zip(steps, edge_first[:-1], strict=True)]
        none = np.zeros(0, dtype=np.int64)
        return Machine(
            sizes=sizes,
            code_first=cumulated(sizes)[:-1],
            codes=np.array(codes, dtype=np.int64),
            kinds=self.kinds,
            steps=self.steps,
            following=self.following,
            step_first=cumulated([len(step.pointers) for step in steps]),
            pointers=np.concatenate([none, *pointers]),
            targets=np.concatenate([none, *(step.targets for step in steps)]),
            weights=np.concatenate([np.zeros(0), *(step.weights for step in steps)]),
            pairs=np.concatenate([none, *self._pairs()]),
            n_states=n_states,
        )

    def _pairs(self) -> list[IntArray]:
        chain, found = self.product.chain, []
        # A step leaves one layer only: its key in the product names it.
        origins = {step: layer for (layer, _, _), step in self.product.edges.items()}
        for place, step in enumerate(self.product.steps):
            before = chain.labels[self.product.layers[origins[place]].rows[:, 0]]
            after = chain.labels[self.product.layers[step.following].rows[:, 0]]
            found.append(np.repeat(before, np.diff(step.pointers)) * chain.n_classes + after[step.targets])
        return found


def cumulated(sizes: list[int] | IntArray) -> IntArray:
    """Where each of some pieces begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64)


# --- Which tasks close and open along a sequence, as bits: all that decides its path through the product of automata.
# In: layouts of the elements and of the coarse resolutions. Out: one number per element. Sequences of one length take
# one path, unless tasks were given as spans.


def find_crossings(layouts: tuple[Layout, ...]) -> tuple[IntArray, BoolArray]:
    """For every element, what happens before it is read, and whether it is the first of its sequence.

    Bit r of the first result says that a task of coarse resolution r opens; as many bits higher, that one has closed.
    """
    elements, n_coarse = layouts[0], len(layouts) - 1
    bits = np.zeros(elements.n_tasks + 1, dtype=np.int64)
    for r, layout in enumerate(layouts[1:]):
        opened, closed = layout.flat_bounds()
        bits[opened] |= 1 << r
        bits[closed] |= 1 << (n_coarse + r)
    starts = np.zeros(elements.n_tasks, dtype=np.bool_)
    starts[elements.offsets[:-1][elements.lengths > 0]] = True
    bits = bits[:-1]
    bits[starts] &= (1 << n_coarse) - 1  # what closes at the end of a sequence does not concern the next one
    return bits, starts


def different_paths(layouts: tuple[Layout, ...]) -> tuple[tuple[Layout, ...], IntArray]:
    """Layouts of one sequence for every path that is taken, and where each sequence's path begins in them."""
    elements = layouts[0]
    if any(layout.spans is not None for layout in layouts):
        return layouts, elements.offsets[:-1]
    if len(layouts) == 1:  # without coarse tasks, every path is the beginning of the longest one
        lengths, which = elements.lengths.max(initial=0, keepdims=True), np.zeros(len(elements.lengths), dtype=np.int64)
    else:
        lengths, which = np.unique(elements.lengths, return_inverse=True)
    paths = tuple(Layout.of(layout.resolution, lengths) for layout in layouts)
    return paths, paths[0].offsets[:-1][which]

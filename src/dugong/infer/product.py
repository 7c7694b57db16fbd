"""The state space of the chain engine: a product of link automata, reachable states only.

A state after element t holds the state of the label chain, the remembered labels of coarse tasks that a temporal
source needs, and, for every window, span or sequence that is open at t, in the order of opening, the state of its
link automaton (and a guess of its final label where a crossed source needs to know it early). All states of a
*layer* share the same open tasks, so a layer is one integer matrix. A *step* closes some tasks, opens others and
reads the next element; the first one leaves layer 0, which has one state and no element. Layers and steps are memoised,
so regular windows lead to a handful of tables however long the sequences are.

In: a label chain and coarse resolutions. Out: a `Product`, and, with the channels that look at its states and the
layouts of all sequences, a `Machine`: arrays for the kernels, with every step that some sequence takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.blocks import block_bounds
from dugong.infer.factors import Channel
from dugong.priors.chain import MOST_STATES, LabelChain, TooManyStatesError
from dugong.tasks import Layout, Resolution, describe, links
from dugong.types import BoolArray, FloatArray, IntArray, Link

INVALID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarse:
    """A coarse resolution inside the product.

    Attributes
    ----------
    positive : class index that counts as positive
    memory : labels of how many earlier tasks are remembered
    guess : whether the final label is guessed at opening, and checked at closing
    carries : places of the coarse resolutions whose guess is remembered from the opening of each task
    """

    resolution: Resolution
    link: Link
    positive: int
    memory: int = 0
    guess: bool = False
    carries: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Columns of one open task: automaton, guess, carried guesses."""
        return 1 + self.guess + len(self.carries)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """The reachable states at one time: open tasks (by place of their resolution) and one row per state."""

    slots: tuple[int, ...]
    rows: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """Edges between two layers, by state before: ``pointers`` (n_states + 1), ``targets``, ``weights``."""

    origin: int
    following: int
    pointers: IntArray
    targets: IntArray
    weights: FloatArray


@dataclass(slots=True, kw_only=True, eq=False)
class Product:
    """Builds layers and steps on demand; `closing` and `opening` are sets of places as bits."""

    chain: LabelChain
    lag: int
    coarse: tuple[Coarse, ...]
    most_states: int = MOST_STATES
    layers: list[Layer] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    _known: dict[tuple[tuple[int, ...], int, bytes], int] = field(default_factory=dict)
    _past: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.chain, self._past = self.chain.with_memory(self.lag)
        memory = sum(coarse.memory for coarse in self.coarse)
        self.layers.append(Layer(slots=(), rows=np.full((1, 1 + memory), -1, dtype=np.int64)))

    # --- building ------------------------------------------------------------------------------------------
    def step(self, layer: int, closing: int, opening: int) -> Step:
        """Leave a layer by closing and opening these tasks and reading one element."""
        origin = self.layers[layer]
        # Layer 0 is before the first element, whose label has the initial law.
        law = self.chain.transition[origin.rows[:, 0]] if layer else self.chain.initial[None]
        rows, sources, slots = self._open(self._close(origin, closing), opening)
        # Steps of probability zero lead nowhere; leaving them out keeps the product small.
        branch, states = np.nonzero(law[sources])
        rows, weights = rows[branch], law[sources][branch, states]
        rows[:, 0] = states
        self._read(rows, slots)
        rows, targets = _unique_rows(rows)
        following = self._remember(Layer(slots=slots, rows=rows))
        pointers = np.searchsorted(sources[branch], np.arange(len(origin.rows) + 1))
        self.steps.append(Step(origin=layer, following=following, pointers=pointers, targets=targets, weights=weights))
        return self.steps[-1]

    def _close(self, layer: Layer, closing: int) -> Layer:
        for place, coarse in enumerate(self.coarse):
            if closing >> place & 1:
                layer = self._close_one(layer, place, coarse)
        return layer

    def _close_one(self, layer: Layer, place: int, coarse: Coarse) -> Layer:
        column = self._column(layer, place)
        rows = layer.rows.copy()
        if coarse.memory:
            first = self._memory_column(place)
            # The oldest label is forgotten, because no source looks further back than its lag.
            rows[:, first + 1 : first + coarse.memory] = layer.rows[:, first : first + coarse.memory - 1]
            rows[:, first] = links.accept(coarse.link, layer.rows[:, column])
        # Windows of one resolution close in the order in which they opened.
        oldest = layer.slots.index(place)
        slots = layer.slots[:oldest] + layer.slots[oldest + 1 :]
        return Layer(slots=slots, rows=np.delete(rows, np.s_[column : column + coarse.width], axis=1))

    def _open(self, layer: Layer, opening: int) -> tuple[IntArray, IntArray, tuple[int, ...]]:
        """Append new tasks to every state; a guess makes two states of one. Also returns each row's origin."""
        rows, sources, slots = layer.rows, np.arange(len(layer.rows)), layer.slots
        for place, coarse in enumerate(self.coarse):
            if opening >> place & 1:
                new = np.full((len(rows), coarse.width), -1, dtype=np.int64)
                new[:, 0] = links.start(coarse.link)
                rows, slots = np.hstack([rows, new]), (*slots, place)
                # A crossed source needs the label of a task before the task is over: both labels are tried, and the
                # wrong one becomes impossible when the task closes.
                if coarse.guess:
                    rows, sources = np.repeat(rows, 2, axis=0), np.repeat(sources, 2)
                    rows[:, -coarse.width + 1] = np.tile([0, 1], len(rows) // 2)
        self._carry(rows, slots, len(layer.slots))
        return rows, sources, slots

    def _carry(self, rows: IntArray, slots: tuple[int, ...], n_old: int) -> None:
        """Let tasks that have just opened remember the guesses of the tasks that contain their start."""
        layer = Layer(slots=slots, rows=rows)
        for slot in range(n_old, len(slots)):
            coarse = self.coarse[slots[slot]]
            column = self._slot_columns(slots)[slot] + 1 + coarse.guess
            for shift, parent in enumerate(coarse.carries):
                rows[:, column + shift] = self._guesses(layer, parent)

    def _read(self, rows: IntArray, slots: tuple[int, ...]) -> None:
        labels = self.chain.labels[rows[:, 0]]
        for column, place in zip(self._slot_columns(slots), slots, strict=False):
            coarse = self.coarse[place]
            rows[:, column] = links.step(coarse.link, rows[:, column], labels == coarse.positive)

    def _remember(self, layer: Layer) -> int:
        if len(layer.rows) > self.most_states:
            self._report_size(layer)
        # By content, because layers with equal states have equal steps, however they were reached.
        key = (layer.slots, layer.rows.shape[1], layer.rows.tobytes())
        if key not in self._known:
            self._known[key] = len(self.layers)
            self.layers.append(layer)
        return self._known[key]

    # --- reading -------------------------------------------------------------------------------------------
    def codes(self, layer: Layer, channel: Channel) -> IntArray:
        """What a channel sees in every state of a layer; for coarse channels, of the oldest open task."""
        places = {coarse.resolution: place for place, coarse in enumerate(self.coarse)}
        if channel.resolution not in places:
            return self._element_codes(layer, channel, places)
        place = places[channel.resolution]
        if place not in layer.slots:
            return np.zeros(len(layer.rows), dtype=np.int64)
        coarse, column = self.coarse[place], self._column(layer, place)
        labels: IntArray = links.accept(coarse.link, layer.rows[:, column]).astype(np.int64)
        if channel.lag:
            earlier = layer.rows[:, self._memory_column(place) + channel.lag - 1]
            # Before the first tasks there is no earlier label; the factor has the same law for all of them there.
            return np.maximum(earlier, 0) * 2 + labels
        if channel.parent is not None:
            shift = 1 + coarse.guess + coarse.carries.index(places[channel.parent])
            return labels * 2 + np.maximum(layer.rows[:, column + shift], 0)
        # A state whose guess is not what its automaton found is impossible.
        if coarse.guess:
            labels[layer.rows[:, column + 1] != labels] = INVALID
        return labels

    def _element_codes(self, layer: Layer, channel: Channel, places: dict[Resolution, int]) -> IntArray:
        states = layer.rows[:, 0]
        labels = self.chain.labels[states]
        if channel.lag:
            earlier = self._past[states, channel.lag - 1]
            return np.asarray(np.maximum(earlier, 0) * self.chain.n_classes + labels)
        if channel.parent is not None:
            return np.asarray(labels * 2 + np.maximum(self._guesses(layer, places[channel.parent]), 0))
        return np.asarray(labels)

    def _guesses(self, layer: Layer, place: int) -> IntArray:
        """Guess of the open task at a place, -1 where none is open."""
        if place not in layer.slots:
            return np.full(len(layer.rows), -1)
        return layer.rows[:, self._column(layer, place) + 1]

    def _memory_column(self, place: int) -> int:
        return 1 + sum(coarse.memory for coarse in self.coarse[:place])

    def _column(self, layer: Layer, place: int) -> int:
        """First column of the oldest open task of a resolution."""
        return self._slot_columns(layer.slots)[layer.slots.index(place)]

    def _slot_columns(self, slots: tuple[int, ...]) -> list[int]:
        """First column of every open task."""
        first = 1 + sum(coarse.memory for coarse in self.coarse)
        return list(accumulate((self.coarse[place].width for place in slots), initial=first))

    def _report_size(self, layer: Layer) -> None:
        """Name the declaration that makes the product too large."""
        distinct, first = {}, self._slot_columns(layer.slots)
        for place in set(layer.slots):
            columns = [first[s] for s, p in enumerate(layer.slots) if p == place]
            distinct[place] = len(_unique_rows(layer.rows[:, columns])[0])
        n_label_states = len(np.unique(layer.rows[:, 0]))
        worst = max(distinct, key=lambda place: distinct[place], default=None)
        if worst is None or n_label_states > distinct[worst]:
            cause = f"the prior (with the lags of temporal sources) needs {n_label_states} of them"
            advice = "Use shorter patterns, a smaller lag, or a Markov prior."
        else:
            coarse = self.coarse[worst]
            cause = f"{describe(coarse.resolution)} needs {distinct[worst]} of them"
            advice = _advice(coarse, layer.slots.count(worst))
        raise TooManyStatesError(
            f"exact inference takes at most {self.most_states} states per element; found {len(layer.rows)}: {cause}."
            f"\n  {advice}"
        )


def _advice(coarse: Coarse, n_open: int) -> str:
    if coarse.link == "majority":
        return 'Use shorter pieces, cut the sequences, or a link "any" or "all" in place of "majority".'
    if n_open > 1:
        return "Use a larger stride, so that fewer windows overlap."
    return "Leave out another resolution, or ask for fewer resolutions in one call."


def _unique_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct rows in lexicographic order, and the place of every row among them."""
    keys, size = np.zeros(len(rows), dtype=np.int64), 1
    lows, highs = rows.min(axis=0), rows.max(axis=0)
    for column, low, high in zip(rows.T, lows.tolist(), highs.tolist(), strict=True):
        span = high - low + 1
        if span == 1:
            continue
        # Numbering the keys anew keeps them exact where the columns have too many values for one number.
        if size * span > 2**62:
            values, keys = np.unique(keys, return_inverse=True)
            size = len(values)
        keys, size = keys * span + (column - low), size * span
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.ascontiguousarray(rows[first]), inverse.astype(np.int64)


# --- the product as arrays ------------------------------------------------------------------------------------------
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


class Space(NamedTuple):
    """What a product is made of, and the channels that look at its states."""

    chain: LabelChain
    lag: int
    coarse: tuple[Coarse, ...]
    channels: tuple[Channel, ...]
    most_states: int


def explore(space: Space, layouts: tuple[Layout, ...], *, partly: bool = False) -> Machine:
    """Walk every kind of sequence through the product until no step is unknown; partly, if some may be too wide."""
    product = Product(chain=space.chain, lag=space.lag, coarse=space.coarse, most_states=space.most_states)
    known = _Known(product=product, n_coarse=len(layouts) - 1)
    given = any(layout.spans is not None for layout in layouts)
    paths, _ = different_paths(layouts)
    walk, found = known.walk_some if partly else known.walk, [np.zeros(0, dtype=np.int64)]
    # Given spans make every sequence a path of its own: some at a time.
    for begin, end in block_bounds(layouts[0].offsets) if given else [(0, len(paths[0].lengths))]:
        found.append(walk(tuple(layout.between(begin, end) for layout in paths)))
    return known.machine(space.channels, np.concatenate(found))


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
        if (layer, crossing) in self.refused:
            raise TooManyStatesError
        try:
            step = self.product.step(layer, crossing >> self.n_coarse, crossing & ((1 << self.n_coarse) - 1))
        except TooManyStatesError:
            self.refused.add((layer, crossing))
            raise
        self._grow()
        place = len(self.product.steps) - 1
        self.steps[layer, self.kinds[crossing]], self.following[place] = place, step.following

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
        labels = [chain.labels[layer.rows[:, 0]] for layer in self.product.layers]
        for step in self.product.steps:
            before, after = labels[step.origin], labels[step.following]
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

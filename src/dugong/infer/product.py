"""The state space of the chain engine: a product of link automata, reachable states only.

A state after element t holds the state of the label chain, the remembered labels of coarse tasks that a temporal
source needs, and, for every window, span or sequence that is open at t, in the order of opening, the state of its
link automaton (and a guess of its final label where a crossed source needs to know it early). All states of a
*layer* share the same open tasks, so a layer is one integer matrix. A *step* closes some tasks, opens others and
reads the next element; the first one leaves layer 0, which has one state and no element. Layers and steps are memoised,
so regular windows lead to a handful of tables however long the sequences are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dugong.infer.factors import Channel
from dugong.priors.chain import MOST_STATES, LabelChain, TooManyStatesError, remembered
from dugong.tasks import Resolution, describe, links
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
    """Edges between two layers, sorted by origin: ``pointers`` (n_origins + 1), ``targets``, ``weights``."""

    following: int
    pointers: IntArray
    targets: IntArray
    weights: FloatArray


@dataclass(slots=True, kw_only=True, eq=False)
class Product:
    """Builds layers and steps on demand and remembers them; `closing` and `opening` are sets of places as bits."""

    chain: LabelChain
    lag: int
    coarse: tuple[Coarse, ...]
    most_states: int = MOST_STATES
    layers: list[Layer] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    edges: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _known: dict[tuple[tuple[int, ...], int, bytes], int] = field(default_factory=dict)
    _past: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._past = remembered(self.chain, self.lag)
        self.chain = self.chain.with_memory(self.lag)
        memory = sum(coarse.memory for coarse in self.coarse)
        self.layers.append(Layer(slots=(), rows=np.full((1, 1 + memory), -1, dtype=np.int64)))

    # --- building ------------------------------------------------------------------------------------------
    def step(self, layer: int, closing: int, opening: int) -> int:
        """Place of the step that leaves a layer by closing and opening these tasks and reading one element."""
        key = (layer, closing, opening)
        if key not in self.edges:
            origin = self.layers[layer]
            # Layer 0 is before the first element, whose label has the initial law.
            law = self.chain.transition[origin.rows[:, 0]] if layer else self.chain.initial[None]
            self.steps.append(self._advance(origin, closing, opening, law))
            self.edges[key] = len(self.steps) - 1
        return self.edges[key]

    def _advance(self, origin: Layer, closing: int, opening: int, law: FloatArray) -> Step:
        kept = self._close(origin, closing)
        rows, sources, slots = self._open(kept, opening)
        # Steps of probability zero lead nowhere; leaving them out keeps the product small.
        branch, states = np.nonzero(law[sources])
        rows, weights = rows[branch], law[sources][branch, states]
        rows[:, 0] = states
        self._read(rows, slots)
        rows, targets = _unique_rows(rows)
        layer = self._remember(Layer(slots=slots, rows=rows))
        pointers = np.searchsorted(sources[branch], np.arange(len(origin.rows) + 1))
        return Step(following=layer, pointers=pointers, targets=targets, weights=weights)

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
            rows[:, first] = _accepts(coarse, layer.rows[:, column])
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
            column = self._slot_column(slots, slot) + 1 + coarse.guess
            for shift, parent in enumerate(coarse.carries):
                rows[:, column + shift] = self._guesses(layer, parent)

    def _read(self, rows: IntArray, slots: tuple[int, ...]) -> None:
        labels = self.chain.labels[rows[:, 0]]
        columns = self._slot_columns(slots)
        for place in set(slots):
            own = [column for column, owner in zip(columns, slots, strict=False) if owner == place]
            positive = labels == self.coarse[place].positive
            rows[:, own] = _letters(self.coarse[place].link, rows[:, own], positive)

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
        labels = _accepts(coarse, layer.rows[:, column]).astype(np.int64)
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
        return self._slot_column(layer.slots, layer.slots.index(place))

    def _slot_column(self, slots: tuple[int, ...], slot: int) -> int:
        return self._slot_columns(slots)[slot]

    def _slot_columns(self, slots: tuple[int, ...]) -> list[int]:
        """First column of every open task."""
        first = 1 + sum(coarse.memory for coarse in self.coarse)
        return list(accumulate((self.coarse[place].width for place in slots), initial=first))

    def _report_size(self, layer: Layer) -> None:
        """Name the declaration that makes the product too large."""
        distinct = {}
        for place in set(layer.slots):
            columns = [self._slot_column(layer.slots, s) for s, p in enumerate(layer.slots) if p == place]
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


def _accepts(coarse: Coarse, states: IntArray) -> BoolArray:
    bound = _bound(states)
    return np.asarray(_accept_table(coarse.link, bound)[states + bound])


def _letters(link: Link, states: IntArray, positive: BoolArray) -> IntArray:
    """`links.step` for many states (one row per value of `positive`) at once."""
    bound = _bound(states)
    letters = np.broadcast_to(positive[:, None], states.shape).astype(np.int64)
    return np.asarray(_step_table(link, bound)[states + bound, letters])


def _bound(states: IntArray) -> int:
    """A power of two that no automaton state exceeds, so that few tables are ever made."""
    # Tables by power of two are made a few times in a program, those of every size in every call.
    return 1 << int(np.abs(states).max(initial=1)).bit_length()


@lru_cache(maxsize=64)
def _step_table(link: Link, bound: int) -> IntArray:
    return np.array(
        [[links.step(link, state, letter) for letter in (False, True)] for state in range(-bound, bound + 1)]
    )


@lru_cache(maxsize=64)
def _accept_table(link: Link, bound: int) -> BoolArray:
    return np.array([links.accept(link, state) for state in range(-bound, bound + 1)])


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

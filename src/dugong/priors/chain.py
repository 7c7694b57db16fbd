"""The common form of every prior over element labels: a homogeneous Markov chain over hidden states.

A state stands for a short history of labels; `labels` says which class the newest element has. The law of
the first t labels is the same for every sequence length, so nothing depends on where a sequence ends.
Inference, exact moments and sampling all read this one value.

`chain_law` is the joint law of a few tasks of one sequence, exact at any length: the automata of the tasks run side by
side along the chain, from the first element that any of them reads, started at the marginal of the state there. Two
tasks go through the compiled loop, more through a dictionary of reached states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dugong.exceptions import PriorError, TaskError
from dugong.priors._kernels import pair_laws, state_marginals
from dugong.priors.pieces import Automaton, Piece, automaton
from dugong.types import FloatArray, IntArray, read_only

_TOLERANCE = 1e-6
# Below this the law of the state has stopped moving as far as float64 can tell.
STILL = 1e-16
MOST_STATES = 4096


class TooManyStatesError(TaskError):
    """Labels that have to be remembered need more states per element than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelChain:
    """A chain over label states.

    Attributes
    ----------
    initial : (n_states,) law of the state of the first element
    transition : (n_states, n_states) rows sum to one
    labels : (n_states,) class index (0..K-1) of the newest element in each state
    n_classes : int
    """

    initial: FloatArray
    transition: FloatArray
    labels: IntArray
    n_classes: int

    def __post_init__(self) -> None:
        for field, dtype in (("initial", np.float64), ("transition", np.float64), ("labels", np.int64)):
            object.__setattr__(self, field, read_only(np.ascontiguousarray(getattr(self, field), dtype=dtype)))
        check_distribution(self.initial, "the initial law")
        # Checked here, once for all kinds of priors, because inference multiplies thousands of these rows.
        for row in self.transition:
            check_distribution(row, "every row of the transition matrix")

    @property
    def n_states(self) -> int:
        """Number of label states."""
        return len(self.initial)

    def with_memory(self, order: int) -> LabelChain:
        """The same law with states that remember the labels of the `order` elements before the newest.

        The remembered labels of state s are ``remembered(chain, order)[s]``; positions before the first
        element are remembered as -1.
        """
        return _expand(self, order)[0]


def _expand(chain: LabelChain, order: int) -> tuple[LabelChain, IntArray]:
    if order > MOST_STATES:
        raise TooManyStatesError(f"at most {MOST_STATES} labels can be remembered; found a lag of {order}.")
    start = [(state, (-1,) * order) for state in range(chain.n_states)]
    states = {key: place for place, key in enumerate(start)}
    edges: list[tuple[int, int, float]] = []
    queue = list(start)
    while queue:
        key = queue.pop()
        state, past = key
        remembered = (int(chain.labels[state]), *past)[:order]
        for target in np.flatnonzero(chain.transition[state]):
            following = (int(target), remembered)
            if following not in states:
                if len(states) >= MOST_STATES:  # they double with every label that is remembered
                    raise TooManyStatesError(
                        f"exact inference takes at most {MOST_STATES} states per element; remembering the labels of "
                        f"{order} elements needs more.\n  Use a smaller lag, or a Markov prior."
                    )
                states[following] = len(states)
                queue.append(following)
            edges.append((states[key], states[following], float(chain.transition[state, target])))
    transition = np.zeros((len(states), len(states)))
    for origin, place, weight in edges:
        transition[origin, place] += weight
    initial = np.zeros(len(states))
    initial[: chain.n_states] = chain.initial
    keys = list(states)
    expanded = LabelChain(
        initial=initial,
        transition=transition,
        labels=np.array([chain.labels[state] for state, _ in keys]),
        n_classes=chain.n_classes,
    )
    return expanded, np.array([past for _, past in keys], dtype=np.int64).reshape(len(keys), order)


def remembered(chain: LabelChain, order: int) -> IntArray:
    """Labels of the `order` elements before the newest one, by state of ``chain.with_memory(order)``."""
    return _expand(chain, order)[1]


def normalised(values: FloatArray) -> FloatArray:
    """Divide by the sum, unless rounding is all that is wrong with it."""
    total = values.sum()
    # Dividing by a sum that is one up to rounding would change the last digit of what the user gave.
    return values if abs(total - 1) < 1e-12 else np.asarray(values / total)


def check_distribution(values: FloatArray, what: str) -> None:
    """Raise a `PriorError` unless `values` are probabilities that sum to one."""
    if not np.isfinite(values).all() or (values < 0).any():
        raise PriorError(f"{what} must hold probabilities; found {np.array2string(values, threshold=8)}.")
    total = float(values.sum())
    if abs(total - 1) > _TOLERANCE:
        raise PriorError(f"{what} must sum to one; found {total:.6g}.\n  Divide by the sum if these are weights.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """The nonzero transitions of a chain, row after row, and the class of every state."""

    heads: IntArray
    targets: IntArray
    weights: FloatArray
    labels: IntArray

    @classmethod
    def of(cls, chain: LabelChain) -> Edges:
        """Collect the edges of a chain."""
        sources, targets = np.nonzero(chain.transition)
        heads = np.searchsorted(sources, np.arange(chain.n_states + 1)).astype(np.int64)
        weights = np.array(chain.transition[sources, targets])
        return cls(heads=heads, targets=targets.astype(np.int64), weights=weights, labels=chain.labels.copy())


def marginal_laws(chain: LabelChain, edges: Edges, positions: IntArray) -> FloatArray:
    """Law of the state at each of some positions, shape (n_positions, n_states)."""
    if len(positions) == 0:
        return np.zeros((0, chain.n_states))
    length = int(positions.max()) + 1
    laws = state_marginals(chain.initial.copy(), edges.heads, edges.targets, edges.weights, length, STILL)
    return np.asarray(laws[np.minimum(positions, len(laws) - 1)])


def laws_of_pairs(
    edges: Edges, starts: FloatArray, bounds: IntArray, first: Automaton, second: Automaton
) -> FloatArray:
    """Joint laws of two pieces, shape (n_questions, outputs of first, outputs of second).

    `starts` (n_questions, n_states) is the law of the state at element 0, `bounds` (n_questions, 4) the
    start and stop of both pieces; an empty second piece has output 0.
    """
    laws = pair_laws(
        np.ascontiguousarray(starts, dtype=np.float64),
        edges.heads,
        edges.targets,
        edges.weights,
        edges.labels,
        first.following,
        first.outputs,
        first.n_outputs,
        second.following,
        second.outputs,
        second.n_outputs,
        np.ascontiguousarray(bounds, dtype=np.int64),
    )
    return np.asarray(laws)


def chain_law(chain: LabelChain, pieces: Sequence[Piece]) -> FloatArray:
    """Joint law of the labels of `pieces`, one axis each."""
    if not pieces:
        return np.ones(())
    origin = min(piece.start for piece in pieces)
    edges = Edges.of(chain)
    start = marginal_laws(chain, edges, np.array([origin]))[0]
    machines = [automaton(p.rule, chain.n_classes, p.stop - p.start) for p in pieces]
    if len(pieces) <= 2:
        return _pair(edges, start, pieces, machines, origin)
    return _walk(chain, start, pieces, machines, origin)


def _pair(
    edges: Edges, start: FloatArray, pieces: Sequence[Piece], machines: Sequence[Automaton], origin: int
) -> FloatArray:
    bounds = np.zeros((1, 4), dtype=np.int64)
    for place, piece in enumerate(pieces):
        bounds[0, 2 * place : 2 * place + 2] = piece.start - origin, piece.stop - origin
    law = laws_of_pairs(edges, start[None], bounds, machines[0], machines[-1])[0]
    return np.asarray(law if len(pieces) == 2 else law[:, 0])


def _walk(
    chain: LabelChain, start: FloatArray, pieces: Sequence[Piece], machines: Sequence[Automaton], origin: int
) -> FloatArray:
    nothing = (0,) * len(pieces)
    now = {(int(state), nothing): float(start[state]) for state in np.flatnonzero(start)}
    for element in range(origin, max(piece.stop for piece in pieces)):
        later: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
        for (state, memory), weight in now.items():
            ways = [(state, 1.0)] if element == origin else _ways(chain, state)
            for target, chance in ways:
                label = int(chain.labels[target])
                moved = tuple(
                    int(machine.following[q, label]) if piece.start <= element < piece.stop else q
                    for q, piece, machine in zip(memory, pieces, machines, strict=True)
                )
                later[target, moved] += weight * chance
        now = dict(later)
    law = np.zeros([machine.n_outputs for machine in machines])
    for (_, memory), weight in now.items():
        law[tuple(int(machine.outputs[q]) for q, machine in zip(memory, machines, strict=True))] += weight
    return law


def _ways(chain: LabelChain, state: int) -> list[tuple[int, float]]:
    row = chain.transition[state]
    return [(int(target), float(row[target])) for target in np.flatnonzero(row)]

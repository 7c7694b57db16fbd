"""The common form of every prior over element labels: a homogeneous Markov chain over hidden states.

A state stands for a short history of labels; `labels` says which class the newest element has. The law of
the first t labels is the same for every sequence length, so nothing depends on where a sequence ends.
Inference, exact moments and sampling all read this one value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.exceptions import PriorError
from dugong.types import FloatArray, IntArray, read_only

_TOLERANCE = 1e-6


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
        for row in self.transition:
            check_distribution(row, "every row of the transition matrix")

    @property
    def n_states(self) -> int:
        """Number of label states."""
        return len(self.initial)

    def marginals(self, length: int) -> FloatArray:
        """Law of the state at every position, shape (length, n_states)."""
        laws = np.empty((length, self.n_states))
        law = self.initial
        for position in range(length):
            laws[position] = law
            law = law @ self.transition
        return laws

    def with_memory(self, order: int) -> LabelChain:
        """The same law with states that remember the labels of the `order` elements before the newest.

        The remembered labels of state s are ``remembered(chain, order)[s]``; positions before the first
        element are remembered as -1.
        """
        return _expand(self, order)[0]


def _expand(chain: LabelChain, order: int) -> tuple[LabelChain, IntArray]:
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
    return values if abs(total - 1) < 1e-12 else np.asarray(values / total)


def check_distribution(values: FloatArray, what: str) -> None:
    """Raise a `PriorError` unless `values` are probabilities that sum to one."""
    if not np.isfinite(values).all() or (values < 0).any():
        raise PriorError(f"{what} must hold probabilities; found {np.array2string(values, threshold=8)}.")
    total = float(values.sum())
    if abs(total - 1) > _TOLERANCE:
        raise PriorError(f"{what} must sum to one; found {total:.6g}.\n  Divide by the sum if these are weights.")

"""Tables of sources, written as one would describe them: accurate, copying, repeating, flipped, one-sided.

Every function returns P(vote | label) for one source, or a joint table for several: rows are classes,
then one axis per source with the classes first and abstain last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from dugong.exceptions import GraphError, PriorError
from dugong.types import FloatArray


def accurate(
    p_plus: float, p_minus: float | None = None, abstain_plus: float = 0.0, abstain_minus: float | None = None
) -> FloatArray:
    """A source with two classes, (2, 3).

    Parameters
    ----------
    p_plus, p_minus : float
        P(right | it votes) on positive and on negative tasks; `p_minus` defaults to `p_plus`.
    abstain_plus, abstain_minus : float
        P(abstain) on positive and on negative tasks; `abstain_minus` defaults to `abstain_plus`.
    """
    p_minus = p_plus if p_minus is None else p_minus
    abstain_minus = abstain_plus if abstain_minus is None else abstain_minus
    _check_probabilities(p_plus, p_minus, abstain_plus, abstain_minus)
    return np.array(
        [
            [p_minus * (1 - abstain_minus), (1 - p_minus) * (1 - abstain_minus), abstain_minus],
            [(1 - p_plus) * (1 - abstain_plus), p_plus * (1 - abstain_plus), abstain_plus],
        ]
    )


def confusion(n_classes: int, accuracy: float | Sequence[float], abstain: float = 0.0) -> FloatArray:
    """A source with K classes that is right with probability `accuracy` (by class) and else errs evenly, (K, K + 1)."""
    right = np.broadcast_to(np.asarray(accuracy, dtype=np.float64), (n_classes,))
    _check_probabilities(abstain, *right.tolist())
    wrong = (1 - right)[:, None] / (n_classes - 1) * (1 - np.eye(n_classes))
    table = (np.diag(right) + wrong) * (1 - abstain)
    return np.concatenate([table, np.full((n_classes, 1), abstain)], axis=1)


def unipolar(hit: float, false_alarm: float, vote: int = 1) -> FloatArray:
    """A source with two classes that votes `vote` or abstains: on its own class with P `hit`, else `false_alarm`."""
    _check_probabilities(hit, false_alarm)
    if vote not in (-1, 1):
        raise GraphError(f"a one-sided source votes -1 or +1; found {vote}.")
    column = (vote + 1) // 2
    table = np.zeros((2, 3))
    table[column, column], table[1 - column, column] = hit, false_alarm
    table[:, 2] = 1 - table[:, column]
    return table


def flipped(table: FloatArray) -> FloatArray:
    """The source that says -1 where this one says +1, and the other way round."""
    if table.shape != (2, 3):
        raise GraphError(f"only a source with two classes can be flipped; found a table of shape {table.shape}.")
    return table[:, [1, 0, 2]]


def silent(n_classes: int = 2) -> FloatArray:
    """A source that always abstains, (K, K + 1)."""
    table = np.zeros((n_classes, n_classes + 1))
    table[:, -1] = 1.0
    return table


def copying_pair(table: FloatArray, probability: float, own: FloatArray | None = None) -> FloatArray:
    """Two sources; the second copies the first with `probability` and else votes afresh, (K, C, C).

    The second votes afresh by its `own` table, by default the same as the first.
    """
    return copying_path([table, table if own is None else own], probability)


def copying_path(tables: Sequence[FloatArray], probability: float) -> FloatArray:
    """A row of sources; each copies the one before with `probability` and else votes by its own table."""
    _check_probabilities(probability)
    joint = np.asarray(tables[0], dtype=np.float64)
    for table in tables[1:]:
        fresh = np.broadcast_to(table[:, None, :], (len(table), table.shape[1], table.shape[1]))
        following = probability * np.eye(table.shape[1]) + (1 - probability) * fresh
        shape = (len(table), *(1,) * (joint.ndim - 2), *following.shape[1:])
        joint = joint[..., np.newaxis] * following.reshape(shape)
    return joint


def common_cause(tables: Sequence[FloatArray], probability: float) -> FloatArray:
    """Sources that share a detector: with `probability` all give one vote (by the first table), else each its own."""
    _check_probabilities(probability)
    joint = np.asarray(tables[0], dtype=np.float64)
    shared = joint
    for table in tables[1:]:
        joint = joint[..., np.newaxis] * table.reshape(len(table), *(1,) * (joint.ndim - 1), -1)
        shared = shared[..., np.newaxis] * np.eye(table.shape[1])
    return np.asarray(probability * shared + (1 - probability) * joint)


def ising(
    thetas: Sequence[float],
    edges: Mapping[tuple[int, int], float] | None = None,
    abstain: float | Sequence[float] = 0.0,
) -> FloatArray:
    """Sources that vote -1 or +1 with P proportional to exp(sum theta_j v_j y + sum theta_jk v_j v_k), (2, 3, ..., 3).

    There are no potentials of single votes, so P(+ | +) = P(- | -): the class for which the paper's
    appendix argues.

    Parameters
    ----------
    thetas : strength of each source
    edges : strength by pair of places, such as ``{(0, 1): 0.4}``
    abstain : float or one per source
        P(a vote is left out), whatever the labels and the other votes.
    """
    m = len(thetas)
    spins = 2 * np.indices((2,) * m).reshape(m, -1).T - 1
    own = spins @ np.asarray(thetas, dtype=np.float64)
    couplings = sum((s * spins[:, j] * spins[:, k] for (j, k), s in (edges or {}).items()), np.zeros(len(spins)))
    weights = np.exp(np.stack([-own, own]) + couplings)
    joint = (weights / weights.sum(axis=1, keepdims=True)).reshape(2, *(2,) * m)
    rates = np.broadcast_to(np.asarray(abstain, dtype=np.float64), (m,))
    _check_probabilities(*rates.tolist())
    for place, rate in enumerate(rates):
        channel = np.array([[1 - rate, 0, rate], [0, 1 - rate, rate]])
        joint = np.moveaxis(np.tensordot(joint, channel, axes=(place + 1, 0)), -1, place + 1)
    return np.asarray(joint)


def path(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Edges between neighbours in a row."""
    return tuple(pairwise(names))


def cycle(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Edges between neighbours in a ring; of three sources, the triangle."""
    return (*path(names), (names[-1], names[0]))


def couplings(names: Sequence[str], edges: Sequence[tuple[str, str]], strength: float) -> dict[tuple[int, int], float]:
    """Edges by name as edges of `ising`, all of one strength."""
    place = {name: index for index, name in enumerate(names)}
    return {(place[a], place[b]): strength for a, b in edges}


def temporal(table: FloatArray, repeat: float) -> tuple[FloatArray, FloatArray]:
    """A source that repeats its last vote with probability `repeat`, else votes afresh: tables `first` and `step`."""
    _check_probabilities(repeat)
    K, C = table.shape
    step = repeat * np.eye(C)[None, None] + (1 - repeat) * np.broadcast_to(table[None, :, None], (K, K, C, C))
    return np.array(table), step


def _check_probabilities(*values: float) -> None:
    for value in values:
        if not 0 <= value <= 1:
            raise PriorError(f"probabilities lie between 0 and 1; found {value}.")

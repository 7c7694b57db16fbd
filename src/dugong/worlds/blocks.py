"""Sources with known tables: what a world is made of.

A *block* is one source, or a few that vote jointly on each task of one resolution; blocks are independent
of each other given the labels. Tables hold P(votes | label): rows are classes, every further axis runs
over the vote columns of one source, classes first and abstain last. Functions write such tables as one would describe
them: accurate, copying, repeating, flipped, one-sided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from dugong.exceptions import GraphError, PriorError
from dugong.law.parameters import Sized
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, read_only

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block(Sized):
    """Sources of one resolution that vote jointly on each task.

    Attributes
    ----------
    table : (K, C, ..., C), one axis per source; or (positions, K, C, ..., C) with `by_position`
        P(votes | label). Positions beyond the last use the last.
    edges : which of the sources depend on each other given the label; all pairs by default
    """

    names: tuple[str, ...]
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)
    by_position: bool = False
    edges: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (self.names,) if isinstance(self.names, str) else tuple(self.names))
        if self.edges is None:
            object.__setattr__(self, "edges", tuple(combinations(self.names, 2)))
        object.__setattr__(self, "edges", tuple(tuple(edge) for edge in self.edges or ()))
        _store(self, "table", 1 + self.by_position, len(self.names))

    def tables(self) -> FloatArray:
        """The joint tables with a positions axis, (positions, K, C, ..., C)."""
        return self.table if self.by_position else self.table[np.newaxis]

    def marginal(self, names: tuple[str, ...]) -> FloatArray:
        """P(votes of some of the sources | label), (positions, K, C, ..., C), axes in the order of `names`."""
        tables = self.tables()
        places = [2 + self.names.index(name) for name in names]
        summed = tables.sum(axis=tuple(a for a in range(2, tables.ndim) if a not in places))
        order = np.argsort(np.argsort(places))
        return np.transpose(summed, (0, 1, *(2 + order)))


class _Single(Sized):
    """A block of one source."""

    __slots__ = ()

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The one source."""
        return (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemporalBlock(_Single):
    """A source that depends on its own vote `lag` tasks earlier.

    Attributes
    ----------
    first : (K, C) P(vote | label) for the first `lag` tasks of a sequence
    step : (K_prev, K, C_prev, C) P(vote | earlier label, label, earlier vote)
    """

    name: str
    first: FloatArray
    step: FloatArray
    resolution: Resolution = field(default_factory=Element)
    lag: int = 1

    def __post_init__(self) -> None:
        _store(self, "first", 1, 1)
        _store(self, "step", 3, 1)
        classes, columns = self.first.shape
        if self.step.shape != (classes, classes, columns, columns) or self.lag < 1:
            raise GraphError(
                f"the step table of {self.name!r} must have the shape {(classes, classes, columns, columns)} and "
                f"its lag must be at least 1; found {self.step.shape} and lag {self.lag}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossedBlock(_Single):
    """A source that depends on the vote of a coarser source on the task that contains its own.

    Attributes
    ----------
    parent : a source of an earlier block, at a resolution whose tasks do not overlap
    table : (K, 2, C_parent, C) P(vote | label, label of the containing task, vote of the parent there)
    marginal : (K, C), optional
        P(vote | label) where no task contains this one (spans with gaps).
    """

    name: str
    parent: str
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)
    marginal: FloatArray | None = None

    def __post_init__(self) -> None:
        _store(self, "table", 3, 1)
        if self.marginal is not None:
            _store(self, "marginal", 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullBlock(_Single):
    """A source whose votes on all tasks of a sequence depend on all their labels.

    Attributes
    ----------
    n_tasks : tasks of this resolution that every sequence has
    table : (K ** n_tasks, C ** n_tasks) P(vote pattern | label pattern); task 0 is the most significant digit
    """

    name: str
    n_tasks: int
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)

    def __post_init__(self) -> None:
        _store(self, "table", 1, 1)
        if self.table.shape != (self.n_classes**self.n_tasks, self.n_columns**self.n_tasks):
            raise GraphError(
                f"the full table of {self.name!r} needs K ** {self.n_tasks} rows and C ** {self.n_tasks} columns; "
                f"found the shape {self.table.shape}."
            )


AnyBlock = Block | TemporalBlock | CrossedBlock | FullBlock


def _store(block: Any, name: str, n_given: int, n_votes: int) -> None:
    """Check that a table is a law over its last `n_votes` axes for each of the first `n_given`, and freeze it."""
    table = np.array(getattr(block, name), dtype=np.float64)
    who = " and ".join(map(repr, block.names))
    if table.ndim != n_given + n_votes or len(set(table.shape[n_given:])) > 1:
        raise GraphError(
            f"the {name} of {who} must have {n_given} axes for what is given and {n_votes} equal ones for the votes; "
            f"found the shape {table.shape}."
        )
    if not np.isfinite(table).all() or (table < 0).any():
        raise PriorError(f"the {name} of {who} must hold probabilities; found {np.nanmin(table):g}.")
    totals = table.sum(axis=tuple(range(n_given, table.ndim)))
    if np.abs(totals - 1).max() > _TOLERANCE:
        worst = totals.reshape(-1)[np.abs(totals - 1).argmax()]
        raise PriorError(f"the votes of {who} must sum to one for every label; found {worst:.6g} in `{name}`.")
    object.__setattr__(block, name, read_only(table))


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

    There are no potentials of single votes, so P(+ | +) = P(- | -): the class for which the paper's appendix argues.

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

"""Tables of single sources from their slopes, and of several votes by unbiased proxies (METHOD 3.4).

If ``E[g(vote) | Y] = alpha + beta y_i``, then ``(g - alpha) / beta`` has the mean y_i given all labels: a stand-in for
the hidden label, and a score per vote column. For votes F and tasks V, ``E[F * product of y] = E[F * product of
proxies]`` is therefore observable (equation 2); the inverse Walsh transform over the subsets V turns these into
``P(F, labels)``. Cliques of sources, a source with itself in time, a fine with a coarse source, and full tables differ
only in which votes and tasks enter. Arrays may have an axis over replicates of the jackknife in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.errors import leave_out, weighted_error
from dugong.fit.moments.copying import FEWEST_GROUPS, shrink_to_copying
from dugong.fit.moments.equations import N_INDICATORS, marginal
from dugong.fit.moments.stages import Solution
from dugong.fit.tables import products_to_joints
from dugong.graph.design import Design, clique_rows, crossed_rows, full_rows, temporal_rows
from dugong.sums import Laws, MomentRow, Moments, Slot
from dugong.types import FloatArray

_LABELS = np.array([-1.0, 1.0])
# Singular values of a covariance of indicators below this share of the largest are rounding: indicators of a source
# that never abstains add up to one.
_RANK = 1e-9

Scores = Mapping[str, FloatArray]
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceTables:
    """Everything that is known about single sources once the slopes are solved.

    Attributes
    ----------
    whole : the tables of the whole sample, where these are replicates of it
    counted : what follows from the counts alone, for tables of the same counts under another law of the labels
    """

    design: Design
    moments: Moments
    laws: Laws
    slopes: Solution
    accuracies: Mapping[str, FloatArray]
    whole: SourceTables | None = None
    counted: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _raw: dict[str, FloatArray] = field(init=False, default_factory=dict)
    _pairs: dict[tuple[str, str], MomentRow] = field(init=False, default_factory=dict)
    _scored: dict[tuple[str, int], tuple[FloatArray, FloatArray]] = field(init=False, default_factory=dict)
    _weights: dict[tuple[tuple[str, ...], int], FloatArray] = field(init=False, default_factory=dict)
    _stands: dict[tuple[Any, ...], FloatArray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # The first row of a pair counts, whichever way round.
        for row in reversed(self.design.same):
            self._pairs[row.sources[0], row.sources[1]] = self._pairs[row.sources[1], row.sources[0]] = row

    def marginal(self, name: str) -> FloatArray:
        """P(vote) of one source, (..., positions or 1, C)."""
        return self.once(("marginal", name), lambda: marginal(self.design, self.moments, name))

    def once(self, key: tuple[Any, ...], make: Callable[[], Kept]) -> Kept:
        """What is made of the counts, once for all laws of the labels."""
        if key not in self.counted:
            self.counted[key] = make()
        found: Kept = self.counted[key]
        return found

    def raw(self, name: str) -> FloatArray:
        """P(vote | label) before projection, (..., positions or 1, 2, C)."""
        if name in self._raw:
            return self._raw[name]
        if name in self.accuracies:
            known = np.asarray(self.accuracies[name], dtype=np.float64)
            table = known if known.ndim == 3 else known[np.newaxis]
        else:
            votes, by_position = self.marginal(name), self.design.levels[name] == "task"
            mean = self.laws.mean(self.moments.resolution(name), by_position=by_position)[..., : votes.shape[-2]]
            # A table has the vote rates that were seen, whatever the slopes: they only tilt it around the mean label.
            shift = _LABELS - mean[..., np.newaxis]
            table = votes[..., np.newaxis, :] + self.full_slopes(name)[..., np.newaxis, :] * shift[..., np.newaxis]
        self._raw[name] = table
        return table

    def full_slopes(self, name: str) -> FloatArray:
        """Slopes of all vote columns, (..., positions, C): those of the classes, and abstain takes up the rest."""
        own = self.slopes.of(self.design.key(name))
        beta = np.zeros((*own.shape[:-1], self.marginal(name).shape[-1]))
        beta[..., :N_INDICATORS] = own
        # Probabilities of all votes add up to one under either label, so that slopes add up to zero.
        beta[..., N_INDICATORS] = -own.sum(axis=-1)
        return beta

    def row_of(self, first: str, second: str) -> MomentRow | None:
        """The row of two sources on the same task, in either order."""
        return self._pairs.get((first, second))

    def score(self, name: str, position: int = 0) -> tuple[FloatArray, FloatArray]:
        """Unbiased score per vote column from one source alone, (..., C), and its precision (1 / variance)."""
        if (name, position) not in self._scored:
            scores, precision = _scores(self, (name,), position, self.best_weights((name,), position))
            self._scored[name, position] = scores[name], precision
        return self._scored[name, position]

    def best_weights(self, names: tuple[str, ...], position: int) -> FloatArray:
        """Weights of all indicators of some sources which give the least noise, (..., n_names, 2)."""
        if (names, position) not in self._weights:
            self._weights[names, position] = _best_weights(self, names, position)
        return self._weights[names, position]

    def stand_ins(self, proxies: Sequence[tuple[str, ...]], *, placed: bool) -> FloatArray:
        """What votes of proxies say about labels, see `_stand_ins`; once, because sources often have the same."""
        key = (tuple(proxies), placed)
        if key not in self._stands:
            self._stands[key] = _stand_ins(self, proxies, placed=placed)
        return self._stands[key]


def combined(tables: SourceTables, names: Sequence[str], position: int = 0) -> tuple[Scores, FloatArray]:
    """Scores by source whose sum is unbiased for the label, with the least variance; and that precision.

    Replicates take the weights of the whole sample, because any weights are unbiased and those cost an inverse each;
    what makes the sum unbiased, alpha and beta of every source, is that of the replicate.
    """
    return _scores(tables, names, position, (tables.whole or tables).best_weights(tuple(names), position))


def _best_weights(tables: SourceTables, names: Sequence[str], position: int) -> FloatArray:
    """Weights ``Cov(g)^-1 beta`` of all indicators g, which give the least noise, (..., n_names, 2)."""
    beta = np.concatenate([_at(tables.full_slopes(name), position, 1)[..., :N_INDICATORS] for name in names], axis=-1)
    inverse = tables.once(
        ("inverse", tuple(names), position),
        lambda: np.linalg.pinv(_covariance(tables, names, position), rcond=_RANK),
    )
    weights = np.matmul(inverse, beta[..., np.newaxis])[..., 0]
    # Without information no scale makes the combination unbiased; it then stands for nothing.
    information = (weights * beta).sum(axis=-1, keepdims=True)
    weights = np.where(information > 0, weights, 0.0)
    return weights.reshape(*weights.shape[:-1], len(names), N_INDICATORS)


def _scores(
    tables: SourceTables, names: Sequence[str], position: int, weights: FloatArray
) -> tuple[Scores, FloatArray]:
    """Scores with given weights, scaled so that their sum is unbiased; and its precision if these are its own.

    The best combination has the precision ``beta' Cov(g)^-1 beta``, which is also what its weights are scaled by.
    """
    scores: dict[str, FloatArray] = {}
    information = np.zeros(())
    for place, name in enumerate(names):
        table, own = _at(tables.raw(name), position, 2), weights[..., place, :]
        sides = np.matmul(table[..., :N_INDICATORS], own[..., np.newaxis])[..., 0]  # of the weighted votes, by label
        information = information + (sides[..., 1] - sides[..., 0]) / 2
        score = np.repeat(-sides.mean(axis=-1, keepdims=True), table.shape[-1], axis=-1)
        score[..., :N_INDICATORS] += own
        scores[name] = score
    scale = np.where(information != 0, information, 1.0)[..., np.newaxis]
    return {name: score / scale for name, score in scores.items()}, np.asarray(information)


def _covariance(tables: SourceTables, names: Sequence[str], position: int) -> FloatArray:
    """Covariances of all indicators of some sources, (..., n, n)."""
    laws = [_at(tables.marginal(name), position, 1)[..., :N_INDICATORS] for name in names]
    size = N_INDICATORS * len(names)
    matrix = np.zeros((*laws[0].shape[:-1], size, size))
    for i, (first, law) in enumerate(zip(names, laws, strict=True)):
        own = slice(i * N_INDICATORS, (i + 1) * N_INDICATORS)
        matrix[..., own, own] = law[..., np.newaxis] * (np.eye(N_INDICATORS) - law[..., np.newaxis, :])
        for j, second in enumerate(names[:i]):
            other = slice(j * N_INDICATORS, (j + 1) * N_INDICATORS)
            block = _pair_covariance(tables, first, second, position)
            matrix[..., own, other], matrix[..., other, own] = block, np.swapaxes(block, -1, -2)
    return matrix


def _pair_covariance(tables: SourceTables, first: str, second: str, position: int) -> FloatArray:
    row = tables.row_of(first, second)
    if row is None:
        return np.zeros((N_INDICATORS, N_INDICATORS))
    table = _at(tables.moments.placed(row), position, 2)
    law = table / np.maximum(table.sum(axis=(-2, -1), keepdims=True), 1.0)
    block: FloatArray = law - law.sum(axis=-1, keepdims=True) * law.sum(axis=-2, keepdims=True)
    block = block[..., :N_INDICATORS, :N_INDICATORS]
    return block if row.sources[0] == first else np.swapaxes(block, -1, -2)


def _at(table: FloatArray, position: int, n_after: int) -> FloatArray:
    """A table at a position, the axis before the last `n_after`; positions beyond the last use the last."""
    axis = table.ndim - 1 - n_after
    return np.asarray(np.take(table, min(position, table.shape[axis] - 1), axis=axis))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentredTables(SourceTables):
    """The joint tables of the centred estimator (`assemble.JointTables`)."""

    _shrunken: dict[str, tuple[FloatArray, float]] = field(init=False, default_factory=dict)

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), (..., positions, 2, C, ..., C)."""
        rows = clique_rows(self.design, names)
        need_rows(rows, self.design, names)
        counted = [self.moments.placed(row) for row in rows]
        lead = counted[0].ndim - len(names) - 2
        joints = [_clique_at(self, rows, counted, position) for position in range(counted[0].shape[lead])]
        joint = pool_positions(self.design, names, np.stack(joints, axis=lead), counted[0])
        slots = rows[0].sources[:-1]
        return joint.transpose(*range(lead + 2), *(lead + 2 + slots.index(name) for name in names))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote) of a source `lag` tasks apart, (2, 2, C, C)."""
        return self.shrunken(name, lag)[0]

    def shrunken(self, name: str, lag: int) -> tuple[FloatArray, float]:
        """The same with the share of its deviations from copying that was kept."""
        if name not in self._shrunken:
            rows = _repeats(self, name, lag)
            need_rows(rows, self.design, (name,))
            means = self.once(("repeats", name, lag), lambda: _stacked([self.moments.table(row) for row in rows], 2))
            joint = _pattern_joint(self, means, _own_proxies(rows))
            self._shrunken[name] = shrink_temporal(self, name, lag, joint)
        return self._shrunken[name]

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label) of a source, (2, C), and the number of first votes behind it."""
        rows = _repeats(self, name, self.design.graph.temporal[name], first=True)
        counted = [self.moments.placed(row) for row in rows]
        joint = _clique_at(self, rows, counted, 0)
        chance = self.laws.chances(self.moments.resolution(name), by_position=True)[0]
        return joint / np.maximum(chance, 1e-12)[:, np.newaxis], float(counted[0][0].sum())

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote), (..., 2, 2, C, C)."""
        rows = crossed_rows(self.design, fine, coarse)
        need_rows(rows, self.design, (fine, coarse))
        proxies = [(row.sources[2], row.sources[3]) for row in rows]
        return _pattern_joint(self, _stacked([self.moments.table(row) for row in rows], 2), proxies)

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks), (..., 2, ..., 2, C, ..., C)."""
        rows = full_rows(self.design, name)
        need_rows(rows, self.design, (name,))
        size = len(rows[0].slots) // 2
        proxies = [(row.sources[size],) * size for row in rows]
        return _pattern_joint(self, _stacked([self.moments.table(row) for row in rows], size), proxies, placed=True)


def _clique_at(tables: SourceTables, rows: list[MomentRow], counted: list[FloatArray], position: int) -> FloatArray:
    """P(label, votes) at one position, (..., 2, C, ..., C); the last slot of every row is a proxy."""
    proxies, n_slots = [row.sources[-1] for row in rows], len(rows[0].slots)
    scores, _ = combined(tables, proxies, position)
    here = [_at(table, position, n_slots) for table in counted]
    with_label = sum(_expectation(table, n_slots, scores[name]) for name, table in zip(proxies, here, strict=True))
    # Proxies may not be asked everywhere: the row with most votes says most about the votes alone.
    largest = max(here, key=lambda table: float(table.sum()))
    alone = _means(largest, n_slots).sum(axis=-1)
    return np.moveaxis(products_to_joints(np.stack([alone, with_label]), 1), 0, alone.ndim - n_slots + 1)


def pool_positions(design: Design, names: tuple[str, ...], joint: FloatArray, counts: FloatArray) -> FloatArray:
    """One table for all positions where no source of a clique keeps positions apart, though its proxies do.

    Parameters
    ----------
    joint : (..., positions, 2, C, ..., C)
    counts : (..., positions, C, ..., C, C) of the votes with those of a proxy
    """
    axis = joint.ndim - len(names) - 2
    if joint.shape[axis] == 1 or any(design.levels[name] == "task" for name in names):
        return joint
    # Positions with more votes count more, as they would had all votes been counted together.
    weights = counts.reshape(*counts.shape[: axis + 1], -1).sum(axis=-1)
    weights = np.where(weights.sum(axis=-1, keepdims=True) > 0, weights, 1.0)
    share = weights / weights.sum(axis=-1, keepdims=True)
    share = share.reshape(*share.shape, *(1,) * (joint.ndim - share.ndim))
    return np.asarray((share * joint).sum(axis=axis, keepdims=True))


def shrink_temporal(tables: SourceTables, name: str, lag: int, joint: FloatArray) -> tuple[FloatArray, float]:
    """Such a table drawn towards copying, and the share of its deviations from copying that was kept.

    Its standard errors are those that leaving groups out gives, with the proxies held fixed.
    """
    rows, moments = _repeats(tables, name, lag), tables.moments
    groups, shares = tables.once(("groups", name, lag), lambda: leave_out(moments.sizes(rows)))
    if len(groups) < FEWEST_GROUPS:
        return joint, 1.0

    def left_out() -> FloatArray:
        rest = moments.without_each(groups)
        return _stacked([rest.table(row) for row in rows], 2)

    # Proxies are held fixed, because their errors are the same in all cells and would hide deviations from copying.
    without = _pattern_joint(tables, tables.once(("left out", name, lag), left_out), _own_proxies(rows))
    where = moments.resolution(name)
    labels = tables.laws.pair(MomentRow(slots=(Slot(name), Slot(name, lag))), where, where).law()[0]
    return shrink_to_copying(joint, weighted_error(joint, without, shares), labels, len(groups))


def _repeats(tables: SourceTables, name: str, lag: int, *, first: bool = False) -> list[MomentRow]:
    """Rows of two votes of a source, or of its first ones, with proxies."""
    rows = tables.once(("rows", name, lag), lambda: temporal_rows(tables.design, name, lag))
    return [row for row in rows if row.by_position == first]


def _own_proxies(rows: list[MomentRow]) -> list[tuple[str, str]]:
    return [(row.sources[2],) * 2 for row in rows]


def _pattern_joint(
    tables: SourceTables, means: FloatArray, proxies: Sequence[tuple[str, ...]], *, placed: bool = False
) -> FloatArray:
    """P(labels, votes) on several tasks, (..., 2, ..., 2, C, ..., C), from rows of as many votes and proxies.

    Parameters
    ----------
    means : (..., C, ..., C, rows and votes of their proxies), see `_stacked`
    proxies : one source per task, by row
    placed : whether the tasks are positions of their own
    """
    # With proxies held fixed a joint table is linear in the counts.
    n_tasks, lead = len(proxies[0]), means.ndim - 1 - len(proxies[0])
    votes, flat = means.shape[lead:-1], means.reshape(*means.shape[:lead], -1, means.shape[-1])
    joint = np.matmul(flat, tables.stand_ins(proxies, placed=placed)).swapaxes(-1, -2)
    return np.asarray(joint.reshape(*joint.shape[:-2], *(2,) * n_tasks, *votes))


def _stand_ins(tables: SourceTables, proxies: Sequence[tuple[str, ...]], *, placed: bool) -> FloatArray:
    """What votes of proxies say about labels: (..., rows and votes of their proxies, label patterns)."""
    n_tasks, factors, precisions = len(proxies[0]), list[FloatArray](), list[FloatArray]()
    for task, names in enumerate(zip(*proxies, strict=True)):
        own = [tables.score(name, task if placed else 0) for name in names]
        score = np.stack(np.broadcast_arrays(*(score for score, _ in own)), axis=-2)
        factors.append(score.reshape(*score.shape[:-1], *(1,) * task, -1, *(1,) * (n_tasks - 1 - task)))
        precisions.append(np.stack(np.broadcast_arrays(*(precision for _, precision in own)), axis=-1))
    # Rows are combined by the precision of what stands in for the labels of a subset of tasks.
    weights = _by_subset(precisions, n_tasks)
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / len(proxies))
    # One axis of two places per task in front: its proxy left out, or taken.
    products = weights.reshape(*weights.shape, *(1,) * n_tasks) * _by_subset(factors, n_tasks)
    joint = products_to_joints(products, n_tasks)
    flat = joint.reshape(2**n_tasks, *joint.shape[n_tasks : joint.ndim - 1 - n_tasks], -1)
    return np.moveaxis(flat, 0, -1)


def _stacked(counted: list[FloatArray], n_tasks: int) -> FloatArray:
    """Rows of votes and proxies on as many tasks as shares, (..., C, ..., C, rows and votes of their proxies)."""
    means = _means(np.stack(counted, axis=counted[0].ndim - 2 * n_tasks), 2 * n_tasks)
    lead = means.ndim - 2 * n_tasks - 1
    means = np.moveaxis(means, lead, lead + n_tasks)
    return means.reshape(*means.shape[: lead + n_tasks], -1)


def _by_subset(factors: Sequence[FloatArray], n_tasks: int) -> FloatArray:
    """Products of all subsets of factors, one axis of two places each, in front."""
    found = np.ones((1,) * n_tasks)
    for place, factor in enumerate(factors):
        sides = np.stack(np.broadcast_arrays(1.0, factor))
        found = found.reshape(
            *found.shape[:n_tasks], *(1,) * (factor.ndim + n_tasks - found.ndim), *found.shape[n_tasks:]
        )
        found = found * sides.reshape(*(1,) * place, 2, *(1,) * (n_tasks - 1 - place), *factor.shape)
    return found


def _expectation(table: FloatArray, n_slots: int, score: FloatArray) -> FloatArray:
    """Mean over anchors of ``1[votes] * score``; the score is that of the last of `n_slots` axes."""
    cells = _means(table, n_slots)
    flat = cells.reshape(*table.shape[: table.ndim - n_slots], -1, table.shape[-1])
    return np.asarray(np.matmul(flat, score[..., np.newaxis]).reshape(cells.shape[:-1]))


def _means(table: FloatArray, n_slots: int) -> FloatArray:
    """Counts over their sum along the last axes."""
    lead = table.shape[: table.ndim - n_slots]
    total = np.maximum(table.reshape(*lead, -1).sum(axis=-1), 1.0)
    return np.asarray(table / total.reshape(*lead, *(1,) * n_slots))


def need_rows(rows: list[MomentRow], design: Design, names: tuple[str, ...]) -> None:
    """Raise a `NotIdentifiableError` unless there are rows from which a joint table can be measured."""
    if rows:
        return
    listed = ", ".join(map(repr, names))
    raise NotIdentifiableError(
        f"cannot measure how {listed} depend on each other or on themselves: no other source at "
        f"{' and '.join(sorted({design.info(name).resolution.name for name in names}))} resolution is independent of "
        "all of them given the labels.\n  Add an independent source there, or remove the dependency."
    )

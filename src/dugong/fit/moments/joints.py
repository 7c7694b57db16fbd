"""Tables of single sources from their slopes, and of several votes by unbiased proxies (METHOD 3.4).

If ``E[g(vote) | Y] = alpha + beta y_i``, then ``(g - alpha) / beta`` has the mean y_i given all labels: a stand-in for
the hidden label, and a score per vote column. For votes F and tasks V, ``E[F * product of y] = E[F * product of
proxies]`` is therefore observable (equation 2); the inverse Walsh transform over the subsets V turns these into
``P(F, labels)``. Cliques of sources, a source with itself in time, a fine with a coarse source, and full tables differ
only in which votes and tasks enter. Arrays may have an axis over replicates of the jackknife in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.errors import leave_out, weighted_error
from dugong.fit.moments.copying import FEWEST_GROUPS, shrink_to_copying
from dugong.fit.moments.equations import N_INDICATORS, Given
from dugong.fit.moments.stages import Solution
from dugong.fit.tables import products_to_joints
from dugong.graph.design import Design, clique_rows, crossed_rows, full_rows
from dugong.sums import MomentRow, Moments
from dugong.types import FloatArray

_LABELS = np.array([-1.0, 1.0])
# Singular values of a covariance of indicators below this share of the largest are rounding: indicators of a source
# that never abstains add up to one.
_RANK = 1e-9

Scores = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceTables:
    """Everything that is known about single sources once the slopes are solved, on demand.

    Attributes
    ----------
    whole : the tables of the whole sample, where these are replicates of it
    """

    given: Given
    solved: Solution
    whole: SourceTables | None = None
    _raw: dict[str, FloatArray] = field(init=False, default_factory=dict)
    _pairs: dict[tuple[str, str], MomentRow] = field(init=False, default_factory=dict)
    _scored: dict[tuple[tuple[str, ...], int], tuple[FloatArray, FloatArray]] = field(init=False, default_factory=dict)
    _weights: dict[tuple[tuple[str, ...], int], FloatArray] = field(init=False, default_factory=dict)
    stands: dict[tuple[Any, ...], FloatArray] = field(init=False, default_factory=dict)

    def raw(self, name: str) -> FloatArray:
        """P(vote | label) before projection, (..., positions or 1, 2, C)."""
        if name not in self._raw:
            self._raw.update({name: self.given.known(name)} if name in self.given.accuracies else self._alike(name))
        return self._raw[name]

    def _alike(self, name: str) -> dict[str, FloatArray]:
        """Raw tables of all sources at the resolution of one, and with as many positions."""
        design, where = self.given.design, self.given.design.infos[name].resolution
        level, shape = design.levels[name], self.given.votes()[name].shape
        names = [info.name for info in design.sources if info.resolution == where and design.levels[info.name] == level]
        names = [one for one in names if one not in self.given.accuracies and self.given.votes()[one].shape == shape]
        votes = np.stack([self.given.votes()[one] for one in names], axis=-3)
        mean = self.given.laws.mean(where, by_position=level == "task")[..., np.newaxis, : shape[-2], np.newaxis]
        # Probabilities of all votes add up to one under either label, so that slopes add up to zero: that of abstaining
        # takes up the rest.
        slopes = np.zeros(votes.shape)
        slopes[..., :N_INDICATORS] = np.stack([self.solved.of(design.keys[one]) for one in names], axis=-3)
        slopes[..., N_INDICATORS] = -slopes[..., :N_INDICATORS].sum(axis=-1)
        # A table has the vote rates that were seen, whatever the slopes: they only tilt it around the mean label.
        tables = votes[..., np.newaxis, :] + slopes[..., np.newaxis, :] * (_LABELS - mean)[..., np.newaxis]
        return {one: tables[..., place, :, :, :] for place, one in enumerate(names)}

    def row_of(self, first: str, second: str) -> MomentRow | None:
        """The row of two sources on the same task, in either order."""
        if not self._pairs:
            # The first row of a pair counts, whichever way round.
            for row in reversed(self.given.design.stages["same task"]):
                self._pairs[row.sources[0], row.sources[1]] = self._pairs[row.sources[1], row.sources[0]] = row
        return self._pairs.get((first, second))

    def scores(self, names: tuple[str, ...], position: int = 0) -> tuple[FloatArray, FloatArray]:
        """Unbiased scores per vote column of sources, each from itself alone, and their precisions (1 / variance).

        Returns
        -------
        (..., n_names, C) and (..., n_names)
        """
        key = (names, position)
        if key not in self._scored:
            laws = np.stack([_at(self.given.votes()[name], position, 1)[..., :N_INDICATORS] for name in names], axis=-2)
            inverse = self.given.once(("inverses", *key), lambda: _inverse(_own_covariance(laws)))
            weights = _best_weights(inverse, self._slopes(names, position))
            scores, precisions = _sides(self, names, position, weights)
            self._scored[key] = scores / np.where(precisions != 0, precisions, 1.0)[..., np.newaxis], precisions
        return self._scored[key]

    def best_weights(self, names: tuple[str, ...], position: int) -> FloatArray:
        """Weights of all indicators of some sources which give the least noise, (..., n_names, 2)."""
        key = (names, position)
        if key not in self._weights:
            inverse = self.given.once(("inverse", *key), lambda: _inverse(_covariance(self, *key)))
            beta = self._slopes(*key)
            weights = _best_weights(inverse, beta.reshape(*beta.shape[:-2], -1))
            self._weights[key] = weights.reshape(*weights.shape[:-1], len(names), N_INDICATORS)
        return self._weights[key]

    def _slopes(self, names: tuple[str, ...], position: int) -> FloatArray:
        """Slopes of the indicators of some sources, (..., n_names, 2)."""
        own = [self.solved.of(self.given.design.keys[name]) for name in names]
        return np.stack([beta[..., min(position, beta.shape[-2] - 1), :] for beta in own], axis=-2)

    def at(self, name: str, n_positions: int) -> FloatArray:
        """The table of a source at each of some positions, (n_positions, 2, C); it need not be valid."""
        table = self.raw(name)
        return np.asarray(table[np.minimum(np.arange(n_positions), len(table) - 1)])


def combined(tables: SourceTables, names: Sequence[str], position: int = 0) -> tuple[FloatArray, FloatArray]:
    """Scores by source whose sum is unbiased for the label, with the least variance; and the precision of that.

    Replicates take the weights of the whole sample, because any weights are unbiased and those cost an inverse each;
    what makes the sum unbiased, alpha and beta of every source, is that of the replicate.

    Returns
    -------
    (..., n_names, C) and (...)
    """
    weights = (tables.whole or tables).best_weights(tuple(names), position)
    scores, each = _sides(tables, tuple(names), position, weights)
    information = each.sum(axis=-1)
    return scores / np.where(information != 0, information, 1.0)[..., np.newaxis, np.newaxis], information


def _inverse(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.pinv(covariance, rcond=_RANK), dtype=np.float64)


def _best_weights(inverse: FloatArray, beta: FloatArray) -> FloatArray:
    """Weights ``Cov(g)^-1 beta`` of indicators g, which give the least noise."""
    weights = np.matmul(inverse, beta[..., np.newaxis])[..., 0]
    # Without information no scale makes the combination unbiased; it then stands for nothing.
    return np.where((weights * beta).sum(axis=-1, keepdims=True) > 0, weights, 0.0)


def _sides(
    tables: SourceTables, names: tuple[str, ...], position: int, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scores with given weights before they are scaled, and by what: half of what they change with the label.

    The best combination has the precision ``beta' Cov(g)^-1 beta``, which is also what its weights are scaled by.
    """
    each = [_at(tables.raw(name), position, 2) for name in names]
    if len({table.shape for table in each}) > 1:  # known tables have no replicates
        each = list(np.broadcast_arrays(*each))
    own = np.stack(each, axis=-3)  # (..., n_names, 2, C)
    sides = np.matmul(own[..., :N_INDICATORS], weights[..., np.newaxis])[..., 0]  # of the weighted votes, by label
    scores = np.repeat(-sides.mean(axis=-1, keepdims=True), own.shape[-1], axis=-1)
    scores[..., :N_INDICATORS] += weights
    return scores, (sides[..., 1] - sides[..., 0]) / 2


def _own_covariance(laws: FloatArray) -> FloatArray:
    """Covariance of the indicators of a source, (..., 2, 2), from their probabilities, (..., 2)."""
    return np.asarray(laws[..., np.newaxis] * (np.eye(N_INDICATORS) - laws[..., np.newaxis, :]))


def _covariance(tables: SourceTables, names: Sequence[str], position: int) -> FloatArray:
    """Covariances of all indicators of some sources, (..., n, n)."""
    laws = np.stack([_at(tables.given.votes()[name], position, 1)[..., :N_INDICATORS] for name in names], axis=-2)
    size, own = N_INDICATORS * len(names), _own_covariance(laws)
    matrix = np.zeros((*laws.shape[:-2], len(names), N_INDICATORS, len(names), N_INDICATORS))
    for place in range(len(names)):
        matrix[..., place, :, place, :] = own[..., place, :, :]
    pairs = [(i, j, tables.row_of(names[i], names[j])) for i in range(len(names)) for j in range(i)]
    known = [(i, j, row) for i, j, row in pairs if row is not None]
    if known:
        counts = np.stack([_at(tables.given.moments.placed(row), position, 2) for *_, row in known], axis=-3)
        law = counts / np.maximum(counts.sum(axis=(-2, -1), keepdims=True), 1.0)
        blocks = law - law.sum(axis=-1, keepdims=True) * law.sum(axis=-2, keepdims=True)
        for place, (i, j, row) in enumerate(known):
            first, second = (i, j) if row.sources[0] == names[i] else (j, i)
            block = blocks[..., place, :N_INDICATORS, :N_INDICATORS]
            matrix[..., first, :, second, :], matrix[..., second, :, first, :] = block, np.swapaxes(block, -1, -2)
    return matrix.reshape(*laws.shape[:-2], size, size)


def _at(table: FloatArray, position: int, n_after: int) -> FloatArray:
    """A table at a position, the axis before the last `n_after`; positions beyond the last use the last."""
    place = min(position, table.shape[-1 - n_after] - 1)
    return np.asarray(table[(..., place, *(slice(None),) * n_after)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentredTables(SourceTables):
    """The joint tables of the centred estimator (`assemble.JointTables`)."""

    _shrunken: dict[str, tuple[FloatArray, float]] = field(init=False, default_factory=dict)
    _first: dict[str, tuple[FloatArray, float]] = field(init=False, default_factory=dict)

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), (..., positions, 2, C, ..., C)."""
        rows = need_rows(clique_rows(self.given.design, names), self.given.design, names)
        counted = [self.given.moments.placed(row) for row in rows]
        lead = counted[0].ndim - len(names) - 2
        joints = [_clique_at(self, rows, counted, position) for position in range(counted[0].shape[lead])]
        joint = pool_positions(self.given.design, names, np.stack(joints, axis=lead), counted[0])
        slots = rows[0].sources[:-1]
        return joint.transpose(*range(lead + 2), *(lead + 2 + slots.index(name) for name in names))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote) of a source `lag` tasks apart, (2, 2, C, C)."""
        return self.shrunken(name, lag)[0]

    def shrunken(self, name: str, lag: int) -> tuple[FloatArray, float]:
        """The same with the share of its deviations from copying that was kept."""
        if name not in self._shrunken:
            names, rows = self._repeating(name, lag)
            means = self.given.once(
                ("repeats", names), lambda: _stacked(np.moveaxis(_counts(self.given.moments, rows), 0, 1), 2)
            )
            joint = _pattern_joint(self, means, _own_proxies(rows[0]))
            found = zip(*shrink_temporal(self, names, lag, joint), strict=True)
            self._shrunken.update(
                {one: (table, float(share)) for one, (table, share) in zip(names, found, strict=True)}
            )
        return self._shrunken[name]

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label) of a source, (2, C), and the number of first votes behind it."""
        if name not in self._first:
            names, rows = self._repeating(name, self.given.design.graph.temporal[name], first=True)
            counts = _counts(self.given.moments, rows)[..., 0, :, :]  # (rows, n_names, C, C) at the first position
            sizes, means = counts.sum(axis=(-2, -1)), _means(counts, 2)
            scores, _ = combined(self, [row.sources[-1] for row in rows[0]])
            joint = _with_label(scores, means, means[sizes.argmax(axis=0), np.arange(len(names))], 2)
            chance = self.given.laws.chances(self.given.design.infos[name].resolution, by_position=True)[0]
            tables = joint / np.maximum(chance, 1e-12)[:, np.newaxis]
            self._first.update(zip(names, zip(tables, sizes[0].tolist(), strict=True), strict=True))
        return self._first[name]

    def _repeating(self, name: str, lag: int, *, first: bool = False) -> tuple[tuple[str, ...], list[list[MomentRow]]]:
        """Sources that repeat themselves as this one does, with the same proxies; their rows, or of first votes."""
        design, where = self.given.design, self.given.design.infos[name].resolution
        lags = [one for one, other in design.graph.temporal.items() if other == lag]

        def find() -> tuple[tuple[str, ...], list[list[MomentRow]]]:
            repeats = {one: design.firsts(one) if first else design.repeats(one, lag) for one in lags}
            own = [row.sources[-1] for row in need_rows(repeats[name], design, (name,))]
            names = tuple(
                one
                for one, rows in repeats.items()
                if design.infos[one].resolution == where and [row.sources[-1] for row in rows] == own
            )
            return names, [repeats[one] for one in names]

        return self.given.once(("alike", name, first), find)

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote), (..., 2, 2, C, C)."""
        rows = need_rows(crossed_rows(self.given.design, fine, coarse), self.given.design, (fine, coarse))
        return _pattern_joint(self, _shares(self.given.moments, rows), [row.sources[2:] for row in rows])

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks), (..., 2, ..., 2, C, ..., C)."""
        rows = need_rows(full_rows(self.given.design, name), self.given.design, (name,))
        size = len(rows[0].slots) // 2
        proxies = [(row.sources[size],) * size for row in rows]
        return _pattern_joint(self, _shares(self.given.moments, rows), proxies, placed=True)


def _clique_at(tables: SourceTables, rows: list[MomentRow], counted: list[FloatArray], position: int) -> FloatArray:
    """P(label, votes) at one position, (..., 2, C, ..., C); the last slot of every row is a proxy."""
    n_slots = len(rows[0].slots)
    here = np.stack([_at(table, position, n_slots) for table in counted])
    scores, _ = combined(tables, [row.sources[-1] for row in rows], position)
    # Proxies may not be asked everywhere: the row with most votes says most about the votes alone.
    largest = int(here.reshape(len(here), -1).sum(axis=1).argmax())
    means = _means(here, n_slots)
    return _with_label(scores, means, means[largest], n_slots)


def _with_label(scores: FloatArray, means: FloatArray, largest: FloatArray, n_slots: int) -> FloatArray:
    """P(label, votes), (..., 2, C, ..., C), from shares of votes with those of a proxy, (rows, ..., C, ..., C, C).

    Parameters
    ----------
    scores : (..., rows, C) of the proxies
    largest : (..., C, ..., C, C) the row that says what votes are like without a label
    """
    own = np.moveaxis(scores, -2, 0)
    own = own.reshape(*own.shape[:-1], *(1,) * (means.ndim - own.ndim), own.shape[-1])
    with_label, alone = (means * own).sum(axis=(0, -1)), largest.sum(axis=-1)
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


def shrink_temporal(
    tables: SourceTables, names: tuple[str, ...], lag: int, joint: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Such tables of some sources drawn towards copying, and the share of their deviations from copying that was kept.

    Their standard errors are those that leaving groups out gives, with the proxies held fixed. All have one resolution
    and the same proxies.

    Parameters
    ----------
    joint : (n_names, 2, 2, C, C)
    """
    moments, where = tables.given.moments, tables.given.design.infos[names[0]].resolution
    rows = [tables.given.design.repeats(name, lag) for name in names]

    def find_groups() -> tuple[FloatArray, FloatArray]:
        """Counts by source, row and group; and sizes of the groups by source."""
        places = [[moments.plan.place(row) for row in own] for own in rows]
        counts = np.array([[moments.counts[place] for place in own] for own in places], dtype=np.float64)
        return counts, counts.reshape(*counts.shape[:3], -1).sum(axis=(1, 3)).T

    counts, sizes = tables.given.once(("by group", names), find_groups)
    if (sizes[1:] > 0).any(axis=1).sum() != (sizes[1:] > 0).all(axis=1).sum():
        # Sources that were asked in different groups go one by one.
        each = [shrink_temporal(tables, (name,), lag, own[np.newaxis]) for name, own in zip(names, joint, strict=True)]
        return np.concatenate([table for table, _ in each]), np.concatenate([share for _, share in each])
    groups, _ = leave_out(sizes[:, 0])
    if len(groups) < FEWEST_GROUPS:
        return joint, np.ones(len(names))

    def left_out() -> FloatArray:
        return _stacked(np.moveaxis(counts.sum(axis=2, keepdims=True) - counts[:, :, groups], 2, 0), 2)

    # Proxies are held fixed, because their errors are the same in all cells and would hide deviations from copying.
    without = _pattern_joint(tables, tables.given.once(("left out", names), left_out), _own_proxies(rows[0]))
    labels = tables.given.laws.pair(rows[0][0], where, where).law()[0]
    errors = weighted_error(joint, without, sizes[groups] / np.maximum(sizes.sum(axis=0), 1.0))
    return shrink_to_copying(joint, errors, labels, len(groups))


def _counts(moments: Moments, rows: list[list[MomentRow]]) -> FloatArray:
    """Counts of as many rows of several sources, (rows, sources, ...)."""
    return np.stack([np.stack([moments.table(row) for row in alike]) for alike in zip(*rows, strict=True)])


def _shares(moments: Moments, rows: list[MomentRow]) -> FloatArray:
    """`_stacked` of rows in which half of the votes are those of proxies."""
    n_slots = len(rows[0].slots)
    return _stacked(np.stack([moments.table(row) for row in rows], axis=-n_slots - 1), n_slots // 2)


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
    joint = np.matmul(flat, _stand_ins(tables, proxies, placed=placed)).swapaxes(-1, -2)
    return np.asarray(joint.reshape(*joint.shape[:-2], *(2,) * n_tasks, *votes))


def _stand_ins(tables: SourceTables, proxies: Sequence[tuple[str, ...]], *, placed: bool) -> FloatArray:
    """What votes of proxies say about labels: (..., rows and votes of their proxies, label patterns)."""
    key = (tuple(proxies), placed)
    if key in tables.stands:  # sources often have the same proxies
        return tables.stands[key]
    n_tasks, factors, precisions = len(proxies[0]), list[FloatArray](), list[FloatArray]()
    for task, names in enumerate(zip(*proxies, strict=True)):
        score, precision = tables.scores(names, task if placed else 0)
        factors.append(score.reshape(*score.shape[:-1], *(1,) * task, -1, *(1,) * (n_tasks - 1 - task)))
        precisions.append(precision)
    # Rows are combined by the precision of what stands in for the labels of a subset of tasks.
    weights = _by_subset(precisions, n_tasks)
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / len(proxies))
    # One axis of two places per task in front: its proxy left out, or taken.
    products = weights.reshape(*weights.shape, *(1,) * n_tasks) * _by_subset(factors, n_tasks)
    joint = products_to_joints(products, n_tasks)
    flat = joint.reshape(2**n_tasks, *joint.shape[n_tasks : joint.ndim - 1 - n_tasks], -1)
    tables.stands[key] = np.moveaxis(flat, 0, -1)
    return tables.stands[key]


def _stacked(counts: FloatArray, n_tasks: int) -> FloatArray:
    """Rows of votes and proxies on as many tasks as shares, (..., C, ..., C, rows and votes of their proxies).

    Parameters
    ----------
    counts : (..., rows, C, ..., C, C, ..., C) votes, then those of proxies
    """
    means, lead = _means(counts, 2 * n_tasks), counts.ndim - 2 * n_tasks - 1
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


def _means(table: FloatArray, n_slots: int) -> FloatArray:
    """Counts over their sum along the last axes."""
    lead = table.shape[: table.ndim - n_slots]
    total = np.maximum(table.reshape(*lead, -1).sum(axis=-1), 1.0)
    return np.asarray(table / total.reshape(*lead, *(1,) * n_slots))


def need_rows(rows: list[MomentRow], design: Design, names: tuple[str, ...]) -> list[MomentRow]:
    """The rows, or a `NotIdentifiableError` unless there are any from which a joint table can be measured."""
    if rows:
        return rows
    listed = ", ".join(map(repr, names))
    raise NotIdentifiableError(
        f"cannot measure how {listed} depend on each other or on themselves: no other source at "
        f"{' and '.join(sorted({design.infos[name].resolution.name for name in names}))} resolution is independent of "
        "all of them given the labels.\n  Add an independent source there, or remove the dependency."
    )

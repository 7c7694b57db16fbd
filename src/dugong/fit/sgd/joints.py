"""What the second stage of the SGD variant fits: joint tables of votes that depend on each other.

A clique on one task, a source with itself in time, its first votes, a fine with a coarse source, a full table: all are
a table ``phi(labels, votes)`` seen through proxies, whose accuracies are known by now: unbiased stand-ins y~ for the
labels (METHOD 3.4). For every set V of the tasks
``E[1[votes] * product of y~ over V] = sum over labels of phi(labels, votes) * product of y over V``.
Consistency terms tie sums of phi to the accuracies of its members (the paper's "additional" constraints).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dugong.fit.assemble import pattern_law
from dugong.fit.joints import need_rows
from dugong.fit.proxies import combined
from dugong.fit.sgd.tables import AccuracyTables, JointKey
from dugong.graph.design import clique_rows, crossed_edges, crossed_rows, full_rows, temporal_rows
from dugong.sums import Laws, Moments, Row
from dugong.tasks import Resolution, Window
from dugong.tasks import Sequence as WholeSequence
from dugong.types import FloatArray

# Chances of votes below which a weight does not grow any more.
_RAREST = 1e-3
_SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consistency:
    """A constraint ``label_map @ phi @ vote_map = target``.

    Attributes
    ----------
    label_map : (k, n_labels) which label patterns hold each label of the member
    vote_map : (n_votes, C) which vote patterns hold each vote of the member
    target : (positions or 1, k, C) P(label, vote) of the member
    weights : (positions or 1, k, C) of the squared residuals
    """

    label_map: FloatArray
    vote_map: FloatArray
    target: FloatArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointUnits:
    """One joint table and all rows in which it is seen.

    Attributes
    ----------
    key : what the table is about
    rows : one per proxy (or pair of proxies)
    scores : (n_rows, places, n_proxy_votes, n_sets) product of y~ over every set of tasks, by position
    totals : (n_rows, places) vote patterns
    observed : (n_rows, positions, n_votes, n_sets) mean of 1[votes] times that product
    weights : like `observed`, of the squared residuals
    start : (positions, n_labels, n_votes) where the descent begins
    consistency : tuple of Consistency
    """

    key: JointKey
    rows: tuple[Row, ...]
    scores: FloatArray
    totals: FloatArray
    observed: FloatArray
    weights: FloatArray
    start: FloatArray
    consistency: tuple[Consistency, ...] = ()

    @property
    def signs(self) -> FloatArray:
        """Product of y over every set of tasks, (n_labels, n_sets): a Walsh-Hadamard matrix."""
        n_tasks = self.scores.shape[3].bit_length() - 1
        return reduce(np.kron, [np.array([[1.0, -1.0], [1.0, 1.0]])] * n_tasks)

    def recount(self, few: Moments, share: float) -> FloatArray:
        """`observed` in moments of a share of the votes, scaled so that batches average out."""
        return _observed(few, self.rows, self.scores, self.totals * share, self.observed.shape)


def make_joints(tables: AccuracyTables) -> list[JointUnits]:
    """All joint tables that a design asks for."""
    design = tables.design
    cliques = [tuple(n for n in design.graph.names if n in c) for c in design.elimination.cliques() if len(c) > 1]
    found = [_clique(tables, names) for names in cliques]
    for name, lag in design.graph.temporal.items():
        found += [_temporal(tables, name, lag), _first(tables, name, lag)]
    found += [_crossed(tables, fine, coarse) for fine, coarse in crossed_edges(design.sources, design.graph)]
    found += [_full(tables, info.name) for info in design.sources if design.levels[info.name] == "full"]
    return found


def _clique(tables: AccuracyTables, names: tuple[str, ...]) -> JointUnits:
    design, rows = tables.design, clique_rows(tables.design, names)
    need_rows(rows, design, names)
    n_positions = len(tables.moments.table(rows[0])) if rows[0].by_position else 1
    apart = any(design.levels[name] == "task" for name in names)  # else one table, though proxies may be by position
    members = [tables.at(name, n_positions if apart else 1) for name in names]
    chances = tables.chances(design.info(names[0]).resolution, by_position=apart)[:n_positions]
    sizes = [table.shape[2] for table in members]
    consistency = [_tie(member, np.eye(2), _holds(sizes, j), chances) for j, member in enumerate(members)]
    seen = _through_all(tables, [row.sources[-1] for row in rows], n_positions)
    key, start = JointKey("clique", names), _on_one_task(members)
    return _units(tables, key, rows, chances, seen, start=start, consistency=consistency)


def _temporal(tables: AccuracyTables, name: str, lag: int) -> JointUnits:
    rows = [row for row in temporal_rows(tables.design, name, lag) if not row.by_position]
    need_rows(rows, tables.design, (name,))
    resolution = tables.design.info(name).resolution
    chances = pair_law(tables.laws, rows[0], resolution, resolution).reshape(1, 4)
    seen = _through_each([[tables.score(row.sources[2])] * 2 for row in rows])
    start = _on_tasks([tables.at(name, 1)] * 2)
    return _units(tables, JointKey("temporal", (name,)), rows, chances, seen, start=start)


def _first(tables: AccuracyTables, name: str, lag: int) -> JointUnits:
    """First votes: position 0 of rows that keep positions apart."""
    rows = [row for row in temporal_rows(tables.design, name, lag) if row.by_position]
    chances = tables.chances(tables.design.info(name).resolution, by_position=True)[:1]
    seen = _through_all(tables, [row.sources[1] for row in rows], 1)
    return _units(tables, JointKey("first", (name,)), rows, chances, seen, start=tables.at(name, 1))


def _crossed(tables: AccuracyTables, fine: str, coarse: str) -> JointUnits:
    design, rows = tables.design, crossed_rows(tables.design, fine, coarse)
    need_rows(rows, design, (fine, coarse))
    low, high = design.info(fine).resolution, design.info(coarse).resolution
    law = pair_law(tables.laws, rows[0], low, high)[0]
    seen = _through_each([[tables.score(row.sources[2]), tables.score(row.sources[3])] for row in rows])
    members = [tables.at(fine, 1), tables.at(coarse, 1)]
    sizes = [table.shape[2] for table in members]
    consistency = [_tie(members[1][:, [0, 1, 0, 1]], np.eye(4), _holds(sizes, 1), law.reshape(1, 4))]
    if isinstance(high, Window | WholeSequence):  # every fine task lies in a coarse one, so that nothing is left out
        over_coarse = np.repeat(np.eye(2), 2, axis=1)
        consistency.append(_tie(members[0], over_coarse, _holds(sizes, 0), law.sum(axis=1)[np.newaxis]))
    key = JointKey("crossed", (fine, coarse))
    start = _on_tasks(members)
    return _units(tables, key, rows, law.reshape(1, 4), seen, start=start, consistency=consistency)


def _full(tables: AccuracyTables, name: str) -> JointUnits:
    rows = full_rows(tables.design, name)
    need_rows(rows, tables.design, (name,))
    size = len(rows[0].slots) // 2
    law = pattern_law(tables, name, size).reshape(1, -1)  # type: ignore[arg-type]
    seen = _through_each([[tables.score(row.sources[size], place) for place in range(size)] for row in rows])
    return _units(tables, JointKey("full", (name,)), rows, law, seen)


def _units(
    tables: AccuracyTables,
    key: JointKey,
    rows: list[Row],
    chances: FloatArray,
    seen: tuple[FloatArray, FloatArray],
    *,
    start: FloatArray | None = None,
    consistency: Sequence[Consistency] = (),
) -> JointUnits:
    scores, precision = seen
    n_positions, n_labels = chances.shape  # fewer than places of scores where one table serves all of them
    n_votes = int(np.prod(tables.moments.table(rows[0]).shape[int(rows[0].by_position) :])) // scores.shape[2]
    counts = _counted(tables.moments, rows, (*scores.shape[:2], n_votes, scores.shape[2]))
    patterns = counts.sum(axis=(0, 1, 3)) / max(counts.sum(), 1e-300)
    totals, shape = counts.sum(axis=(2, 3)), (len(rows), n_positions, n_votes, n_labels)
    if n_positions < precision.shape[1]:
        precision = precision.mean(axis=1, keepdims=True)
    return JointUnits(
        key=key,
        rows=tuple(rows),
        scores=scores,
        totals=totals,
        observed=_observed(tables.moments, rows, scores, totals, shape),
        weights=precision[:, :, np.newaxis] / np.maximum(patterns, _RAREST)[:, np.newaxis],
        start=chances[:, :, np.newaxis] * (patterns if start is None else start),
        consistency=tuple(consistency),
    )


def _observed(
    moments: Moments, rows: Sequence[Row], scores: FloatArray, totals: FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    """Mean of 1[votes] times products of scores, in the shape of `JointUnits.observed`."""
    sums = _counted(moments, rows, (*scores.shape[:2], shape[2], scores.shape[2])) @ scores
    if shape[1] < sums.shape[1]:
        sums, totals = sums.sum(axis=1, keepdims=True), totals.sum(axis=1, keepdims=True)
    return np.asarray(sums / np.maximum(totals, 1e-300)[:, :, np.newaxis, np.newaxis])


def _through_all(tables: AccuracyTables, proxies: Sequence[str], n_positions: int) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of proxies on one task; together they weigh as the best combination of all of them.

    Returns
    -------
    scores (n_rows, positions, C, 2), precision (n_rows, positions, 2)
    """
    scores = np.ones((len(proxies), n_positions, len(tables.marginal(proxies[0])[0]), 2))
    precision = np.ones((len(proxies), n_positions, 2))
    for position in range(n_positions):
        best, information = combined(tables, proxies, position)
        for place, name in enumerate(proxies):
            table = tables.at(name, n_positions)[position]
            share = float((table[1] - table[0]) @ best[name]) / 2  # of the label that this proxy stands for
            scores[place, position, :, 1] = best[name] / (share if share > 0 else 1.0)
            precision[place, position, 1] = information * max(share, 0.0)
    return scores, precision


def _through_each(proxies: Sequence[Sequence[tuple[FloatArray, float]]]) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of one proxy per task in every row, (n_rows, 1, Q, n_sets) and (n_rows, 1, n_sets)."""
    scores = [reduce(np.kron, [np.stack([np.ones_like(one), one], axis=1) for one, _ in row]) for row in proxies]
    precision = [reduce(np.kron, [np.array([1.0, weight]) for _, weight in row]) for row in proxies]
    return np.stack(scores)[:, np.newaxis], np.stack(precision)[:, np.newaxis]


def _counted(moments: Moments, rows: Sequence[Row], shape: tuple[int, ...]) -> FloatArray:
    """Counts of rows by position, (n_rows, positions, n_votes, n_proxy_votes); later positions are left out."""
    counts = np.zeros(shape)
    for place, row in enumerate(rows):
        table = moments.table(row) if row.by_position else moments.table(row)[np.newaxis]
        found = table[: shape[1]].reshape(-1, *shape[2:])
        counts[place, : len(found)] = found
    return counts


def _on_one_task(members: Sequence[FloatArray]) -> FloatArray:
    """P(votes | label) of independent votes on one task: (P, 2, A), (P, 2, B), ... to (P, 2, A * B * ...)."""

    def pair(a: FloatArray, b: FloatArray) -> FloatArray:
        joint = a[:, :, :, np.newaxis] * b[:, :, np.newaxis, :]
        return joint.reshape(*joint.shape[:2], -1)

    return reduce(pair, members)


def _on_tasks(members: Sequence[FloatArray]) -> FloatArray:
    """P(votes | labels) of independent votes on several tasks: (P, 2, A), (P, 2, B), ... to (P, 4, A * B), ..."""

    def pair(a: FloatArray, b: FloatArray) -> FloatArray:
        joint = a[:, :, np.newaxis, :, np.newaxis] * b[:, np.newaxis, :, np.newaxis, :]
        return joint.reshape(len(joint), a.shape[1] * b.shape[1], -1)

    return reduce(pair, members)


def _holds(sizes: Sequence[int], member: int) -> FloatArray:
    """Which vote patterns hold each vote of one member, (n_votes, C)."""
    votes = np.indices(sizes)[member].reshape(-1)
    return np.asarray(np.eye(sizes[member])[votes])


def _tie(accuracy: FloatArray, label_map: FloatArray, vote_map: FloatArray, label_law: FloatArray) -> Consistency:
    """Accuracies of a member as a constraint, weighted as in a chi-square."""
    rates = np.einsum("pk,pkc->pc", label_law, accuracy)
    law = label_law[:, :, np.newaxis]
    weights = 1 / np.maximum(law * rates[:, np.newaxis], _RAREST)
    return Consistency(label_map=label_map, vote_map=vote_map, target=law * accuracy, weights=weights)


def pair_law(laws: Laws, row: Row, first: Resolution, second: Resolution) -> FloatArray:
    """Joint law of the labels of the first two slots of a row, (positions or 1, 2, 2), at the sample's balance."""
    found = laws.pair(row, first, second)
    left = (1 + found.first[:, np.newaxis] * _SIGNS) / 2
    right = (1 + found.second[:, np.newaxis] * _SIGNS) / 2
    law = left[:, :, np.newaxis] * right[:, np.newaxis, :]
    law = np.maximum(law + found.covariance[:, np.newaxis, np.newaxis] * np.outer(_SIGNS, _SIGNS) / 4, 0.0)
    return np.asarray(law / law.sum(axis=(1, 2), keepdims=True))

"""What the second stage of the SGD variant fits: joint tables of votes that depend on each other.

A clique on one task, a source with itself in time, its first votes, a fine with a coarse source, a full table: all are
a table ``phi(labels, votes)`` seen through proxies, whose accuracies are known by now: unbiased stand-ins y~ for the
labels (METHOD 3.4). For every set V of the tasks
``E[1[votes] * product of y~ over V] = sum over labels of phi(labels, votes) * product of y over V``.
Consistency terms tie sums of phi to the accuracies of its members (the paper's "additional" constraints).
`SgdTables`, what `Assembly` is handed in the end, adds the joint tables to what is known about single sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np

from dugong.fit.moments.assemble import pattern_law
from dugong.fit.moments.joints import SourceTables, combined, need_rows, shrink_temporal
from dugong.graph.design import clique_rows, crossed_edges, crossed_rows, full_rows
from dugong.sums import MomentRow, Moments
from dugong.tasks import Sequence as WholeSequence
from dugong.tasks import Window
from dugong.types import FloatArray

# Chances of votes below which a weight does not grow any more.
_RAREST = 1e-3

Kind = Literal["clique", "temporal", "first", "crossed", "full"]


@dataclass(frozen=True, slots=True)
class JointKey:
    """What a joint table is about: how its votes hang together, and whose they are."""

    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SgdTables(SourceTables):
    """The joint tables of the SGD variant (`assemble.JointTables`).

    Attributes
    ----------
    joints : P(labels, votes) by key, (positions, label patterns, vote patterns)
    first_votes : number of first votes by temporal source
    """

    joints: Mapping[JointKey, FloatArray]
    first_votes: Mapping[str, float]

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), from the largest clique that holds it."""
        key = next(key for key in self.joints if key.kind == "clique" and set(names) <= set(key.names))
        table = self._joint(key, 1, key.names)
        places = [key.names.index(name) for name in names]
        dropped = tuple(2 + place for place in range(len(key.names)) if place not in places)
        kept = sorted(places)
        return np.transpose(table.sum(axis=dropped), (0, 1, *(2 + kept.index(place) for place in places)))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote), drawn towards copying as in the closed form."""
        joint = np.asarray(self._joint(JointKey("temporal", (name,)), 2, (name, name))[0])
        return np.asarray(shrink_temporal(self, (name,), lag, joint[np.newaxis])[0][0])

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label), and how many first votes there were."""
        chance = self.given.laws.chances(self.given.design.infos[name].resolution, by_position=True)[0]
        joint = self.joints[JointKey("first", (name,))][0]
        return joint / np.maximum(chance, 1e-12)[:, np.newaxis], self.first_votes[name]

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote)."""
        return np.asarray(self._joint(JointKey("crossed", (fine, coarse)), 2, (fine, coarse))[0])

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks)."""
        size = self.given.design.n_tasks[name]
        return np.asarray(self._joint(JointKey("full", (name,)), size, (name,) * size)[0])

    def _joint(self, key: JointKey, n_labels: int, names: tuple[str, ...]) -> FloatArray:
        """P(labels, votes) with one axis each: (positions, 2, ..., 2, C, ..., C)."""
        columns = [self.given.votes()[name].shape[1] for name in names]
        return np.reshape(self.joints[key], (-1, *(2,) * n_labels, *columns))


class Consistency(NamedTuple):
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
    rows: tuple[MomentRow, ...]
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


def make_joints(tables: SourceTables) -> list[JointUnits]:
    """All joint tables that a design asks for."""
    design = tables.given.design
    cliques = [tuple(n for n in design.graph.names if n in c) for c in design.elimination.cliques() if len(c) > 1]
    found = [_clique(tables, names) for names in cliques]
    for name, lag in design.graph.temporal.items():
        found += [_temporal(tables, name, lag), _first(tables, name)]
    found += [_crossed(tables, fine, coarse) for fine, coarse in crossed_edges(design.sources, design.graph)]
    found += [_full(tables, info.name) for info in design.sources if design.levels[info.name] == "full"]
    return found


def _clique(tables: SourceTables, names: tuple[str, ...]) -> JointUnits:
    design = tables.given.design
    rows = need_rows(clique_rows(design, names), design, names)
    n_positions = len(tables.given.moments.table(rows[0])) if rows[0].by_position else 1
    apart = any(design.levels[name] == "task" for name in names)  # else one table, though proxies may be by position
    # Independent votes are the start: dependence is what the descent adds to them.
    members = [tables.at(name, n_positions if apart else 1) for name in names]
    chances = tables.given.laws.chances(design.infos[names[0]].resolution, by_position=apart)[:n_positions]
    sizes = [table.shape[2] for table in members]
    consistency = [_tie(member, np.eye(2), _holds(sizes, j), chances) for j, member in enumerate(members)]
    seen = _through_all(tables, [row.sources[-1] for row in rows], n_positions)
    key, start = JointKey("clique", names), _on_one_task(members)
    return _units(tables, key, rows, chances, seen, start=start, consistency=consistency)


def _temporal(tables: SourceTables, name: str, lag: int) -> JointUnits:
    rows = need_rows(tables.given.design.repeats(name, lag), tables.given.design, (name,))
    resolution = tables.given.design.infos[name].resolution
    chances = tables.given.laws.pair(rows[0], resolution, resolution).law().reshape(1, 4)
    seen = _through_each(tables, [[(name, 0) for name in row.sources[2:]] for row in rows])
    start = _on_two_tasks(tables.at(name, 1), tables.at(name, 1))
    return _units(tables, JointKey("temporal", (name,)), rows, chances, seen, start=start)


def _first(tables: SourceTables, name: str) -> JointUnits:
    """First votes: position 0 of rows that keep positions apart."""
    rows = tables.given.design.firsts(name)
    chances = tables.given.laws.chances(tables.given.design.infos[name].resolution, by_position=True)[:1]
    seen = _through_all(tables, [row.sources[1] for row in rows], 1)
    return _units(tables, JointKey("first", (name,)), rows, chances, seen, start=tables.at(name, 1))


def _crossed(tables: SourceTables, fine: str, coarse: str) -> JointUnits:
    design = tables.given.design
    rows = need_rows(crossed_rows(design, fine, coarse), design, (fine, coarse))
    low, high = design.infos[fine].resolution, design.infos[coarse].resolution
    law = tables.given.laws.pair(rows[0], low, high).law()[0]
    seen = _through_each(tables, [[(name, 0) for name in row.sources[2:]] for row in rows])
    members = [tables.at(fine, 1), tables.at(coarse, 1)]
    sizes = [table.shape[2] for table in members]
    # Label patterns run over the fine label first: the coarse one alternates.
    consistency = [_tie(members[1][:, [0, 1, 0, 1]], np.eye(4), _holds(sizes, 1), law.reshape(1, 4))]
    if isinstance(high, Window | WholeSequence):  # every fine task lies in a coarse one, so that nothing is left out
        over_coarse = np.repeat(np.eye(2), 2, axis=1)
        consistency.append(_tie(members[0], over_coarse, _holds(sizes, 0), law.sum(axis=1)[np.newaxis]))
    key = JointKey("crossed", (fine, coarse))
    start = _on_two_tasks(*members)
    return _units(tables, key, rows, law.reshape(1, 4), seen, start=start, consistency=consistency)


def _full(tables: SourceTables, name: str) -> JointUnits:
    rows = need_rows(full_rows(tables.given.design, name), tables.given.design, (name,))
    size = len(rows[0].slots) // 2
    law = pattern_law(tables, name, size).reshape(1, -1)  # type: ignore[arg-type]
    seen = _through_each(tables, [[(row.sources[size], place) for place in range(size)] for row in rows])
    return _units(tables, JointKey("full", (name,)), rows, law, seen)


def _units(
    tables: SourceTables,
    key: JointKey,
    rows: list[MomentRow],
    chances: FloatArray,
    seen: tuple[FloatArray, FloatArray],
    *,
    start: FloatArray | None = None,
    consistency: Sequence[Consistency] = (),
) -> JointUnits:
    scores, precision = seen
    n_positions, n_labels = chances.shape  # fewer than places of scores where one table serves all of them
    n_votes = int(np.prod(tables.given.moments.table(rows[0]).shape[int(rows[0].by_position) :])) // scores.shape[2]
    counts = _counted(tables.given.moments, rows, (*scores.shape[:2], n_votes, scores.shape[2]))
    patterns = counts.sum(axis=(0, 1, 3)) / max(counts.sum(), 1e-300)
    totals, shape = counts.sum(axis=(2, 3)), (len(rows), n_positions, n_votes, n_labels)
    # One table for all positions is seen through proxies of each: their precisions are averaged.
    if n_positions < precision.shape[1]:
        precision = precision.mean(axis=1, keepdims=True)
    return JointUnits(
        key=key,
        rows=tuple(rows),
        scores=scores,
        totals=totals,
        observed=_observed(tables.given.moments, rows, scores, totals, shape),
        weights=precision[:, :, np.newaxis] / np.maximum(patterns, _RAREST)[:, np.newaxis],
        start=chances[:, :, np.newaxis] * (patterns if start is None else start),
        consistency=tuple(consistency),
    )


def _observed(
    moments: Moments, rows: Sequence[MomentRow], scores: FloatArray, totals: FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    """Mean of 1[votes] times products of scores, in the shape of `JointUnits.observed`."""
    sums = _counted(moments, rows, (*scores.shape[:2], shape[2], scores.shape[2])) @ scores
    if shape[1] < sums.shape[1]:
        sums, totals = sums.sum(axis=1, keepdims=True), totals.sum(axis=1, keepdims=True)
    return np.asarray(sums / np.maximum(totals, 1e-300)[:, :, np.newaxis, np.newaxis])


def _through_all(tables: SourceTables, proxies: Sequence[str], n_positions: int) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of proxies on one task; together they weigh as the best combination of all of them.

    Returns
    -------
    scores (n_rows, positions, C, 2), precision (n_rows, positions, 2)
    """
    scores = np.ones((len(proxies), n_positions, len(tables.given.votes()[proxies[0]][0]), 2))
    precision = np.ones((len(proxies), n_positions, 2))
    for position in range(n_positions):
        # Together they weigh as their best combination, so that sources which agree are not counted twice.
        best, information = combined(tables, proxies, position)
        for place, name in enumerate(proxies):
            table = tables.at(name, n_positions)[position]
            share = float((table[1] - table[0]) @ best[place]) / 2  # of the label that this proxy stands for
            scores[place, position, :, 1] = best[place] / (share if share > 0 else 1.0)
            precision[place, position, 1] = information * max(share, 0.0)
    return scores, precision


def _through_each(tables: SourceTables, proxies: Sequence[Sequence[tuple[str, int]]]) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of one proxy per task in every row, (n_rows, 1, Q, n_sets) and (n_rows, 1, n_sets)."""
    found = [[tables.scores((name,), position) for name, position in row] for row in proxies]
    scores = [reduce(np.kron, [np.stack([np.ones_like(one[0]), one[0]], axis=1) for one, _ in row]) for row in found]
    precision = [reduce(np.kron, [np.append(1.0, weight) for _, weight in row]) for row in found]
    return np.stack(scores)[:, np.newaxis], np.stack(precision)[:, np.newaxis]


def _counted(moments: Moments, rows: Sequence[MomentRow], shape: tuple[int, ...]) -> FloatArray:
    """Counts of rows by position, (n_rows, positions, n_votes, n_proxy_votes); later positions are left out."""
    counts = np.zeros(shape)
    for place, row in enumerate(rows):
        found = moments.placed(row)[: shape[1]].reshape(-1, *shape[2:])
        counts[place, : len(found)] = found
    return counts


def _on_one_task(members: Sequence[FloatArray]) -> FloatArray:
    """P(votes | label) of independent votes on one task: (P, 2, A), (P, 2, B), ... to (P, 2, A * B * ...)."""
    return reduce(lambda a, b: np.einsum("pla,plb->plab", a, b).reshape(*a.shape[:2], -1), members)


def _on_two_tasks(a: FloatArray, b: FloatArray) -> FloatArray:
    """P(votes | labels) of independent votes on two tasks: (P, 2, A), (P, 2, B) to (P, 4, A * B)."""
    return np.asarray(np.einsum("pka,plb->pklab", a, b).reshape(len(a), 4, -1))


def _holds(sizes: Sequence[int], member: int) -> FloatArray:
    """Which vote patterns hold each vote of one member, (n_votes, C)."""
    votes = np.indices(sizes)[member].reshape(-1)
    return np.asarray(np.eye(sizes[member])[votes])


def _tie(accuracy: FloatArray, label_map: FloatArray, vote_map: FloatArray, label_law: FloatArray) -> Consistency:
    """Accuracies of a member as a constraint, weighted as in a chi-square."""
    rates = np.einsum("pk,pkc->pc", label_law, accuracy)
    law = label_law[:, :, np.newaxis]
    # As in a chi-square: one over the expected count, with a floor for votes that hardly occur.
    weights = 1 / np.maximum(law * rates[:, np.newaxis], _RAREST)
    return Consistency(label_map=label_map, vote_map=vote_map, target=law * accuracy, weights=weights)

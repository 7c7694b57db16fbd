"""What the second stage of the SGD variant fits: joint tables of votes that depend on each other.

A clique on one task, a source with itself in time, its first votes, a fine with a coarse source, a full table: all are
a table ``phi(votes | labels)`` seen through proxies whose accuracies are known by now,
``P(votes, votes of proxies) = sum over labels of P(labels) phi(votes | labels) P(votes of proxies | labels)``.
Consistency terms tie sums of phi to the accuracies of its members (the paper's "additional" constraints).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dugong.estimate.assemble import pattern_law
from dugong.estimate.design import clique_rows, crossed_edges, crossed_rows, full_rows, temporal_rows
from dugong.estimate.joints import need_rows
from dugong.estimate.sgd_tables import AccuracyTables, JointKey
from dugong.estimate.sgd_units import pair_law, standardise
from dugong.moments import Moments, Row
from dugong.tasks import Sequence as WholeSequence
from dugong.tasks import Window
from dugong.types import FloatArray

# Share of the observed vote patterns in the start, so that no pattern that occurs begins at zero.
_MIX = 0.05
_RAREST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consistency:
    """A constraint ``label_map @ phi @ vote_map = target``.

    Attributes
    ----------
    label_map : (k, n_labels) rows are mixtures of label patterns
    vote_map : (n_votes, C) which vote patterns hold each vote of the member
    target : (positions or 1, k, C) accuracies of the member
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
    chances : (positions, n_labels) law of the labels
    proxies : (n_rows, positions, n_labels, n_proxy_votes) P(votes of the proxies | labels)
    observed, weights : (n_rows, positions, n_votes, n_proxy_votes)
    totals : (n_rows, positions)
    start : (positions or 1, n_labels, n_votes) where the descent begins
    consistency : tuple of Consistency
    """

    key: JointKey
    rows: tuple[Row, ...]
    chances: FloatArray
    proxies: FloatArray
    observed: FloatArray
    weights: FloatArray
    totals: FloatArray
    start: FloatArray
    consistency: tuple[Consistency, ...] = ()

    def counts(self, moments: Moments) -> FloatArray:
        """The counts of these rows in other moments of the same plan, shaped as `observed`."""
        return _counted(moments, self.rows, self.observed.shape)


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
    by_position = rows[0].by_position
    n_positions = len(tables.moments.table(rows[0])) if by_position else 1
    chances = tables.chances(design.info(names[0]).resolution, by_position=by_position)[:n_positions]
    apart = any(design.levels[name] == "task" for name in names)
    members = [tables.at(name, n_positions if apart else 1) for name in names]
    label_law = chances if apart else chances.mean(axis=0, keepdims=True)
    sizes = [table.shape[2] for table in members]
    consistency = [_tie(member, np.eye(2), _holds(sizes, j), label_law) for j, member in enumerate(members)]
    proxies = np.stack([tables.at(row.sources[-1], n_positions) for row in rows])
    key, start = JointKey("clique", names), _on_one_task(members)
    return _units(tables, key, rows, chances, proxies, start=start, consistency=consistency)


def _temporal(tables: AccuracyTables, name: str, lag: int) -> JointUnits:
    rows = [row for row in temporal_rows(tables.design, name, lag) if not row.by_position]
    need_rows(rows, tables.design, (name,))
    resolution = tables.design.info(name).resolution
    chances = pair_law(tables.laws, rows[0], resolution, resolution).reshape(1, 4)
    proxies = np.stack([_on_tasks([tables.at(row.sources[2], 1)] * 2) for row in rows])
    start = _on_tasks([tables.at(name, 1)] * 2)
    return _units(tables, JointKey("temporal", (name,)), rows, chances, proxies, start=start)


def _first(tables: AccuracyTables, name: str, lag: int) -> JointUnits:
    """First votes: position 0 of rows that keep positions apart."""
    rows = [row for row in temporal_rows(tables.design, name, lag) if row.by_position]
    chances = tables.chances(tables.design.info(name).resolution, by_position=True)[:1]
    proxies = np.stack([tables.at(row.sources[1], 1) for row in rows])
    return _units(tables, JointKey("first", (name,)), rows, chances, proxies, start=tables.at(name, 1))


def _crossed(tables: AccuracyTables, fine: str, coarse: str) -> JointUnits:
    design, rows = tables.design, crossed_rows(tables.design, fine, coarse)
    need_rows(rows, design, (fine, coarse))
    low, high = design.info(fine).resolution, design.info(coarse).resolution
    law = pair_law(tables.laws, rows[0], low, high)[0]
    proxies = np.stack([_on_tasks([tables.at(row.sources[2], 1), tables.at(row.sources[3], 1)]) for row in rows])
    members = [tables.at(fine, 1), tables.at(coarse, 1)]
    sizes = [table.shape[2] for table in members]
    consistency = [_tie(members[1][:, [0, 1, 0, 1]], np.eye(4), _holds(sizes, 1), law.reshape(1, 4))]
    if isinstance(high, Window | WholeSequence):  # every fine task lies in a coarse one, so that nothing is left out
        share = law / np.maximum(law.sum(axis=1, keepdims=True), 1e-300)
        mixture = np.kron(np.eye(2), np.ones(2)) * share.reshape(4)
        consistency.append(_tie(members[0], mixture, _holds(sizes, 0), law.sum(axis=1)[np.newaxis]))
    key = JointKey("crossed", (fine, coarse))
    start = _on_tasks(members)
    return _units(tables, key, rows, law.reshape(1, 4), proxies, start=start, consistency=consistency)


def _full(tables: AccuracyTables, name: str) -> JointUnits:
    rows = full_rows(tables.design, name)
    need_rows(rows, tables.design, (name,))
    size = len(rows[0].slots) // 2
    law = pattern_law(tables, name, size).reshape(1, -1)  # type: ignore[arg-type]
    proxies = np.stack([_on_tasks(list(tables.at(row.sources[size], size)[:, np.newaxis])) for row in rows])
    return _units(tables, JointKey("full", (name,)), rows, law, proxies)


def _units(
    tables: AccuracyTables,
    key: JointKey,
    rows: list[Row],
    chances: FloatArray,
    proxies: FloatArray,
    *,
    start: FloatArray | None = None,
    consistency: Sequence[Consistency] = (),
) -> JointUnits:
    n_rows, n_positions, n_labels, n_proxy_votes = proxies.shape
    n_votes = tables.moments.table(rows[0]).reshape(-1).size // n_proxy_votes
    if rows[0].by_position:
        n_votes //= len(tables.moments.table(rows[0]))
    counts = _counted(tables.moments, tuple(rows), (n_rows, n_positions, n_votes, n_proxy_votes))
    observed, weights, totals = standardise(counts.reshape(-1, n_votes, n_proxy_votes))
    patterns = counts.sum(axis=(0, 1, 3)) / max(counts.sum(), 1e-300)
    start = np.broadcast_to(patterns, (1, n_labels, n_votes)) if start is None else start
    return JointUnits(
        key=key,
        rows=tuple(rows),
        chances=chances,
        proxies=proxies,
        observed=observed.reshape(counts.shape),
        weights=weights.reshape(counts.shape),
        totals=totals.reshape(counts.shape[:2]),
        start=(1 - _MIX) * start + _MIX * patterns,
        consistency=tuple(consistency),
    )


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


def _tie(target: FloatArray, label_map: FloatArray, vote_map: FloatArray, label_law: FloatArray) -> Consistency:
    """Accuracies of a member as a constraint, weighted as a chi-square over its votes given each label."""
    rates = np.einsum("pk,pkc->pc", label_law, target)
    weights = label_law[:, :, np.newaxis] / np.maximum(rates, _RAREST)[:, np.newaxis, :]
    return Consistency(label_map=label_map, vote_map=vote_map, target=target, weights=weights)

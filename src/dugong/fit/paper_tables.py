"""The tables of the paper's estimator: which rows serve which table (`assemble.JointTables`).

In: solved agreements. Out: P(vote | label), joint tables of cliques, of a source with itself in time, across
resolutions, and over whole patterns, each by generalized agreements and the products-to-joints system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dugong.fit.assemble import pattern_law
from dugong.fit.equations import marginal
from dugong.fit.joints import need_rows, pool_positions
from dugong.fit.paper_agreements import SIGNS, Agreements
from dugong.fit.paper_full import Anchors, ordinary_anchor
from dugong.fit.paper_joints import Witness, agreements, joint_with_silence, total_votes
from dugong.fit.walsh import joint_from_products
from dugong.graph.design import Design, clique_rows, crossed_rows, full_pair_rows, temporal_rows
from dugong.sums import Laws, Moments, Row
from dugong.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperTables:
    """All tables, made on demand from solved agreements."""

    design: Design
    moments: Moments
    laws: Laws
    solved: Agreements
    anchors: Anchors
    accuracies: Mapping[str, FloatArray]

    def raw(self, name: str) -> FloatArray:
        """P(vote | label), (positions, 2, C): B_2 e = r, then Bayes; abstaining does not depend on the label."""
        if name in self.accuracies:
            known = np.asarray(self.accuracies[name], dtype=np.float64)
            return known if known.ndim == 3 else known[np.newaxis]
        by_position = self.design.levels[name] == "task"
        votes = marginal(self.design, self.moments, name)
        mean = self.laws.mean(self.design.info(name).resolution, by_position=by_position)[: len(votes)]
        solved = self.solved.values[self.design.key(name)]
        tables = zip(votes, mean, solved, strict=True)
        return np.stack([_single(law, label, agreement) for law, label, agreement in tables])

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), (positions, 2, C, ..., C)."""
        rows = clique_rows(self.design, names)
        need_rows(rows, self.design, names)
        slots = rows[0].sources[:-1]
        counted = [self._counts(row) for row in rows]
        chance = self._chance(names[0], by_position=rows[0].by_position)
        joints = []
        for position in range(len(counted[0])):
            witnesses = [
                Witness(counts[position], self._anchor(row.sources[-1], (position,)))
                for row, counts in zip(rows, counted, strict=True)
            ]
            joints.append(_joint(witnesses, len(names), chance[min(position, len(chance) - 1)]))
        joint = pool_positions(self.design, names, np.stack(joints), counted[0])
        return joint.transpose(0, 1, *(2 + slots.index(name) for name in names))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote), (2, 2, C, C)."""
        rows = [row for row in temporal_rows(self.design, name, lag) if not row.by_position]
        need_rows(rows, self.design, (name,))
        resolution = self.design.info(name).resolution
        label_law = self.laws.joint("same", resolution, resolution, lag=lag)
        return _joint([self._witness(row, (row.sources[2],) * 2) for row in rows], 2, label_law)

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote), (2, 2, C, C)."""
        rows = crossed_rows(self.design, fine, coarse)
        need_rows(rows, self.design, (fine, coarse))
        where = (self.design.info(fine).resolution, self.design.info(coarse).resolution)
        label_law = self.laws.joint("inside", *where)
        return _joint([self._witness(row, row.sources[2:]) for row in rows], 2, label_law)

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(vote | label) of first votes, (2, C), and how many there were."""
        lag = self.design.graph.temporal[name]
        rows = [row for row in temporal_rows(self.design, name, lag) if row.by_position]
        need_rows(rows, self.design, (name,))
        witnesses = [Witness(self.moments.table(row)[0], self._anchor(row.sources[1], (0,))) for row in rows]
        chance = self._chance(name, by_position=True)[0]
        joint = _joint(witnesses, 1, chance)
        return joint / np.maximum(chance, 1e-12)[:, np.newaxis], float(total_votes(witnesses, 1).sum())

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks), (2, ..., 2, C, ..., C)."""
        rows = full_pair_rows(self.design, name)
        need_rows(rows, self.design, (name,))
        size = self.design.n_tasks[name]
        witnesses = []
        for row in rows:
            counts = self.moments.table(row)
            own_first = row.sources[0] == name
            other = row.sources[-1] if own_first else row.sources[0]
            counts = counts if own_first else counts.transpose(*range(size, 2 * size), *range(size))
            witnesses.append(Witness(counts, self._anchor(other, tuple(range(size)))))
        return _joint(witnesses, size, pattern_law(self, name, size))

    def _anchor(self, name: str, positions: tuple[int, ...]) -> FloatArray:
        if name in self.anchors:
            return self.anchors[name]
        return ordinary_anchor(self.solved, self.design.key(name), positions)

    def _witness(self, row: Row, names: Sequence[str]) -> Witness:
        """A row whose last slots are votes of tied sources, one per task."""
        parts = [self._anchor(name, (0,)) for name in names]
        return Witness(self.moments.table(row), np.multiply.outer(parts[0], parts[1]))

    def _counts(self, row: Row) -> FloatArray:
        table = self.moments.table(row)
        return table if row.by_position else table[np.newaxis]

    def _chance(self, name: str, *, by_position: bool) -> FloatArray:
        mean = self.laws.mean(self.design.info(name).resolution, by_position=by_position)
        return np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)


def _joint(witnesses: list[Witness], n_votes: int, label_law: FloatArray) -> FloatArray:
    expected = agreements(witnesses, n_votes, label_law)
    return joint_with_silence(expected, total_votes(witnesses, n_votes))


def _single(law: FloatArray, label: float, agreement: float) -> FloatArray:
    """P(vote | label), (2, C), of one source from its vote rates, E[y] and E[a]."""
    voting = float(law[:2].sum())
    bias = float(law[:2] @ SIGNS) / voting if voting > 0 else 0.0
    products = np.array([[1.0, bias], [label, agreement]])
    joint = joint_from_products((1 + products) / 2)
    chance = joint.sum(axis=1, keepdims=True)
    table = np.tile(law, (2, 1))
    table[:, :2] = voting * np.divide(joint, chance, out=np.tile(law[:2], (2, 1)), where=chance > 1e-12)
    return table

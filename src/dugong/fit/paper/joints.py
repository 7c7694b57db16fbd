"""From agreements to the joint tables of the paper's estimator: generalized agreements a(U, V), then B e = r.

A generalized agreement ``a(U, V)`` is the product of the votes in U and the labels in V. With a further
source k on every task of V, independent of the votes in U, ``E[votes in U * votes of k on V] = E[a(U, V)]
E[a_k(V, V)]``: the left side is counted, the last factor is known, and the row satisfies the paper's parity
condition, because a_k(V, V) has 2 |V| terms. Products of the votes of dependent sources (phi) and patterns
of one source (full tables) differ only in U and V; `PaperTables` says which rows serve which table.

Differs from the paper: in every row one of the two agreements is of the kind a_k(V, V). Rows where neither
is do not factorise, even without singleton potentials (docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from dugong.fit.moments.assemble import pattern_law
from dugong.fit.moments.equations import Given
from dugong.fit.moments.joints import need_rows, pool_positions
from dugong.fit.moments.stages import Solution
from dugong.fit.paper.agreements import SIGNS, Anchors, mean_products, ordinary_anchor
from dugong.fit.tables import joint_from_products
from dugong.graph.design import clique_rows, crossed_rows, full_pair_rows
from dugong.sums import MomentRow
from dugong.types import FloatArray


class Witness(NamedTuple):
    """One counted row: votes on the first axes, then those of a further source on every task.

    `counts` is a contingency table, (C, ..., C); `anchor`, (2, ..., 2), is E[a_k(V, V)] of the further source by V,
    where index 1 on an axis means that the task is in V.
    """

    counts: FloatArray
    anchor: FloatArray


def agreements(witnesses: Sequence[Witness], alone: FloatArray, label_law: FloatArray) -> FloatArray:
    """E[a(U, V)] for all U and V, shape (2,) * n_votes + (2,) * n_tasks; votes in U are given.

    Parameters
    ----------
    alone : (C, ..., C) counts of the votes
    label_law : (2, ..., 2) P(labels) under the prior, one axis per task
    """
    upper = lower = np.zeros((2,) * (alone.ndim + label_law.ndim))
    # Least squares over all further sources k of ``E[votes in U * votes of k on V] = x E[a_k(V, V)]``, weighted by
    # votes: a source whose own agreement is weak divides by little and counts little.
    for counts, anchor in witnesses:
        value, support = mean_products(counts)
        upper = upper + support * anchor * value
        lower = lower + support * anchor**2
    expected = np.divide(upper, lower, out=np.zeros_like(upper), where=lower > 0)
    expected.reshape(*(2,) * alone.ndim, -1)[..., 0] = mean_products(alone)[0]
    expected[(0,) * alone.ndim] = mean_products(label_law)[0]
    return expected


def joint_with_silence(expected: FloatArray, alone: FloatArray) -> FloatArray:
    """P(labels, votes) from E[a(U, V)] and the rates of abstaining, which do not depend on labels.

    Parameters
    ----------
    expected : (2,) * n_votes + (2,) * n_tasks, from `agreements`
    alone : (C, ..., C) counts of the votes

    Returns
    -------
    (2,) * n_tasks + (C, ..., C)
    """
    n_votes = alone.ndim
    n_tasks = expected.ndim - n_votes
    law = alone / max(float(alone.sum()), 1.0)
    joint = np.zeros((*(2,) * n_tasks, *alone.shape))
    for silence in product(*(range(1, size) for size in alone.shape)):
        # Column 1 stands for "votes"; 2 and beyond are ways to say nothing.
        speaks = [column == 1 for column in silence]
        cells = tuple(slice(0, 2) if s else column for s, column in zip(speaks, silence, strict=True))
        # Abstaining does not depend on labels here, so that speaking and what is said multiply.
        rate = float(law[cells].sum())
        heard = expected[tuple(slice(None) if s else 0 for s in speaks)]
        order = [*range(sum(speaks), heard.ndim), *range(sum(speaks))]
        joint[(slice(None),) * n_tasks + cells] = rate * joint_from_products((1 + heard) / 2).transpose(order)
    return joint


def total_votes(witnesses: Sequence[Witness], n_tasks: int) -> FloatArray:
    """Counts of the votes alone, from the row with most of them."""
    tables = [counts.sum(axis=tuple(range(-n_tasks, 0))) for counts, _ in witnesses]
    return max(tables, key=lambda table: float(table.sum()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperTables:
    """All tables, made on demand from solved agreements."""

    given: Given
    solved: Solution
    anchors: Anchors

    def raw(self, name: str) -> FloatArray:
        """P(vote | label), (positions, 2, C): B_2 e = r, then Bayes; abstaining does not depend on the label."""
        if name in self.given.accuracies:
            return self.given.known(name)
        by_position = self.given.design.levels[name] == "task"
        votes = self.given.votes()[name]
        mean = self.given.laws.mean(self.given.design.infos[name].resolution, by_position=by_position)[: len(votes)]
        solved = self.solved.of(self.given.design.keys[name])[:, 0]
        tables = zip(votes, mean, solved, strict=True)
        return np.stack([_single(law, label, agreement) for law, label, agreement in tables])

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), (positions, 2, C, ..., C)."""
        rows = need_rows(clique_rows(self.given.design, names), self.given.design, names)
        slots = rows[0].sources[:-1]
        counted = [self.given.moments.placed(row) for row in rows]
        chance = self.given.laws.chances(self.given.design.infos[names[0]].resolution, by_position=rows[0].by_position)
        joints = []
        for position in range(len(counted[0])):
            witnesses = [
                Witness(counts[position], self._anchor((row.sources[-1], position)))
                for row, counts in zip(rows, counted, strict=True)
            ]
            joints.append(_joint(witnesses, chance[min(position, len(chance) - 1)]))
        joint = pool_positions(self.given.design, names, np.stack(joints), counted[0])
        return joint.transpose(0, 1, *(2 + slots.index(name) for name in names))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote), (2, 2, C, C)."""
        rows = need_rows(self.given.design.repeats(name, lag), self.given.design, (name,))
        resolution = self.given.design.infos[name].resolution
        label_law = self.given.laws.joint("same", resolution, resolution, lag=lag)
        return self._two_tasks(rows, label_law)

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote), (2, 2, C, C)."""
        rows = need_rows(crossed_rows(self.given.design, fine, coarse), self.given.design, (fine, coarse))
        where = (self.given.design.infos[fine].resolution, self.given.design.infos[coarse].resolution)
        label_law = self.given.laws.joint("inside", *where)
        return self._two_tasks(rows, label_law)

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(vote | label) of first votes, (2, C), and how many there were."""
        rows = need_rows(self.given.design.firsts(name), self.given.design, (name,))
        witnesses = [Witness(self.given.moments.table(row)[0], self._anchor((row.sources[1], 0))) for row in rows]
        chance = self.given.laws.chances(self.given.design.infos[name].resolution, by_position=True)[0]
        joint = _joint(witnesses, chance)
        return joint / np.maximum(chance, 1e-12)[:, np.newaxis], float(total_votes(witnesses, 1).sum())

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks), (2, ..., 2, C, ..., C)."""
        rows = need_rows(full_pair_rows(self.given.design, name), self.given.design, (name,))
        size = self.given.design.n_tasks[name]
        witnesses = []
        for row in rows:
            counts = self.given.moments.table(row)
            own_first = row.sources[0] == name
            other = row.sources[-1] if own_first else row.sources[0]
            # The row of two full sources is counted once; each reads it from its own side.
            counts = counts if own_first else counts.transpose(*range(size, 2 * size), *range(size))
            witnesses.append(Witness(counts, self._anchor(*((other, task) for task in range(size)))))
        return _joint(witnesses, pattern_law(self, name, size))

    def _two_tasks(self, rows: list[MomentRow], label_law: FloatArray) -> FloatArray:
        """P(labels, votes) from rows whose last two slots are votes of tied sources, one per task."""
        anchors = [self._anchor(*((name, 0) for name in row.sources[2:])) for row in rows]
        tables = [self.given.moments.table(row) for row in rows]
        return _joint(list(map(Witness, tables, anchors)), label_law)

    def _anchor(self, *votes: tuple[str, int]) -> FloatArray:
        """E[a_k(V, V)] of a further source, or of one per task; with the position of every task."""
        if votes[0][0] in self.anchors:
            return self.anchors[votes[0][0]]
        return ordinary_anchor(self.solved, [(self.given.design.keys[name], position) for name, position in votes])


def _joint(witnesses: list[Witness], label_law: FloatArray) -> FloatArray:
    alone = total_votes(witnesses, label_law.ndim)
    return joint_with_silence(agreements(witnesses, alone, label_law), alone)


def _single(law: FloatArray, label: float, agreement: float) -> FloatArray:
    """P(vote | label), (2, C), of one source from its vote rates, E[y] and E[a]."""
    voting = float(law[:2].sum())
    bias = float(law[:2] @ SIGNS) / voting if voting > 0 else 0.0
    # E of every product of vote and label: none, the vote, the label, both.
    products = np.array([[1.0, bias], [label, agreement]])
    joint = joint_from_products((1 + products) / 2)
    chance = joint.sum(axis=1, keepdims=True)
    table = np.tile(law, (2, 1))
    table[:, :2] = voting * np.divide(joint, chance, out=np.tile(law[:2], (2, 1)), where=chance > 1e-12)
    return table

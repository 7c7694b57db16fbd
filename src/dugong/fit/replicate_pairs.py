"""Correlations again with each group left out in turn: all replicates of a pair at once.

The weights with which proxies are combined are those of the full sample (any weights are unbiased); what makes the
combination unbiased, alpha and beta of the proxies, is that of each replicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dugong.fit.equations import N_INDICATORS
from dugong.fit.joints import CentredTables
from dugong.fit.proxies import combined
from dugong.fit.replicates import left_out
from dugong.fit.tables import products_to_joints
from dugong.graph.design import Design, clique_rows
from dugong.sums import Laws, Row
from dugong.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairReplicates:
    """What the correlations of all pairs need.

    Attributes
    ----------
    full : tables of the full sample
    laws : prior moments without each group
    accuracies : P(vote | label) by source without each group, (n_groups, positions or 1, 2, C)
    groups : the groups that are left out
    """

    full: CentredTables
    laws: Sequence[Laws]
    accuracies: Mapping[str, FloatArray]
    groups: IntArray

    def correlation(self, edge: tuple[str, str]) -> FloatArray:
        """P(vote a, vote b | label) without each group, (n_groups, 2, C, C), or by position after the groups."""
        design = self.full.design
        rows = clique_rows(design, edge)
        counts = [left_out(self.full.moments, row, self.groups) for row in rows]
        joint = np.stack([self._joint(rows, counts, position) for position in range(counts[0].shape[1])], axis=1)
        joint = _pool(design, edge, joint, counts[0])
        if rows[0].sources[:2] != edge:
            joint = joint.swapaxes(3, 4)
        where, apart = design.info(edge[0]).resolution, joint.shape[1] > 1
        mean = np.stack([law.mean(where, by_position=apart)[: joint.shape[1]] for law in self.laws])
        chance = np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=2)
        law = joint / np.maximum(chance, 1e-12)[..., np.newaxis, np.newaxis]
        return law if apart else law[:, 0]

    def _joint(self, rows: list[Row], counts: list[FloatArray], position: int) -> FloatArray:
        """P(label, votes) at one position in every replicate, (n_groups, 2, C, C)."""
        proxies = [row.sources[-1] for row in rows]
        scores = self._scores(proxies, position)
        tables = [table[:, position] for table in counts]
        totals = [np.maximum(table.sum(axis=(1, 2, 3)), 1.0) for table in tables]
        with_label = sum(
            np.einsum("gabz,gz->gab", table, scores[name] / total[:, np.newaxis])
            for name, table, total in zip(proxies, tables, totals, strict=True)
        )
        largest = int(np.argmax([total.sum() for total in totals]))
        alone = tables[largest].sum(axis=3) / totals[largest][:, np.newaxis, np.newaxis]
        return products_to_joints(np.stack([alone, with_label]), 1).swapaxes(0, 1)

    def _scores(self, proxies: list[str], position: int) -> dict[str, FloatArray]:
        """Score per vote column of every proxy, (n_groups, C); their sum is unbiased for the label."""
        optimal, _ = combined(self.full, proxies, position)
        weights = {name: score[:N_INDICATORS] - score[N_INDICATORS] for name, score in optimal.items()}
        information = np.zeros(len(self.groups))
        scores = {}
        for name, weight in weights.items():
            tables = self.accuracies[name]
            table = tables[:, min(position, tables.shape[1] - 1)]
            sides = table[:, :, :N_INDICATORS] @ weight  # mean of the weighted indicators by label
            information += (sides[:, 1] - sides[:, 0]) / 2
            score = np.tile(-sides.mean(axis=1)[:, np.newaxis], (1, table.shape[2]))
            score[:, :N_INDICATORS] += weight
            scores[name] = score
        scale = np.where(information != 0, information, 1.0)[:, np.newaxis]
        return {name: score / scale for name, score in scores.items()}


def _pool(design: Design, edge: tuple[str, str], joint: FloatArray, counts: FloatArray) -> FloatArray:
    """One table for all positions where neither source keeps positions apart, though the proxies do."""
    if joint.shape[1] == 1 or "task" in (design.levels[edge[0]], design.levels[edge[1]]):
        return joint
    weights = counts.sum(axis=(2, 3, 4))
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.einsum("gp,gpyab->gyab", share, joint)[:, np.newaxis])

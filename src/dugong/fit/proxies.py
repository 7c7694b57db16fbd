"""Unbiased stand-ins for hidden labels, built from votes whose slopes are known (METHOD 3.4, equation 2).

If ``E[g(vote) | Y] = alpha + beta y_i``, then ``(g - alpha) / beta`` has the mean y_i given all labels. A proxy is a
score per vote column. Scores of several sources are combined with weights proportional to ``Cov(g)^-1 beta``, which
gives the least noise, and scaled so that the combination stays unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dugong.fit.equations import N_INDICATORS, marginal
from dugong.fit.slopes import Slopes
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row
from dugong.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """Everything that is known about single sources once the slopes are solved."""

    design: Design
    moments: Moments
    laws: Laws
    slopes: Slopes
    accuracies: Mapping[str, FloatArray]
    _marginals: dict[str, FloatArray] = field(init=False, default_factory=dict)
    _pairs: dict[tuple[str, str], Row] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # The first row of a pair counts, whichever way round.
        for row in reversed(self.design.same):
            self._pairs[row.sources[0], row.sources[1]] = self._pairs[row.sources[1], row.sources[0]] = row

    def marginal(self, name: str) -> FloatArray:
        """P(vote) of one source, (positions or 1, C)."""
        if name not in self._marginals:
            self._marginals[name] = marginal(self.design, self.moments, name)
        return self._marginals[name]

    def raw(self, name: str) -> FloatArray:
        """P(vote | label) before projection, (positions, 2, C)."""
        design = self.design
        by_position = design.levels[name] == "task"
        if name in self.accuracies:
            known = np.asarray(self.accuracies[name], dtype=np.float64)
            return known if known.ndim == 3 else known[np.newaxis]
        votes = self.marginal(name)
        mean = self.laws.mean(self.moments.resolution(name), by_position=by_position)[: len(votes)]
        beta = self.full_slopes(name)
        labels = np.array([-1.0, 1.0])
        shift = labels[np.newaxis, :] - mean[:, np.newaxis]
        return votes[:, np.newaxis, :] + beta[:, np.newaxis, :] * shift[:, :, np.newaxis]

    def full_slopes(self, name: str) -> FloatArray:
        """Slopes of all vote columns, (positions, C): those of the classes, and abstain takes up the rest."""
        own = self.slopes.of(self.design.key(name))
        n_columns = self.marginal(name).shape[1]
        beta = np.zeros((len(own), n_columns))
        beta[:, :N_INDICATORS] = own
        beta[:, N_INDICATORS] = -own.sum(axis=1)
        return beta

    def row_of(self, first: str, second: str) -> Row | None:
        """The row of two sources on the same task, in either order."""
        return self._pairs.get((first, second))

    def score(self, name: str, position: int = 0) -> tuple[FloatArray, float]:
        """Unbiased score per vote column from one source alone, and its precision (1 / variance); see `combined`."""
        scores, precision = combined(self, (name,), position)
        return scores[name], precision


def combined(tables: Tables, names: Sequence[str], position: int = 0) -> tuple[dict[str, FloatArray], float]:
    """Scores by source whose sum is unbiased for the label, with the least variance; and that precision."""
    betas = [_at(tables.full_slopes(name), position)[:N_INDICATORS] for name in names]
    beta = np.concatenate(betas)
    covariance = _covariance(tables, names, position)
    weights = np.linalg.lstsq(covariance, beta, rcond=1e-9)[0]
    information = float(weights @ beta)
    if information <= 0:
        return {name: np.zeros(_at(tables.full_slopes(name), position).shape) for name in names}, 0.0
    weights = weights / information
    scores: dict[str, FloatArray] = {}
    for place, name in enumerate(names):
        own = weights[place * N_INDICATORS : (place + 1) * N_INDICATORS]
        table = _at(tables.raw(name), position)
        centre = float(own @ table[:, :N_INDICATORS].mean(axis=0))
        score = np.full(table.shape[1], -centre)
        score[:N_INDICATORS] += own
        scores[name] = score
    return scores, information


def _covariance(tables: Tables, names: Sequence[str], position: int) -> FloatArray:
    size = N_INDICATORS * len(names)
    matrix = np.zeros((size, size))
    for i, first in enumerate(names):
        law = _at(tables.marginal(first), position)[:N_INDICATORS]
        own = slice(i * N_INDICATORS, (i + 1) * N_INDICATORS)
        matrix[own, own] = np.diag(law) - np.outer(law, law)
        for j, second in enumerate(names[:i]):
            other = slice(j * N_INDICATORS, (j + 1) * N_INDICATORS)
            block = _pair_covariance(tables, first, second, position)
            matrix[own, other], matrix[other, own] = block, block.T
    return matrix


def _pair_covariance(tables: Tables, first: str, second: str, position: int) -> FloatArray:
    row = tables.row_of(first, second)
    if row is None:
        return np.zeros((N_INDICATORS, N_INDICATORS))
    table = tables.moments.table(row)
    table = table[min(position, len(table) - 1)] if row.by_position else table
    law = table / max(table.sum(), 1.0)
    block: FloatArray = law - np.outer(law.sum(axis=1), law.sum(axis=0))
    block = block[:N_INDICATORS, :N_INDICATORS]
    return block if row.sources[0] == first else block.T


def _at(table: FloatArray, position: int) -> FloatArray:
    return np.asarray(table[min(position, len(table) - 1)])


def expectation(table: FloatArray, scores: Mapping[int, FloatArray], total: float | FloatArray) -> FloatArray:
    """Mean over anchors of ``1[votes on the other axes] * product of scores on the given axes``."""
    result = table
    for axis in sorted(scores, reverse=True):
        result = np.tensordot(result, scores[axis], axes=(axis, 0))
    return np.asarray(result) / total

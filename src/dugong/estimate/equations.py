"""From counts and prior to moment equations: ``Cov(f, g) = beta_f beta_g Cov(y_i, y_i')`` (METHOD 3.3, equation 1).

Every pair row gives one equation per pair of indicators ``1[vote = z]``. All means run over the same pairs of votes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dugong.estimate.design import Design, valid_pair
from dugong.estimate.laws import Laws
from dugong.estimate.solve import Equations
from dugong.moments import Moments, Row, Slot
from dugong.types import BoolArray, FloatArray, IntArray

N_INDICATORS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unknowns:
    """Where the slopes of every source stand: ``beta[first[key] + N_INDICATORS * position + z]``."""

    first: dict[str, int]
    positions: dict[str, int]

    @classmethod
    def of(cls, design: Design, moments: Moments) -> Unknowns:
        """Give every source (or group of sources) its place, one per position where positions are kept apart."""
        first: dict[str, int] = {}
        positions: dict[str, int] = {}
        total = 0
        for info in design.sources:
            key = design.key(info.name)
            if key in first or design.levels[info.name] == "full":
                continue
            count = 1
            if design.levels[info.name] == "task":
                count = moments.table(Row(slots=(Slot(info.name),), by_position=True)).shape[0]
            first[key], positions[key] = total, count
            total += N_INDICATORS * count
        return cls(first=first, positions=positions)

    @property
    def size(self) -> int:
        """Number of slopes."""
        return sum(N_INDICATORS * count for count in self.positions.values())

    def of_key(self, key: str) -> IntArray:
        """Indices of all slopes of a source, shape (positions, N_INDICATORS)."""
        start, count = self.first[key], self.positions[key]
        return start + np.arange(N_INDICATORS * count).reshape(count, N_INDICATORS)


def make_equations(
    design: Design, moments: Moments, laws: Laws, unknowns: Unknowns, rows: Iterable[Row]
) -> tuple[Equations, list[Row]]:
    """All equations of some pair rows, and the row that each comes from."""
    independence = design.independence
    parts: list[tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]] = []
    origins: list[Row] = []
    for row in rows:
        if valid_pair(independence, row, design.levels):
            part = _row_equations(design, moments, laws, unknowns, row)
            parts.append(part)
            origins += [row] * len(part[0])
    stacked = [np.concatenate(piece) for piece in zip(*parts, strict=True)] or [np.zeros(0)] * 5
    equations = Equations(
        left=stacked[0].astype(np.int64),
        right=stacked[1].astype(np.int64),
        value=stacked[2],
        scale=stacked[3],
        variance=stacked[4],
    )
    return equations, origins


def _row_equations(
    design: Design, moments: Moments, laws: Laws, unknowns: Unknowns, row: Row
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    names = row.sources
    table = moments.table(row)
    table = table if row.by_position else table[np.newaxis]
    covariance, variance = covariances(table)
    hidden = laws.pair(row, moments.resolution(names[0]), moments.resolution(names[1]))
    positions = np.arange(len(table))
    left = _places(unknowns, design.key(names[0]), positions)
    right = _places(unknowns, design.key(names[1]), positions)
    scale = np.broadcast_to(hidden.covariance[: len(table), np.newaxis, np.newaxis], covariance.shape)
    shape = covariance.shape
    return (
        np.broadcast_to(left[:, :, np.newaxis], shape).reshape(-1),
        np.broadcast_to(right[:, np.newaxis, :], shape).reshape(-1),
        covariance.reshape(-1),
        scale.reshape(-1),
        variance.reshape(-1),
    )


def _places(unknowns: Unknowns, key: str, positions: IntArray) -> IntArray:
    """Unknowns of one slot at every position; sources with one table for all positions repeat it."""
    places = unknowns.of_key(key)
    return np.asarray(places[np.minimum(positions, len(places) - 1)])


def covariances(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariances of the class indicators of two votes, and the variances of these estimates.

    Parameters
    ----------
    table : (positions, C, C') contingency counts

    Returns
    -------
    two (positions, N_INDICATORS, N_INDICATORS) arrays; the variance is 0 where an indicator is constant
    """
    total = table.sum(axis=(1, 2), keepdims=True)
    law = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    first = law.sum(axis=2)[:, :N_INDICATORS, np.newaxis]
    second = law.sum(axis=1)[:, np.newaxis, :N_INDICATORS]
    both = law[:, :N_INDICATORS, :N_INDICATORS]
    covariance = both - first * second
    # E[(f - Ef)^2 (g - Eg)^2] over the four cells of two indicators.
    fourth = (
        both * ((1 - first) * (1 - second)) ** 2
        + (first - both) * ((1 - first) * second) ** 2
        + (second - both) * (first * (1 - second)) ** 2
        + (1 - first - second + both) * (first * second) ** 2
    )
    variance = np.divide(fourth - covariance**2, total, out=np.zeros_like(fourth), where=total > 0)
    spread = first * (1 - first) * second * (1 - second)
    floor = np.divide(spread, total, out=np.zeros_like(fourth), where=total > 0)
    constant = (first * (1 - first) <= 0) | (second * (1 - second) <= 0)
    return covariance, np.where(constant, 0.0, np.maximum(variance, 1e-3 * floor))


def informative(design: Design, moments: Moments, unknowns: Unknowns) -> BoolArray:
    """Which slopes have an indicator that varies at all; the others are zero."""
    varies = np.zeros(unknowns.size, dtype=np.bool_)
    for info in design.sources:
        if design.levels[info.name] == "full":
            continue
        law = marginal(design, moments, info.name)[:, :N_INDICATORS]
        varies[unknowns.of_key(design.key(info.name))] |= (law > 0) & (law < 1)
    return varies


def marginal(design: Design, moments: Moments, name: str) -> FloatArray:
    """P(vote) of one source, pooled over those that share its parameters; (positions or 1, C)."""
    by_position = design.levels[name] == "task"
    group = [info.name for info in design.sources if design.key(info.name) == design.key(name)]
    table = np.asarray(sum(moments.table(Row(slots=(Slot(one),), by_position=by_position)) for one in group))
    table = table if by_position else table[np.newaxis]
    total = table.sum(axis=1, keepdims=True)
    law: FloatArray = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return law

"""From counts and prior to moment equations: ``Cov(f, g) = beta_f beta_g Cov(y_i, y_i')`` (METHOD 3.3, equation 1).

Every pair row gives one equation per pair of indicators ``1[vote = z]``. All means run over the same pairs of votes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dugong.fit.solve import Equations
from dugong.graph.design import Design, valid_pair
from dugong.sums import Laws, Moments, Row, Slot
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
    """All equations of some pair rows that hold any votes, and the row that each comes from."""
    alike: dict[tuple[int, ...], list[tuple[Row, FloatArray]]] = {}
    for row in rows:
        if valid_pair(design.independence, row, design.levels):
            table = moments.table(row) if row.by_position else moments.table(row)[np.newaxis]
            if table.any():
                alike.setdefault(table.shape, []).append((row, table))
    parts = [_equations_of(design, moments, laws, unknowns, found) for found in alike.values()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.zeros(0)] * 5
    equations = Equations(
        left=columns[0].astype(np.int64),
        right=columns[1].astype(np.int64),
        value=columns[2],
        scale=columns[3],
        variance=columns[4],
    )
    each = [(row, len(table) * N_INDICATORS**2) for found in alike.values() for row, table in found]
    return equations, [row for row, size in each for _ in range(size)]


def _equations_of(
    design: Design, moments: Moments, laws: Laws, unknowns: Unknowns, found: list[tuple[Row, FloatArray]]
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Equations of rows whose tables have the same shape, all at once."""
    tables = np.stack([table for _, table in found])
    n_rows, n_positions = tables.shape[:2]
    shape = (n_rows, n_positions, N_INDICATORS, N_INDICATORS)
    covariance, variance = covariances(tables.reshape(-1, *tables.shape[2:]))
    where = {info.name: info.resolution for info in moments.sources}
    names = dict.fromkeys(name for row, _ in found for name in row.sources)
    places = {name: _places(unknowns, design.key(name), n_positions) for name in names}
    left, right, scale = [], [], []
    for row, _ in found:
        first, second = row.sources
        left.append(places[first])
        right.append(places[second])
        scale.append(laws.pair(row, where[first], where[second]).covariance[:n_positions])
    return (
        np.broadcast_to(np.stack(left)[:, :, :, np.newaxis], shape).reshape(-1),
        np.broadcast_to(np.stack(right)[:, :, np.newaxis, :], shape).reshape(-1),
        covariance.reshape(-1),
        np.broadcast_to(np.stack(scale)[:, :, np.newaxis, np.newaxis], shape).reshape(-1),
        variance.reshape(-1),
    )


def _places(unknowns: Unknowns, key: str, n_positions: int) -> IntArray:
    """Unknowns of one slot at every position; sources with one table for all positions repeat it."""
    places = unknowns.of_key(key)
    return places[np.minimum(np.arange(n_positions), len(places) - 1)]


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

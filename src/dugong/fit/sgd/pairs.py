"""What the first stage of the SGD variant fits: the closed form's moment equations, with the rows they come from.

``Cov(f, g) = beta_f beta_g Cov(y, y')`` for class indicators f and g of two independent votes (METHOD 3.3), weighted by
the precision of each covariance. The rows are kept so that covariances can be counted again from a few sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dugong.fit.equations import N_INDICATORS, Unknowns, make_equations
from dugong.fit.solve import Equations
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row
from dugong.types import BoolArray, FloatArray, IntArray

_CELLS = N_INDICATORS**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRows:
    """Some equations of some rows.

    Attributes
    ----------
    equations : Equations
    rows : every row with the number of all its equations, one per position and pair of indicators
    kept : (n,) places of `equations` among all equations of the rows
    level : (n,) mean(f) mean(g) of each equation
    totals : (n,) pairs of votes behind each equation
    """

    equations: Equations
    rows: tuple[tuple[Row, int], ...]
    kept: IntArray
    level: FloatArray
    totals: FloatArray

    @property
    def origins(self) -> tuple[Row, ...]:
        """The row of every equation."""
        each = [row for row, size in self.rows for _ in range(size)]
        return tuple(each[place] for place in self.kept)

    @property
    def units(self) -> IntArray:
        """Number of the row and position of every equation, from 0 on."""
        return np.unique(self.kept // _CELLS, return_inverse=True)[1]

    @property
    def useful(self) -> BoolArray:
        """Equations that say something about their two slopes."""
        return np.asarray((self.equations.scale != 0) & (self.equations.variance > 0))

    @property
    def weights(self) -> FloatArray:
        """Precision of every covariance, in units of one vote: the average number of pairs counts as one."""
        variance = self.equations.variance * max(float(self.totals.mean()) if len(self.totals) else 0.0, 1e-300)
        return np.divide(1.0, variance, out=np.zeros_like(variance), where=self.useful)

    def only(self, keep: BoolArray) -> PairRows:
        """Some of the equations."""
        return PairRows(
            equations=self.equations.only(keep),
            rows=self.rows,
            kept=self.kept[keep],
            level=self.level[keep],
            totals=self.totals[keep],
        )

    def covariances(self, few: Moments, share: float) -> FloatArray:
        """The covariances in moments of a share of the votes; around the means of all, so that batches average out."""
        both, _ = _counted(few, self.rows)
        return np.asarray(both[self.kept] / np.maximum(self.totals * share, 1e-300) - self.level)


def make_pairs(design: Design, moments: Moments, laws: Laws, unknowns: Unknowns, rows: Iterable[Row]) -> PairRows:
    """All equations of rows that hold any votes."""
    equations, origins = make_equations(design, moments, laws, unknowns, rows)
    runs = tuple((row, sum(1 for _ in run)) for row, run in groupby(origins))
    both, totals = _counted(moments, runs)
    level = both / np.maximum(totals, 1.0) - equations.value
    return PairRows(equations=equations, rows=runs, kept=np.arange(len(totals)), level=level, totals=totals)


def _counted(moments: Moments, rows: Iterable[tuple[Row, int]]) -> tuple[FloatArray, FloatArray]:
    """Counts of both indicators, and of all pairs of votes, by equation; positions that are not there count nothing."""
    both, totals = [np.zeros(0)], [np.zeros(0)]
    for row, size in rows:
        table = moments.table(row) if row.by_position else moments.table(row)[np.newaxis]
        table = table[: size // _CELLS]
        missing = size - len(table) * _CELLS
        both.append(np.pad(table[:, :N_INDICATORS, :N_INDICATORS].reshape(-1), (0, missing)))
        totals.append(np.pad(np.repeat(table.sum(axis=(1, 2)), _CELLS), (0, missing)))
    return np.concatenate(both).astype(np.float64), np.concatenate(totals).astype(np.float64)

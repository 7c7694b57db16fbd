"""Accuracies as parameters of a loss: tables P(vote | label) that are valid by construction.

The loss is the weighted l2 distance between observed and predicted contingency tables of pairs of independent votes,
and between observed and predicted vote rates. A row of a table is the sizes of some free numbers over their sum, so
that probabilities reach zero at a finite distance: with a softmax, or with squares, the descent crawls where a vote
is rare or impossible.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from dugong.estimate.sgd_units import Bank, PairUnits
from dugong.moments import Moments, Plan, Row, count
from dugong.moments.groups import Grouping
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray
from dugong.votes import Votes


class AccuracyProblem:
    """Pair units and vote rates of some open tables; the others are held.

    Parameters
    ----------
    start : (n_tables, 2, C) where the open tables begin and what the others are
    open_tables : (n_tables,) which are optimised
    """

    def __init__(
        self, bank: Bank, units: PairUnits, moments: Moments, start: FloatArray, open_tables: BoolArray, device: str
    ) -> None:
        self.units, self.moments, self.device = units, moments, torch.device(device)
        self.held, self.open = self._tensor(start), self._tensor(open_tables)[:, None, None]
        self.free = self._tensor(start).requires_grad_()
        self.left, self.right = self._tensor(units.left), self._tensor(units.right)
        self.laws, self.weights = self._tensor(units.laws), self._tensor(units.weights)
        self.observed, self.rates = self._tensor(units.observed), self._tensor(bank.rates)
        self.chances = self._tensor(bank.chances)
        self.rate_weights = self._tensor(_rate_weights(bank, units, open_tables))

    @property
    def parameters(self) -> list[Tensor]:
        """What is optimised."""
        return [self.free]

    @property
    def n_units(self) -> int:
        """Number of pair units."""
        return len(self.units.left)

    def tables(self) -> Tensor:
        """P(vote | label), (n_tables, 2, C)."""
        return torch.where(self.open, on_simplex(self.free), self.held)

    def probabilities(self) -> Tensor:
        """All tables as one vector."""
        return self.tables().reshape(-1)

    def loss(self, units: IntArray | None = None, votes: Votes | None = None) -> Tensor:
        """Weighted squared residuals per unit."""
        tables, chosen = self.tables(), slice(None) if units is None else self._tensor(units)
        observed = self.observed[chosen] if votes is None else self._recount(votes)
        predicted = torch.einsum(
            "nab,naz,nbw->nzw", self.laws[chosen], tables[self.left[chosen]], tables[self.right[chosen]]
        )
        pairs = (self.weights[chosen] * (predicted - observed) ** 2).sum() / max(len(observed), 1)
        rates = torch.einsum("ty,tyc->tc", self.chances, tables)
        return pairs + (self.rate_weights * (rates - self.rates) ** 2).sum() / max(self.n_units, 1)

    def _recount(self, votes: Votes) -> Tensor:
        """Contingency tables of a few sequences, scaled so that their mean over batches is that of all votes."""
        counts = self.units.counts(count_few(votes, [row for row, _ in self.units.rows]))
        share = votes.n_sequences / int(self.moments.shapes.counts.sum())
        return self._tensor(counts / np.maximum(self.units.totals * share, 1e-300)[:, None, None])

    def _tensor(self, array: AnyArray) -> Tensor:
        return to_tensor(array, self.device)


def on_simplex(free: Tensor) -> Tensor:
    """Distributions along the last axis from any numbers: their sizes over the sum. What is zero stays zero."""
    sizes = free.abs()
    return sizes / sizes.sum(dim=-1, keepdim=True)


def count_few(votes: Votes, rows: Iterable[Row]) -> Moments:
    """The moments of a few sequences, as one group."""
    zeros = np.zeros(votes.n_sequences, dtype=np.int64)
    return count(votes, Plan.of(rows), Grouping(base=zeros, blocks=zeros + 1, n_groups=1), n_threads=1)


def to_tensor(array: AnyArray, device: torch.device) -> Tensor:
    """A copy on a device; numbers in double precision where the device knows it."""
    tensor = torch.tensor(np.asarray(array))
    if tensor.is_floating_point() and device.type == "mps":
        tensor = tensor.float()
    return tensor.to(device)


def _rate_weights(bank: Bank, units: PairUnits, open_tables: BoolArray) -> FloatArray:
    """Weights of squared residuals of the vote rates of open tables, on the scale of those of the pairs."""
    size = bank.n_votes * open_tables / max(float(units.totals.mean()) if len(units.totals) else 0.0, 1e-300)
    return np.divide(size[:, None], bank.rates, out=np.zeros_like(bank.rates), where=bank.rates > 0)

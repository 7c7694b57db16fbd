"""Accuracies as parameters of a loss: the slopes of all tables, by the weighted l2 distance of their covariances.

A table is ``P(vote | label) = vote rate + slope * (label - mean label)``: its rows add up to one and it has the
observed vote rates whatever the slopes are. Nothing keeps a probability above zero while the descent lasts: a sample,
or a prior with another class balance, need not have a valid solution, and the best one at the border has zeros that
inference takes for certainties, and bends all other tables. As in the closed form the nearest valid table is taken in
the end, softened, and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from dugong.fit.sgd.pairs import PairRows
from dugong.sums import Moments, Plan, Row, count
from dugong.sums.groups import Grouping
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray
from dugong.votes import Votes


class SlopeProblem:
    """Moment equations of some open slopes; the others are held.

    Parameters
    ----------
    start : (n_slopes,) where the open slopes begin and what the others are
    open_slopes : (n_slopes,) which are optimised
    """

    def __init__(
        self, pairs: PairRows, moments: Moments, start: FloatArray, open_slopes: BoolArray, device: str
    ) -> None:
        self.pairs, self.device = pairs, torch.device(device)
        self.n_sequences = int(moments.shapes.counts.sum())
        self.held, self.open = self._tensor(start), self._tensor(open_slopes)
        self.free = self._tensor(start).requires_grad_()
        self.left, self.right = self._tensor(pairs.equations.left), self._tensor(pairs.equations.right)
        self.scale, self.value = self._tensor(pairs.equations.scale), self._tensor(pairs.equations.value)
        self.weights = self._tensor(pairs.weights)
        self.unit = pairs.units

    @property
    def parameters(self) -> list[Tensor]:
        """What is optimised."""
        return [self.free]

    @property
    def n_units(self) -> int:
        """Rows by position, of which each has up to four equations."""
        return int(self.unit.max(initial=-1)) + 1

    def probabilities(self) -> Tensor:
        """All slopes."""
        return torch.where(self.open, self.free, self.held)

    def loss(self, units: IntArray | None = None, votes: Votes | None = None) -> Tensor:
        """Weighted squared residuals per row and position."""
        beta, value = self.probabilities(), self.value if votes is None else self._recount(votes)
        squares = self.weights * (self.scale * beta[self.left] * beta[self.right] - value) ** 2
        if units is None:
            return squares.sum() / max(self.n_units, 1)
        return squares[self._tensor(np.isin(self.unit, units))].sum() / len(units)

    def _recount(self, votes: Votes) -> Tensor:
        few = count_few(votes, [row for row, _ in self.pairs.rows])
        return self._tensor(self.pairs.covariances(few, votes.n_sequences / self.n_sequences))

    def _tensor(self, array: AnyArray) -> Tensor:
        return to_tensor(array, self.device)


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


def to_numpy(tensor: Tensor) -> FloatArray:
    """Plain numbers in double precision."""
    return tensor.detach().cpu().numpy().astype(np.float64)

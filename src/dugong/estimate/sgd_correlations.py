"""Correlations as parameters of a loss: joint tables phi(votes | labels), valid by construction.

The loss is the weighted l2 distance between observed and predicted contingency tables of dependent votes and their
proxies, plus that of the consistency constraints. Given the accuracies it is convex in phi.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dugong.estimate.sgd_accuracies import count_few, on_simplex, to_tensor
from dugong.estimate.sgd_joints import JointUnits
from dugong.moments import Moments
from dugong.types import IntArray
from dugong.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Term:
    """One joint table on a device; `mixed` is P(labels) P(votes of proxies | labels), (rows, positions, L, Q)."""

    units: JointUnits
    free: Tensor
    mixed: Tensor
    observed: Tensor
    weights: Tensor
    ties: tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]


class CorrelationProblem:
    """All joint tables of a design together; a unit is one row of one table."""

    def __init__(self, joints: list[JointUnits], moments: Moments, consistency: float, device: str) -> None:
        self.moments, self.consistency, self.device = moments, consistency, torch.device(device)
        self.terms = [self._term(units) for units in joints]
        self.owner = np.repeat(np.arange(len(joints)), [len(units.rows) for units in joints])
        self.rows = [row for units in joints for row in units.rows]
        self.place = np.concatenate([np.arange(len(units.rows)) for units in joints])

    @property
    def parameters(self) -> list[Tensor]:
        """What is optimised."""
        return [term.free for term in self.terms]

    @property
    def n_units(self) -> int:
        """Number of rows of all tables."""
        return len(self.owner)

    def tables(self) -> list[Tensor]:
        """P(votes | labels) of every joint table, (positions, label patterns, vote patterns)."""
        return [on_simplex(term.free) for term in self.terms]

    def probabilities(self) -> Tensor:
        """All tables as one vector."""
        return torch.cat([table.reshape(-1) for table in self.tables()])

    def loss(self, units: IntArray | None = None, votes: Votes | None = None) -> Tensor:
        """Weighted squared residuals per row, summed over the tables."""
        fresh = None if votes is None else count_few(votes, self.rows)
        total = torch.zeros((), dtype=self.terms[0].free.dtype, device=self.device)
        for number, term in enumerate(self.terms):
            phi = on_simplex(term.free)
            rows: IntArray | slice = slice(None) if units is None else self.place[units[self.owner[units] == number]]
            observed = term.observed if votes is None else self._recount(term, votes, fresh)
            predicted = torch.einsum("plz,rplq->rpzq", phi.expand(term.mixed.shape[1], -1, -1), term.mixed[rows])
            squares = term.weights[rows] * (predicted - observed[rows]) ** 2
            total = total + squares.sum() * self._scale(term, units) + self.consistency * _ties(term, phi)
        return total

    def _scale(self, term: _Term, units: IntArray | None) -> float:
        share = 1.0 if units is None else len(units) / self.n_units
        return 1 / (share * term.observed.shape[0] * term.observed.shape[1])

    def _recount(self, term: _Term, votes: Votes, fresh: Moments | None) -> Tensor:
        assert fresh is not None
        share = votes.n_sequences / int(self.moments.shapes.counts.sum())
        totals = np.maximum(term.units.totals * share, 1e-300)
        return to_tensor(term.units.counts(fresh) / totals[:, :, None, None], self.device)

    def _term(self, units: JointUnits) -> _Term:
        mixed = units.chances[np.newaxis, :, :, np.newaxis] * units.proxies
        return _Term(
            units=units,
            free=to_tensor(units.start, self.device).requires_grad_(),
            mixed=to_tensor(mixed, self.device),
            observed=to_tensor(units.observed, self.device),
            weights=to_tensor(units.weights, self.device),
            ties=tuple(
                (
                    to_tensor(tie.label_map, self.device),
                    to_tensor(tie.vote_map, self.device),
                    to_tensor(tie.target, self.device),
                    to_tensor(tie.weights, self.device),
                )
                for tie in units.consistency
            ),
        )


def _ties(term: _Term, phi: Tensor) -> Tensor:
    """Squared violations of the consistency constraints."""
    total = torch.zeros((), dtype=phi.dtype, device=phi.device)
    for label_map, vote_map, target, weights in term.ties:
        found = torch.einsum("kl,plz,zc->pkc", label_map, phi, vote_map)
        total = total + (weights * (found - target) ** 2).sum() / len(phi)
    return total

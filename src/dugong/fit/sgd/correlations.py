"""Correlations as parameters of a loss: joint tables phi(labels, votes).

The loss is the weighted l2 distance between observed and predicted moments of dependent votes with stand-ins for the
labels, plus that of the consistency constraints. Given the accuracies it is convex in phi. As with the accuracies, the
nearest valid table is taken in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dugong.fit.moments.joints import SourceTables
from dugong.fit.sgd.descent import Descend, Trace
from dugong.fit.sgd.joints import JointUnits, SgdTables, make_joints
from dugong.fit.sgd.settings import SGD
from dugong.fit.sgd.slopes import count_few, to_numpy, to_tensor
from dugong.sums import Moments
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes


def solve_correlations(tables: SourceTables, settings: SGD, descend: Descend) -> tuple[SgdTables, dict[str, Trace]]:
    """All joint tables, given the accuracies."""
    joints, traces = make_joints(tables), {}
    found: list[FloatArray] = []
    if joints:
        problem = CorrelationProblem(joints, tables.given.moments, settings.consistency, settings.device)
        traces["correlations"] = descend(problem)
        found = [to_numpy(table) for table in problem.parameters]
    return (
        SgdTables(
            given=tables.given,
            solved=tables.solved,
            joints={units.key: table for units, table in zip(joints, found, strict=True)},
            first_votes={u.key.names[0]: float(u.totals.max()) for u in joints if u.key.kind == "first"},
        ),
        traces,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Term:
    """One joint table on a device; `signs` are products of labels, (n_labels, n_sets)."""

    units: JointUnits
    phi: Tensor
    signs: Tensor
    observed: Tensor
    weights: Tensor
    ties: tuple[tuple[Tensor, ...], ...]


class CorrelationProblem:
    """All joint tables of a design together; a unit is one row of one table."""

    def __init__(self, joints: list[JointUnits], moments: Moments, consistency: float, device: str) -> None:
        self.moments, self.consistency, self.device = moments, consistency, torch.device(device)
        self.terms = [self._term(units) for units in joints]
        # A batch picks rows of all tables alike: owner and place lead back to the table.
        self.owner = np.repeat(np.arange(len(joints)), [len(units.rows) for units in joints])
        self.rows = [row for units in joints for row in units.rows]
        self.place = np.concatenate([np.arange(len(units.rows)) for units in joints])
        # P(labels, votes) of every joint table, (positions, label patterns, vote patterns).
        self.parameters, self.n_units = [term.phi for term in self.terms], len(self.owner)

    def probabilities(self) -> Tensor:
        """All tables as one vector."""
        return torch.cat([table.reshape(-1) for table in self.parameters])

    def loss(self, units: IntArray | None = None, votes: Votes | None = None) -> Tensor:
        """Weighted squared residuals per row, summed over the tables."""
        observed = self._observed(votes)
        total = torch.zeros((), dtype=self.terms[0].phi.dtype, device=self.device)
        for number, term in enumerate(self.terms):
            rows: IntArray | slice = slice(None) if units is None else self.place[units[self.owner[units] == number]]
            predicted = torch.einsum("plz,ls->pzs", term.phi, term.signs)
            # Weights are precisions, as in the closed form, so that both have the same minimum.
            squares = term.weights[rows] * (predicted - observed[number][rows]) ** 2
            total = total + squares.sum() * self._scale(term, units) + self.consistency * _ties(term)
        return total

    def _scale(self, term: _Term, units: IntArray | None) -> float:
        share = 1.0 if units is None else len(units) / self.n_units
        return 1 / (share * term.observed.shape[0] * term.observed.shape[1])

    def _observed(self, votes: Votes | None) -> list[Tensor]:
        """The moments of every table, of all sequences or of a few."""
        if votes is None:
            return [term.observed for term in self.terms]
        # Divided by the number of votes that this share should hold, not by what it holds: batches then average out.
        few, share = count_few(votes, self.rows), votes.n_sequences / int(self.moments.shapes.counts.sum())
        return [to_tensor(term.units.recount(few, share), self.device) for term in self.terms]

    def _term(self, units: JointUnits) -> _Term:
        return _Term(
            units=units,
            phi=to_tensor(units.start, self.device).requires_grad_(),
            signs=to_tensor(units.signs, self.device),
            observed=to_tensor(units.observed, self.device),
            weights=to_tensor(units.weights, self.device),
            ties=tuple(tuple(to_tensor(part, self.device) for part in tie) for tie in units.consistency),
        )


def _ties(term: _Term) -> Tensor:
    """Squared violations of the consistency constraints."""
    phi = term.phi
    total = torch.zeros((), dtype=phi.dtype, device=phi.device)
    for label_map, vote_map, target, weights in term.ties:
        found = torch.einsum("kl,plz,zc->pkc", label_map, phi, vote_map)
        total = total + (weights * (found - target) ** 2).sum() / len(phi)
    return total

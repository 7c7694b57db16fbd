"""Accuracies as parameters of a loss: the slopes of all tables, by the weighted l2 distance of their covariances.

The equations are those of the closed form, ``Cov(f, g) = beta_f beta_g Cov(y, y')`` for class indicators f and g of two
independent votes (METHOD 3.3), solved stage by stage as there, by descent instead of Gauss-Newton.

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

from dugong.fit.moments.equations import CENTRED, N_INDICATORS, EquationForm, Equations, Given, Unknowns
from dugong.fit.moments.stages import Solution, Solve, solve_stages
from dugong.fit.sgd.descent import Descend, Trace
from dugong.fit.sgd.settings import SGD
from dugong.sums import Grouping, MomentRow, Moments, Plan, count
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray
from dugong.votes import Votes

# A tilt of every source towards being right: enough to choose between the two mirror images.
TILT = 0.2
_RIGHT = np.array([-1.0, 1.0])


def solve_slopes(given: Given, settings: SGD, descend: Descend) -> tuple[Solution, dict[str, Trace]]:
    """All slopes, stage after stage, and how each descent went."""
    tilt = _tilted(given, Unknowns.of(given.design, given.moments, CENTRED))
    solve, traces = descending(given.moments, settings, descend, CENTRED, tilt)
    found = solve_stages(given, CENTRED, solve)
    return found, {stage.name: trace for stage, trace in zip(found.stages, traces, strict=True)}


def descending(
    moments: Moments, settings: SGD, descend: Descend, form: EquationForm, tilt: float | FloatArray
) -> tuple[Solve, list[Trace]]:
    """What solves equations by a descent that begins at a tilt; how every descent went is added to a list."""
    traces = list[Trace]()

    def solve(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, None]:
        problem = SlopeProblem(equations, moments, np.where(free, tilt, beta), free, settings.device, form)
        traces.append(descend(problem))
        return to_numpy(problem.probabilities()), None

    return solve, traces


def _tilted(given: Given, unknowns: Unknowns) -> FloatArray:
    """Slopes of sources that are all a little better than random."""
    beta, design, votes = np.zeros(unknowns.size), given.design, given.votes()
    for info in design.sources:
        if design.levels[info.name] != "full":
            rates = votes[info.name][:, :N_INDICATORS]
            beta[unknowns.places[design.keys[info.name]]] = TILT / 2 * _RIGHT * rates
    return beta


class SlopeProblem:
    """Moment equations of some open slopes; the others are held. A unit is a row by position.

    Parameters
    ----------
    start : (n_slopes,) where the open slopes begin and what the others are
    open_slopes : (n_slopes,) which are optimised
    """

    def __init__(
        self,
        equations: Equations,
        moments: Moments,
        start: FloatArray,
        open_slopes: BoolArray,
        device: str,
        form: EquationForm,
    ) -> None:
        self.equations, self.device, self.form = equations, torch.device(device), form
        self.n_cells = form.width**2
        self.n_sequences = int(moments.shapes.counts.sum())
        self.held, self.open = self._tensor(start), self._tensor(open_slopes)
        self.free = self._tensor(start).requires_grad_()
        self.parameters = [self.free]
        self.left, self.right = self._tensor(equations.left), self._tensor(equations.right)
        self.scale, self.value = self._tensor(equations.scale), self._tensor(equations.value)
        # Precision in units of one vote: the average number of pairs counts as one, whatever the size of the sample.
        one_vote = equations.variance * max(float(equations.total.mean()), 1e-300)
        self.weights = self._tensor(1 / one_vote)
        # Covariances of a few sequences are taken around the means of all, so that batches average out.
        self.level = self._both(moments) / np.maximum(equations.total, 1.0) - equations.value
        self.unit = np.unique(equations.kept // self.n_cells, return_inverse=True)[1]
        self.n_units = int(self.unit.max(initial=-1)) + 1

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
        """The covariances in a few sequences."""
        few = count_few(votes, [row for row, _ in self.equations.rows])
        total = self.equations.total * votes.n_sequences / self.n_sequences
        return self._tensor(self._both(few) / np.maximum(total, 1e-300) - self.level)

    def _both(self, moments: Moments) -> FloatArray:
        """The sums behind every equation; positions that are not there count nothing."""
        counts = [np.zeros(0)]
        for row, size in self.equations.rows:
            table = self.form.sums(
                moments.placed(row)[: size // self.n_cells, : self.form.columns, : self.form.columns]
            )
            counts.append(np.pad(table.reshape(-1), (0, size - table.size)))
        return np.asarray(np.concatenate(counts)[self.equations.kept])

    def _tensor(self, array: AnyArray) -> Tensor:
        return to_tensor(array, self.device)


def count_few(votes: Votes, rows: Iterable[MomentRow]) -> Moments:
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

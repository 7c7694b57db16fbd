"""Adam with a learning-rate schedule and an early stop: the loop that both stages of the SGD variant share.

In: a `LossProblem`. Out: a `Trace`; the problem keeps the best parameters that were seen. The loss over all moments is
looked at every `patience` steps; nothing else than these looks decides when to slow down or stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import cos, inf, pi
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from dugong.fit.sgd.settings import SGD
from dugong.progress import FitProgress
from dugong.types import IntArray
from dugong.votes import Votes

# A look at the loss counts as progress if it fell by this share.
PROGRESS = 1e-3
_SLOWEST = 1e-4
# Losses are squared residuals in units of one vote: this is what a hundred billion votes would leave.
_EXACT = 1e-11


class LossProblem(Protocol):
    """A loss that is a sum over so many units, and the parameters that lower it."""

    parameters: list[Tensor]
    n_units: int

    def loss(self, units: IntArray | None = None, votes: Votes | None = None) -> Tensor:
        """The loss over all units; over some, scaled to all; or with the moments of a few sequences in their place."""

    def probabilities(self) -> Tensor:
        """All tables as one flat vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """How a descent went: the loss at the start and at every look, steps, final learning rate, why it ended."""

    losses: tuple[float, ...]
    steps: int
    learning_rate: float
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the diagnostics."""
        return {**asdict(self), "losses": list(self.losses)}


Descend = Callable[[LossProblem], Trace]


def descend(
    problem: LossProblem,
    settings: SGD,
    rng: np.random.Generator,
    votes: Votes | None = None,
    progress: FitProgress | None = None,
) -> Trace:
    """Lower the loss until it has converged or `max_steps` are done."""
    # Gradients near an exact fit are far below the default eps, which would stop the descent before it is there.
    optimiser = torch.optim.Adam(problem.parameters, lr=settings.learning_rate, eps=1e-15)
    batches = _Batches(problem.n_units, settings, rng, votes)
    looks = _Looks(problem, settings)
    for step in range(1, settings.max_steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = looks.rate(step)
        optimiser.zero_grad()
        torch.autograd.backward(batches.loss(problem))
        optimiser.step()
        if step % settings.patience == 0:
            if progress is not None:
                progress("sgd", step, settings.max_steps)
            if looks.look():
                break
    return looks.finish(step)


class _Batches:
    """What each step sees: all units, a few units, or the units of a few sequences; each once per epoch."""

    def __init__(self, n_units: int, settings: SGD, rng: np.random.Generator, votes: Votes | None) -> None:
        self.votes = votes if settings.batches == "votes" else None
        self.total = n_units if self.votes is None else self.votes.n_sequences
        self.size, self.rng = min(settings.batch_size, self.total), rng
        self.order, self.done = rng.permutation(self.total), 0

    def loss(self, problem: LossProblem) -> Tensor:
        if self.size == self.total:
            return problem.loss()
        # A rest that is too small for a batch waits for the next epoch, because small batches are noisier.
        if self.done + self.size > self.total:
            self.order, self.done = self.rng.permutation(self.total), 0
        chosen = self.order[self.done : self.done + self.size]
        self.done += self.size
        return problem.loss(units=chosen) if self.votes is None else problem.loss(votes=self.votes[chosen])


class _Looks:
    """Watches the whole loss: lowers the learning rate, stops, and keeps the best parameters."""

    def __init__(self, problem: LossProblem, settings: SGD) -> None:
        self.problem, self.settings = problem, settings
        self.scale, self.converged = 1.0, False
        self.best, self.kept = inf, [one.detach().clone() for one in problem.parameters]
        self.losses: list[float] = []
        self.last = problem.probabilities().detach()
        self._note()

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        if self.settings.schedule == "cosine":
            self.scale = (1 + cos(pi * step / self.settings.max_steps)) / 2
        return self.settings.learning_rate * self.scale

    def look(self) -> bool:
        """Note the loss; whether to stop."""
        before = self.best
        self._note()
        now = self.problem.probabilities().detach()
        moved = float((now - self.last).abs().max()) if len(now) else 0.0
        self.last = now
        if self.settings.schedule == "plateau" and self.losses[-1] > (1 - PROGRESS) * before:
            self.scale /= 2
        # Probabilities, not the loss, decide: the loss of a sample never reaches zero.
        still = moved <= self.settings.tolerance or self.scale < _SLOWEST
        self.converged = still or self.best <= _EXACT
        return self.converged

    def finish(self, steps: int) -> Trace:
        """Put back the best parameters that were seen."""
        self._note()
        with torch.no_grad():
            for own, best in zip(self.problem.parameters, self.kept, strict=True):
                own.copy_(best)
        # The last steps of a stochastic descent wander: the best parameters that were seen are kept.
        losses = (*self.losses[:-1], self.best)
        rate = self.settings.learning_rate * self.scale
        return Trace(losses=losses, steps=steps, learning_rate=rate, converged=self.converged)

    def _note(self) -> None:
        with torch.no_grad():
            loss = float(self.problem.loss())
        self.losses.append(loss)
        if loss < self.best:
            self.best, self.kept = loss, [one.detach().clone() for one in self.problem.parameters]

"""What `dugong plan` simulates: the world in which a fitted model is true, estimated with the model's own settings.

In: a fitted model, a wanted half-width. Out: a `SamplePlan` of `dugong.worlds.planner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.law.parameters import Temporal
from dugong.model import LabelModel
from dugong.tasks import Spans
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes
from dugong.worlds import World
from dugong.worlds.factors import blocks_of
from dugong.worlds.planner import SamplePlan, plan


def make_plan(
    world: World, model: LabelModel, *, n_sequences: int | None, width: float, repeats: int, seed: int
) -> SamplePlan:
    """Simulate a world and estimate it anew with the settings of a model, which is not changed."""

    def fit(votes: Votes) -> Mapping[str, FloatArray]:
        return LabelModel(**model.get_params()).fit(votes).standard_errors_.raw

    return plan(world, width=width, n_sequences=n_sequences, repeats=repeats, fit=fit, seed=seed)


# --- from a fitted model to a world --------------------------------------------------------------------------------
def world_of(model: LabelModel, lengths: IntArray | int) -> World:
    """The world in which a fitted model is true; sequences are as long as the given ones, drawn at random."""
    if any(isinstance(info.resolution, Spans) for info in model.sources_):
        raise TaskError(
            "spans cannot be simulated: where they lie is not in the model.\n"
            "  Fit a model of the sources that vote on elements, windows and sequences, and plan with that one."
        )
    law: Any = lengths if isinstance(lengths, int) else _Resampled(lengths)
    blocks = blocks_of(model.law_.parameters)
    return World(prior=model.prior_, blocks=blocks, lengths=law, class_names=model.class_names_, name="fitted")


def settings_of(model: LabelModel) -> LabelModel:
    """A model with the settings under which the given one can be estimated again."""
    repeating = [TemporalDependency(f.source, f.lag) for f in model.law_.parameters.factors if isinstance(f, Temporal)]
    dependencies: list[Dependency] = [*model.correlations_, *repeating]
    settings = model.get_params() | {"prior": model.prior_, "dependencies": dependencies}
    return LabelModel(**settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Resampled:
    """Lengths drawn from given ones."""

    lengths: IntArray

    def __call__(self, n_sequences: int, rng: np.random.Generator) -> IntArray:
        return rng.choice(self.lengths, size=n_sequences)

"""`dugong plan`: how many sequences until the accuracies are known well enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from dugong.cli.output import emit, example, json_option, say, seconds
from dugong.exceptions import TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.law.parameters import Temporal
from dugong.model import LabelModel
from dugong.tasks import Spans
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes
from dugong.worlds import STANDARD, World
from dugong.worlds.planner import SamplePlan, plan
from dugong.worlds.world import blocks_of


@click.command(
    "plan", epilog=example("dugong plan model.json --votes votes.parquet --width 0.05", "dugong plan tv_news")
)
@click.argument("what", metavar="MODEL")
@click.option("--votes", type=click.Path(path_type=Path), help="Votes whose sequence lengths are to be simulated.")
@click.option(
    "--width",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.05,
    show_default=True,
    help="Wanted half-width of 95 % intervals.",
)
@click.option(
    "--sequences", type=click.IntRange(min=2), help="How many to simulate; default: sizes until simulation agrees."
)
@click.option("--repeats", type=click.IntRange(min=3), default=10, show_default=True, help="How often.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan.")
@json_option
def command(
    *, what: str, votes: Path | None, width: float, sequences: int | None, repeats: int, seed: int, as_json: bool
) -> None:
    """Say how many sequences are needed until every accuracy is known to plus or minus WIDTH.

    MODEL is a fitted model (model.json, from a first sample) or the name of a standard world (`dugong simulate
    --list`). It is simulated and estimated again and again; Theorem 1 of the paper, a worst case, stands beside that.
    """
    from time import perf_counter

    world, model = _configuration(what, votes)
    begin = perf_counter()
    plan = make_plan(world, model, n_sequences=sequences, width=width, repeats=repeats, seed=seed)
    sizes = ", ".join(f"{step.n_sequences:,}" for step in plan.steps)
    say(f"simulated {sizes} sequences {plan.repeats} times in {seconds(perf_counter() - begin)}")
    emit(plan.to_dict(), str(plan), as_json=as_json)


def _configuration(what: str, votes: Path | None) -> tuple[World, LabelModel]:
    """What is simulated, and how it is estimated."""
    if what in STANDARD:
        world = cast("Callable[[], World]", STANDARD[what])()
        return world, LabelModel(prior=world.prior, dependencies=world.dependencies)
    if not what.endswith(".json"):
        known = ", ".join(STANDARD)
        raise click.BadParameter(f"give a model.json or one of the worlds {known}; found {what!r}.", param_hint="MODEL")
    fitted = LabelModel.load(what)
    seen = fitted.seen_
    lengths = round(seen.n_elements / max(seen.n_sequences, 1)) if votes is None else Votes.read(votes).lengths
    return world_of(fitted, lengths), settings_of(fitted)


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

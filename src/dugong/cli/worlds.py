"""Known worlds: `dugong simulate` draws votes and the truth about them, `dugong plan` says how many are needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import click

from dugong.cli.gold import write_gold
from dugong.cli.output import Outcome, say, seconds, verb
from dugong.cli.steps import file_lines, sizes
from dugong.exceptions import TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.law.parameters import Temporal
from dugong.model import LabelModel
from dugong.paths import write_atomically
from dugong.tasks import Spans
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes
from dugong.worlds import STANDARD, World
from dugong.worlds.planner import SamplePlan, plan
from dugong.worlds.world import blocks_of

DEFAULT_WORLD = "tv_news"


@verb(
    "simulate",
    "dugong simulate tv_news --sequences 500 --folder simulated",
    "dugong check simulated/votes.parquet --gold simulated/gold.parquet",
)
@click.argument("world", default=DEFAULT_WORLD)
@click.option("--sequences", type=click.IntRange(min=1), default=1000, show_default=True, help="How many.")
@click.option("--length", type=click.IntRange(min=1), help="Elements of each; default: what the world says.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same votes.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    help="Where votes.parquet, gold.parquet and prior.json are written; default: this folder.",
)
@click.option("--list", "listing", is_flag=True, help="Name the worlds, and do nothing else.")
def simulate(*, world: str, sequences: int, length: int | None, seed: int, folder: Path, listing: bool) -> Outcome:
    """Draw votes and their true labels from WORLD, a standard world of which everything is known.

    Writes votes.parquet, gold.parquet (the labels of the elements) and prior.json (the law of the labels, for --prior).
    """
    about = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in STANDARD.items()}
    if listing:
        width = max(map(len, about))
        return {"worlds": about}, "\n".join(f"{name:<{width}}  {text}" for name, text in about.items())
    if world not in STANDARD:
        raise click.BadParameter(f"there is no world {world!r}; known are {', '.join(STANDARD)}.", param_hint="WORLD")
    made = cast("Callable[[], World]", STANDARD[world])()
    votes, labels = made.sample(sequences, length, seed)
    files = write_sample(folder, made, votes, labels["element"])
    dependencies = [list(one) if isinstance(one, tuple) else f"{one.source}@{one.lag}" for one in made.dependencies]
    declared = ",".join("+".join(one) if isinstance(one, list) else one for one in dependencies) or "none"
    lines = [
        f"{world}: {about[world]}",
        sizes(votes),
        file_lines(files),
        f"Next: dugong fit {files['votes']} --prior {files['prior']} --dependencies {declared}",
    ]
    result = {"world": world, "files": files, "accuracies": made.accuracies(), "dependencies": dependencies}
    return result, "\n".join(lines)


def write_sample(folder: Path, world: World, votes: Votes, gold: Int8Array) -> dict[str, Path]:
    """Write votes, true labels and the prior; returns where they are."""
    files = {
        "votes": folder / "votes.parquet",
        "true labels": folder / "gold.parquet",
        "prior": folder / "prior.json",
    }
    folder.mkdir(parents=True, exist_ok=True)
    votes.write(files["votes"])
    write_gold(gold, votes, files["true labels"])
    prior = json.dumps(world.prior.to_dict()).encode()
    write_atomically(files["prior"], lambda handle: handle.write(prior))
    return files


# --- plan -------------------------------------------------------------------------------------------------------------
@verb("plan", "dugong plan model.json --votes votes.parquet --width 0.05", "dugong plan tv_news")
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
def plan_sizes(
    *, what: str, votes: Path | None, width: float, sequences: int | None, repeats: int, seed: int
) -> Outcome:
    """Say how many sequences are needed until every accuracy is known to plus or minus WIDTH.

    MODEL is a fitted model (model.json, from a first sample) or the name of a standard world (`dugong simulate
    --list`). It is simulated and estimated again and again; Theorem 1 of the paper, a worst case, stands beside that.
    """
    world, model = _configuration(what, votes)
    begin = perf_counter()
    made = make_plan(world, model, n_sequences=sequences, width=width, repeats=repeats, seed=seed)
    drawn = ", ".join(f"{step.n_sequences:,}" for step in made.steps)
    say(f"simulated {drawn} sequences {made.repeats} times in {seconds(perf_counter() - begin)}")
    return made.to_dict(), str(made)


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
    law: Any = lengths if isinstance(lengths, int) else lambda n, rng: rng.choice(lengths, size=n)
    blocks = blocks_of(model.law_.parameters)
    return World(prior=model.prior_, blocks=blocks, lengths=law, class_names=model.class_names_, name="fitted")


def settings_of(model: LabelModel) -> LabelModel:
    """A model with the settings under which the given one can be estimated again."""
    repeating = [TemporalDependency(f.source, f.lag) for f in model.law_.parameters.factors if isinstance(f, Temporal)]
    dependencies: list[Dependency] = [*model.correlations_, *repeating]
    settings = model.get_params() | {"prior": model.prior_, "dependencies": dependencies}
    return LabelModel(**settings)

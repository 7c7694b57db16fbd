"""`dugong plan`: how many sequences until the accuracies are known well enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from dugong.cli.output import emit, example, json_option, say, seconds
from dugong.texts import text_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from dugong.model import LabelModel
    from dugong.worlds import World
    from dugong.worlds.planner import SamplePlan


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

    from dugong.cli.planning import make_plan

    world, model = _configuration(what, votes)
    begin = perf_counter()
    plan = make_plan(world, model, n_sequences=sequences, width=width, repeats=repeats, seed=seed)
    sizes = ", ".join(f"{step.n_sequences:,}" for step in plan.steps)
    say(f"simulated {sizes} sequences {plan.repeats} times in {seconds(perf_counter() - begin)}")
    emit(plan.to_dict(), _text(plan), as_json=as_json)


def _configuration(what: str, votes: Path | None) -> tuple[World, LabelModel]:
    """What is simulated, and how it is estimated."""
    from dugong.cli.planning import settings_of, world_of
    from dugong.model import LabelModel
    from dugong.votes import Votes
    from dugong.worlds import STANDARD

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


def _text(plan: SamplePlan) -> str:
    rows = [(one.name, one.resolution, f"{one.half_width:.3f}", f"{one.needed:,}") for one in plan.sources]
    head = ("source", "votes on", f"+- at {plan.n_sequences:,}", f"sequences for +-{plan.width:g}")
    bound = "does not apply here" if plan.bound is None else f"asks for {plan.bound:,}"
    return (
        f"{text_table(head, rows, left=(0, 1), rule=True)}\n\n"
        f"{plan.needed:,} sequences for all of them (by {plan.repeats} simulations of up to {plan.n_sequences:,} "
        f"sequences with {plan.n_elements:,} elements{', extrapolated' if plan.extrapolated else ''}).\n"
        f"Theorem 1 of the paper, a worst case, {bound}."
    )

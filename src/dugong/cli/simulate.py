"""`dugong simulate`: votes of a known world, and the truth about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from dugong.cli.output import emit, example, json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from dugong.types import Int8Array
    from dugong.votes import Votes
    from dugong.worlds import World

DEFAULT_WORLD = "tv_news"


@click.command(
    "simulate",
    epilog=example(
        "dugong simulate tv_news --sequences 500 --folder simulated",
        "dugong check simulated/votes.parquet --gold simulated/gold.parquet",
    ),
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
@json_option
def command(
    *, world: str, sequences: int, length: int | None, seed: int, folder: Path, listing: bool, as_json: bool
) -> None:
    """Draw votes and their true labels from WORLD, a standard world of which everything is known.

    Writes votes.parquet, gold.parquet (the labels of the elements) and prior.json (the law of the labels, for --prior).
    """
    from dugong.cli.steps import file_lines, sizes
    from dugong.worlds import STANDARD

    about = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in STANDARD.items()}
    if listing:
        width = max(map(len, about))
        emit({"worlds": about}, "\n".join(f"{name:<{width}}  {text}" for name, text in about.items()), as_json=as_json)
        return
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
    emit(result, "\n".join(lines), as_json=as_json)


def write_sample(folder: Path, world: World, votes: Votes, gold: Int8Array) -> dict[str, Path]:
    """Write votes, true labels and the prior; returns where they are."""
    from dugong.cli.gold import write_gold
    from dugong.paths import write_atomically

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

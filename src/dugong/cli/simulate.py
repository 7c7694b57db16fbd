"""`dugong simulate`: votes of a known world, and the truth about them."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option

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
    import json

    from dugong.cli.gold import write_gold
    from dugong.cli.steps import file_lines, sizes
    from dugong.votes.io import write_atomically
    from dugong.worlds import STANDARD

    about = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in STANDARD.items()}
    if listing:
        width = max(map(len, about))
        emit({"worlds": about}, "\n".join(f"{name:<{width}}  {text}" for name, text in about.items()), as_json=as_json)
        return
    if world not in STANDARD:
        raise click.BadParameter(f"there is no world {world!r}; known are {', '.join(STANDARD)}.", param_hint="WORLD")
    made = STANDARD[world]()
    votes, labels = made.sample(sequences, length, seed)
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / name for name in ("votes.parquet", "gold.parquet", "prior.json")}
    votes.write(files["votes.parquet"])
    write_gold(labels["element"], votes, files["gold.parquet"])
    prior = json.dumps(made.prior.to_dict()).encode()
    write_atomically(files["prior.json"], lambda handle: handle.write(prior))
    accuracies = made.accuracies()
    dependencies = [list(one) if isinstance(one, tuple) else f"{one.source}@{one.lag}" for one in made.dependencies]
    what = {"votes": files["votes.parquet"], "true labels": files["gold.parquet"], "prior": files["prior.json"]}
    declared = ",".join("+".join(one) if isinstance(one, list) else one for one in dependencies) or "none"
    text = "\n".join(
        [
            f"{world}: {about[world]}",
            sizes(votes),
            file_lines(what),
            f"Next: dugong fit {files['votes.parquet']} --prior {files['prior.json']} --dependencies {declared}",
        ]
    )
    result = {"world": world, "files": what, "accuracies": accuracies, "dependencies": dependencies}
    emit(result, text, as_json=as_json)

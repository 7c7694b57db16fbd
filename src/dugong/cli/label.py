"""`dugong label`: probabilities of labels, at the resolutions that are asked for."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.sharded import engine_option, shard_sizes


@click.command("label", epilog=example("dugong label model.json votes.parquet -o labels.csv --resolution element"))
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("votes", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="A .parquet or .csv file; default: labels.parquet. With a folder of votes, a folder; default: labels.",
)
@click.option(
    "--resolution",
    "resolutions",
    metavar="NAME",
    multiple=True,
    help="element, sequence, or the name of a window or span; may be given several times. Default: all.",
)
@click.option("--jobs", type=int, default=1, help="Processes for a folder of votes; -1 for one per core. Default: 1.")
@click.option("--restart", is_flag=True, help="Label all shards of a folder anew, also those that are done already.")
@engine_option
@json_option
def command(
    *,
    model: Path,
    votes: Path,
    output: Path | None,
    resolutions: tuple[str, ...],
    jobs: int,
    restart: bool,
    engine: str,
    as_json: bool,
) -> None:
    """Write the probability of every label of VOTES under MODEL, one row per task.

    Columns: sequence, start and end (half open, in elements), resolution, one probability per class, and seconds if
    the votes know them. VOTES may be a folder of .parquet files: each gets a file of labels of its own, and after a
    crash the same command continues where it stopped.
    """
    from dugong.cli.steps import Clock, sizes, write_labels
    from dugong.model import LabelModel
    from dugong.votes import Votes

    clock = Clock()
    fitted = LabelModel.load(model)
    if votes.is_dir():
        from dugong.engines import named_engine
        from dugong.shards import VoteShards, label_shards

        shards, place = VoteShards.open(votes), output or Path("labels")
        clock.done("read", shard_sizes(shards))
        wanted, runner = resolutions or None, named_engine(engine, n_jobs=jobs)
        done = label_shards(fitted, shards, place, resolutions=wanted, engine=runner, restart=restart)
        n_rows, known = done.n_rows, shards.specimen().resolutions
    else:
        found, place = Votes.read(votes), output or Path("labels.parquet")
        clock.done("read", sizes(found))
        n_rows, known = write_labels(fitted, found, place, resolutions), found.resolutions
    clock.done("label", f"{n_rows:,} tasks")
    names = list(resolutions) or [resolution.name for resolution in known]
    result = {"labels": place, "rows": n_rows, "resolutions": names, "seconds": clock.steps}
    emit(result, f"{n_rows:,} rows at {', '.join(names)} are in {place}.", as_json=as_json)

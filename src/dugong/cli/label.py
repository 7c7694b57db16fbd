"""`dugong label`: probabilities of labels, at the resolutions that are asked for."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option


@click.command("label", epilog=example("dugong label model.json votes.parquet -o labels.csv --resolution element"))
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("votes", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="labels.parquet",
    help="A .parquet or .csv file; default: labels.parquet.",
)
@click.option(
    "--resolution",
    "resolutions",
    metavar="NAME",
    multiple=True,
    help="element, sequence, or the name of a window or span; may be given several times. Default: all.",
)
@json_option
def command(*, model: Path, votes: Path, output: Path, resolutions: tuple[str, ...], as_json: bool) -> None:
    """Write the probability of every label of VOTES under MODEL, one row per task.

    Columns: sequence, start and end (half open, in elements), resolution, one probability per class, and seconds if
    the votes know them.
    """
    from dugong.cli.steps import Clock, sizes, write_labels
    from dugong.model import LabelModel
    from dugong.votes import Votes

    clock = Clock()
    fitted, found = LabelModel.load(model), Votes.read(votes)
    clock.done("read", sizes(found))
    n_rows = write_labels(fitted, found, output, resolutions)
    clock.done("label", f"{n_rows:,} tasks")
    names = list(resolutions) or [resolution.name for resolution in found.resolutions]
    result = {"labels": output, "rows": n_rows, "resolutions": names, "seconds": clock.steps}
    emit(result, f"{n_rows:,} rows at {', '.join(names)} are in {output}.", as_json=as_json)

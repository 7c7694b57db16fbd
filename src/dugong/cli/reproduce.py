"""`dugong reproduce`: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dugong.cli.output import Outcome, say, verb

WHAT = ("table1", "ablations", "priors", "patients", "resolutions", "simulations", "scaling", "timeline")


@verb(
    "reproduce",
    "dugong reproduce table1 --quick",
    "dugong reproduce table1 --task gait --task ehr --data DIR --quick",
    "dugong reproduce simulations --quick",
)
@click.argument("what", type=click.Choice(WHAT))
@click.option("--task", "tasks", multiple=True, help="Only this task; may be repeated. Default: all of the table.")
@click.option("--quick", is_flag=True, help="Little data and small networks: minutes instead of days.")
@click.option(
    "--estimator",
    type=click.Choice(["centred", "paper", "sgd"]),
    default="centred",
    show_default=True,
    help="Closed form, the paper's Algorithm 1, or its gradient descent (extra torch).",
)
@click.option("--seeds", type=click.IntRange(min=1), help="How often all is repeated; default: 5.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with real data; default: what DUGONG_DATA names. Absent data is a row that says so.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default="dugong-paper",
    show_default=True,
    help="Where tables, figures and finished cells are written.",
)
@click.option("--restart", is_flag=True, help="Compute everything anew instead of going on with what is there.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1 for one per core.")
@click.option("--labels-only", is_flag=True, help="Score the labels and train no end models: seconds, not minutes.")
@click.option("--device", help="Of the networks, such as cuda; default: the processor.")
def command(*, what: Any, tasks: tuple[str, ...], **options: Any) -> Outcome:
    """Reproduce a table or figure of the paper: precision, recall and F1 beside the published figures.

    Every finished number is kept in OUTPUT/cells, so an interrupted run goes on where it was. The paper's data is
    restricted: tasks run on generated data of the same shape, and on real data where it is found.
    """
    from dugong.experiments import reproduce

    made = reproduce(what, tasks=tasks, progress=say, **options)
    return {table.name: table.records for table in made.tables}, str(made)

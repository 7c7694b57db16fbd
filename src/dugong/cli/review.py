"""`dugong review`: what a person should look at next, as a table to fill in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.places import PLACE
from dugong.paths import Place

if TYPE_CHECKING:
    from dugong.model import LabelModel
    from dugong.review import Review
    from dugong.types import Int8Array
    from dugong.votes import Votes


@click.command(
    "review",
    epilog=example(
        "dugong review project.toml --budget 50 -o to-check.csv",
        "dugong review model.json votes.parquet --known to-check.csv -o more.csv",
    ),
)
@click.argument("model", type=PLACE)
@click.argument("votes", type=PLACE, required=False)
@click.option("--budget", type=click.IntRange(min=1), default=50, help="What there is time for. Default: 50.")
@click.option(
    "--by",
    type=click.Choice(["value", "entropy"]),
    default="value",
    help="Single elements, by how much their labels improve all others (the default); or whole sequences.",
)
@click.option("--known", type=PLACE, help="Labels that are known already, as for `fit --gold`: not asked again.")
@click.option("--output", "-o", type=PLACE, help="A .csv or .parquet table with an empty column `label` to fill in.")
@json_option
def command(
    *, model: Place, votes: Place | None, budget: int, by: str, known: Place | None, output: Place | None, as_json: bool
) -> None:
    """Say which labels of VOTES are worth a person's minute, given what MODEL knows.

    A project.toml stands for the model and the votes of its last run, and its train_gold for --known.

    An element is worth what its label is expected to take off the risk (the Brier loss) of all labels of its sequence;
    what an element chosen before will tell is not counted twice. Fill in the column `label` of the table, and use it:
    `dugong fit VOTES --gold to-check.csv`, `dugong label MODEL VOTES --known to-check.csv`, or as train_gold of a
    project. Rows without a label count as not looked at.
    """
    from dugong.cli.annotations import train_labels
    from dugong.cli.gold import read_gold
    from dugong.cli.project import last_run, read_project
    from dugong.model import LabelModel
    from dugong.votes import Votes

    project = None
    if votes is None:
        project = read_project(Path(str(model)))
        model, votes = last_run(project)
    fitted, found = LabelModel.load(model), Votes.read(votes)
    labels = None if project is None else train_labels(project, found)
    labels = labels if known is None else read_gold(known, found, missing_ok=True)
    review = fitted.review(found, budget, by, known=labels)
    text = str(review)
    if output is not None:
        _write_table(review, fitted, found, labels, output)
        text += f"\n\n{output} has a column `label` to fill in."
    emit({**review.to_dict(), "output": output}, text, as_json=as_json)


def _write_table(review: Review, model: LabelModel, votes: Votes, known: Int8Array | None, path: Place) -> None:
    """One row per choice: where it is, an empty label, and what the model thinks where it is a single element."""
    import numpy as np
    import pyarrow as pa

    from dugong.cli.gold import write_table

    starts = np.zeros(len(review), dtype=np.int64) if review.elements is None else review.elements
    stops = votes.lengths[review.places] if review.elements is None else starts + 1
    columns = {
        "sequence": pa.array([str(one) for one in review.ids]),
        "start": pa.array(starts),
        "end": pa.array(stops),
        "label": pa.nulls(len(review), pa.string()),
        "worth": pa.array(review.worth),
    }
    if review.rows is not None:
        chances = model.predict_proba(votes, known=known)[review.rows]
        names = votes.class_names or tuple(map(str, votes.classes))
        columns["guess"] = pa.array([names[place] for place in chances.argmax(axis=1).tolist()])
        columns["probability"] = pa.array(chances.max(axis=1))
    write_table(pa.table(columns), path)

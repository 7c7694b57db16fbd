"""After a fit: `dugong review` (what a person should look at), `dugong suggest` (rules), `dugong drift` (new votes)."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from dugong.cli.gold import read_gold, train_labels, write_table
from dugong.cli.job import open_votes
from dugong.cli.output import PATH, PLACE, SOME, Outcome, fit_width, user_code, verb
from dugong.cli.project import DEFAULT, last_run, load_sequences, read_project
from dugong.drift import REFERENCE
from dugong.model import LabelModel
from dugong.paths import Place
from dugong.review import Review
from dugong.types import Int8Array
from dugong.votes import Votes


@verb(
    "review",
    "dugong review project.toml --budget 50 -o to-check.csv",
    "dugong review model.json votes.parquet --known to-check.csv -o more.csv",
)
@click.argument("model", type=PLACE)
@click.argument("votes", type=PLACE, required=False)
@click.option("--budget", type=SOME, default=50, help="What there is time for. Default: 50.")
@click.option(
    "--by",
    type=click.Choice(["value", "entropy"]),
    default="value",
    help="Single elements, by how much their labels improve all others (the default); or whole sequences.",
)
@click.option("--known", type=PLACE, help="Labels that are known already, as for `fit --gold`: not asked again.")
@click.option("--output", "-o", type=PLACE, help="A .csv or .parquet table with an empty column `label` to fill in.")
def review(
    *, model: Place, votes: Place | None, budget: int, by: str, known: Place | None, output: Place | None
) -> Outcome:
    """Say which labels of VOTES are worth a person's minute, given what MODEL knows.

    A project.toml stands for the model and the votes of its last run, and its train_gold for --known.

    An element is worth what its label is expected to take off the risk (the Brier loss) of all labels of its sequence;
    what an element chosen before will tell is not counted twice. Fill in the column `label` of the table, and use it:
    `dugong fit VOTES --gold to-check.csv`, `dugong label MODEL VOTES --known to-check.csv`, or as train_gold of a
    project. Rows without a label count as not looked at.
    """
    project = None
    if votes is None:
        project = read_project(Path(str(model)))
        model, votes = last_run(project)
    fitted, found = LabelModel.load(model), Votes.read(votes)
    labels = None if project is None else train_labels(project, found)
    labels = labels if known is None else read_gold(known, found, missing_ok=True)
    chosen = fitted.review(found, budget, by, known=labels)
    text = str(chosen)
    if output is not None:
        _write_table(chosen, fitted, found, labels, output)
        text += f"\n\n{output} has a column `label` to fill in."
    return {**chosen.to_dict(), "output": output}, text


def _write_table(review: Review, model: LabelModel, votes: Votes, known: Int8Array | None, path: Place) -> None:
    """One row per choice: where it is, an empty label, and what the model thinks where it is a single element."""
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
    write_table(columns, path)


# --- suggest ----------------------------------------------------------------------------------------------------------
@verb("suggest", "dugong run project.toml", "dugong suggest project.toml --budget 3")
@click.argument("project", type=PATH, default=DEFAULT)
@click.option("--budget", type=SOME, default=5, help="How many rules. Default: 5.")
@click.option("--known", type=PLACE, help="Labels that people have looked at, as for `fit --gold`. Default: none.")
def suggest(*, project: Path, budget: int, known: Place | None) -> Outcome:
    """Propose thresholds on numbers, or lists of words, that would add to what the sources of PROJECT say.

    The project must have been run: its votes and its model are read from the output folder. Everything rests on the
    labels of that model; its gold is not looked at.
    A project is code: its loader is executed.
    """
    found = read_project(project)
    model, votes = last_run(found)
    with user_code():
        sequences = load_sequences(found.data, found.folder, **found.timing)
        seen = Votes.read(votes)
        labels = None if known is None else read_gold(known, seen, missing_ok=True)
        rules = LabelModel.load(model).suggest(seen, sequences, budget, known=labels)
    return rules.to_dict(), str(rules)


# --- drift ------------------------------------------------------------------------------------------------------------
@verb("drift", "dugong drift model.json new-votes.parquet --strict")
@click.argument("model", type=PLACE)
@click.argument("votes", type=PLACE)
@click.option("--level", type=float, default=0.01, help="Probability of any false alarm. Default: 0.01.")
@click.option("--strict", is_flag=True, help="Leave with exit code 1 if something changed, so that scripts stop.")
def drift(*, model: Place, votes: Place, level: float, strict: bool) -> tuple[*Outcome, int]:
    """Compare VOTES (a file, or a folder of shards) with those that MODEL was fitted on.

    By source: how often it votes, how well it agrees with the labels that the others imply, how predictable it is; for
    all together: the balance of the labels and the likelihood. Sequences are the units of chance, and the number of
    things that are compared is taken into account.
    """
    found = LabelModel.load(model).drift(open_votes(votes).sample(REFERENCE), level=level)
    return found.to_dict(), fit_width(str(found)), int(strict and bool(found))

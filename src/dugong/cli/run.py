"""`dugong run`: the whole job of a project: apply, fit, label, and compare with known labels if there are any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.project import DEFAULT, read_project

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.model import LabelModel
    from dugong.votes import Votes


KEYS = """\b
Keys of a project.toml (paths count from its folder):
  data          "module:function" that gives sequences by id, or a folder of .csv, .parquet or .npy files
  sources       a file or module with functions decorated by @source
  prior         "learn", or a table such as {kind = "markov", positive = 0.1, stay = 0.9}
  dependencies  "learn", or a list such as [["faces", "captions"], "captions@1"]; default: what the sources declare
  output        folder for the results; default "output"
  gold          known labels (.csv, .parquet, .npy), to compare with
  also          classes, background, spans, resolutions, sharing, estimator, signs, jobs, on_fault

"""


@click.command("run", epilog=KEYS + example("dugong init walking", "dugong run walking/project.toml"))
@click.argument("project", type=click.Path(path_type=Path), default=DEFAULT)
@click.option("--jobs", type=int, help="Processes; -1 for one per core. Default: what the project says, else 1.")
@click.option(
    "--on-fault", type=click.Choice(["raise", "abstain"]), help="What to do when a source raises: stop, or abstain."
)
@json_option
def command(*, project: Path, jobs: int | None, on_fault: str | None, as_json: bool) -> None:
    """Apply the sources of PROJECT (a project.toml, by default the one in this folder), fit the label model, label.

    Writes votes.parquet, model.json and labels.parquet into the output folder of the project, each when it is complete.
    """
    from dugong.cli.steps import Clock, apply_project, file_lines, project_model, sizes, time_table, write_labels

    found, clock = read_project(project), Clock()
    prior = found.read_prior()  # before the sources run for hours
    found.output.mkdir(parents=True, exist_ok=True)
    files = {
        "votes": found.output / "votes.parquet",
        "model": found.output / "model.json",
        "labels": found.output / "labels.parquet",
    }
    applied, sources = apply_project(found, jobs=jobs, on_fault=on_fault)
    votes = applied.votes
    votes.write(files["votes"])
    clock.done("apply", sizes(votes))
    model = project_model(found, prior, sources).fit(votes)
    model.save(files["model"])
    clock.done("fit", f"prior {model.prior_!r}")
    n_rows = write_labels(model, votes, files["labels"], found.resolutions)
    clock.done("label", f"{n_rows:,} tasks")
    result, text = _outcome(found, votes, model)
    result |= {"files": files, "seconds": clock.steps, "report": applied.report.to_dict()}
    parts = [text, time_table(applied.report), f"Files:\n{file_lines(files)}"]
    emit(result, "\n\n".join(parts), as_json=as_json)


def _outcome(project: Project, votes: Votes, model: LabelModel) -> tuple[dict[str, Any], str]:
    """The model at a glance and, with gold, the comparison with majority vote."""
    if project.gold is None:
        summary = model.summary(votes)
        return {"model": summary.to_dict()}, str(summary)
    from dugong.cli.gold import read_gold
    from dugong.cli.steps import compare_with_majority

    gold = read_gold(project.gold, votes)
    summary, comparison = model.summary(votes, gold), compare_with_majority(votes, gold, model)
    return {"model": summary.to_dict(), "comparison": comparison.to_dict()}, f"{summary}\n\n{comparison}"

"""`dugong run`: the whole job of a project: apply, fit, label, and compare with known labels if there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dugong.cli.corrections import FILE
from dugong.cli.output import Watch, emit, example, fit_width, json_option, log_option, repeat
from dugong.cli.project import DEFAULT, Project, read_project
from dugong.cli.steps import ApplyOptions, apply_options, file_lines, memory_option, throughput, time_table
from dugong.paths import locked

KEYS = """\b
Keys of a project.toml (paths count from its folder):
  data          "module:function" that gives sequences by id, or a folder of tables, videos, sounds or texts
  sources       a file or module with functions decorated by @source; or a list of it and of files of annotations
  prior         "learn", or a table such as {kind = "markov", positive = 0.1, stay = 0.9}
  dependencies  "learn", or a list such as [["faces", "captions"], "captions@1"]; default: what the sources declare
  output        folder for the results; default "output"
  gold          known labels (.csv, .parquet, .npy, or a file of another tool), to compare with
  train_gold    known labels to fit with; their sequences are left out of every score. What was corrected in
                `dugong studio` (corrections.jsonl) is added to them
  export        formats to write labels in, such as ["label-studio", "elan"]; see `dugong formats`
  media         for export: a folder of files named by sequence, or a pattern with {} for the id
  groups        which sequences belong together: a table (sequence, group), or a pattern such as "(S[0-9]+)"
  rate, every   elements per second; or the length of an element, such as "1s", into which a folder of data is cut
  time          the column of its tables that holds the time; time_unit "ms", "us" or "ns" where that is not seconds
  reduce        what the rows of an element become: "mean" (the default), "median", "min", "max", "std" or "sum"; with
                "none", rules see all rows
  show          bytes of words, pictures or signals to draw in the report, such as "1 MB"; default: none
  timeout       seconds that a source may take on one sequence
  tables        columns of tables that vote, such as detector = {file = "scores.parquet", column = "p", soft = true}
  beliefs       what is known about sources, such as lexicon = {precision = 0.8, weight = 20}
  also          classes, background, spans, resolutions, sharing, estimator, signs, jobs, on_fault

"""


@click.command("run", epilog=KEYS + example("dugong init walking", "dugong run walking/project.toml"))
@click.argument("project", type=click.Path(path_type=Path), default=DEFAULT)
@apply_options
@memory_option
@click.option("--watch", "again", is_flag=True, help="Run again whenever a file of the project is saved; Ctrl-C ends.")
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@log_option
@json_option
def command(
    *,
    project: Path,
    again: bool,
    show: bool,
    log_json: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Apply the sources of PROJECT (a project.toml, by default the one in this folder), fit, label, report.

    Writes votes.parquet, model.json, labels.parquet and report.html into the output folder of the project, each when it
    is complete; with --shard-size, folders `votes` and `labels` in place of the files, and a report on a sample of the
    sequences. After a crash or Ctrl-C the same command continues where it stopped; sources whose code has changed run
    again, the others do not. Ends with what is worth a look, and with what changed since the last run.
    Sentences and tables are broken at the width of the terminal.

    A project is code: its loader and its sources are executed, with all that you may do. Run only projects that you
    trust.
    """
    options = ApplyOptions(**given)
    if again:
        repeat(project, lambda: _run(project, options, log_json=log_json, as_json=as_json, show=False))
        return
    _run(project, options, log_json=log_json, as_json=as_json, show=show)


def _run(project: Path, options: ApplyOptions, *, log_json: bool, as_json: bool, show: bool) -> None:
    """The whole job once."""
    from dugong.cli.job import run_job

    found, watch = read_project(project), Watch(log_json=log_json)
    prior = found.read_prior()  # before the sources run for hours
    if options.shard_size is not None:
        _refuse_what_needs_all(found)
    with locked(found.output):
        files, applied, (result, text) = run_job(found, prior, options, watch)
    report = applied.report
    result |= {"files": files, "seconds": watch.steps, "report": report.to_dict()}
    parts = [text, f"{time_table(report)}\n{throughput(report, applied.n_elements)}", f"Files:\n{file_lines(files)}"]
    emit(result, fit_width("\n\n".join(parts)), as_json=as_json)
    if show:
        import webbrowser

        webbrowser.open(Path(str(files["report"])).resolve().as_uri())


def _refuse_what_needs_all(project: Project) -> None:
    """Raise if a project has what is matched with all votes at once."""
    needs = {
        "files of annotations as sources": project.annotations,
        "tables": project.tables,
        "train_gold": project.train_gold,
        f"corrections ({FILE})": (project.folder / FILE).is_file(),
    }
    present = [name for name, there in needs.items() if there]
    if present:
        raise click.UsageError(
            f"with --shard-size only one shard of votes is in memory, and {' and '.join(present)} of this project are "
            "matched with all votes; leave --shard-size out. Sources run shard by shard then too, and a later run "
            "continues; only the fit holds all votes."
        )

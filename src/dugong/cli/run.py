"""`dugong run`: the whole job of a project: apply, fit, label, and compare with known labels if there are any."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.corrections import FILE
from dugong.cli.output import (
    PATH,
    PLACE,
    SOME,
    Outcome,
    Watch,
    emit,
    example,
    fit_width,
    json_option,
    log_option,
    repeat,
    user_code,
    verb,
)
from dugong.cli.project import DEFAULT, Project, read_project
from dugong.cli.steps import (
    ApplyOptions,
    apply_options,
    file_lines,
    memory_option,
    open_engine,
    project_material,
    throughput,
    time_table,
)
from dugong.paths import Place, locked
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.sources import ApplyReport
    from dugong.votes import Summary

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
@click.argument("project", type=PATH, default=DEFAULT)
@apply_options
@memory_option
@click.option("--watch", "again", is_flag=True, help="Run again whenever a file of the project is saved; Ctrl-C ends.")
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@log_option
@json_option
def command(*, project: Path, again: bool, show: bool, log_json: bool, as_json: bool, **given: Any) -> None:
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


# --- `dugong apply`: the sources vote; ``--limit`` and ``--only`` make it quick while they are written ----------------
@verb(
    "apply",
    "dugong apply --limit 20 --only steps_heard",
    "dugong apply walking/project.toml --jobs 2 --on-fault abstain",
)
@click.argument("project", type=PATH, default=DEFAULT)
@click.option("--limit", type=SOME, help="Only the first so many sequences.")
@click.option("--only", metavar="NAME", multiple=True, help="Only this source; may be given several times.")
@click.option(
    "--output", "-o", type=PLACE, help="Where to write the votes: a path, or a URL such as s3://bucket/votes."
)
@apply_options
@log_option
def apply(
    *, project: Path, limit: int | None, only: tuple[str, ...], output: Place | None, log_json: bool, **given: Any
) -> Outcome:
    """Let the sources of PROJECT (a project.toml, by default the one in this folder) vote on its sequences.

    Writes votes.parquet into the output folder of the project; with --shard-size, a folder `votes` of smaller files.
    After a crash or Ctrl-C the same command continues where it stopped; sources whose code has changed run again, the
    others do not. With --limit or --only nothing is written unless --output or --shard-size says where: that is for
    trying sources while you write them. With gold labels in the project, the table shows how often each one is right.

    A project is code: its loader and its sources are executed. Apply only projects that you trust.
    """
    found, watch = read_project(project), Watch(log_json=log_json)
    options = ApplyOptions(limit=limit, only=only, **given)
    tried = options.shard_size is None and bool(limit or only)
    target = output or (None if tried else found.output / f"votes{options.ending}")
    with nullcontext() if output or tried else locked(found.output):
        if target is None or tried:
            summary, report, n_elements = _try(found, target, options)
        else:
            summary, report, n_elements = _apply(found, target, options, watch)
    written = f"Votes are in {target}." if target else "Nothing was written (--output says where to write)."
    head = f"{counted(len(report.sources), 'source')}, {report.n_sequences:,} sequences, {report.n_elements:,} elements"
    result = {
        "votes": target,
        "summary": summary.to_dict(),
        "problems": summary.problems,
        "report": report.to_dict(),
        "faults": {one.name: one.faults for one in report.sources if one.faults},
    }
    parts = [head, "", str(summary), "", time_table(report), throughput(report, n_elements), "", written]
    return result, "\n".join(parts)


def _apply(project: Project, target: Place, options: ApplyOptions, watch: Watch) -> tuple[Summary, ApplyReport, int]:
    """Apply all sources to all sequences; a later call continues."""
    from dugong.cli.job import vote

    votes, applied, _ = vote(project, target, options, watch)
    known = None if project.gold is None else votes.known(project.gold, missing_ok=True)
    if known is not None and known.remark:
        watch.remark(known.remark)
    return votes.summary(known), applied.report, applied.n_elements


def _try(project: Project, target: Place | None, options: ApplyOptions) -> tuple[Summary, ApplyReport, int]:
    """Apply some sources to some sequences; loads no more than that takes."""
    from dugong.sources import apply_with_report

    with user_code():
        sources, material, _ = project_material(project, options.jobs, options.on_fault)
        engine = open_engine(options.engine, material["n_jobs"])
        done = apply_with_report(sources, limit=options.limit, only=options.only or None, engine=engine, **material)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        done.votes.write(target)
    gold = None
    if project.gold is not None:
        from dugong.cli.gold import read_gold

        gold = read_gold(project.gold, done.votes, missing_ok=True)
    return done.votes.summary(gold), done.report, done.report.n_elements

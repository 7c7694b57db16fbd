"""`dugong run`: the whole job of a project: apply, fit, label, and compare with known labels if there are any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.corrections import FILE
from dugong.cli.drift import drift_lines
from dugong.cli.output import emit, example, fit_width, json_option
from dugong.cli.project import DEFAULT, read_project
from dugong.cli.sharded import (
    ApplyOptions,
    apply_in_shards,
    check_room,
    folder_engine,
    memory_option,
    shard_options,
    shard_sizes,
)
from dugong.cli.steps import file_lines, project_model, shown_media, sizes, throughput, time_table, write_labels
from dugong.cli.watching import Watch, log_option
from dugong.paths import Place, locked, parts_of

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.model import LabelModel
    from dugong.shards import AppliedShards, VoteShards
    from dugong.types import Int8Array
    from dugong.votes import Votes

    Ran = tuple[dict[str, Place], AppliedShards, tuple[dict[str, Any], str]]

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
@click.option("--jobs", type=int, help="Processes; -1 for one per core. Default: what the project says, else 1.")
@click.option(
    "--on-fault", type=click.Choice(["raise", "abstain"]), help="What to do when a source raises: stop, or abstain."
)
@shard_options
@memory_option
@click.option("--watch", "again", is_flag=True, help="Run again whenever a file of the project is saved; Ctrl-C ends.")
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@log_option
@json_option
def command(
    *,
    project: Path,
    jobs: int | None,
    on_fault: str | None,
    shard_size: int | None,
    restart: bool,
    engine: str,
    memory: str | None,
    again: bool,
    show: bool,
    log_json: bool,
    as_json: bool,
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
    options = ApplyOptions(
        shard_size=shard_size, restart=restart, engine=engine, jobs=jobs, on_fault=on_fault, memory=memory
    )
    if again:
        from dugong.cli.watching import repeat

        repeat(project, lambda: _run(project, options, log_json=log_json, as_json=as_json, show=False))
        return
    _run(project, options, log_json=log_json, as_json=as_json, show=show)


def _run(project: Path, options: ApplyOptions, *, log_json: bool, as_json: bool, show: bool) -> None:
    """The whole job once."""
    found, watch = read_project(project), Watch(log_json=log_json)
    prior, shard_size = found.read_prior(), options.shard_size  # read before the sources run for hours
    if shard_size is not None:
        _refuse_what_needs_all(found)
    job = run_in_files if shard_size is None else _run_in_shards
    with locked(found.output):
        files, applied, (result, text) = job(found, prior, options, watch)
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


def run_in_files(project: Project, prior: Any, options: ApplyOptions, watch: Watch) -> Ran:
    """All votes in memory and in one file; the shards beside it are what a later run continues from."""
    from dugong.cli.annotations import add_annotations, export_labels, held_out, train_labels
    from dugong.cli.ending import LastRun, changes
    from dugong.cli.gold import read_gold
    from dugong.cli.groups import read_groups
    from dugong.votes import Votes

    files: dict[str, Place] = {
        "votes": project.output / "votes.parquet",
        "model": project.output / "model.json",
        "labels": project.output / "labels.parquet",
        "report": project.output / "report.html",
    }
    applied, sources = apply_in_shards(project, project.output / "votes.parts", options, watch)
    check_room(applied.shards, options.memory)
    votes = add_annotations(project, Votes.concat(applied.shards))
    votes.write(files["votes"])
    watch.done("apply", sizes(votes))
    train, last = train_labels(project, votes), LastRun.read(files["model"], files["labels"])
    groups = None if project.groups is None else read_groups(project.groups, votes, project.folder)
    votes = votes.in_groups(groups)
    model = project_model(project, prior, sources).fit(votes, train, groups, progress=watch.fitting)
    model.save(files["model"])
    watch.done("fit", "how far each source can be trusted")
    labels = write_labels(model, votes, files["labels"], project.resolutions, train)
    watch.done("label", f"{len(labels):,} tasks")
    if project.export:
        files |= export_labels(project, [labels])
        watch.done("export", ", ".join(project.export))
    gold = None if project.gold is None else held_out(read_gold(project.gold, votes), train, votes)
    model.report(votes, files["report"], gold, **shown_media(project))
    watch.done("report", "to be opened in a browser")
    news = [] if last is None else changes(last, model, labels, votes, gold)
    news += [] if last is None else drift_lines(last.model, last.new(votes))
    return files, applied, _outcome(votes, gold, model, groups, news)


def _run_in_shards(project: Project, prior: Any, options: ApplyOptions, watch: Watch) -> Ran:
    """One shard in memory at a time."""
    from dugong.cli.annotations import export_labels
    from dugong.cli.groups import groups_by_id
    from dugong.labels import Labels
    from dugong.shards import fit_shards, label_shards

    files: dict[str, Place] = {
        "votes": project.output / "votes",
        "model": project.output / "model.json",
        "labels": project.output / "labels",
        "report": project.output / "report.html",
    }
    applied, sources = apply_in_shards(project, files["votes"], options, watch)
    shards, memory = applied.shards, options.memory
    watch.done("apply", shard_sizes(shards))
    engine = folder_engine(options.engine, shards, project.jobs if options.jobs is None else options.jobs, memory)
    keep = None if options.restart else parts_of(files["model"])
    news = _drift_of_shards(shards, files)
    model = project_model(project, prior, sources)
    groups = groups_by_id(shards, project.groups if project.sharing == "group" else None, project.folder)
    fit_shards(model, shards, engine=engine, keep=keep, memory=memory, groups=groups, progress=watch.fitting)
    model.save(files["model"])
    watch.done("fit", "how far each source can be trusted")
    labelled = label_shards(
        model,
        shards,
        files["labels"],
        resolutions=project.resolutions,
        engine=engine,
        restart=options.restart,
        groups=groups,
        memory=memory,
        progress=partial(watch.steps_done, "label"),
    )
    watch.done("label", f"{labelled.n_rows:,} tasks")
    if project.export:
        files |= export_labels(project, map(Labels.read, sorted(files["labels"].glob("*.parquet"), key=str)))
        watch.done("export", ", ".join(project.export))
    return files, applied, _report_on_sample(project, shards, model, files["report"], watch, news)


def _drift_of_shards(shards: VoteShards, files: dict[str, Place]) -> list[str]:
    """What shards without labels, which are new, say about the model of the last run."""
    from dugong.drift import REFERENCE
    from dugong.model import LabelModel
    from dugong.votes.concat import concat

    fresh = [one for one in shards.shards if not (files["labels"] / one.path.name).is_file()]
    if not files["model"].is_file() or not files["labels"].is_dir() or not fresh:
        return []
    parts, n_elements = [], 0
    for shard in fresh:
        parts.append(shard.read())
        n_elements += shard.n_elements
        if n_elements >= REFERENCE:
            break
    return drift_lines(LabelModel.load(files["model"]), concat(parts))


def _report_on_sample(
    project: Project, shards: VoteShards, model: LabelModel, file: Place, watch: Watch, news: list[str]
) -> tuple[dict[str, Any], str]:
    """The comparison on all known labels, and the report on these and a sample of the other sequences."""
    from dugong.cli.groups import in_groups
    from dugong.cli.known import with_others
    from dugong.shards import read_sample
    from dugong.shards.sampling import COMPARED

    sample, gold, outcome = read_sample(shards, COMPARED), None, _outcome(None, None, model, news=news)
    sample = in_groups(sample, project.groups, project.folder)
    if project.gold is not None:
        from dugong.cli.known import read_known

        known = read_known(project.gold, shards)
        known = replace(known, votes=in_groups(known.votes, project.groups, project.folder))
        watch.remark(known.remark)
        outcome = _outcome(known.votes, known.gold, model, news=news)
        sample, gold = with_others(known, sample)
    part = "" if sample.n_sequences == shards.n_sequences else f" on {sample.n_sequences:,} of {shards.n_sequences:,}"
    model.report(sample, file, gold, title=f"Label report{part and f'{part} sequences'}", **shown_media(project))
    watch.done("report", f"to be opened in a browser{part and f';{part} sequences'}")
    return outcome


def _outcome(
    votes: Votes | None,
    gold: Int8Array | None,
    model: LabelModel,
    groups: list[str] | None = None,
    news: Iterable[str] = (),
) -> tuple[dict[str, Any], str]:
    """What is worth a look, the model at a glance, the comparison with majority vote, and what changed."""
    from dugong.cli.ending import findings
    from dugong.cli.steps import compare_with_majority

    known = votes is not None and gold is not None
    comparison = compare_with_majority(votes, gold, model, groups) if known else None  # type: ignore[arg-type]
    summary = model.summary(votes, gold) if known else model.summary(votes)
    said = [] if votes is None else findings(model, votes, comparison)
    result: dict[str, Any] = {"model": summary.to_dict(), "findings": said, "changes": list(news)}
    parts = [_listing("Worth a look:", said), str(summary)]
    if comparison is not None:
        result["comparison"] = comparison.to_dict()
        parts.append(str(comparison))
    parts.append(_listing("Since the last run:", news))
    return result, "\n\n".join(filter(None, parts))


def _listing(head: str, said: Iterable[str]) -> str:
    """Sentences below a heading."""
    lines = [f"- {one}" for one in said]
    return "\n".join([head, *lines]) if lines else ""

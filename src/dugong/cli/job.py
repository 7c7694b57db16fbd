"""What `dugong run` does: all votes in memory and in one file, or one shard at a time.

In: a project, its prior, and options. Out: the files that were written, what was applied, and the outcome in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from dugong.cli.ending import LastRun, changes, drift_lines, findings
from dugong.cli.gold import read_gold, read_known, with_others
from dugong.cli.output import listing
from dugong.cli.project import Project
from dugong.cli.settings import groups_by_id, in_groups, read_groups
from dugong.cli.sharded import (
    ApplyOptions,
    apply_in_shards,
    check_room,
    folder_engine,
    shard_sizes,
)
from dugong.cli.steps import (
    add_annotations,
    compare_with_majority,
    export_labels,
    held_out,
    project_model,
    shown_media,
    sizes,
    train_labels,
)
from dugong.cli.watching import Watch
from dugong.drift import REFERENCE
from dugong.labels import Labels
from dugong.model import LabelModel
from dugong.paths import Place, parts_of
from dugong.shards import AppliedShards, VoteShards, fit_shards, label_shards, read_sample
from dugong.shards.sampling import COMPARED
from dugong.types import Int8Array
from dugong.votes import Votes
from dugong.votes.concat import concat

Ran = tuple[dict[str, Place], AppliedShards, tuple[dict[str, Any], str]]


def _files(project: Project, ending: str) -> dict[str, Place]:
    """Where the results go; votes and labels are files or, without an ending, folders."""
    names = (f"votes{ending}", "model.json", f"labels{ending}", "report.html")
    return {name.partition(".")[0]: project.output / name for name in names}


def run_in_files(project: Project, prior: Any, options: ApplyOptions, watch: Watch) -> Ran:
    """All votes in memory and in one file; the shards beside it are what a later run continues from."""
    files = _files(project, ".parquet")
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
    labels = model.labels(votes, list(project.resolutions or ()) or None, known=train)
    labels.write(files["labels"])
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


def run_in_shards(project: Project, prior: Any, options: ApplyOptions, watch: Watch) -> Ran:
    """One shard in memory at a time."""
    files = _files(project, "")
    applied, sources = apply_in_shards(project, files["votes"], options, watch)
    shards, memory = applied.shards, options.memory
    watch.done("apply", shard_sizes(shards))
    jobs = project.jobs if options.jobs is None else options.jobs
    engine = folder_engine(shards, engine=options.engine, jobs=jobs, memory=memory)
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
    sample, gold, outcome = read_sample(shards, COMPARED), None, _outcome(None, None, model, news=news)
    sample = in_groups(sample, project.groups, project.folder)
    if project.gold is not None:
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
    known = votes is not None and gold is not None
    comparison = compare_with_majority(votes, gold, model, groups) if known else None  # type: ignore[arg-type]
    summary = model.summary(votes, gold) if known else model.summary(votes)
    said = [] if votes is None else findings(model, votes, comparison)
    result: dict[str, Any] = {"model": summary.to_dict(), "findings": said, "changes": list(news)}
    parts = [listing("Worth a look:", said), str(summary)]
    if comparison is not None:
        result["comparison"] = comparison.to_dict()
        parts.append(str(comparison))
    parts.append(listing("Since the last run:", news))
    return result, "\n\n".join(filter(None, parts))

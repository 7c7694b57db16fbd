"""`dugong apply`: the sources vote; ``--limit`` and ``--only`` make it quick while they are written."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import PLACE, Outcome, Watch, log_option, user_code, verb
from dugong.cli.project import DEFAULT, read_project
from dugong.cli.steps import (
    ApplyOptions,
    apply_options,
    open_engine,
    project_material,
    throughput,
    time_table,
)
from dugong.paths import Place, locked
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.sources import ApplyReport
    from dugong.votes import Summary


@verb(
    "apply",
    "dugong apply --limit 20 --only steps_heard",
    "dugong apply walking/project.toml --jobs 2 --on-fault abstain",
)
@click.argument("project", type=click.Path(path_type=Path), default=DEFAULT)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many sequences.")
@click.option("--only", metavar="NAME", multiple=True, help="Only this source; may be given several times.")
@click.option(
    "--output", "-o", type=PLACE, help="Where to write the votes: a path, or a URL such as s3://bucket/votes."
)
@apply_options
@log_option
def command(
    *,
    project: Path,
    limit: int | None,
    only: tuple[str, ...],
    output: Place | None,
    log_json: bool,
    **given: Any,
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
        "problems": [{"kind": one.kind, "source": one.source, "text": one.text} for one in summary.problems],
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
        sources, material = project_material(project, options.jobs, options.on_fault)
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

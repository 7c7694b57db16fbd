"""`dugong apply`: the sources vote; ``--limit`` and ``--only`` make it quick while they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.project import DEFAULT, read_project

if TYPE_CHECKING:
    from dugong.cli.project import Project


@click.command(
    "apply",
    epilog=example(
        "dugong apply --limit 20 --only steps_heard", "dugong apply walking/project.toml --jobs 2 --on-fault abstain"
    ),
)
@click.argument("project", type=click.Path(path_type=Path), default=DEFAULT)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many sequences.")
@click.option("--only", metavar="NAME", multiple=True, help="Only this source; may be given several times.")
@click.option("--jobs", type=int, help="Processes; -1 for one per core. Default: what the project says, else 1.")
@click.option(
    "--on-fault", type=click.Choice(["raise", "abstain"]), help="What to do when a source raises: stop, or abstain."
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the votes.")
@json_option
def command(
    *,
    project: Path,
    limit: int | None,
    only: tuple[str, ...],
    jobs: int | None,
    on_fault: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Let the sources of PROJECT (a project.toml, by default the one in this folder) vote on its sequences.

    Writes votes.parquet into the output folder of the project. With --limit or --only nothing is written unless
    --output says where: that is for trying sources while you write them. With gold labels in the project, the table
    shows how often each source is right.
    """
    from dugong.cli.steps import apply_project, sizes, time_table
    from dugong.votes import count_faults

    found = read_project(project)
    applied, _ = apply_project(found, limit=limit, only=only, jobs=jobs, on_fault=on_fault)
    votes = applied.votes
    target = output or (None if limit or only else found.output / "votes.parquet")
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        votes.write(target)
    summary = votes.summary(_gold(found, votes))
    written = f"Votes are in {target}." if target else "Nothing was written (--output says where to write)."
    text = "\n".join([sizes(votes), "", str(summary), "", time_table(applied.report), "", written])
    result = {
        "votes": target,
        "summary": summary.to_dict(),
        "problems": [{"kind": one.kind, "source": one.source, "text": one.text} for one in summary.problems],
        "report": applied.report.to_dict(),
        "faults": count_faults(votes.faults),
    }
    emit(result, text, as_json=as_json)


def _gold(project: Project, votes: object) -> object:
    """Known labels of the sequences that were voted on, if the project has any."""
    if project.gold is None:
        return None
    from dugong.cli.gold import read_gold

    return read_gold(project.gold, votes, missing_ok=True)  # type: ignore[arg-type]

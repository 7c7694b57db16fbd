"""The steps of a job over shards: votes and labels as folders, every step continues where it stopped.

In: a project, or a folder of votes. Out: folders of votes and labels, a model. Without ``--shard-size`` the votes of
a project end in one file; the shards beside it (``votes.parts``) are what a later run continues from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.cli.loading import load_function, load_sequences, load_sources
from dugong.cli.output import count, user_code

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.cli.watching import Watch
    from dugong.engines import Engine
    from dugong.shards import AppliedShards, VoteShards
    from dugong.sources import Source

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_ENGINE_HELP = (
    "Where it runs: local processes (the default), dask, ray or spark; an address may follow, as in "
    "dask:tcp://head:8786."
)


def engine_option(function: FunctionT) -> FunctionT:
    """Add ``--engine`` to a verb."""
    return click.option("--engine", metavar="NAME", default="local", help=_ENGINE_HELP)(function)


def shard_options(function: FunctionT) -> FunctionT:
    """Add ``--shard-size``, ``--restart`` and ``--engine`` to a verb that applies sources."""
    size = click.option(
        "--shard-size",
        type=click.IntRange(min=1),
        help="Write votes as a folder of files with so many sequences each, for more than memory holds.",
    )
    restart = click.option("--restart", is_flag=True, help="Do everything anew, also what is done already.")
    return size(restart(engine_option(function)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """What the command line says about applying sources; None where it says nothing."""

    shard_size: int | None = None
    restart: bool = False
    engine: str = "local"
    jobs: int | None = None
    on_fault: str | None = None
    limit: int | None = None
    only: tuple[str, ...] = ()


def apply_in_shards(
    project: Project, folder: Path, options: ApplyOptions, watch: Watch
) -> tuple[AppliedShards, tuple[Source, ...]]:
    """Let the sources of a project vote, shard by shard; returns what was done and all sources of the project."""
    from dugong.shards import apply_shards
    from dugong.shards.applying import SHARD_SIZE

    n_jobs = project.jobs if options.jobs is None else options.jobs
    with user_code():
        sources = load_sources(project.sources, project.folder)
        spans = {name: load_function(function, project.folder) for name, function in project.spans.items()}
        applied = apply_shards(
            sources,
            load_sequences(project.data, project.folder),
            folder,
            shard_size=options.shard_size or SHARD_SIZE,
            n_jobs=n_jobs,
            progress=watch.progress,
            on_fault=project.on_fault if options.on_fault is None else options.on_fault,  # type: ignore[arg-type]
            classes=project.classes,
            background=project.background,
            spans=spans or None,
            limit=options.limit,
            only=options.only or None,
            engine=open_engine(options.engine, n_jobs),
            restart=options.restart,
        )
    _say_what_was_kept(applied, watch)
    return applied, sources


def open_engine(name: str, n_jobs: int = 1) -> Engine | None:
    """The engine of that name; None for processes on this machine."""
    from dugong.engines import named_engine

    return None if name == "local" else named_engine(name, n_jobs=n_jobs)


def _say_what_was_kept(applied: AppliedShards, watch: Watch) -> None:
    if applied.n_kept or any(ran < applied.shards.n_sequences for ran in applied.ran.values()):
        names = ", ".join(name for name, ran in applied.ran.items() if ran) or "no source"
        watch.remark(
            f"continued: {count(applied.n_kept, 'shard')} of {len(applied.shards):,} were done already; {names} ran now"
        )


def shard_sizes(shards: VoteShards) -> str:
    """How much there is."""
    return (
        f"{count(len(shards), 'shard')}, {count(shards.n_sequences, 'sequence')}, {count(shards.n_elements, 'element')}"
    )

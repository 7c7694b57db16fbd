"""The steps of a job over shards: votes and labels as folders, every step continues where it stopped.

In: a project, or a folder of votes. Out: folders of votes and labels, a model. Without ``--shard-size`` the votes of
a project end in one file; the shards beside it (``votes.parts``) are what a later run continues from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.cli.output import user_code
from dugong.cli.steps import project_material
from dugong.paths import Place
from dugong.texts import counted, read_size

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
_MEMORY_HELP = (
    "At most about so much on this machine, such as 2GB: fewer processes at a time and a smaller sample to learn on if "
    "need be; an error if one shard needs more. Default: no limit; a shard takes 0.3 GB and some 250 bytes per element."
)
_ONE_FILE = "works on a folder of votes, and VOTES is one file; `dugong apply --shard-size` writes a folder."


def engine_option(function: FunctionT) -> FunctionT:
    """Add ``--engine`` to a verb."""
    return click.option("--engine", metavar="NAME", default="local", help=_ENGINE_HELP)(function)


def memory_option(function: FunctionT) -> FunctionT:
    """Add ``--memory`` to a verb."""
    return click.option("--memory", metavar="SIZE", help=_MEMORY_HELP)(function)


def folder_options(function: FunctionT) -> FunctionT:
    """Add ``--jobs``, ``--engine`` and ``--memory`` to a verb that reads votes."""
    jobs = click.option("--jobs", type=int, help="Processes for a folder of votes; -1 for one per core. Default: 1.")
    return jobs(engine_option(memory_option(function)))


def refuse_folder_options(given: Mapping[str, object]) -> None:
    """Stop if an option was given that one file of votes cannot use."""
    for name, value in given.items():
        if value not in (None, False, "local"):
            raise click.UsageError(f"--{name} {_ONE_FILE}")


def apply_options(function: FunctionT) -> FunctionT:
    """Add what a verb that applies sources says about it: fields of `ApplyOptions`."""
    jobs = click.option(
        "--jobs", type=int, help="Processes; -1 for one per core. Default: what the project says, else 1."
    )
    fault = click.option(
        "--on-fault", type=click.Choice(["raise", "abstain"]), help="What to do when a source raises: stop, or abstain."
    )
    size = click.option(
        "--shard-size",
        type=click.IntRange(min=1),
        help="Write votes as a folder of files with so many sequences each, for more than memory holds. A crash costs "
        "at most the files under way; take fewer where sources are slow, thousands where sequences are short. "
        "Default: one file, made from parts of 100.",
    )
    restart = click.option("--restart", is_flag=True, help="Do everything anew, also what is done already.")
    return jobs(fault(size(restart(engine_option(function)))))


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
    memory: str | None = None


def apply_in_shards(
    project: Project, folder: Place, options: ApplyOptions, watch: Watch
) -> tuple[AppliedShards, tuple[Source, ...]]:
    """Let the sources of a project vote, shard by shard; returns what was done and all sources of the project."""
    from dugong.shards import apply_shards
    from dugong.shards.applying import SHARD_SIZE

    with user_code():
        sources, material = project_material(project, options.jobs, options.on_fault)
        applied = apply_shards(
            sources,
            folder=folder,
            shard_size=options.shard_size or SHARD_SIZE,
            progress=watch.progress,
            limit=options.limit,
            only=options.only or None,
            engine=open_engine(options.engine, material["n_jobs"]),
            restart=options.restart,
            **material,
        )
    _say_what_was_kept(applied, watch)
    return applied, sources


def open_engine(name: str, n_jobs: int = 1) -> Engine | None:
    """The engine of that name; None for processes on this machine."""
    from dugong.engines import named_engine

    return None if name == "local" else named_engine(name, n_jobs=n_jobs)


def folder_engine(shards: VoteShards, *, engine: str, jobs: int | None, memory: str | None) -> Engine:
    """The engine for steps over a folder, with as many of its processes as have room."""
    from dugong.engines import named_engine, usable_cores
    from dugong.shards.sampling import jobs_within

    wanted = jobs or 1
    if memory is not None:
        wanted = jobs_within(shards, memory, usable_cores() if wanted == -1 else wanted)
    return named_engine(engine, n_jobs=wanted)


def check_room(shards: VoteShards, memory: str | None) -> None:
    """Stop if all votes together need more memory than is allowed."""
    from dugong.shards.sampling import need, words

    wanted = need(shards.n_elements, shards)
    if memory is not None and wanted > read_size(memory):
        raise click.UsageError(
            f"all votes at once ({counted(shards.n_elements, 'element')}) need about {words(wanted)}, and --memory is "
            f"{memory}; with --shard-size, one file of votes is held at a time."
        )


def _say_what_was_kept(applied: AppliedShards, watch: Watch) -> None:
    if applied.n_kept or any(ran < applied.shards.n_sequences for ran in applied.ran.values()):
        names = ", ".join(name for name, ran in applied.ran.items() if ran) or "no source"
        done, n_shards = applied.n_kept, len(applied.shards)
        some = f" ({done:,} of {counted(n_shards, 'shard')} were done already)" if 0 < done < n_shards else ""
        watch.remark(f"votes of an earlier run are kept{some}; {names} ran now")


def shard_sizes(shards: VoteShards) -> str:
    """How much there is."""
    sizes = {"shard": len(shards), "sequence": shards.n_sequences, "element": shards.n_elements}
    return ", ".join(counted(number, noun) for noun, number in sizes.items())

"""Sources of a project vote: what they get, how they are run, and what is said about it.

In: a project and what the command line says. Out: shards of votes. This file loads little, so that sources can be tried
while they are written; what needs a model is in `job`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import SOME, say, seconds, together, user_code
from dugong.cli.project import load_function, load_sequences, load_sources, sequences_and_origin
from dugong.paths import Place
from dugong.texts import counted, text_table

if TYPE_CHECKING:
    from dugong.cli.output import Watch
    from dugong.cli.project import Project
    from dugong.engines import Engine
    from dugong.shards import AppliedShards
    from dugong.sources import ApplyReport, Source
    from dugong.votes import Votes


# --- apply ---------------------------------------------------------------------------------------------------------
def project_material(
    project: Project, jobs: int | None, on_fault: str | None
) -> tuple[tuple[Source, ...], dict[str, Any], list[Any]]:
    """The sources of a project, all else that applying them takes, and what made the sequences; loads user code."""
    sources = load_sources(project.sources, project.folder)
    _say_who_sees_one_row(project, sources)
    spans = {name: load_function(function, project.folder) for name, function in project.spans.items()}
    sequences, origin = sequences_and_origin(project.data, project.folder, **project.timing)
    material = {
        "sequences": sequences,
        "rate": None if "rate" in project.timing else project.rate,
        "timeout": project.timeout,
        "n_jobs": project.jobs if jobs is None else jobs,
        "on_fault": project.on_fault if on_fault is None else on_fault,
        "classes": project.classes,
        "background": project.background,
        "spans": spans or None,
    }
    return sources, material, origin


def _say_who_sees_one_row(project: Project, sources: Iterable[Source]) -> None:
    """A rule about a window that is no longer than an element: of a summary of its rows it sees one."""
    from dugong.sources.loaders.blocks import read_duration
    from dugong.tasks import Window

    if project.every is None or project.reduce == "none":
        return
    windows = {one.name: one.resolution for one in sources if isinstance(one.resolution, Window)}
    every, kind = read_duration(project.every), project.reduce or "mean"
    names = [name for name, window in windows.items() if window.seconds is not None and window.seconds <= every]
    if names:
        say(
            f"{', '.join(names)}: the window is one element, of which only the {kind} is left. "
            'With reduce = "none" in project.toml a rule sees all rows.'
        )


def shown_media(project: Project) -> dict[str, Any]:
    """What a report takes to draw the data beside the labels, if the project wants them there."""
    if not project.show:
        return {}
    with user_code():
        sequences = load_sequences(project.data, project.folder, **project.timing)
    return {"media": sequences, "media_bytes": project.show}


def time_table(report: ApplyReport) -> str:
    """Time and faults of every source, and of the preprocessing that they share."""
    rows: list[tuple[str, ...]] = []
    for one in report.sources:
        counts = (f"{number:,}" for number in (one.tasks, one.votes, one.faults))
        rows.append((one.name, one.resolution.partition(" (")[0], *counts, seconds(one.seconds)))
    rows += [(f"({name})", "preprocessing", "", "", "", seconds(spent)) for name, spent in report.pre_seconds.items()]
    text = text_table(("source", "resolution", "tasks", "votes", "faults", "time"), rows, left=(0, 1), rule=True)
    asked = [_asked(one.name, one.usage) for one in report.sources if one.usage]
    return "\n".join([text, *asked])


def _asked(name: str, usage: Mapping[str, float]) -> str:
    """What a judge used, in a sentence."""
    text = (
        f"{name} asked {counted(int(usage.get('calls', 0)), 'time')}, knew {usage.get('cached', 0):,} answers "
        f"already, and used {usage.get('tokens', 0):,} tokens"
    )
    if "cost" in usage:
        text += f", {usage['cost']:,.4g} by the prices given"
    plain = int(usage.get("plain", 0))
    return f"{text}." + (f" {counted(plain, 'answer')} came without logprobs: plain votes." if plain else "")


def throughput(report: ApplyReport, n_elements: int | None = None) -> str:
    """How quick a run was, and how many faults it had; `n_elements` are those that were voted on now."""
    ran = report.n_elements if n_elements is None else n_elements
    pace = f", {ran / max(report.seconds, 1e-9):,.0f} elements/s" if ran else ""
    return f"{seconds(report.seconds)} in all{pace}, {counted(report.n_faults, 'fault')}."


# --- files ---------------------------------------------------------------------------------------------------------
def file_lines(files: Mapping[str, Place]) -> str:
    """Files and what they are, one per line."""
    width = max(len(str(path)) for path in files.values())
    return "\n".join(f"  {path!s:<{width}}  {what}" for what, path in files.items())


def sizes(votes: Votes) -> str:
    """How much there is: sources, sequences, elements."""
    return (
        f"{counted(votes.n_sources, 'source')}, {counted(votes.n_sequences, 'sequence')}, "
        f"{counted(votes.n_elements, 'element')}"
    )


# --- the steps of a job over shards: votes and labels as folders, every step continues where it stopped ---------------
# In: a project, or a folder of votes. Out: folders of votes and labels, a model. Without ``--shard-size`` the votes of
# a project end in one file; the shards beside it (``votes.parts``) are what a later run continues from.
_ENGINE_HELP = (
    "Where it runs: local processes (the default), dask, ray or spark; an address may follow, as in "
    "dask:tcp://head:8786."
)
_MEMORY_HELP = (
    "At most about so much on this machine, such as 2GB: fewer processes at a time and a smaller sample to learn on if "
    "need be; an error if one shard needs more. Default: no limit; a shard takes 0.3 GB and some 250 bytes per element."
)


engine_option = click.option("--engine", metavar="NAME", default="local", help=_ENGINE_HELP)
memory_option = click.option("--memory", metavar="SIZE", help=_MEMORY_HELP)


# Of a verb that reads votes.
folder_options = together(
    click.option("--jobs", type=int, help="Processes for a folder of votes; -1 for one per core. Default: 1."),
    engine_option,
    memory_option,
)
# What a verb that applies sources says about it: fields of `ApplyOptions`.
apply_options = together(
    click.option("--jobs", type=int, help="Processes; -1 for one per core. Default: what the project says, else 1."),
    click.option(
        "--on-fault", type=click.Choice(["raise", "abstain"]), help="What to do when a source raises: stop, or abstain."
    ),
    click.option(
        "--shard-size",
        type=SOME,
        help="Write votes as a folder of files with so many sequences each, for more than memory holds. A crash costs "
        "at most the files under way; take fewer where sources are slow, thousands where sequences are short. "
        "Default: one file, made from parts of 100.",
    ),
    click.option("--restart", is_flag=True, help="Do everything anew, also what is done already."),
    engine_option,
)


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

    @property
    def ending(self) -> str:
        """Of the names of votes and labels: in one file, or in a folder."""
        return ".parquet" if self.shard_size is None else ""


def apply_in_shards(
    project: Project, folder: Place, options: ApplyOptions, watch: Watch
) -> tuple[AppliedShards, tuple[Source, ...]]:
    """Let the sources of a project vote, shard by shard; returns what was done and all sources of the project."""
    from dugong.shards import apply_shards
    from dugong.shards.applying import SHARD_SIZE

    with user_code():
        sources, material, origin = project_material(project, options.jobs, options.on_fault)
        applied = apply_shards(
            sources,
            folder=folder,
            shard_size=options.shard_size or SHARD_SIZE,
            progress=watch.progress,
            limit=options.limit,
            only=options.only or None,
            engine=open_engine(options.engine, material["n_jobs"]),
            restart=options.restart,
            made_by=origin,
            **material,
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
        done, n_shards = applied.n_kept, len(applied.shards)
        some = f" ({done:,} of {counted(n_shards, 'shard')} were done already)" if 0 < done < n_shards else ""
        watch.remark(f"votes of an earlier run are kept{some}; {names} ran now")

"""The steps of a job, as `run`, the single verbs and the demo take them: apply, fit, label, compare.

Each takes plain values and returns plain values; what is said on the way goes to the standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dugong.cli.loading import load_function, load_sequences, load_sources
from dugong.cli.output import say, seconds, user_code
from dugong.exceptions import DugongError, VoteError
from dugong.paths import Place
from dugong.texts import counted, text_table

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.graph import Dependency
    from dugong.labels import Labels
    from dugong.metrics import Comparison
    from dugong.model import LabelModel
    from dugong.priors import Prior
    from dugong.sources import ApplyReport, Source
    from dugong.types import Int8Array
    from dugong.votes import Votes


# --- apply ---------------------------------------------------------------------------------------------------------
def project_material(
    project: Project, jobs: int | None, on_fault: str | None
) -> tuple[tuple[Source, ...], dict[str, Any]]:
    """The sources of a project, and all else that applying them takes; loads the user's code."""
    sources = load_sources(project.sources, project.folder)
    _say_who_sees_one_row(project, sources)
    spans = {name: load_function(function, project.folder) for name, function in project.spans.items()}
    return sources, {
        "sequences": load_sequences(project.data, project.folder, **project.timing),
        "rate": None if "rate" in project.timing else project.rate,
        "timeout": project.timeout,
        "n_jobs": project.jobs if jobs is None else jobs,
        "on_fault": project.on_fault if on_fault is None else on_fault,
        "classes": project.classes,
        "background": project.background,
        "spans": spans or None,
    }


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
    rows = [
        (
            one.name,
            one.resolution.partition(" (")[0],
            f"{one.tasks:,}",
            f"{one.votes:,}",
            f"{one.faults:,}",
            seconds(one.seconds),
        )
        for one in report.sources
    ]
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


# --- fit -----------------------------------------------------------------------------------------------------------
def declared(sources: Iterable[Source]) -> list[Dependency]:
    """What the sources themselves say about what they depend on."""
    from dugong.graph import temporal
    from dugong.sources import declared_dependencies

    return [temporal(name, lag=lag) if lag else (name, other) for name, other, lag in declared_dependencies(sources)]


def project_model(project: Project, prior: Prior | str, sources: Iterable[Source]) -> LabelModel:
    """The label model of a project, not fitted yet; with the dependencies that it or its sources name, else learned."""
    from dugong.cli.project import DEFAULT
    from dugong.cli.settings import LEARN, beliefs_of
    from dugong.model import LabelModel

    dependencies: Any = project.dependencies
    if dependencies is None:
        dependencies = declared(sources) or LEARN
        if dependencies != LEARN:
            say(f"dependencies: the {len(dependencies)} that the sources declare")
    return LabelModel(
        prior=prior,
        dependencies=dependencies,
        sharing=project.sharing,  # type: ignore[arg-type]
        estimator=project.estimator,
        signs=project.signs,
        beliefs=beliefs_of(project.beliefs, f"beliefs in {project.folder / DEFAULT}"),
    )


# --- compare -------------------------------------------------------------------------------------------------------
def compare_with_majority(
    votes: Votes, gold: Int8Array, model: LabelModel, groups: list[str] | None = None
) -> Comparison:
    """Majority vote and the model on the known labels, with intervals by sequence."""
    from dugong.baselines import MajorityVote
    from dugong.metrics import compare

    methods = {
        "majority vote": MajorityVote().fit(votes).predict_proba(votes),
        "label model": model.predict_proba(votes),
    }
    return compare(methods, gold, lengths=votes.lengths, groups=groups, **class_options(votes))


def class_options(votes: Votes) -> dict[str, Any]:
    """What the metrics must know about the classes."""
    from dugong.cli.corrections import class_codes
    from dugong.votes import implied_background

    background = implied_background(votes) if votes.n_classes > 2 else None
    return {"classes": {value: name for name, value in class_codes(votes).items()}, "background": background}


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


# --- what people marked -----------------------------------------------------------------------------------------------
def add_annotations(project: Project, votes: Votes) -> Votes:
    """The votes, and what the files of annotations say, as further sources.

    Where an annotator looked and marked nothing, the vote is the background; with two classes, the negative one.
    """
    from dugong import formats

    for place in project.annotations:
        marked = formats.read(place)
        marked = replace(marked, source=tuple(one or place.stem for one in marked.source) or (place.stem,))
        names = votes.class_names or tuple(map(str, votes.classes))
        silence = project.background or (names[0] if votes.n_classes == 2 else None)
        try:
            votes = votes.with_segments(marked, background=silence, missing_ok=True)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return _add_tables(project, votes)


def _add_tables(project: Project, votes: Votes) -> Votes:
    """The votes, and the columns of tables that the project names, as further sources."""
    from dugong.cli.gold import known_table
    from dugong.cli.project import inside
    from dugong.tasks import Sequence

    for name, about in project.tables.items():
        place, options = inside(project.folder, about["file"]), {key: about[key] for key in about if key != "file"}
        options["resolution"] = Sequence() if options.get("resolution") == "sequence" else None
        try:
            votes = votes.with_table(known_table(place), name, **options)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return votes


def train_labels(project: Project, votes: Votes) -> Int8Array | None:
    """Known labels that the model is fitted with, if the project has any: its file, and corrections of its studio."""
    from dugong.cli.corrections import corrected
    from dugong.cli.gold import read_gold

    known = None if project.train_gold is None else read_gold(project.train_gold, votes, missing_ok=True)
    return corrected(project.folder, votes, known)


def held_out(gold: Int8Array, train: Int8Array | None, votes: Votes) -> Int8Array:
    """Known labels of sequences that the model was not fitted with; 0 elsewhere."""
    if train is None:
        return gold
    import numpy as np

    from dugong.cli.gold import labelled

    return np.where(np.repeat(labelled(train, votes), votes.lengths), np.int8(0), gold)


def export_labels(project: Project, parts: Iterable[Labels]) -> dict[str, Place]:
    """Write labels, of one file or shard by shard, in all formats that the project names, each into its own folder."""
    from dugong import formats
    from dugong.cli.exchange import with_media

    found = [one.segments("element" if "element" in one.resolutions else one.resolutions[0]) for one in parts]
    segments = with_media(formats.joined(project.output, found), project.media)
    files: dict[str, Place] = {}
    for name in project.export:
        folder = project.output / "export" / formats.of_name(name).name
        formats.write(segments, folder, name)
        files[f"labels for {formats.of_name(name).title}"] = folder
    return files

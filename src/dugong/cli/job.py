"""The steps of a job over votes wherever they are: in one file, all in memory, or in a folder, one shard at a time.

In: a path and what the command line says about it, or a project whose sources vote now. Out: one value that fits,
labels, counts and compares, and the whole job of `dugong run`. `open_votes` and `vote` look which of the two it is; no
verb asks again. What truly differs stands here side by side: in memory there can be labels to fit with, and labels of
the last run to compare with; a folder has processes, a limit of memory, and steps that continue where they stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, ClassVar

import click

from dugong.cli.exchange import export_labels
from dugong.cli.findings import LastRun, News, compare_with_majority, drift_lines, findings, nothing_new
from dugong.cli.gold import Known, add_annotations, left_to_compare, read_gold, read_known, train_labels, with_others
from dugong.cli.output import Watch, listing, say
from dugong.cli.project import DEFAULT, Project
from dugong.cli.settings import LEARN, beliefs_of, groups_by_id, groups_of, in_groups
from dugong.cli.steps import ApplyOptions, apply_in_shards, shown_media, sizes
from dugong.drift import REFERENCE
from dugong.engines import named_engine, usable_cores
from dugong.graph import Dependency, temporal
from dugong.labels import Labels
from dugong.model import LabelModel
from dugong.paths import Place, parts_of
from dugong.priors import Prior
from dugong.progress import FitProgress
from dugong.shards import AppliedShards, VoteShards, fit_shards, label_shards, read_sample, summarize_shards
from dugong.shards.folder import COMPARED, jobs_within, need, words
from dugong.sources import Source, declared_dependencies
from dugong.texts import counted, read_size
from dugong.types import Int8Array
from dugong.votes import Summary, Votes
from dugong.votes.concat import concat

LabelProgress = Callable[[int, int], None]
Judged = tuple[Votes | None, Int8Array | None]
"""Votes that the last words of a run are about, and their known labels, as far as there are any."""
_ONE_FILE = "works on a folder of votes, and VOTES is one file; `dugong apply --shard-size` writes a folder."


@dataclass(frozen=True, kw_only=True, eq=False)
class InOneFile:
    """All votes, in their groups if there are any, and labels to fit with, which are certain."""

    whole: Votes
    train: Int8Array | None = None
    labels_name: ClassVar[str] = "labels.parquet"

    def __iter__(self) -> Iterator[Votes]:
        yield self.whole

    def of_project(self, project: Project) -> InOneFile:
        """The same in the groups of a project, with its labels to fit with."""
        train = train_labels(project, self.whole)
        return InOneFile(whole=in_groups(self.whole, project.groups, project.folder), train=train)

    def sizes(self) -> str:
        """How much there is."""
        return sizes(self.whole)

    def sample(self, n_elements: int) -> Votes:  # noqa: ARG002  (all are in memory)
        """Votes in memory: all of them."""
        return self.whole

    def known(self, gold: Place, *, missing_ok: bool = False) -> Known:
        """All votes, and what labels are known."""
        return Known(votes=self.whole, gold=read_gold(gold, self.whole, missing_ok=missing_ok))

    def summary(self, known: Known | None) -> Summary:
        """What all votes are like, and how many are right where labels are known."""
        return self.whole.summary(None if known is None else known.gold)

    def fit(
        self,
        model: LabelModel,
        file: Place | None = None,  # noqa: ARG002  (there are no sums to keep beside it)
        progress: FitProgress | None = None,
    ) -> LabelModel:
        """Fit a model to all votes."""
        return model.fit(self.whole, self.train, groups_of(self.whole), progress=progress)

    def label(
        self,
        model: LabelModel,
        place: Place,
        names: Iterable[str] | None,
        progress: LabelProgress,  # noqa: ARG002  (which counts shards)
    ) -> tuple[int, Iterable[Labels]]:
        """Write the labels of all votes; returns how many there are, and the labels themselves."""
        found = model.labels(self.whole, names, known=self.train)
        found.write(place)
        return len(found), [found]

    def since(self, files: dict[str, Place]) -> News:
        """What a run can say about the last one, whose files it replaces."""
        last = LastRun.read(files["model"], files["labels"])
        return nothing_new if last is None else partial(last.news, self.whole)

    def report(self, model: LabelModel, project: Project, file: Place, watch: Watch) -> Judged:
        """Report on all votes, beside known labels that were not fitted with; a run ends with the same."""
        gold = None
        if project.gold is not None:
            gold = left_to_compare(self.known(project.gold).gold, self.train, self.whole, watch.remark)
        model.report(self.whole, file, gold, **shown_media(project))
        watch.done("report", "to be opened in a browser")
        return self.whole, gold


@dataclass(frozen=True, kw_only=True, eq=False)
class InFolder:
    """Shards of votes, the group of every sequence by its id if there are groups, and how steps over them run."""

    whole: VoteShards
    groups: dict[str, str] = field(default_factory=dict)
    engine: str = "local"
    jobs: int | None = None
    memory: str | None = None
    restart: bool = False
    labels_name: ClassVar[str] = "labels"

    def __iter__(self) -> Iterator[Votes]:
        for votes in self.whole:
            names = [self.groups[str(one)] for one in votes.sequence_ids.tolist()] if self.groups else None
            yield votes.in_groups(names)

    def of_project(self, project: Project) -> InFolder:
        """The same in the groups of a project, where groups have tables; other groups are those of a sample."""
        text = project.groups if project.sharing == "group" else None
        return replace(self, groups=groups_by_id(self.whole, text, project.folder))

    def sizes(self) -> str:
        """How much there is."""
        found = {"shard": len(self.whole), "sequence": self.whole.n_sequences, "element": self.whole.n_elements}
        return ", ".join(counted(number, noun) for noun, number in found.items())

    def sample(self, n_elements: int) -> Votes:
        """Votes in memory: about so many elements."""
        return read_sample(self.whole, n_elements)

    def known(self, gold: Place, *, missing_ok: bool = False) -> Known:
        """Votes in memory that have known labels, and these."""
        return read_known(gold, self.whole, missing_ok=missing_ok)

    def summary(self, known: Known | None) -> Summary:
        """What all votes are like, and how many are right where labels are known."""
        found = summarize_shards(self.whole)
        return found if known is None else known.graded(found)

    def fit(self, model: LabelModel, file: Place | None = None, progress: FitProgress | None = None) -> LabelModel:
        """Fit a model to all votes; sums of shards stay beside its file, and are not counted again."""
        keep = None if file is None or self.restart else parts_of(file)
        return fit_shards(model, self.whole, keep=keep, progress=progress, **self._steps)

    def label(
        self, model: LabelModel, place: Place, names: Iterable[str] | None, progress: LabelProgress
    ) -> tuple[int, Iterable[Labels]]:
        """Write the labels of all shards that have none yet; returns how many there are, and the labels themselves."""
        options = {"resolutions": names, "restart": self.restart, "progress": progress, **self._steps}
        done = label_shards(model, self.whole, place, **options)
        return done.n_rows, done

    @cached_property
    def _steps(self) -> dict[str, Any]:
        """What the steps over shards take: as many processes as have room."""
        wanted = self.jobs or 1
        if self.memory is not None:
            wanted = jobs_within(self.whole, self.memory, usable_cores() if wanted == -1 else wanted)
        return {"engine": named_engine(self.engine, n_jobs=wanted), "memory": self.memory, "groups": self.groups}

    def since(self, files: dict[str, Place]) -> News:
        """What a run can say about the last one, whose files it replaces: how shards without labels fit its model."""
        fresh = [one for one in self.whole.shards if not (files["labels"] / one.path.name).is_file()]
        if not files["model"].is_file() or not files["labels"].is_dir() or not fresh:
            return nothing_new
        sizes = accumulate((one.n_elements for one in fresh), initial=0)
        parts = [one.read() for one, before in zip(fresh, sizes, strict=False) if before < REFERENCE]
        said = drift_lines(LabelModel.load(files["model"]), concat(parts))
        return lambda *_: said

    def report(self, model: LabelModel, project: Project, file: Place, watch: Watch) -> Judged:
        """Report on the sequences with known labels, which a run ends with, and on a sample of the others."""
        votes, gold = in_groups(self.sample(COMPARED), project.groups, project.folder), None
        judged: Judged = (None, None)
        if project.gold is not None:
            known = self.known(project.gold)
            known = replace(known, votes=in_groups(known.votes, project.groups, project.folder))
            watch.remark(known.remark)
            votes, gold = with_others(known, votes)
            judged = known.votes, known.gold
        every = self.whole.n_sequences
        part = "" if votes.n_sequences == every else f" on {votes.n_sequences:,} of {every:,} sequences"
        model.report(votes, file, gold, title=f"Label report{part}", **shown_media(project))
        watch.done("report", f"to be opened in a browser{part and ';'}{part}")
        return judged


# --- which of the two it is -----------------------------------------------------------------------------------------
OpenedVotes = InOneFile | InFolder


def open_votes(
    place: Place,
    groups: str | None = None,
    train: Place | None = None,
    *,
    needs_all: str | None = None,
    tell: Callable[[str, str], None] = lambda *_: None,
    **folder: Any,
) -> OpenedVotes:
    """Open a file or folder.

    Parameters
    ----------
    groups : a table or pattern that says which sequences belong together
    train : a file of labels to fit with, or that are certain
    needs_all : why a folder cannot be used, if so
    tell : is told what was read
    **folder : engine, jobs, memory, restart
        What one file cannot use.
    """
    if place.is_dir():
        if needs_all is not None:
            raise click.UsageError(needs_all)
        shards = InFolder(whole=VoteShards.open(place), **folder)
        tell("read", shards.sizes())
        return replace(shards, groups=groups_by_id(shards.whole, groups))
    refuse_folder_options(folder)
    votes = Votes.read(place)
    tell("read", sizes(votes))
    known = None if train is None else read_gold(train, votes, missing_ok=True)
    return InOneFile(whole=in_groups(votes, groups), train=known)


def refuse_folder_options(given: Mapping[str, object], why: str = _ONE_FILE) -> None:
    """Stop if an option was given that one file of votes cannot use."""
    for name, value in given.items():
        if value not in (None, False, "local"):
            raise click.UsageError(f"--{name} {why}")


def vote(
    project: Project, target: Place, options: ApplyOptions, watch: Watch
) -> tuple[OpenedVotes, AppliedShards, tuple[Source, ...]]:
    """Let the sources of a project vote, into a folder or a file; also returns what was done, and all sources.

    The shards beside the file are what a later run continues from.
    """
    if options.shard_size is not None:
        applied, sources = apply_in_shards(project, target, options, watch)
        votes = InFolder(
            whole=applied.shards,
            engine=options.engine,
            jobs=project.jobs if options.jobs is None else options.jobs,
            memory=options.memory,
            restart=options.restart,
        )
        return votes, applied, sources
    applied, sources = apply_in_shards(project, parts_of(target), options, watch)
    _check_room(applied.shards, options.memory)
    every = add_annotations(project, Votes.concat(applied.shards))
    target.parent.mkdir(parents=True, exist_ok=True)
    every.write(target)
    return InOneFile(whole=every), applied, sources


def _check_room(shards: VoteShards, memory: str | None) -> None:
    """Stop if all votes together need more memory than is allowed."""
    wanted = need(shards.n_elements, shards)
    if memory is not None and wanted > read_size(memory):
        raise click.UsageError(
            f"all votes at once ({counted(shards.n_elements, 'element')}) need about {words(wanted)}, and --memory is "
            f"{memory}; with --shard-size, one file of votes is held at a time."
        )


# --- the whole job --------------------------------------------------------------------------------------------------
def run_job(
    project: Project, prior: Any, options: ApplyOptions, watch: Watch
) -> tuple[dict[str, Place], AppliedShards, tuple[dict[str, Any], str]]:
    """Apply, fit, label and report; returns the files, what was applied, and the outcome as a value and in words."""
    names = (f"votes{options.ending}", "model.json", f"labels{options.ending}", "report.html")
    files = {name.partition(".")[0]: project.output / name for name in names}
    votes, applied, sources = vote(project, files["votes"], options, watch)
    watch.done("apply", votes.sizes())
    votes = votes.of_project(project)
    since = votes.since(files)
    model = votes.fit(_model_of(project, prior, sources), files["model"], watch.fitting)
    model.save(files["model"])
    watch.done("fit", "how far each source can be trusted")
    asked = project.resolutions or None
    n_rows, labels = votes.label(model, files["labels"], asked, partial(watch.steps_done, "label"))
    watch.done("label", f"{n_rows:,} tasks")
    if project.export:
        files |= export_labels(project, labels)
        watch.done("export", ", ".join(project.export))
    judged = votes.report(model, project, files["report"], watch)
    return files, applied, _outcome(judged, model, since(model, labels, judged[1]))


def _outcome(judged: Judged, model: LabelModel, news: list[str]) -> tuple[dict[str, Any], str]:
    """What is worth a look, the model at a glance, the comparison with majority vote, and what changed."""
    votes, gold = judged
    comparison = None if votes is None or gold is None else compare_with_majority(votes, gold, model, groups_of(votes))
    summary = model.summary(votes, gold)
    said = [] if votes is None else findings(model, votes, comparison)
    result: dict[str, Any] = {"model": summary.to_dict(), "findings": said, "changes": news}
    parts = [listing("Worth a look:", said), str(summary)]
    if comparison is not None:
        result["comparison"] = comparison.to_dict()
        parts.append(str(comparison))
    parts.append(listing("Since the last run:", news))
    return result, "\n\n".join(filter(None, parts))


def declared(sources: Iterable[Source]) -> list[Dependency]:
    """What the sources themselves say about what they depend on."""
    return [temporal(name, lag=lag) if lag else (name, other) for name, other, lag in declared_dependencies(sources)]


def _model_of(project: Project, prior: Prior | str, sources: Iterable[Source]) -> LabelModel:
    """The label model of a project, not fitted yet; with the dependencies that it or its sources name, else learned."""
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

"""What `dugong run` does: all votes in memory and in one file, or one shard at a time.

In: a project, its prior, and options. Out: the files that were written, what was applied, and the outcome in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from dugong.cli.gold import read_gold, read_known, with_others
from dugong.cli.output import Watch, listing
from dugong.cli.project import Project
from dugong.cli.settings import groups_by_id, in_groups, read_groups
from dugong.cli.steps import (
    ApplyOptions,
    add_annotations,
    apply_in_shards,
    check_room,
    compare_with_majority,
    export_labels,
    folder_engine,
    held_out,
    project_model,
    shard_sizes,
    shown_media,
    sizes,
    train_labels,
)
from dugong.drift import FEW_UNITS, REFERENCE
from dugong.exceptions import DugongError
from dugong.fit.result import FAR
from dugong.labels import Labels
from dugong.metrics import Comparison, evaluate
from dugong.model import LabelModel
from dugong.paths import Place, parts_of
from dugong.shards import AppliedShards, VoteShards, fit_shards, label_shards, read_sample
from dugong.shards.folder import COMPARED
from dugong.tasks import Element, Window
from dugong.texts import counted
from dugong.types import ABSTAIN, MISSING, Int8Array
from dugong.votes import Problem, Votes, allowed_classes, code_name, count_codes, implied_background
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


# --- what is worth knowing about votes and labels: how `dugong run` ends, and what `dugong check` finds ---------------
# In: a fitted model, its votes and, if there are any, known labels; the files that the last run left. Out: sentences.
NEAR_COPY = 0.98
# Accuracy by which a source must have changed to be mentioned.
_MENTIONED = 0.005
# By how much plain voting may be better on known labels before that is the first thing that a run says.
_TRIFLE = 0.003
_AHEAD = {"accuracy": "accuracy", "f1": "F1"}
# What `dugong check` remarks and many good rules do: to vote for one class or abstain.
_NORMAL = ("unipolar", "background")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastRun:
    """What an earlier run left: its model, the accuracy of every source, and the labels of elements by sequence."""

    model: LabelModel
    accuracies: dict[str, float]
    labels: dict[str, list[str]]

    @classmethod
    def read(cls, model: Place, labels: Place) -> LastRun | None:
        """Read both files; None if there is no earlier run, or its files cannot be read any more."""
        if not (model.is_file() and labels.is_file()):
            return None
        try:
            fitted = LabelModel.load(model)
            known = fitted.summary()
            found = Labels.read(labels).at("element")
        except DugongError:
            return None
        accuracies = {one.name: one.accuracy for one in known.sources if one.accuracy is not None}
        return cls(model=fitted, accuracies=accuracies, labels=_by_sequence(found))

    def new(self, votes: Votes) -> Votes | None:
        """The sequences that this run has not seen; None if there are none."""
        fresh = [place for place, one in enumerate(votes.sequence_ids.tolist()) if str(one) not in self.labels]
        return votes[fresh] if fresh else None


def _by_sequence(labels: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, word in zip(labels.ids.astype(str).tolist(), labels.label.tolist(), strict=True):
        found.setdefault(name, []).append(word)
    return found


def changes(last: LastRun, model: LabelModel, labels: Any, votes: Votes, gold: Int8Array | None) -> list[str]:
    """What changed since the last run, in sentences."""
    now = {one.name: one.accuracy for one in model.summary().sources if one.accuracy is not None}
    said = [f"{name} is new." for name in now if name not in last.accuracies]
    said += [f"{name} is gone." for name in last.accuracies if name not in now]
    said += [
        f"{name}: accuracy {last.accuracies[name]:.3f} to {value:.3f}."
        for name, value in now.items()
        if name in last.accuracies and abs(value - last.accuracies[name]) > _MENTIONED
    ]
    before, after = last.labels, _by_sequence(labels.at("element"))
    same = [name for name in after if len(before.get(name, ())) == len(after[name])]
    flipped = sum(a != b for name in same for a, b in zip(before[name], after[name], strict=True))
    if flipped:
        said.append(f"{counted(flipped, 'label')} flipped{_worth(before, after, votes, gold)}.")
    return said


def _worth(before: dict[str, list[str]], after: dict[str, list[str]], votes: Votes, gold: Int8Array | None) -> str:
    """The difference in accuracy, and in F1 of two classes, on known labels."""
    if gold is None:
        return ""
    codes = dict(zip(votes.class_words, votes.classes, strict=True))
    known = np.split(gold, votes.layout("element").offsets[1:-1])
    pairs = zip(votes.sequence_ids.astype(str).tolist(), known, strict=True)
    kept = [(name, labels) for name, labels in pairs if len(before.get(name, ())) == len(labels) and labels.any()]
    if not kept:
        return ""
    truth = np.concatenate([labels for _, labels in kept])
    old, new = (
        evaluate([codes.get(word, 0) for name, _ in kept for word in some[name]], truth, classes=votes.classes)
        for some in (before, after)
    )
    gains = {
        word: np.nan_to_num(new.value(name) or 0) - np.nan_to_num(old.value(name) or 0)
        for name, word in _AHEAD.items()
        if name in new
    }
    return f"; {', '.join(f'{word} {gain:+.3f}' for word, gain in gains.items())} on known labels"


def findings(model: LabelModel, votes: Votes, comparison: Comparison | None) -> list[str]:
    """What is worth a look, the most important first: the vote ahead, then every source with something wrong."""
    said = []
    if comparison is not None and (ahead := _vote_is_ahead(comparison)):
        clear = any(one.name in _AHEAD and one.finding == "worse" for one in comparison.differences)
        doubt = "" if clear else ", which may be chance"
        said.append(
            f"On the known labels plain majority vote is better: {', '.join(ahead)}{doubt}. Look at the sources named "
            "below, or fit with known labels (train_gold)."
        )
    if votes.n_sequences == 1:
        said.append(
            "All data are one sequence, and only several show how far estimates vary: cut it into parts such as files, "
            'days or sentences (of CoNLL: dg.loaders.conll(path, by="sentence") in a loader).'
        )
    said += _too_fine(votes)
    found = [one for one in find_all(votes, votes.summary().problems) if one.kind not in _NORMAL]
    said += [one.text for one in found if one.kind != "faults"] + _faults(votes)
    same = {one.source for one in found if one.kind == "always-same"}
    chance = 0.45 if votes.n_classes == 2 else 0.9 / votes.n_classes
    said += [
        f"source {one.name!r} is worse than chance (accuracy {one.accuracy:.2f}): look whether it is turned around."
        for one in model.summary().sources
        if one.accuracy is not None and one.accuracy < chance and one.name not in same
    ]
    warned = [
        note
        for note in model.diagnostics_.notes
        if note.kind == "contradiction" or (note.kind == "projection" and note.size > FAR)
    ]
    return said + [note.text for note in warned]


def _faults(votes: Votes) -> list[str]:
    """How often every source raised, and the first of its errors."""
    faults: dict[str, list[Any]] = {}
    for fault in votes.faults:
        faults.setdefault(fault.source, []).append(fault)
    return [
        f"source {name!r} raised {counted(len(some), 'time')} and abstained there; first {some[0].error}, in sequence "
        f"{str(some[0].sequence)!r}."
        for name, some in faults.items()
    ]


def _too_fine(votes: Votes) -> list[str]:
    """Where nobody votes on elements: what the finest source looks at, and how to make elements of that size."""
    sizes = [one.resolution.size for one in votes.sources if isinstance(one.resolution, Window)]
    if not votes.sources or 1 in sizes or any(isinstance(one.resolution, Element) for one in votes.sources):
        return []
    if not sizes:
        return [
            "No source votes on less than a whole sequence, so labels of single elements only repeat that of theirs."
        ]
    rate = None if votes.time is None else votes.time.common_rate
    every = "..." if rate is None else f"{min(sizes) / rate:g}s"
    return [
        f"No source votes on single elements: the finest looks at {min(sizes):,} at once, so labels cannot be told "
        f'apart within these. Make them the elements: every = "{every}" and reduce = "none" in project.toml (the '
        "sources stay as they are), then dugong run --restart."
    ]


def _vote_is_ahead(comparison: Comparison) -> list[str]:
    """In what plain voting is better by more than a trifle, with both figures."""
    ahead = [one for one in comparison.differences if one.name in _AHEAD and one.value < -_TRIFLE]
    return [f"{_AHEAD[one.name]} {one.first:.3f} against {one.last:.3f}" for one in ahead]


def drift_lines(model: LabelModel, new: Votes | None) -> list[str]:
    """What new sequences of a project say about an earlier model of it; nothing if too few are new to tell."""
    if new is None or new.n_sequences < FEW_UNITS:
        return []
    known = [info.name for info in model.sources_ if info.name in new.source_names]
    try:
        alarms = model.drift(new.select(sources=known)).alarms
    except DugongError:  # sources at other resolutions, or a model that does not know what its votes looked like
        return []
    return [f"In {new.n_sequences:,} new sequences, {one} (chance {one.chance:.2g})." for one in alarms]


# --- what is wrong with votes --------------------------------------------------------------------------------------
def find_all(votes: Votes, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """All remarks about votes; `problems` are those that their summary has already."""
    copies = {one.source for one in problems if one.kind == "copy"}
    return (*problems, *_unipolar(votes), *_near_copies(votes, copies), *_unvoted(votes))


def _spoken(votes: Votes, name: str) -> list[int]:
    return [code for code in count_codes(votes.column(name)) if code not in (ABSTAIN, MISSING)]


def _unipolar(votes: Votes) -> list[Problem]:
    found = []
    for source in votes.sources:
        codes, abstains = _spoken(votes, source.name), ABSTAIN in count_codes(votes.column(source.name))
        if len(codes) == 1 and abstains:
            word = code_name(votes, codes[0], source.resolution)
            text = f"source {source.name!r} votes {word} or abstains; what it tells lies in when it abstains."
            found.append(Problem(kind="unipolar", source=source.name, text=text))
    return found


def _near_copies(votes: Votes, copies: set[str | None]) -> list[Problem]:
    """Pairs of sources on the same tasks that agree almost wherever one of them speaks."""
    found = []
    for first, second in combinations([one for one in votes.sources if one.name not in copies], 2):
        if first.resolution != second.resolution:
            continue
        one, other = votes.column(first.name), votes.column(second.name)
        asked = (one != MISSING) & (other != MISSING)
        spoken = asked & ((one != ABSTAIN) | (other != ABSTAIN))
        n_spoken = int(np.count_nonzero(spoken))
        share = np.count_nonzero(spoken & (one == other)) / max(n_spoken, 1)
        constant = min(len(_spoken(votes, first.name)), len(_spoken(votes, second.name))) < 2
        if share >= NEAR_COPY and not constant:
            text = (
                f"sources {first.name!r} and {second.name!r} vote alike on {share:.1%} of the tasks where either "
                "speaks; declare them dependent, or keep one."
            )
            found.append(Problem(kind="near-copy", source=second.name, text=text))
    return found


def _unvoted(votes: Votes) -> list[Problem]:
    """Classes of elements for which no source ever votes, beside the background."""
    if not any(isinstance(source.resolution, Element) for source in votes.sources):
        return []
    voted: set[int] = set()
    for source in votes.sources:
        if isinstance(source.resolution, Element):
            voted = voted.union(*(allowed_classes(votes, code) for code in _spoken(votes, source.name)))
    background = implied_background(votes)
    found = []
    for value in votes.classes:
        if value not in voted and value != background:
            word = code_name(votes, value, Element())
            text = f"no source that votes on elements ever votes {word}; nothing but the prior speaks for this class."
            found.append(Problem(kind="unvoted-class", source=None, text=text))
    if background is not None and votes.background is None:
        word = code_name(votes, background, Element())
        text = f"{word} is the only class that no source votes for: it is taken as background."
        found.append(Problem(kind="background", source=None, text=text))
    return found

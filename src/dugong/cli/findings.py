"""What is worth knowing about votes and labels: how `dugong run` ends, and what `dugong check` finds.

In: a fitted model, its votes and, if there are any, known labels; the files that the last run left. Out: sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dugong.baselines import MajorityVote
from dugong.cli.corrections import class_codes
from dugong.drift import FEW_UNITS
from dugong.exceptions import DugongError
from dugong.fit.result import FAR
from dugong.labels import Labels
from dugong.metrics import Comparison, compare, evaluate
from dugong.model import LabelModel
from dugong.paths import Place
from dugong.tasks import Element, Window
from dugong.texts import counted
from dugong.types import ABSTAIN, MISSING, Int8Array
from dugong.votes import Problem, Votes, allowed_classes, code_name, count_codes, implied_background

News = Callable[[LabelModel, Iterable[Labels], Int8Array | None], list[str]]
"""From a model, its labels and known ones to what changed since the last run."""
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
            accuracies = fitted.summary().accuracies
            found = Labels.read(labels).at("element")
        except DugongError:
            return None
        return cls(model=fitted, accuracies=accuracies, labels=_by_sequence(found))

    def news(
        self, votes: Votes, model: LabelModel, labels: Iterable[Labels], gold: Int8Array | None = None
    ) -> list[str]:
        """What changed since then, in sentences: in the model, in its labels, and in what the votes are like."""
        now = model.summary().accuracies
        said = [f"{name} is new." for name in now if name not in self.accuracies]
        said += [f"{name} is gone." for name in self.accuracies if name not in now]
        said += [
            f"{name}: accuracy {self.accuracies[name]:.3f} to {value:.3f}."
            for name, value in now.items()
            if name in self.accuracies and abs(value - self.accuracies[name]) > _MENTIONED
        ]
        found = next(iter(labels))
        before, after = self.labels, _by_sequence(found.at("element")) if "element" in found.resolutions else {}
        same = [name for name in after if len(before.get(name, ())) == len(after[name])]
        flipped = sum(a != b for name in same for a, b in zip(before[name], after[name], strict=True))
        if flipped:
            said.append(f"{counted(flipped, 'label')} flipped{_worth(before, after, votes, gold)}.")
        fresh = [place for place, one in enumerate(votes.sequence_ids.tolist()) if str(one) not in before]
        return said + drift_lines(self.model, votes[fresh] if fresh else None)


def nothing_new(*_: object) -> list[str]:
    """What a first run has to say about the one before."""
    return []


def _by_sequence(labels: Labels) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, word in zip(labels.ids.astype(str).tolist(), labels.label.tolist(), strict=True):
        found.setdefault(name, []).append(word)
    return found


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
    first = {fault.source: fault for fault in reversed(votes.faults)}
    times = Counter(fault.source for fault in votes.faults)
    return [
        f"source {name!r} raised {counted(n, 'time')} and abstained there; first {first[name].error}, in sequence "
        f"{str(first[name].sequence)!r}."
        for name, n in times.items()
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
        "sources stay as they are), then dugong run."
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


def _unipolar(votes: Votes) -> Iterator[Problem]:
    for source in votes.sources:
        codes, abstains = _spoken(votes, source.name), ABSTAIN in count_codes(votes.column(source.name))
        if len(codes) == 1 and abstains:
            word = code_name(votes, codes[0], source.resolution)
            text = f"source {source.name!r} votes {word} or abstains; what it tells lies in when it abstains."
            yield Problem(kind="unipolar", source=source.name, text=text)


def _near_copies(votes: Votes, copies: set[str | None]) -> Iterator[Problem]:
    """Pairs of sources on the same tasks that agree almost wherever one of them speaks."""
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
            yield Problem(kind="near-copy", source=second.name, text=text)


def _unvoted(votes: Votes) -> Iterator[Problem]:
    """Classes of elements for which no source ever votes, beside the background."""
    names = [source.name for source in votes.sources if isinstance(source.resolution, Element)]
    if not names:
        return
    voted = {value for name in names for code in _spoken(votes, name) for value in allowed_classes(votes, code)}
    background = implied_background(votes)
    for value in votes.classes:
        if value not in voted and value != background:
            word = code_name(votes, value, Element())
            text = f"no source that votes on elements ever votes {word}; nothing but the prior speaks for this class."
            yield Problem(kind="unvoted-class", source=None, text=text)
    if background is not None and votes.background is None:
        word = code_name(votes, background, Element())
        text = f"{word} is the only class that no source votes for: it is taken as background."
        yield Problem(kind="background", source=None, text=text)


# --- compare -------------------------------------------------------------------------------------------------------
def compare_with_majority(
    votes: Votes, gold: Int8Array, model: LabelModel, groups: list[str] | None = None
) -> Comparison:
    """Majority vote and the model on the known labels, with intervals by sequence."""
    methods = {
        "majority vote": MajorityVote().fit(votes).predict_proba(votes),
        "label model": model.predict_proba(votes),
    }
    return compare(methods, gold, lengths=votes.lengths, groups=groups, **class_options(votes))


def class_options(votes: Votes) -> dict[str, Any]:
    """What the metrics must know about the classes."""
    background = implied_background(votes) if votes.n_classes > 2 else None
    return {"classes": {value: name for name, value in class_codes(votes).items()}, "background": background}

"""Votes on windows, spans and sequences: what they add to the labels of the elements.

In: the labels that the votes on elements give, and the coarse votes. Out: `CoarseRules`, which move such labels. Each
source is learned by predicting its votes from the elements (`calibration`), finest windows first. A source counts as
far as its votes are predicted better than chance; not at all where its yes gets rarer the more of a window is positive
(then it means something else than its link says); and less where its errors are those of another coarse source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import numpy as np
from scipy.special import expit, softmax

from dugong.codec import Numbers
from dugong.fit.beliefs import AnyBelief
from dugong.fit.learned.calibration import (
    LARGEST,
    N_VOTES,
    PSEUDO,
    SHIFT,
    YES,
    Calibrated,
    Heard,
    calibrate,
    shared_errors,
)
from dugong.fit.learned.lifting import move_labels, windows_of
from dugong.fit.result import Note
from dugong.tasks import Element, Resolution, Sequence, Spans, Window
from dugong.types import BoolArray, FloatArray, Int8Array, Probabilities, Share, read_only
from dugong.votes import SourceInfo, Votes, class_indices, positive_class

SHARED = 0.5  # labels that contradict their windows: the part of what they say that is taken for shared errors
FEWEST = 10  # with this many windows or fewer nothing is learned
_TIE = 1e-9
_AGAINST_A_MODEL = 0.95  # probability that a source means something else, from which on a trusted model leaves it out
_EDGE = 1e-9  # probabilities of windows stay this far from 0 and 1

Source = TypeVar("Source", SourceInfo, "CoarseSource")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoarseSource:
    """One coarse source, as it counts.

    Attributes
    ----------
    name, resolution : whose votes, on which windows
    learned : its table, and how far the elements are believed about its windows
    n_windows : windows that it was asked about, overlaps counted once
    trust : P(its votes tell something about the elements), 0 to 1
    against : P(its yes means something else than its link says)
    fresh : 1 / the number of overlapping windows that share one error; 1 where windows do not overlap
    weight : 1 / the number of sources that make the same errors
    composition : (2, K) class balance of negative and positive windows; for majority only
    firmness : how far its votes speak about single elements as they do about windows, 0 to 1
    """

    name: str
    resolution: Resolution
    learned: Calibrated
    n_windows: Annotated[float, Numbers(low=0)]
    trust: Share
    against: Share
    fresh: Share = 1.0
    weight: Share = 1.0
    composition: Probabilities | None = None
    firmness: Share = 0.0

    @property
    def counts(self) -> float:
        """What its votes count, 0 to 1."""
        return self.trust * (1 - self.against) * self.weight

    @property
    def harmful(self) -> bool:
        """Whether its yes rather means something else than its link says."""
        return self.against > 0.5

    @property
    def exact_weight(self) -> float:
        """What its votes count in an exact model: such a model explains the votes, so only strong evidence is heard."""
        return 0.0 if self.against > _AGAINST_A_MODEL else self.fresh

    @property
    def inverted(self) -> bool:
        """Whether its yes speaks for a negative window."""
        return bool(self.learned.table[1, YES] < self.learned.table[0, YES])

    def log_ratio(self, codes: Int8Array) -> FloatArray:
        """What each vote adds to the log-odds of its window; a vote that was never seen adds nothing."""
        logs = np.log(np.maximum(self.learned.table, 1e-12))
        ratio = np.append(logs[1] - logs[0], 0.0)  # the last is for windows that it was not asked about
        return np.asarray(self.counts * ratio[codes])

    def believed(self, lifted: FloatArray) -> FloatArray:
        """Log-odds of windows before its votes."""
        return self.learned.shift + self.learned.slope * lifted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoarseRules:
    """All coarse sources, finest windows first."""

    sources: tuple[CoarseSource, ...] = ()

    def move(self, labels: FloatArray, votes: Votes) -> FloatArray:
        """Labels (n, K) of the elements of some votes, with their coarse votes."""
        for level in _levels(self.sources):
            labels = _move_level(labels, votes, [one for one in level if one.name in votes.source_names])
        return labels


def learn_coarse(
    labels: FloatArray,
    votes: Votes,
    sources: Iterable[SourceInfo],
    known: Mapping[str, FloatArray] | None = None,
    beliefs: Mapping[str, AnyBelief] | None = None,
) -> CoarseRules:
    """Learn what every coarse source adds.

    Parameters
    ----------
    labels : (n_elements, K) labels by the votes on elements
    sources : the coarse ones are taken, but for those that are tied to the elements by a joint prior alone
    known : tables (2, 3) of sources that are known, taken at their word
    beliefs : what is believed about them
    """
    known, beliefs = known or {}, beliefs or {}
    coarse = [s for s in sources if not isinstance(s.resolution, Element) and s.resolution.link != "joint"]
    learned: list[CoarseSource] = []
    fitted: list[CoarseSource] = []
    for level in _levels(coarse):
        labels = _move_level(labels, votes, fitted)  # long windows see what short ones changed
        fitted = [_learn_one(labels, votes, info, known.get(info.name), beliefs.get(info.name)) for info in level]
        fitted = _weigh(labels, votes, fitted)
        fitted = [one for same in _same(fitted) for one in _hold_together(labels, votes, same)]
        learned += fitted
    return CoarseRules(sources=tuple(learned))


def finest(sources: Iterable[SourceInfo]) -> list[SourceInfo]:
    """The sources on the shortest windows, of sources on windows, spans and sequences."""
    levels = _levels(info for info in sources if info.resolution.link != "joint")
    return levels[0] if levels else []


def table_of(labels: FloatArray, votes: Votes, info: SourceInfo) -> FloatArray:
    """(2, 3) P(vote | window) under labels of elements."""
    lifted = windows_of(votes, info.resolution).lift(
        labels[:, _positive(votes, info.resolution)], str(info.resolution.link)
    )
    codes = _codes(votes, info.name)
    asked, positive = codes >= 0, expit(lifted)
    said = np.eye(N_VOTES)[codes[asked]]
    counts = np.stack([1 - positive[asked], positive[asked]]) @ said
    counts += PSEUDO * (said.sum(axis=0) + 1e-6) / (len(said) + N_VOTES * 1e-6)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _levels(sources: Iterable[Source]) -> list[list[Source]]:
    """Sources on the same windows together, short windows before long ones."""
    found: dict[tuple[int, int, int, str], list[Source]] = {}
    for one in sources:
        found.setdefault(_where(one.resolution), []).append(one)
    return [found[key] for key in sorted(found)]


def _where(resolution: Resolution) -> tuple[int, int, int, str]:
    if isinstance(resolution, Window):
        return (0, resolution.size, resolution.stride, "")
    if isinstance(resolution, Spans):
        return (1, 0, 0, resolution.name)
    assert isinstance(resolution, Sequence)
    return (2, 0, 0, "")


def _positive(votes: Votes, resolution: Resolution) -> int:
    return votes.classes.index(positive_class(votes, resolution))


def _codes(votes: Votes, name: str) -> Int8Array:
    """0 no, 1 yes, 2 abstain, -1 not asked."""
    return class_indices(votes, votes.column(name), 2)


def _learn_one(
    labels: FloatArray, votes: Votes, info: SourceInfo, table: FloatArray | None, belief: AnyBelief | None
) -> CoarseSource:
    windows, codes = windows_of(votes, info.resolution), _codes(votes, info.name)
    link, column = str(info.resolution.link), labels[:, _positive(votes, info.resolution)]
    asked = codes >= 0
    overlap = windows.overlap
    n_windows = float(asked.sum()) / max(overlap, 1.0)
    lifted, codes = windows.lift(column, link)[asked], codes[asked]
    learned = calibrate(lifted, codes, table=table)
    one = CoarseSource(
        name=info.name, resolution=info.resolution, learned=learned, n_windows=n_windows, trust=0.0, against=0.0
    )
    if overlap > 1 + _TIE:
        one = replace(one, fresh=_fresh(votes, one, _before(labels, votes, [one])))
    if table is not None:
        return replace(one, trust=1.0)
    if belief is not None:
        one = replace(one, learned=_believed(learned, lifted, codes, n_windows, belief))
    if n_windows <= FEWEST:
        return one
    half = np.log(n_windows) / 2  # what a free number costs (the Bayesian information criterion)
    n_free = 2 + len(np.unique(codes)) - 1
    leaning = calibrate(lifted, codes, share=windows.share(column)[asked], leaning=int(link != "all"))
    # Leaning the right way, a source is only firmer about clear windows; the other way, its yes means something else.
    wrong_way = leaning.lean * (-1 if one.inverted else 1) < 0
    further = (leaning.gain - learned.gain) / overlap - half
    return replace(
        one,
        learned=replace(one.learned, lean=leaning.lean),
        trust=float(expit(learned.gain / overlap - n_free * half)),
        against=float(expit(further)) if wrong_way else 0.0,
    )


def _believed(
    learned: Calibrated, lifted: FloatArray, codes: Int8Array, n_windows: float, belief: AnyBelief
) -> Calibrated:
    """The same with a belief about the table; half of the windows are taken to be positive.

    How far the elements are believed follows from the table: with the shift of another one, votes that are as usual
    would be surprises, and all of them would speak for the same label.
    """
    counts = belief.held(learned.table * n_windows / 2)
    held = calibrate(lifted, codes, table=counts / counts.sum(axis=1, keepdims=True))
    return replace(held, gain=learned.gain)


def _fresh(votes: Votes, one: CoarseSource, before: FloatArray) -> float:
    """One over how often an error is repeated by neighbours of sliding windows, which see the same elements."""
    layout, codes, positive = votes.layout(one.resolution), _codes(votes, one.name), expit(before)
    (starts, stops), owners = layout.flat_bounds(), layout.owners()
    repeated = 0.0
    for lag in range(1, len(starts)):
        near = np.flatnonzero((owners[lag:] == owners[:-lag]) & (starts[lag:] < stops[:-lag]))
        if not len(near):
            break
        near = near[:: max(1, len(near) // LARGEST)]
        here, there = (
            Heard(table=one.learned.table, codes=codes[at], positive=positive[at]) for at in (near, near + lag)
        )
        less, more = np.sort([here.positive, there.positive], axis=0)
        repeated += shared_errors(here, there, less * (1 - more))
    return 1 / (1 + 2 * repeated)


def _weigh(labels: FloatArray, votes: Votes, level: list[CoarseSource]) -> list[CoarseSource]:
    """Count down sources on the same windows whose errors go together more than the labels explain."""
    heard = [
        Heard(table=one.learned.table, codes=_codes(votes, one.name), positive=expit(_before(labels, votes, [one])))
        for one in level
    ]
    weighed = []
    for one, mine in zip(level, heard, strict=True):
        shared = 0.0
        for other, theirs in zip(level, heard, strict=True):
            if other is not one and min(one.trust, other.trust) > 0:
                shared += shared_errors(mine, theirs, _both_positive(one.resolution, other.resolution, mine, theirs))
        weighed.append(replace(one, weight=1 / (1 + shared)))
    return weighed


def _both_positive(one: Resolution, other: Resolution, mine: Heard, theirs: Heard) -> FloatArray:
    """Covariance of the labels of the same window at two resolutions, given what its elements say."""
    if one == other:
        return np.asarray(mine.positive * (1 - theirs.positive))
    if one.link == other.link == "majority":  # two classes cannot both have it
        return np.asarray(-mine.positive * theirs.positive)
    return np.zeros(len(mine.positive))


def _before(labels: FloatArray, votes: Votes, same: list[CoarseSource]) -> FloatArray:
    """Log-odds of windows by the elements, as sources of one resolution believe them, those with more gain more."""
    resolution = same[0].resolution
    column = labels[:, _positive(votes, resolution)]
    lifted = windows_of(votes, resolution).lift(column, str(resolution.link))
    gains = np.array([max(one.learned.gain, 1e-3) for one in same])
    return np.asarray(sum(gain * one.believed(lifted) for gain, one in zip(gains / gains.sum(), same, strict=True)))


def _window_odds(labels: FloatArray, votes: Votes, same: list[CoarseSource]) -> tuple[FloatArray, FloatArray]:
    """Log-odds of windows before and after the votes of sources of one resolution."""
    before = _before(labels, votes, same)
    return before, before + sum(one.log_ratio(_codes(votes, one.name)) for one in same)


def _same(level: list[CoarseSource]) -> list[list[CoarseSource]]:
    """Sources of one resolution together, in the order of link and class."""
    found: dict[Resolution, list[CoarseSource]] = {}
    for one in sorted(level, key=lambda one: (str(one.resolution.link), str(one.resolution.of), one.name)):
        found.setdefault(one.resolution, []).append(one)
    return list(found.values())


def _hold_together(labels: FloatArray, votes: Votes, same: list[CoarseSource]) -> list[CoarseSource]:
    """Sources of one resolution with the composition of its windows and their firmness; for majority only.

    Most elements of a window of which a class has the majority are of that class. Where labels do not say so after
    the votes, they are too sure of something else, and the votes speak about elements as they do about windows, as
    far as that takes; less where the elements' half is not the source's half (its shift), and it may be misread. The
    labels themselves are then believed less (`SHARED`).
    """
    resolution = same[0].resolution
    if resolution.link != "majority":
        return same
    windows = windows_of(votes, resolution)
    held = windows.held()
    positive = windows.to_elements(expit(_window_odds(labels, votes, same)[1]))[held]
    found = np.stack([1 - positive, positive]) @ labels[held] + 1e-6
    composition = read_only(found / found.sum(axis=1, keepdims=True))
    same = [replace(one, composition=composition) for one in same]
    sizes = windows.to_elements(windows.sizes.astype(np.float64))[held]
    wanted = (positive @ ((sizes // 2 + 1) / sizes)) / max(float(positive.sum()), _EDGE)
    _, mild, firm = _change(labels, votes, same)
    logs = np.log(labels[held] + 1e-300)

    def coherent(firmness: float) -> bool:
        moved = softmax(logs + (1 - firmness) * mild + firmness * firm, axis=1)[:, _positive(votes, resolution)]
        inside, outside = positive @ moved, (1 - positive) @ moved
        return bool(inside >= wanted * positive.sum() and outside <= (1 - positive).sum() / 2)

    low, high = 0.0, 1.0
    if coherent(low):
        return same
    # Ten halvings are a thousandth, which is nearer than a firmness can be known.
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if coherent(middle) else (middle, high)
    chief = max(same, key=lambda one: one.learned.gain)
    firmness = high * max(0.0, 2 * chief.trust - 1) * float(np.exp(-((chief.learned.shift / SHIFT) ** 2) / 2))
    return [replace(one, firmness=firmness) for one in same]


def _change(labels: FloatArray, votes: Votes, same: list[CoarseSource]) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which elements the windows of one resolution hold, and what votes add to the logs of their labels.

    First mildly, as far as the elements leave their windows open; then firmly, as to the windows themselves.
    """
    resolution = same[0].resolution
    windows, place = windows_of(votes, resolution), _positive(votes, resolution)
    held = windows.held()
    odds = [windows.to_elements(one)[held] for one in _window_odds(labels, votes, same)]
    before, after = (np.clip(expit(one), _EDGE, 1 - _EDGE) for one in odds)
    moved = move_labels(labels[held], str(resolution.link), place, before, after, same[0].composition)
    firm = np.zeros_like(moved)
    firm[:, place] = odds[1] - odds[0]
    return held, np.log(moved + 1e-300) - np.log(labels[held] + 1e-300), firm


def _move_level(labels: FloatArray, votes: Votes, level: list[CoarseSource]) -> FloatArray:
    """Labels after the votes on one set of windows; several resolutions multiply."""
    heard = [same for same in _same(level) if any(one.counts > 0 for one in same)]
    if not heard:
        return labels
    added, sure = np.zeros_like(labels), np.ones(len(labels))
    for same in heard:
        held, mild, firm = _change(labels, votes, same)
        firmness = same[0].firmness
        added[held] += (1 - firmness) * mild + firmness * firm
        sure[held] = np.minimum(sure[held], 1 - SHARED * firmness)
    moved = softmax(sure[:, np.newaxis] * np.log(labels + 1e-300) + added, axis=1)
    return np.where(labels.max(axis=1, keepdims=True) >= 1, labels, moved)  # known labels stay


def describe_coarse(rules: CoarseRules, labels: FloatArray, votes: Votes, *, used: bool = True) -> list[Note]:
    """What the coarse votes do to the labels that they were learned from, in words.

    Parameters
    ----------
    used : whether labels follow from the rules; an exact model that is trusted only leaves harmful sources out
    """
    told = [one for one in rules.sources if used or one.exact_weight == 0]
    notes = [Note(kind="coarse", where=one.name, size=one.counts, text=_words(one)) for one in told]
    if not used or not rules.sources or not len(labels):
        return notes
    after = rules.move(labels, votes)
    moved = float(np.abs(after - labels).sum(axis=1).mean() / 2)
    turned = float((after.argmax(axis=1) != labels.argmax(axis=1)).mean())
    text = f"votes on windows and sequences turn {turned:.1%} of the labels, and move probabilities by {moved:.3f}."
    return [Note(kind="coarse", text=text, size=moved), *notes]


def _words(one: CoarseSource) -> str:
    name, rates = repr(one.name), one.learned.table[:, YES]
    if one.counts == 0 and one.n_windows <= FEWEST:
        return (
            f"{name} changes nothing: {one.n_windows:.0f} windows are too few to learn what its votes are worth "
            f"(more than {FEWEST} are needed). If you know how often it is right, say so: beliefs."
        )
    if one.harmful:
        return (
            f"{name} is not used: it says yes less often the more of a window is positive, so that its yes does not "
            f"mean {one.resolution.link!r}. Check its link."
        )
    if one.trust < 0.05:
        return f"{name} changes nothing: the elements do not predict its votes better than chance."
    text = f"{name} says yes in {rates[1]:.0%} of the positive windows and in {rates[0]:.0%} of the others"
    if one.inverted:
        text += ", and is read the other way round"
    if one.weight < 0.75:
        text += f"; its errors are those of other coarse sources (x {one.weight:.2f})"
    return f"{text}; its votes count {one.counts:.0%}."

"""How far the fitted model is trusted: whether it predicts every source better than the cautious answer does.

In: a fitted model and a trial of peers. Out: its share of every label. Every source is left out, with those that depend
on it, and its votes are predicted from the others twice: by the posterior of the fitted model, and by the cautious
answer. Where sources share errors, the model takes those of the largest group for the label and counts evidence more
than once: some sources are then predicted worse, by more than noise. The worst of them decides, on a continuous scale.
A model that holds knows how well it predicts: the gain on every source must be the one that the model itself expects.
And nothing is left to explain by a second kind of elements in every class, on which sources err together. Sources that
repeat themselves are not asked: what they say now tells of earlier labels too, which no table of the present one knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtri, stdtrit

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.folded import Folded, fold
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.peers import Trial, predict_votes
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.rounds import Setting, evidence
from dugong.fit.learned.search import REPEATING, GraphFinding
from dugong.fit.learned.settings import HELD, JACKKNIFE_BLOCK, PATIENCE, ROUNDS_SPLIT, SATURATED, SPLIT
from dugong.fit.learned.tables import Tables, class_balance, smoothed, softmax
from dugong.fit.learned.views import add_logs, through_chain
from dugong.types import FloatArray, IntArray

_FALSE_SURPRISE = 1e-4  # chance that a model which holds is surprised: rare events have long tails
_NORMAL_TWO = 0.97725  # P(a normal number is below two standard deviations)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trust:
    """How far a model is trusted.

    Attributes
    ----------
    share : of the exact model in the labels, 0 to 1
    gain : nats per vote by which the model predicts left-out sources better, on average
    worst : ... and the group of sources for which this is least, two standard errors added
    sources : places of that group; nobody if nothing could be predicted
    gains : ... of every group of sources that was left out
    surprise : nats a vote by which a gain is not what the model itself expects, beyond noise; above 0 is too much
    confirmed : how far sources beyond the three that any label explains confirm the model, 0 to 1
    kinds : how many times its price a second kind of elements in every class explains; up to 1 there is none
    untested : why no model could be tested, in words; empty if one was
    """

    share: float
    gain: float = 0.0
    worst: float = 0.0
    sources: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    surprise: float = 0.0
    confirmed: float = 0.0
    kinds: float = 0.0
    untested: str = ""


def find_trust(
    setting: Setting,
    finding: GraphFinding,
    part: Folded,
    trial: Trial,
    exponents: FloatArray,
    *,
    coarse: bool = False,
    nameless: Sequence[Sequence[int]] = (),
) -> Trust:
    """The trust that a model earns; none where nothing can be predicted.

    `coarse`: whether there are sources on windows. One that follows such a source repeats itself inside of windows, and
    is still a group of its own. `nameless`: groups of classes that nothing tells apart.
    """
    targets = trial.targets
    if not len(targets.votes):
        return Trust(share=0.0, untested="no source says anything that others could predict")
    if finding.untestable:
        return Trust(share=0.0, untested=finding.untestable)
    # The likelihood is the same if such classes change places. One that holds next to nothing does no harm.
    held = max(((finding.state.law.balance[group] > HELD).sum() for group in nameless), default=0)
    if held > 1:
        why = f"labels of {held} classes that no source on elements tells from each other"
        return Trust(share=0.0, untested=f"the model would hold {why}")
    panel, apart, law, tables = part.panel, finding.parents < 0, finding.state.law, finding.tables
    assert tables is not None
    if not keeps_names(tables.single, panel):
        why = "votes for some class are more frequent under another one of the fitted model: classes changed"
        return Trust(share=0.0, untested=f"{why} their meaning")
    labels = np.empty((len(targets.votes), panel.coding.n_classes))
    for peers, places, seen in trial.groups:
        logs, stayed = evidence(seen.folded, *_only(peers, tables, finding.parents, finding.repeats))
        found, *_ = through_chain(seen.folded, logs, law, stayed)
        labels[places] = found[targets.elements[places]]
    cautious = softmax((exponents @ trial.features(exponents)).reshape(labels.shape))
    ours, theirs = predict_votes(targets, labels), predict_votes(targets, cautious)
    better = np.log(ours) - np.log(theirs)
    gains = better[np.arange(len(better)), targets.votes]
    fresh = finding.repeats.rates[0, targets.sources] <= 0
    asked = [own for own in (places[fresh[places]] for _, places, _ in trial.groups) if len(own)]
    if not asked:
        return Trust(share=0.0, untested=REPEATING)
    means = np.array([gains[own].mean() for own in asked])
    # Numbers of pieces of sequences: what neighbours gain goes together.
    blocks = np.cumsum(panel.places() % JACKKNIFE_BLOCK == 0)[targets.elements]
    errors = np.array([_two_errors(gains[own], blocks[own]) for own in asked]) / 2
    worst = int(np.argmin(means + 2 * errors))
    limit = float((means + 2 * errors)[worst])
    # The model has seen the votes that it predicts, one for each of its numbers: so much of what it gains is no gain.
    n_votes = max(float(setting.folded.sizes @ (setting.folded.rows.codes >= 0).sum(axis=1)), 1.0)
    groups = finding.root[targets.sources[fresh]]
    n_groups = int(apart.sum()) if coarse else len(np.unique(groups))
    rest = _confirmed(gains[fresh] - tables.single.size / n_votes, groups, blocks[fresh], n_groups)
    kinds = _second_kind(panel.columns(np.flatnonzero(apart)), tables.single[apart], law.balance)
    surprises = gains - (ours * better).sum(axis=1)
    surprise = _surprise(surprises[fresh], targets.sources[fresh], blocks[fresh])
    # From 1 to 0, as a gain falls from 0 to a loss of which there is no patience.
    confirmed, lasting, sure = np.clip(1 + np.array([rest, limit, -surprise]) / PATIENCE, 0.0, 1.0).tolist()
    return Trust(
        share=confirmed * lasting * sure * float(np.clip(2 - kinds, 0, 1)),
        confirmed=confirmed,
        kinds=kinds,
        surprise=surprise,
        gain=float(gains[fresh].mean()),
        worst=limit,
        sources=tuple(np.unique(targets.sources[asked[worst]]).tolist()),
        gains=tuple(means.tolist()),
    )


def keeps_names(single: FloatArray, panel: Panel) -> bool:
    """Whether votes for a class are, over all sources, most frequent where the model says that class.

    A model that predicts sources well may have found something else than the classes that they name: what one class of
    it means is then no longer what votes for that class mean.
    """
    named = range(panel.coding.n_classes)
    chances = single[:, :, : len(named)].mean(axis=0)
    return all(chances[:, k].argmax() == k for k in named if (panel.codes == k).any())


def _two_errors(gains: FloatArray, blocks: IntArray) -> float:
    """Two standard errors of a mean over blocks, by Student's law where blocks are few; infinite for one block."""
    sums = np.bincount(np.unique(blocks, return_inverse=True)[1], gains - gains.mean())
    n_blocks = len(sums)
    if n_blocks < 2:
        return np.inf
    error = np.sqrt((sums**2).sum() * n_blocks / (n_blocks - 1)) / len(gains)
    return float(error * stdtrit(n_blocks - 1, _NORMAL_TWO))


def _confirmed(gains: FloatArray, groups: IntArray, blocks: IntArray, n_groups: int) -> float:
    """What independent groups of sources, but for the three best predicted, surely gain.

    Three groups agree with some label whatever they do: as many numbers describe them as explain them. Only what goes
    beyond three says something about the model; and it must say it, so that a standard error is taken off. Groups
    that were not asked count among the three.
    """
    names, place = np.unique(groups, return_inverse=True)
    if n_groups <= SATURATED:
        return -np.inf
    best = np.argsort(-np.bincount(place, gains))[: max(SATURATED - (n_groups - len(names)), 1)]
    rest = ~np.isin(place, best)
    return float(gains[rest].mean()) - _two_errors(gains[rest], blocks[rest]) / 2


def _surprise(gaps: FloatArray, sources: IntArray, blocks: IntArray) -> float:
    """Nats per vote by which the gain on some source is not what the model itself expects, beyond noise.

    A model that holds knows how well it predicts. One that is too sure of itself gains less than it expects, one whose
    classes are something else than labels may gain more. The noise that is granted is that of the largest of so many.
    """
    names = np.unique(sources)
    wide = float(ndtri(1 - _FALSE_SURPRISE / (2 * len(names)))) / 2
    found = ((np.abs(gaps[own].mean()), _two_errors(gaps[own], blocks[own])) for own in (sources == n for n in names))
    return float(max(gap - wide * errors for gap, errors in found))


def _second_kind(panel: Panel, single: FloatArray, balance: FloatArray) -> float:
    """How many times its price a second kind of elements in every class explains.

    Sources that err independently err alike on all elements of a class. Where they err together on some of them, the
    hard ones, votes are explained better if every class is split in two. Every number that this takes has a price of
    one nat: half of it is what it fits in noise, the other half what it loses by that on fresh votes (Akaike).

    Parameters
    ----------
    panel : votes of the independent sources
    single, balance : their tables and the class balance in the fitted model
    """
    n = len(panel.starts)
    folded = fold(panel.rows(np.arange(0, n, -(-n // SPLIT)), panel.starts))
    rows, every = folded.rows, folded.every
    labels = softmax(add_logs(rows, single, every) + np.log(np.maximum(balance, 1e-300)))
    labels, _ = _explained(folded, labels)
    # The less certain half of the elements is where to look first for a kind on which sources err together.
    sure = labels.max(axis=1)
    order = np.argsort(sure, kind="stable")
    uncertain = np.empty(len(order), dtype=np.bool_)
    uncertain[order] = np.cumsum(folded.sizes[order]) <= folded.sizes.sum() / 2
    part = np.where(uncertain, 0.3, 0.7)[:, np.newaxis]
    _, two = _explained(folded, np.concatenate([labels * part, labels * (1 - part)], axis=1))
    _, one = _explained(folded, labels)
    used = sum(len(np.unique(codes[codes >= 0])) - 1 for codes in rows.codes.T)
    return (two - one) / float(labels.shape[1] * (used + 1))


def _explained(folded: Folded, labels: FloatArray) -> tuple[FloatArray, float]:
    """Soft labels (n_rows, L) after rounds of independent sources from others; log-likelihood of the votes."""
    rows, every, logs = folded.rows, folded.every, labels
    for _ in range(ROUNDS_SPLIT):
        weights = labels * folded.sizes[:, np.newaxis]
        counts = np.zeros((rows.codes.shape[1], rows.coding.n_columns, weights.shape[1]))
        kernels.count_votes(rows.codes, weights, every, counts)
        logs = add_logs(rows, smoothed(counts.swapaxes(1, 2)), every) + np.log(class_balance(weights, every))
        labels = softmax(logs)
    return labels, float(folded.sizes @ logsumexp(logs, axis=1))


def _only(peers: IntArray, tables: Tables, parents: IntArray, repeats: Repeats) -> tuple[Tables, IntArray, Repeats]:
    """Tables, parents and repetitions of some sources; the last place of a lookup stands for no parent."""
    place = np.full(len(parents) + 1, -1, dtype=np.int64)
    place[peers] = np.arange(len(peers))
    own = replace(tables, single=tables.single[peers], slots=tables.slots[peers])
    again = Repeats(rates=np.ascontiguousarray(repeats.rates[:, peers]), lags=repeats.lags[peers])
    return own, place[parents[peers]], again

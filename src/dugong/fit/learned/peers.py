"""Every source predicted by its peers: what the exponents of the answer are learned from.

In: a panel of sources on elements. Out: the exponents. A source (or one of ten groups) is left out together with its
variants; everything is learned again from the rest, and its votes are predicted *through its own table*:

    minimise  - sum over votes of  log sum_y q(y) T(vote | y)  +  lean votes |exponents - belief|^2 / 2

in turn with steps of expectation and maximisation for the tables. Predicting a raw vote would reward an answer that is
as unsure as the source; through the table an answer is rewarded for being right about the label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import (
    FEWEST_TARGETS,
    MOST_FOLDS,
    OWN_VOTES,
    RELATED,
    RIDGE_VOTES,
    ROUNDS_PEERS,
    TARGETS,
)
from dugong.fit.learned.tables import softmax
from dugong.fit.learned.views import Constraints, Sayings, View, learn_sayings, learn_steps, view
from dugong.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targets:
    """Votes to be predicted.

    Attributes
    ----------
    votes : (n,) class index of every vote; behind the classes, silence of a source that names one class only
    sources : (n,) its source
    elements : (n,) its element
    weights : (n,) what its source counts
    usual : (m, K + 1) how often every source votes for every class, or is silent if that is a vote
    groups : sources that are left out together, and their peers
    meant : (m, K, K + 1) one for the vote that is right: the class, or silence about a class that is never named
    """

    votes: IntArray
    sources: IntArray
    elements: IntArray
    weights: FloatArray
    usual: FloatArray
    groups: tuple[tuple[IntArray, IntArray], ...]
    meant: FloatArray


def choose_targets(panel: Panel, related: FloatArray, weights: FloatArray) -> Targets:
    """Votes of every source on elements about which a peer speaks as well, the same number of each source.

    Every source is left out once, in at most ten groups; those that are `related` to one of a group are no peers of it.
    """
    m, n_classes, spoken = len(related), panel.coding.n_classes, panel.spoken()
    per, margins = max(FEWEST_TARGETS, TARGETS // max(m, 1)), np.zeros((m, n_classes + 1))
    sources, elements, groups = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], []
    for number in range(min(m, MOST_FOLDS)):
        out = np.arange(m) % min(m, MOST_FOLDS) == number
        peers = np.flatnonzero(~out & (related[:, out].max(axis=1) <= RELATED))
        if len(peers) < 2:
            continue
        groups.append((np.flatnonzero(out), peers))
        heard = spoken[:, peers].any(axis=1)
        for source in np.flatnonzero(out).tolist():
            codes = panel.codes[:, source]
            says = (codes >= 0) & (codes < n_classes)
            if len(np.unique(codes[says])) == 1:  # who names one class only votes by silence, too
                says |= codes == n_classes
            margins[source] = np.bincount(codes[says], minlength=margins.shape[1])
            places = np.flatnonzero(says & heard)
            if (margins[source] > 0).sum() > 1 and len(places) > 1:
                # Evenly spaced places of a panel in canonical order: the order of sequences does not enter.
                chosen = places[np.linspace(0, len(places) - 1, min(per, len(places))).astype(np.int64)]
                sources.append(np.full(len(chosen), source))
                elements.append(chosen)
    where, what = np.concatenate(sources), np.concatenate(elements)
    usual, named = margins + 1e-9, margins > 0
    # Silence is right about a class that a source never names, if silence is a vote of it.
    silence = ~named[:, :-1] & named[:, -1:]
    return Targets(
        votes=panel.codes[what, where].astype(np.int64),
        sources=where,
        elements=what,
        weights=weights[where],
        usual=usual / usual.sum(axis=1, keepdims=True),
        groups=tuple(groups),
        meant=np.concatenate([np.eye(n_classes) * named[:, :-1, np.newaxis], silence[..., np.newaxis]], axis=2),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """Votes to be predicted, and what the peers of their sources see.

    Attributes
    ----------
    targets : the votes
    groups : of every group of sources that is left out: their peers, places of their votes, and the peers' view
    lasting : how far labels outlast errors
    fixed : what is not to be learned
    """

    targets: Targets
    groups: tuple[tuple[IntArray, IntArray, View], ...]
    lasting: float
    fixed: Constraints

    def features(self, exponents: FloatArray) -> FloatArray:
        """Features of every target as the peers of its source see it, centred over the classes, (5, n K)."""
        n_classes = self.targets.meant.shape[1]
        found = np.zeros((5, len(self.targets.votes), n_classes))
        for _, places, seen in self.groups:
            elements = self.targets.elements[places]
            messages = (self.lasting * seen.messages(exponents)).take(elements, axis=0)
            rows = seen.folded.which[elements]
            features = np.concatenate([seen.rows.take(rows, axis=0), messages[:, np.newaxis]], axis=1)
            features -= features.mean(axis=2, keepdims=True)
            known = seen.folded.rows.known[rows]
            # Known labels: so large that they outweigh the rest with any usual exponents, and still finite.
            features[known >= 0] = 0.0
            features[known >= 0, :2] = 60.0 * np.eye(n_classes)[known[known >= 0], np.newaxis]
            found[:, places] = features.swapaxes(0, 1)
        return found.reshape(5, -1)

    def again(self, exponents: FloatArray) -> Trial:
        """The same with transitions that were learned with other exponents."""
        learned = ((peers, places, learn_steps(seen, exponents, self.fixed)) for peers, places, seen in self.groups)
        return replace(self, groups=tuple(learned))


def make_trial(
    part: Folded,
    related: FloatArray,
    first: Sayings,
    exponents: FloatArray,
    lasting: float,
    fixed: Constraints,
) -> Trial:
    """Leave every source out once, and learn from the rest what it says; `related` sources are no peers, (m, m)."""
    weights = first.weights
    targets, groups = choose_targets(part.panel, related, weights), []
    for left_out, peers in targets.groups:
        places = np.flatnonzero(np.isin(targets.sources, left_out))
        if len(places):
            folded = part.columns(peers)
            known = fixed if fixed.pinned is None else replace(fixed, pinned=fixed.pinned[peers])
            sayings, law = learn_sayings(folded, weights[peers], first.background, known)
            groups.append((peers, places, learn_steps(view(folded, sayings, law), exponents, fixed)))
    return Trial(targets=targets, groups=tuple(groups), lasting=lasting, fixed=fixed)


def learn_exponents(trial: Trial, belief: FloatArray, lean: float) -> FloatArray:
    """The exponents with which the peers predict best; the belief weighs `lean` of the votes."""
    targets, exponents = trial.targets, belief
    tables: FloatArray | None = None
    # Twice, because transitions depend on the exponents and the exponents on what neighbours say.
    for place in range(2):
        if place:
            trial = trial.again(exponents)
        features = trial.features(exponents)
        for _ in range(ROUNDS_PEERS):
            labels = softmax((exponents @ features).reshape(len(targets.votes), -1))
            tables = own_tables(targets, labels, tables)
            exponents = _descend(features, targets, tables, exponents, belief, lean)
    return exponents


def _descend(
    features: FloatArray, targets: Targets, tables: FloatArray, start: FloatArray, belief: FloatArray, lean: float
) -> FloatArray:
    from scipy.optimize import minimize  # slow to import, and needed only here

    chances = tables[targets.sources, :, targets.votes]
    total = float(targets.weights.sum())
    # A share of the votes, so that the belief still counts where there are very many of them.
    ridge = max(RIDGE_VOTES, lean * total)

    def loss(exponents: FloatArray) -> tuple[float, FloatArray]:
        labels = softmax((exponents @ features).reshape(chances.shape))
        joint = labels * chances
        predicted = joint.sum(axis=1) + 1e-300
        pull = (joint / predicted[:, np.newaxis] - labels) * targets.weights[:, np.newaxis]
        value = -float(targets.weights @ np.log(predicted)) + ridge * float(((exponents - belief) ** 2).sum()) / 2
        slope = ridge * (exponents - belief) - features @ pull.ravel()
        return value / total, slope / total

    # Few steps and no negative exponents: tables change in the next round, and no evidence speaks against itself.
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start), options={"maxiter": 20})
    return np.asarray(found.x)


def own_tables(targets: Targets, labels: FloatArray, tables: FloatArray | None = None, rounds: int = 5) -> FloatArray:
    """Tables of the left-out sources given what their peers say, (m, K, K + 1), leaning to first guesses of them.

    They begin as `tables`, or as those of sources that are right but for one vote in twenty.
    """
    usual = targets.usual[:, np.newaxis]
    right = np.where(targets.meant.any(axis=2, keepdims=True), targets.meant, usual)
    lean = OWN_VOTES * (right + _lapses(targets, labels)[:, np.newaxis, np.newaxis] * (usual - right))
    tables = right + 0.05 * (usual - right) if tables is None else tables
    for _ in range(rounds):
        counts = np.zeros(lean.shape)
        kernels.count_own(targets.sources, targets.votes, labels, tables, counts)
        tables = counts + lean
        tables /= tables.sum(axis=2, keepdims=True)
    return tables


def _lapses(targets: Targets, labels: FloatArray) -> FloatArray:
    """How often every source lapses and votes as it uses to, (m,), by how well the peers agree with it."""
    m, meant = len(targets.usual), targets.meant
    cells = targets.sources * meant.shape[2] + targets.votes
    right = np.einsum("nk,nk->n", labels, meant.swapaxes(1, 2).reshape(-1, meant.shape[1]).take(cells, axis=0))
    right /= np.maximum(np.einsum("nk,nk->n", labels, meant.sum(axis=2).take(targets.sources, axis=0)), 1e-300)
    chance = targets.usual.take(cells)
    counts, lapse = np.bincount(targets.sources, minlength=m), np.full(m, 0.05)
    for _ in range(10):
        own = lapse[targets.sources]
        share = own * chance / (own * chance + (1 - own) * right + 1e-300)
        lapse = np.clip((np.bincount(targets.sources, share, m) + 0.5) / (counts + 1), 1e-4, 0.999)
    return lapse


def predict_votes(targets: Targets, labels: FloatArray) -> FloatArray:
    """P(vote) of every target (n, K + 1), given what its peers say about the label, by the best table of its source."""
    tables = own_tables(targets, labels, rounds=12)
    found = np.empty((len(labels), tables.shape[2]))
    for source in np.unique(targets.sources):
        own = targets.sources == source
        found[own] = labels[own] @ tables[source]
    return np.maximum(found, 1e-300)

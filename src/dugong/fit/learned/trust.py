"""How far the fitted model is trusted: whether it predicts every source better than the cautious answer does.

In: a fitted model and a trial of peers. Out: its share of every label. Every source is left out, with those that depend
on it, and its votes are predicted from the others twice: by the posterior of the fitted model, and by the answer with
exponents that were learned. Where the model holds, nothing predicts better, whichever source is left out.
Where sources share errors, the model takes those of the largest group for the label and counts evidence more than once:
some sources are then predicted worse, by more than noise. The worst of them decides, on a continuous scale, and the
gain over all of them must be more than noise too. Sources that repeat themselves are not asked: what they say now tells
of earlier labels as well, which no table of the present label knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.learned.panel import Panel
from dugong.fit.learned.peers import Trial, log_scores
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.rounds import Setting, posterior_of, tables_of
from dugong.fit.learned.search import GraphFinding
from dugong.fit.learned.settings import FEWEST_SOURCES, PATIENCE
from dugong.fit.learned.tables import Tables, softmax
from dugong.types import FloatArray, IntArray


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
    clear : whether every group is predicted better by more than two standard errors
    """

    share: float
    gain: float = 0.0
    worst: float = 0.0
    sources: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    clear: bool = False


def related_by(parents: IntArray) -> FloatArray:
    """(m, m) one where two sources are in the same tree: given the label they still tell of each other."""
    root = np.arange(len(parents))
    for _ in parents:
        root = np.where(parents[root] >= 0, parents[root], root)
    same = root[:, np.newaxis] == root
    return np.asarray(same & ~np.eye(len(parents), dtype=np.bool_), dtype=np.float64)


def find_trust(setting: Setting, finding: GraphFinding, panel: Panel, trial: Trial, exponents: FloatArray) -> Trust:
    """The trust that a model earns; none where nothing can be predicted."""
    targets = trial.targets
    if not len(targets.votes):
        return Trust(share=0.0)
    parents, repeats = finding.structure()
    apart = parents < 0
    if apart.sum() < FEWEST_SOURCES:  # fewer independent groups do not tell labels from what a group shares
        return Trust(share=0.0)
    # Two sources that repeat themselves agree because labels last or because errors do: only a pair of which one does
    # not can tell, so all but one of three must not.
    if (apart & ~repeats.rates.any(axis=0)).sum() < FEWEST_SOURCES - 1:
        return Trust(share=0.0)
    tables, _ = tables_of(setting, replace(finding.state, repeats=repeats), setting.folded.everywhere(), parents)
    labels = np.empty((len(targets.votes), panel.coding.n_classes))
    for peers, places, _ in trial.groups:
        own, forest, again = _only(peers, tables, parents, repeats)
        found = posterior_of(panel.columns(peers), finding.state.law, own, forest, again)
        labels[places] = found[targets.elements[places]]
    cautious = softmax((exponents @ trial.features(exponents)).reshape(labels.shape))
    gains = log_scores(targets, labels) - log_scores(targets, cautious)
    fresh = ~repeats.sources[targets.sources]
    asked = [(places[fresh[places]], places) for _, places, _ in trial.groups]
    asked = [(own, places) for own, places in asked if len(own)]
    if len(np.unique(targets.sources[fresh])) < FEWEST_SOURCES:
        return Trust(share=0.0)
    means = np.array([gains[own].mean() for own, _ in asked])
    errors = np.array([gains[own].std() / np.sqrt(len(own)) for own, _ in asked])
    worst = int(np.argmin(means + 2 * errors))
    limit = float((means + 2 * errors)[worst])
    return Trust(
        share=_shown(gains[fresh], tables, setting) * float(np.clip(1 + limit / PATIENCE, 0.0, 1.0)),
        gain=float(gains[fresh].mean()),
        worst=limit,
        sources=tuple(np.unique(targets.sources[asked[worst][0]]).tolist()),
        gains=tuple(means.tolist()),
        clear=bool((means > 2 * errors).all()),
    )


def _shown(gains: FloatArray, tables: Tables, setting: Setting) -> float:
    """From 0 to 1: how far the gain is more than noise, nothing below two standard errors, all from four on.

    The model has seen the votes that it predicts: a nat for each of its numbers is no gain.
    """
    rows = setting.folded
    seen = tables.single.size / max(float(rows.sizes @ (rows.rows.codes >= 0).sum(axis=1)), 1.0)
    error = float(gains.std() / np.sqrt(len(gains))) + 1e-12
    return float(np.clip((gains.mean() - seen) / error / 2 - 1, 0.0, 1.0))


def _only(peers: IntArray, tables: Tables, parents: IntArray, repeats: Repeats) -> tuple[Tables, IntArray, Repeats]:
    """Tables, parents and repetitions of some sources; the last place of a lookup stands for no parent."""
    place = np.full(len(parents) + 1, -1, dtype=np.int64)
    place[peers] = np.arange(len(peers))
    own = replace(tables, single=tables.single[peers], slots=tables.slots[peers])
    again = Repeats(rates=np.ascontiguousarray(repeats.rates[:, peers]), lags=repeats.lags[peers])
    return own, place[parents[peers]], again

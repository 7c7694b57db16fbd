"""How far the fitted model is trusted: whether its evidence is worth what it says.

In: a fitted model. Out: its share of every label. Every source is left out, with those that depend on it, and predicted
through its own table from the posterior of the others, raised to a power and normalised. If the model holds, the power
1 predicts best; if sources share errors, evidence is counted more than once, and a smaller power predicts better. The
gain of the best smaller power, in nats per vote, is the *overcount*; trust is exp(-overcount / PATIENCE): continuous,
and 1 where the model holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.learned.panel import Panel
from dugong.fit.learned.peers import Fold, Targets, choose_targets, first_tables, folds, log_scores, own_tables
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.rounds import Setting, posterior_of, tables_of
from dugong.fit.learned.search import Finding
from dugong.fit.learned.settings import PATIENCE, POWERS
from dugong.fit.learned.tables import Tables
from dugong.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trust:
    """Share of the exact model in the labels; the power that predicts best; and the gain of that power, per vote."""

    share: float
    power: float = 1.0
    overcount: float = 0.0


def find_trust(setting: Setting, finding: Finding, panel: Panel) -> Trust:
    """The trust that a model earns by predicting every source from its peers; none where nothing can be predicted."""
    parents, repeats = finding.structure()
    tables, _ = tables_of(setting, replace(finding.state, repeats=repeats), setting.folded.everywhere(), parents)
    related = _related(parents)
    targets = choose_targets(panel, related, np.ones(len(parents)))
    if not len(targets.votes):
        return Trust(share=0.0)
    labels = np.empty((len(targets.votes), panel.coding.n_classes))
    for one in folds(related):
        places = np.flatnonzero(np.isin(targets.sources, one.left_out))
        if len(places):
            own, forest, again = _without(one, tables, parents, repeats)
            found = posterior_of(panel.columns(one.peers), finding.state.law, own, forest, again)
            labels[places] = found[targets.elements[places]]
    losses = np.array([_loss(targets, labels, power) for power in POWERS])
    best = int(losses.argmin())
    overcount = float(losses[-1] - losses[best])
    return Trust(share=float(np.exp(-overcount / PATIENCE)), power=POWERS[best], overcount=overcount)


def _loss(targets: Targets, labels: FloatArray, power: float) -> float:
    """Mean loss of predictions from labels that were raised to a power."""
    tempered = np.maximum(labels, 1e-300) ** power
    tempered /= tempered.sum(axis=1, keepdims=True)
    tables = own_tables(targets, tempered, first_tables(targets), rounds=12)
    return -float(log_scores(targets, tempered, tables).mean())


def _related(parents: IntArray) -> FloatArray:
    """(m, m) one where two sources are in the same tree: given the label they still tell of each other."""
    root = np.arange(len(parents))
    for _ in parents:
        root = np.where(parents[root] >= 0, parents[root], root)
    same = root[:, np.newaxis] == root
    return np.asarray(same & ~np.eye(len(parents), dtype=np.bool_), dtype=np.float64)


def _without(one: Fold, tables: Tables, parents: IntArray, repeats: Repeats) -> tuple[Tables, IntArray, Repeats]:
    """Tables, parents and repetitions of the peers."""
    place = np.full(len(parents) + 1, -1, dtype=np.int64)
    place[one.peers] = np.arange(len(one.peers))
    own = replace(tables, single=tables.single[one.peers], slots=tables.slots[one.peers])
    again = Repeats(rates=np.ascontiguousarray(repeats.rates[:, one.peers]), lags=repeats.lags[one.peers])
    return own, place[parents[one.peers]], again

"""The robust answer: what the votes say when their errors are shared, across sources and in time.

In: a panel. Out: the average of three views of every element, each wrong in its own way: the smoothed vote share; the
posterior of one re-estimation from the vote, its log-likelihoods divided by the design effect of correlated errors;
and the same through a chain with learned transitions, where evidence counts half because errors persist. Over- and
under-confidence cancel. Nothing here is iterated towards agreement, which drifts away on real votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.copies import copy_weights, find_copies
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import PERSISTENCE, ROUNDS_STICKY, SHARE_PRIOR, SHARED_ERRORS
from dugong.fit.learned.silence import Silence, learn_silence
from dugong.fit.learned.tables import (
    clamp,
    class_balance,
    count_tables,
    logs_of,
    make_tables,
    mute_unseen,
    softmax,
    steps_to_transition,
)
from dugong.tasks.bio import Possible
from dugong.types import BoolArray, FloatArray, Probabilities


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelLaw:
    """A first-order law of labels: class balance (K,), first classes (K,) and transitions (K, K)."""

    balance: Probabilities
    initial: Probabilities
    transition: Probabilities


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Views:
    """What the three views need to know.

    Attributes
    ----------
    tables : (m, K, C) P(vote | label)
    law : the law of the labels
    similar : (m, m) near-copies
    background : class index of elements about which nobody speaks, or None
    silence : what it means that nobody speaks, where there is no background
    """

    tables: Probabilities
    law: LabelLaw
    similar: FloatArray
    background: int | None
    silence: Silence


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Votes by class (n, K), their shares, and which elements say something (all, if there is a background)."""

    counts: FloatArray
    share: FloatArray
    use: BoolArray


def vote_shares(panel: Panel, similar: FloatArray, background: int | None) -> Shares:
    """Votes of every element, near-copies counted down."""
    n_classes = panel.coding.n_classes
    counts = np.zeros((len(panel), n_classes))
    kernels.count_shares(panel.codes, panel.coding.split, copy_weights(similar), counts)
    total = counts.sum(axis=1, keepdims=True)
    nobody = np.full(n_classes, 1 / n_classes) if background is None else np.eye(n_classes)[background]
    share = np.where(total > 0, counts / np.where(total > 0, total, 1.0), nobody)
    known = panel.known >= 0
    share[known] = np.eye(n_classes)[panel.known[known]]
    use = (total[:, 0] > 0) | known if background is None else np.ones(len(panel), dtype=np.bool_)
    return Shares(counts=counts, share=share, use=use)


def fit_views(
    folded: Folded,
    background: int | None,
    *,
    given: LabelLaw | None = None,
    possible: Possible | None = None,
    pinned: FloatArray | None = None,
) -> Views:
    """Learn the tables from the vote, re-estimated once, and the transitions from the chain."""
    panel, similar = folded.rows, find_copies(folded)
    shares = vote_shares(panel, similar, background)
    undiscounted = vote_weights(panel, similar, 0.0)
    first = folded.weighted(shares.share)
    tables = make_tables(panel, first, shares.use, pinned=pinned).single
    balance = class_balance(first, shares.use) if given is None else given.balance
    labels = softmax(evidence(panel, tables, undiscounted, shares.use) + np.log(balance))
    labels = folded.weighted((labels + shares.share) / 2)
    tables = make_tables(panel, labels, shares.use, pinned=pinned).single
    balance = class_balance(labels, shares.use)
    logs = evidence(panel, tables, in_time(panel, undiscounted), shares.use)
    law = given or _learn_law(folded, logs, balance, possible)
    never = count_tables(panel, labels, shares.use).sum(axis=1) <= 0
    tables = np.stack([mute_unseen(own, unseen) for own, unseen in zip(tables, never, strict=True)])
    silence = learn_silence(folded, labels, shares.use)
    return Views(tables=tables, law=law, similar=similar, background=background, silence=silence)


def _learn_law(folded: Folded, logs: FloatArray, balance: FloatArray, possible: Possible | None) -> LabelLaw:
    steps_allowed = None if possible is None else possible.steps
    initial = first_classes(balance, possible)
    transition = steps_to_transition(np.eye(len(balance)), balance, steps_allowed)
    if folded.linked:
        labels, none = np.empty((len(folded.which), len(balance))), np.zeros((0, len(balance)))
        for _ in range(ROUNDS_STICKY):
            steps = np.zeros(transition.shape)
            kernels.smooth_rows(logs, folded.which, folded.starts, initial, transition, labels, steps, none)
            transition = steps_to_transition(steps, balance, steps_allowed)
    return LabelLaw(balance=balance, initial=initial, transition=transition)


def first_classes(balance: FloatArray, possible: Possible | None) -> FloatArray:
    """The law of first labels: the balance of the classes that a sequence can begin with."""
    initial = balance if possible is None else np.where(possible.first, balance, 0.0)
    return np.asarray(initial / initial.sum())


def look(panel: Panel, views: Views) -> FloatArray:
    """The robust answer for every element of a panel, (n, K)."""
    shape, law = (len(panel), panel.coding.n_classes), views.law
    labels, logs = np.empty(shape), np.empty(shape)
    kernels.look_alone(
        panel.codes,
        panel.known,
        np.zeros((0, 0)) if panel.lasting is None else panel.lasting,
        views.similar,
        SHARED_ERRORS,
        logs_of(views.tables),
        panel.coding.split,
        law.balance,
        -1 if views.background is None else views.background,
        views.silence.logs,
        views.silence.shift,
        views.silence.share,
        SHARE_PRIOR,
        PERSISTENCE,
        labels,
        logs,
    )
    # In a chain evidence is discounted because errors persist from one element to the next. A sequence of one element
    # has none that could: its evidence counts whole, whichever sequences it is read with.
    alone = panel.starts & np.append(panel.starts[1:], True)
    logs[alone] /= PERSISTENCE
    labels += through_chain(panel, logs, law)[0]
    labels /= 3
    return labels


def vote_weights(panel: Panel, similar: FloatArray, shared: float) -> FloatArray:
    """What every vote counts on its own element, (n, m)."""
    weights = np.empty(panel.codes.shape)
    kernels.find_weights(panel.codes, similar, panel.coding.silent, shared, weights)
    return weights


def in_time(panel: Panel, weights: FloatArray) -> FloatArray:
    """The same in a chain: a vote that was spread over a task counts once in all its elements together."""
    return weights if panel.lasting is None else weights * panel.lasting


def evidence(panel: Panel, tables: FloatArray, weights: FloatArray, use: BoolArray) -> FloatArray:
    """Weighted log-likelihood of the votes of every element, known labels clamped, (n, K)."""
    logs = np.empty((len(panel), panel.coding.n_classes))
    kernels.add_evidence(panel.codes, logs_of(tables), weights, use, logs)
    return clamp(logs, panel)


def through_chain(panel: Panel, logs: FloatArray, law: LabelLaw) -> tuple[FloatArray, FloatArray]:
    """Marginals (n, K) and expected steps (K, K) of a chain with this evidence."""
    labels, steps = np.empty(logs.shape), np.zeros(law.transition.shape)
    none = np.zeros((0, logs.shape[1]))
    kernels.smooth(logs, none, panel.starts, law.initial, law.transition, labels, steps, none)
    return labels, steps

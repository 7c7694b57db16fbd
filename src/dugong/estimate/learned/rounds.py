"""Rounds of expectation and maximisation for sources on elements: a hidden chain with a forest of edges.

In: a panel, soft labels, who depends on whom. Out: soft labels and the law of the labels after some rounds. A source
may repeat itself: while the label stays it gives its last vote again with a probability of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.estimate.learned import _kernels as kernels
from dugong.estimate.learned.bio import Possible
from dugong.estimate.learned.panel import Panel
from dugong.estimate.learned.robust import Law, first_classes
from dugong.estimate.learned.tables import clamp, class_balance, make_tables, softmax, steps_to_transition
from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What stays the same in all rounds: the votes, and what is given or impossible."""

    panel: Panel
    given: Law | None = None
    possible: Possible | None = None
    pinned: FloatArray | None = None

    def everywhere(self) -> BoolArray:
        """Every element counts."""
        return np.ones(len(self.panel), dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Soft labels (n, K), their law, and P(label before = label), (n, K) (None as long as there is no chain)."""

    labels: FloatArray
    law: Law
    kept: FloatArray | None = None


def first_law(setting: Setting, labels: FloatArray, use: BoolArray) -> Law:
    """The balance of soft labels and transitions half-way between staying and redrawing; or the given law."""
    if setting.given is not None:
        return setting.given
    balance = class_balance(labels, use)
    steps = None if setting.possible is None else setting.possible.steps
    return Law(
        balance=balance,
        initial=first_classes(balance, setting.possible),
        transition=steps_to_transition(np.eye(len(balance)), balance, steps),
    )


def run_rounds(
    setting: Setting,
    start: State,
    use: BoolArray,
    rounds: int,
    *,
    parents: IntArray,
    repeats: FloatArray | None = None,
    chain: bool,
) -> State:
    """Some rounds from soft labels; `use` says which elements the first tables are made from.

    Without `chain` every element stands alone: only the class balance is learned.
    """
    panel, state = setting.panel, start
    moved, stayed = np.empty(start.labels.shape), np.empty(start.labels.shape)
    repeats = np.zeros(panel.n_sources) if repeats is None else repeats
    linked = chain and panel.linked
    for _ in range(rounds):
        tables = make_tables(panel, state.labels, use, parents, setting.pinned)
        law = _with_balance(setting, state, use)
        use = setting.everywhere()
        kernels.add_model(
            panel.codes,
            np.log(np.maximum(tables.single, 1e-300)),
            np.log(np.maximum(tables.edges, 1e-300)),
            tables.slots,
            parents,
            repeats,
            panel.starts,
            moved,
            stayed,
        )
        clamp(moved, panel)
        clamp(stayed, panel)
        state = _one_round(setting, law, moved, stayed) if linked else _alone(law, moved)
    return state


def _with_balance(setting: Setting, state: State, use: BoolArray) -> Law:
    if setting.given is not None:
        return setting.given
    balance = class_balance(state.labels, use)
    return Law(balance=balance, initial=first_classes(balance, setting.possible), transition=state.law.transition)


def _alone(law: Law, logs: FloatArray) -> State:
    return State(labels=softmax(logs + np.log(np.maximum(law.balance, 1e-300))), law=law)


def _one_round(setting: Setting, law: Law, moved: FloatArray, stayed: FloatArray) -> State:
    labels, kept, steps = np.empty(moved.shape), np.empty(moved.shape), np.zeros(law.transition.shape)
    starts = setting.panel.starts
    kernels.smooth(moved, stayed, starts, law.initial, law.transition, labels, steps, kept)
    if setting.given is None:
        allowed = None if setting.possible is None else setting.possible.steps
        transition = steps_to_transition(steps, law.balance, allowed)
        law = Law(balance=law.balance, initial=law.initial, transition=transition)
    return State(labels=labels, law=law, kept=kept)

"""Rounds of expectation and maximisation for sources on elements: a hidden chain with a forest of edges.

In: a panel, soft labels, who depends on whom. Out: soft labels, the law of the labels and the tables after some rounds.
A source may repeat itself (`repeats`); one that also has a parent keeps all its votes in its table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.estimate.learned import _kernels as kernels
from dugong.estimate.learned.bio import Possible
from dugong.estimate.learned.panel import Panel
from dugong.estimate.learned.repeats import Repeats, fresh_votes
from dugong.estimate.learned.robust import Law, first_classes
from dugong.estimate.learned.tables import (
    Tables,
    clamp,
    class_balance,
    count_tables,
    logs_of,
    make_tables,
    softmax,
    steps_to_transition,
)
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
    """Where the rounds are.

    Attributes
    ----------
    labels : (n, K) soft labels
    law : their law
    repeats : who repeats itself
    kept : (n, K) P(label before = label), None as long as there is no chain
    single : (m, K, C) tables that the labels were made with, None before the first round
    likelihood : log-likelihood of the votes under these tables
    """

    labels: FloatArray
    law: Law
    repeats: Repeats
    kept: FloatArray | None = None
    single: FloatArray | None = None
    likelihood: float = -np.inf


def first_state(setting: Setting, labels: FloatArray, use: BoolArray) -> State:
    """Before the first round: soft labels, their balance, and transitions half-way between staying and redrawing."""
    law = setting.given
    if law is None:
        balance = class_balance(labels, use)
        steps = None if setting.possible is None else setting.possible.steps
        law = Law(
            balance=balance,
            initial=first_classes(balance, setting.possible),
            transition=steps_to_transition(np.eye(len(balance)), balance, steps),
        )
    return State(labels=labels, law=law, repeats=Repeats.none(setting.panel.n_sources))


def run_rounds(
    setting: Setting,
    state: State,
    use: BoolArray,
    rounds: int,
    *,
    parents: IntArray,
    chain: bool,
    settled: float = 0.0,
) -> State:
    """Some rounds from soft labels; `use` says which elements the first tables are made from.

    Without `chain` every element stands alone: only the class balance is learned. Rounds end early when no entry of a
    table moves by more than `settled`.
    """
    panel = setting.panel
    moved, none = np.empty(state.labels.shape), np.zeros((0, state.labels.shape[1]))
    for _ in range(rounds):
        tables, repeats = tables_of(setting, state, use, parents)
        if state.single is not None and np.abs(tables.single - state.single).max(initial=0.0) < settled:
            break
        law = _with_balance(setting, state, use)
        use = setting.everywhere()
        stayed = np.empty(moved.shape) if repeats else none
        kernels.add_model(
            panel.codes,
            logs_of(tables.single),
            logs_of(tables.edges),
            tables.slots,
            parents,
            repeats.rates,
            panel.starts,
            moved,
            stayed,
        )
        clamp(moved, panel)
        if repeats:
            clamp(stayed, panel)
        through = _through_chain if chain and panel.linked else _alone
        state = replace(through(setting, law, moved, stayed), repeats=repeats, single=tables.single)
    return state


def tables_of(setting: Setting, state: State, use: BoolArray, parents: IntArray) -> tuple[Tables, Repeats]:
    """Tables and repetitions from the soft labels of a state."""
    panel, repeats = setting.panel, state.repeats
    counts = count_tables(panel, state.labels, use)
    if repeats and state.kept is not None and state.single is not None:
        fresh, again = fresh_votes(panel, counts, state.labels, state.kept, state.single, repeats)
        roots = parents < 0
        counts = np.where(roots[:, np.newaxis, np.newaxis], fresh, counts)
        repeats = Repeats(rates=np.where(roots, again.rates, repeats.rates))
    return make_tables(panel, state.labels, use, parents, setting.pinned, counts), repeats


def _with_balance(setting: Setting, state: State, use: BoolArray) -> Law:
    if setting.given is not None:
        return setting.given
    balance = class_balance(state.labels, use)
    return Law(balance=balance, initial=first_classes(balance, setting.possible), transition=state.law.transition)


def _alone(setting: Setting, law: Law, moved: FloatArray, stayed: FloatArray) -> State:  # noqa: ARG001  (as below)
    logs = moved + np.log(np.maximum(law.balance, 1e-300))
    most = logs.max(axis=1, initial=-np.inf)
    likelihood = float((most + np.log(np.exp(logs - most[:, np.newaxis]).sum(axis=1))).sum())
    return State(labels=softmax(logs), law=law, repeats=Repeats.none(setting.panel.n_sources), likelihood=likelihood)


def _through_chain(setting: Setting, law: Law, moved: FloatArray, stayed: FloatArray) -> State:
    labels, kept, steps = np.empty(moved.shape), np.empty(moved.shape), np.zeros(law.transition.shape)
    starts = setting.panel.starts
    likelihood = kernels.smooth(moved, stayed, starts, law.initial, law.transition, labels, steps, kept)
    if setting.given is None:
        allowed = None if setting.possible is None else setting.possible.steps
        transition = steps_to_transition(steps, law.balance, allowed)
        law = Law(balance=law.balance, initial=law.initial, transition=transition)
    none = Repeats.none(setting.panel.n_sources)
    return State(labels=labels, law=law, repeats=none, kept=kept, likelihood=float(likelihood))

"""Rounds of expectation and maximisation for sources on elements: a hidden chain with a forest of edges.

In: a panel, soft labels, who depends on whom. Out: soft labels, the law of the labels and the tables after some rounds.
A source may repeat itself (`repeats`); one that also has a parent keeps all its votes in its table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.repeats import Repeats, fresh_votes
from dugong.fit.learned.tables import (
    Tables,
    clamp,
    class_balance,
    count_tables,
    logs_of,
    make_tables,
    softmax,
    steps_to_transition,
)
from dugong.fit.learned.views import Constraints, LabelLaw, add_logs, through_chain
from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What stays the same in all rounds: the votes, and what is not to be learned."""

    folded: Folded
    fixed: Constraints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Where the rounds are.

    Attributes
    ----------
    weights : (n_rows, K) soft labels, summed over the elements with a row
    law : their law
    repeats : who repeats itself
    labels : (n, K) soft labels, None before the first round
    kept : (n, K) P(label before = label), None as long as there is no chain
    single : (m, K, C) tables that the labels were made with, None before the first round
    likelihood : log-likelihood of the votes under these tables
    """

    weights: FloatArray
    law: LabelLaw
    repeats: Repeats
    labels: FloatArray | None = None
    kept: FloatArray | None = None
    single: FloatArray | None = None
    likelihood: float = -np.inf


def first_state(setting: Setting, weights: FloatArray, use: BoolArray) -> State:
    """Before the first round: soft labels, their balance, and transitions half-way between staying and redrawing."""
    balance = class_balance(weights, use)
    transition = steps_to_transition(np.eye(len(balance)), balance, setting.fixed.possible)
    law = setting.fixed.law_with(balance, transition)
    m = setting.folded.panel.codes.shape[1]
    nobody = Repeats(rates=np.zeros((2, m)), lags=np.ones(m, dtype=np.int64))
    return State(weights=weights, law=law, repeats=nobody)


def run_rounds(
    setting: Setting,
    state: State,
    rounds: int,
    parents: IntArray,
    *,
    use: BoolArray | None = None,
    alone: FloatArray | None = None,
    settled: float = 0.0,
) -> State:
    """Some rounds from soft labels; `use` says which rows the first tables are made from, if not from all.

    With `alone`, what each source counts (m,), every element stands alone: only the class balance is learned. Rounds
    end early when no entry of a table moves by more than `settled`.
    """
    use = setting.folded.every if use is None else use
    for _ in range(rounds):
        tables, repeats = tables_of(setting, state, use, parents)
        if state.single is not None and np.abs(tables.single - state.single).max(initial=0.0) < settled:
            break
        law = setting.fixed.law_with(class_balance(state.weights, use), state.law.transition)
        # Rows that nobody spoke about have no label in the vote share; after a round they do, and count as well.
        use = setting.folded.every
        state = _expect(setting, law, tables, parents, repeats, alone)
    return state


def tables_of(setting: Setting, state: State, use: BoolArray, parents: IntArray) -> tuple[Tables, Repeats]:
    """Tables and repetitions from the soft labels of a state."""
    folded, repeats = setting.folded, state.repeats
    counts = count_tables(folded.rows, state.weights, use)
    if repeats.rates.any() and state.labels is not None and state.kept is not None and state.single is not None:
        fresh, again = fresh_votes(folded.panel, counts, state.labels, state.kept, state.single, repeats)
        # The table of an edge counts pairs of votes as they are, fresh or not, so its child must do so too.
        roots = parents < 0
        counts = np.where(roots[:, np.newaxis, np.newaxis], fresh, counts)
        repeats = Repeats(rates=np.where(roots, again.rates, repeats.rates), lags=repeats.lags)
    return make_tables(folded.rows, state.weights, use, parents, setting.fixed.pinned, counts), repeats


def evidence(
    folded: Folded, tables: Tables, parents: IntArray, repeats: Repeats, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """Log-likelihoods of the votes by row, known labels clamped; `weights` say what sources without edges count.

    Where some source repeats itself, by element, if its label moved and if it stayed.
    """
    repeating = folded.linked and bool(repeats.rates.any())
    panel = folded.panel if repeating else folded.rows
    shape = len(panel.codes), panel.coding.n_classes
    if not repeating and (parents < 0).all():
        return clamp(add_logs(panel, tables.single, np.ones(shape[0], dtype=np.bool_), weights), panel), None
    moved, stayed = np.empty(shape), np.empty(shape if repeating else (0, shape[1]))
    model = logs_of(tables.single), logs_of(tables.edges), tables.slots, parents, repeats.rates, repeats.lags
    kernels.add_model(panel.codes, *model, panel.places(), moved, stayed)
    return clamp(moved, panel), clamp(stayed, panel) if repeating else None


def _expect(
    setting: Setting, law: LabelLaw, tables: Tables, parents: IntArray, repeats: Repeats, alone: FloatArray | None
) -> State:
    """Soft labels under these tables: of elements in time, with transitions learned anew, or of every row by itself."""
    folded, fixed = setting.folded, setting.fixed
    logs, stayed = evidence(folded, tables, parents, repeats, alone)
    if alone is None and folded.linked:
        labels, kept, steps, likelihood = through_chain(folded, logs, law, stayed, keep=True)
        if fixed.law is None:
            law = replace(law, transition=steps_to_transition(steps, law.balance, fixed.possible))
        found = State(weights=folded.summed(labels), law=law, repeats=repeats, labels=labels, kept=kept)
    else:
        logs += np.log(np.maximum(law.balance, 1e-300))
        rows, likelihood = softmax(logs), float(folded.sizes @ logsumexp(logs, axis=1))
        weights, labels = rows * folded.sizes[:, np.newaxis], rows.take(folded.which, axis=0)
        found = State(weights=weights, law=law, repeats=repeats, labels=labels)
    return replace(found, single=tables.single, likelihood=likelihood)

"""What some of the sources say about every element: four log-features by row of votes, and the word of the neighbours.

In: a panel of sources on elements and what each counts. Out: a `View`:

    balance   log of the class balance
    share     log of the votes by class, smoothed
    votes     log-likelihood of the votes, divided by the design effect of errors that sources share
    silence   log-likelihood of who abstained
    neighbours  log of what a chain that carries share, votes and silence says about an element from the others

The tables come from a few rounds of expectation and maximisation from the vote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated

import numpy as np

from dugong.codec import Numbers
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import (
    CASTING,
    FARTHEST,
    ROUNDS_STICKY,
    ROUNDS_TABLES,
    SHARE_PRIOR,
    SHARED_ERRORS,
    STAYING,
)
from dugong.fit.learned.tables import (
    clamp,
    class_balance,
    count_tables,
    logs_of,
    smoothed,
    softmax,
    steps_to_transition,
)
from dugong.tasks.bio import Possible
from dugong.types import BoolArray, FloatArray

BALANCE, SHARE, VOTES, SILENCE, NEIGHBOURS = range(5)
_LEAST = 1e-6  # of every vote in the marginal of a source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelLaw:
    """A first-order law of labels: class balance (K,), first classes (K,) and transitions (K, K)."""

    balance: FloatArray
    initial: FloatArray
    transition: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constraints:
    """What is not to be learned: a given law of the labels, steps that are impossible, known tables (NaN: unknown).

    `settled`: whether others than the sources on elements have a say where these tie.
    """

    law: LabelLaw | None = None
    possible: Possible | None = None
    pinned: FloatArray | None = None
    settled: bool = False

    def law_with(self, balance: FloatArray, transition: FloatArray) -> LabelLaw:
        """The given law, or one with these numbers that begins with a class that a sequence can begin with."""
        if self.law is not None:
            return self.law
        initial = balance if self.possible is None else np.where(self.possible.first, balance, 0.0)
        return LabelLaw(balance=balance, initial=initial / initial.sum(), transition=transition)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sayings:
    """What the votes of sources on elements tell.

    Attributes
    ----------
    weights : (m,) what each source counts
    tables : (m, K, C) P(vote | label); where silence tells nothing, P(vote | label, spoke)
    silences : (m, K) P(abstain | label), NaN where that tells nothing
    background : class index of elements about which nobody speaks, or None
    effect : design effect by which the log-likelihood of the votes is divided
    casting : log-odds of the first of two classes where both have as many votes, beside what else is known
    """

    weights: FloatArray
    tables: FloatArray
    silences: Annotated[FloatArray, Numbers(finite=False)]
    background: int | None
    effect: float
    casting: Annotated[float, Numbers(low=0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Votes by class (n, K), their sums, their shares, and who says something (all, if there is a background)."""

    counts: FloatArray
    total: FloatArray
    share: FloatArray
    use: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """Features of the rows of a panel, (n_rows, 4, K), their class balance (n_rows, K), and the law of the labels.

    `tie` is what the first class is ahead by where votes tie, (n_rows,), in log-odds.
    """

    folded: Folded
    rows: FloatArray
    law: LabelLaw
    base: FloatArray
    tie: FloatArray

    def carried(self, exponents: FloatArray) -> FloatArray:
        """Evidence of every row inside the chain, (n_rows, K), known labels clamped."""
        logs = np.einsum("rfk,f->rk", self.rows[:, SHARE:], exponents[SHARE:NEIGHBOURS])
        return clamp(logs - reduce(np.maximum, logs.T)[:, np.newaxis], self.folded.rows)

    def messages(self, exponents: FloatArray) -> FloatArray:
        """What the neighbours of every element say about it, (n, K)."""
        logs = self.carried(exponents)
        if not self.folded.linked:
            return np.zeros((len(self.folded.which), logs.shape[1]))
        labels, *_ = through_chain(self.folded, logs, self.law)
        # What an element says itself is taken out again: its own votes are features of their own and would count twice.
        own = (logs + np.log(np.maximum(self.law.balance, 1e-300))).take(self.folded.which, axis=0)
        return np.asarray(np.maximum(np.log(np.maximum(labels, 1e-30)) - own, FARTHEST))


def vote_shares(panel: Panel, weights: FloatArray, background: int | None) -> Shares:
    """Votes of every element, variants of one another counted down."""
    n_classes, every = panel.coding.n_classes, np.ones(len(panel.codes), dtype=np.bool_)
    counts = np.zeros((len(every), n_classes))
    kernels.add_logs(panel.codes, weights[:, np.newaxis, np.newaxis] * panel.coding.split, every, counts)
    total = reduce(np.add, counts.T)
    voted = (total > 0)[:, np.newaxis]
    nobody = np.full(n_classes, 1 / n_classes) if background is None else np.eye(n_classes)[background]
    share = np.where(voted, counts / np.where(voted, total[:, np.newaxis], 1.0), nobody)
    known = panel.known >= 0
    share[known] = np.eye(n_classes)[panel.known[known]]
    use = (total > 0) | known if background is None else every
    return Shares(counts=counts, total=total, share=share, use=use)


def learn_sayings(
    folded: Folded, weights: FloatArray, background: int | None, fixed: Constraints
) -> tuple[Sayings, LabelLaw]:
    """Tables and class balance by a few rounds from the vote; one, averaged with the vote, where there is a background.

    A class that nobody names is known by silence alone: more rounds would let it swallow what single sources say.
    """
    rows, shares = folded.rows, vote_shares(folded.rows, weights, background)
    sizes, silent = folded.sizes[:, np.newaxis], rows.coding.silent
    codes = np.ascontiguousarray(rows.codes.T)  # numpy looks along long rows in a quarter of the time
    named = np.stack([(codes == place).any(axis=1) for place in range(rows.coding.n_classes)])
    # Silence is left out, unless every source names one class only: what such a source says if it speaks tells nothing;
    # how often it speaks of each label does.
    quiet = background is None and bool((named.sum(axis=0) > 1).any())
    heard = replace(rows, codes=np.where(rows.codes == silent, np.int8(-1), rows.codes)) if quiet else rows

    def maximise(labels: FloatArray) -> tuple[FloatArray, FloatArray]:
        summed = labels * sizes
        tables = smoothed(count_tables(heard, summed, shares.use), _LEAST)
        if fixed.pinned is not None:
            tables = _pinned(tables, fixed.pinned, background)
        balance = class_balance(summed, shares.use) if fixed.law is None else np.maximum(fixed.law.balance, 1e-12)
        return tables, balance

    labels = shares.share
    tables, balance = maximise(labels)
    for _ in range(1 if background is not None else ROUNDS_TABLES):
        logs = add_logs(heard, tables, shares.use, weights, silence=background is not None)
        labels = softmax(clamp(logs + np.log(balance), rows))
        labels = labels if background is None else (labels + shares.share) / 2
        tables, balance = maximise(labels)
    silences = np.full(tables.shape[:2], np.nan)
    if background is None:
        chance = smoothed(count_tables(rows, labels * sizes, shares.use), _LEAST)[:, :, silent]
        never = (codes != silent).all(axis=1, keepdims=True)
        silences = np.where(never, np.nan, np.clip(chance, 1e-9, 1 - 1e-9))
    # Design effect of the mean number of votes per voted element, whose errors are believed to be correlated.
    voted = max(float(folded.sizes[shares.total > 0].sum()), 1.0)
    effect = 1 + SHARED_ERRORS * max(float(shares.total @ folded.sizes) / voted - 1, 0.0)
    # Sources are written to find something and find too much: where as many say yes as say no, no is right two
    # times in three. With a given prior it is the prior that says how often.
    two = background is None and len(balance) == 2 and fixed.law is None and not fixed.settled
    sayings = Sayings(
        weights=weights,
        tables=tables,
        silences=silences,
        background=background,
        effect=effect,
        casting=CASTING if two else 0.0,
    )
    return sayings, fixed.law_with(balance, np.eye(len(balance)))


def view(folded: Folded, sayings: Sayings, law: LabelLaw) -> View:
    """The features of every row."""
    rows, background = folded.rows, sayings.background
    shares = vote_shares(rows, sayings.weights, background)
    # Silence has a feature and an exponent of its own, because it tells far less.
    votes = add_logs(rows, sayings.tables, shares.use, sayings.weights, silence=background is not None) / sayings.effect
    chance = sayings.silences[:, :, np.newaxis]
    silences = np.where(np.arange(rows.coding.n_columns) == rows.coding.silent, chance, 1 - chance)
    silence = add_logs(rows, np.where(np.isnan(silences), 1.0, silences), shares.use, sayings.weights)
    quiet = (shares.total == 0) & (rows.codes == rows.coding.silent).any(axis=1)
    # The balance of what sources speak about is not that of what they are silent about, and nothing in the votes tells
    # it. Most sources are written to find something, so that silence does not speak for what they look for: the class
    # at rest, which is the one that nobody names, else the first, is then as common as any.
    rest = law.balance.copy()
    rest[background or 0] = rest.max()
    base = np.where(quiet[:, np.newaxis], rest / rest.sum(), law.balance)
    counts = shares.counts + SHARE_PRIOR * base
    if background is not None:  # silence of all who were asked is a vote for the class that nobody names
        counts[quiet, background] += 1.0
    share = np.log(np.maximum(counts / reduce(np.add, counts.T)[:, np.newaxis], 1e-300))
    features = np.stack([np.log(np.maximum(base, 1e-300)), share, votes, silence], axis=1)
    tie = np.zeros(len(rows.codes))
    if sayings.casting:
        heads = vote_shares(rows, np.sign(sayings.weights), background).counts  # ties of the vote: nobody counted down
        tie[(heads[:, 0] == heads[:, 1]) & (heads[:, 0] > 0)] = sayings.casting
    return View(folded=folded, rows=features, law=law, base=base, tie=tie)


def learn_steps(seen: View, exponents: FloatArray, fixed: Constraints) -> View:
    """The same view with transitions learned by a few rounds through the chain, unless the law was given."""
    if fixed.law is not None:
        return seen
    balance, law = seen.law.balance, seen.law
    start = STAYING * np.eye(len(balance)) + (1 - STAYING) * balance
    law = replace(law, transition=steps_to_transition(start, np.zeros(len(balance)), fixed.possible))
    if seen.folded.linked:
        logs = seen.carried(exponents)
        for _ in range(ROUNDS_STICKY):
            _, _, steps, _ = through_chain(seen.folded, logs, law)
            law = replace(law, transition=steps_to_transition(steps, balance, fixed.possible))
    return replace(seen, law=law)


def through_chain(
    folded: Folded, logs: FloatArray, law: LabelLaw, stayed: FloatArray | None = None, *, keep: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """P(label) of every element, and P(label before = label), if it is kept, (n, K); steps (K, K); log-likelihood.

    The evidence is by row; with `stayed` by element, for labels that changed and for labels that stayed.
    """
    shape, steps = (len(folded.which), logs.shape[1]), np.zeros(law.transition.shape)
    labels, kept = np.empty(shape), np.empty(shape if keep else (0, shape[1]))
    chain = folded.panel.starts, law.initial, law.transition, labels, steps, kept
    if stayed is None:
        likelihood = kernels.smooth_rows(logs, folded.which, *chain)
    else:
        likelihood = kernels.smooth(logs, stayed, *chain)
    return labels, kept, steps, float(likelihood)


def add_logs(
    panel: Panel, tables: FloatArray, use: BoolArray, weights: FloatArray | None = None, *, silence: bool = True
) -> FloatArray:
    """Log-likelihood of the votes by label, (n, K), from tables (m, K, C); zero where `use` is off.

    `weights` (m,) say what each source counts; without `silence` abstaining says nothing.
    """
    logs, out = logs_of(tables), np.zeros((len(panel.codes), tables.shape[1]))
    if weights is not None:
        logs *= weights[:, np.newaxis, np.newaxis]
    if not silence:
        logs[:, panel.coding.silent] = 0.0
    kernels.add_logs(panel.codes, logs, use, out)
    return out


def _pinned(tables: FloatArray, pinned: FloatArray, background: int | None) -> FloatArray:
    """Known tables are kept; where silence tells nothing, as tables of what is said if something is."""
    known = pinned.copy()
    if background is None:
        known[:, :, known.shape[1]] = 0.0
        known /= np.maximum(known.sum(axis=-1, keepdims=True), 1e-300)
    return np.where(np.isnan(pinned), tables, np.maximum(known, 1e-9))

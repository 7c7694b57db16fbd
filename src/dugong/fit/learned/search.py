"""The search for structure: which sources depend on each other or on themselves.

In: a panel of sources on elements. Out: a `GraphFinding`: edges, self-dependence, and a fitted law of the labels.
Greedy with refitting: strong residual correlations of an independent fit become edges at once, weaker ones after the
first fit, if less is left to explain then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from dugong.fit.learned.forest import Forest, reroot, strongest_forest
from dugong.fit.learned.indicators import low_rank_strengths
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.residuals import Misfit, find_misfit
from dugong.fit.learned.rounds import Setting, State, first_state, run_rounds, tables_of
from dugong.fit.learned.settings import (
    FEWEST_SOURCES,
    FITS,
    LASTING,
    MOST_STATES,
    ROUNDS_ALONE,
    ROUNDS_CHAIN,
    ROUNDS_MORE,
    SATURATED,
    SELF_EDGE,
    SETTLED,
    STRONG_EDGE,
    WEAK_EDGE,
)
from dugong.fit.learned.tables import Tables
from dugong.fit.learned.views import Shares, vote_shares
from dugong.types import FloatArray, IntArray

Method = Literal["residuals", "low-rank"]
_FOLLOWS = ("parents", "repeats", "root", "untestable")
FEW_GROUPS: Final = "there are only {} independent groups of sources, and some label explains any {}"
REPEATING: Final = "nearly all sources repeat their errors from element to element, which looks like labels that last"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphFinding:
    """What the search found.

    Attributes
    ----------
    forest : dependent pairs
    strength : (m, m) residual correlation of errors under independence, or under the first fit where that found it
    state : the fitted labels, their law, and who repeats itself
    misfit : what is left unexplained
    tables : those of the fitted labels; None as long as nothing tests the model
    parents, repeats : parents and self-dependence of every source, at most one of the two for each
    root : (m,) the root of the tree of every source
    untestable : why nothing tells whether this model holds, in words; empty if something does
    """

    forest: Forest
    strength: FloatArray
    state: State
    misfit: Misfit
    tables: Tables | None = None
    parents: IntArray = field(init=False)
    repeats: Repeats = field(init=False)
    root: IntArray = field(init=False)
    untestable: str = field(init=False, default="")

    def __post_init__(self) -> None:
        rates = self.state.repeats.rates
        # Self-dependence that is next to nothing once it is fitted is none.
        parents, chosen = reroot(self.forest.near, np.where(rates[0] > SELF_EDGE, rates[0], 0.0), self.strength)
        apart, root, untestable = parents < 0, np.where(parents < 0, np.arange(len(parents)), parents), ""
        for _ in parents:
            root = root[root]
        if apart.sum() <= SATURATED:  # fewer independent groups do not tell labels from what a group shares
            untestable = FEW_GROUPS.format(apart.sum(), SATURATED)
        # Two sources that repeat themselves agree because labels last or because errors do: only a pair of which one
        # does not can tell, so all but one of three must not.
        elif (apart & ~chosen).sum() < FEWEST_SOURCES - 1:
            untestable = REPEATING
        repeats = replace(self.state.repeats, rates=np.where(chosen, rates, 0.0))
        for name, value in zip(_FOLLOWS, (parents, repeats, root, untestable), strict=True):
            object.__setattr__(self, name, value)


def search(
    setting: Setting,
    background: int | None,
    weights: FloatArray,
    method: Method = "residuals",
    progress: Callable[[int, int], object] | None = None,
) -> GraphFinding:
    """Find edges and self-dependence, and fit the model; `weights` say what each source counts, (m,).

    `progress` is told the steps of a low-rank decomposition, which take time in the cube of the sources.
    """
    shares = vote_shares(setting.folded.rows, weights, background)
    if background is not None:
        shares = _better_start(setting, shares, background)
    if method == "residuals":
        found = _by_residuals(setting, shares, weights)
    else:
        found = _by_low_rank(setting, shares, progress)
    if found.untestable:
        return found
    state = run_rounds(setting, found.state, ROUNDS_MORE, found.forest.parents, settled=SETTLED)
    found = replace(found, state=state)
    state = replace(state, repeats=found.repeats)
    return replace(found, tables=tables_of(setting, state, setting.folded.every, found.parents)[0])


def _by_low_rank(setting: Setting, shares: Shares, progress: Callable[[int, int], object] | None) -> GraphFinding:
    """The strongest dependencies of a low-rank-plus-sparse decomposition, fitted and tested, nothing added."""
    strength, own = low_rank_strengths(setting.folded.panel, progress)
    repeats = Repeats.about(np.where(own > SELF_EDGE, own, 0.0), np.ones(len(own), dtype=np.int64))
    return _attempt(setting, shares, strongest_forest(strength, SELF_EDGE), strength, repeats)


def _by_residuals(setting: Setting, shares: Shares, weights: FloatArray) -> GraphFinding:
    """Greedy with refitting: what a fit leaves unexplained, beyond chance, becomes an edge."""
    nobody, everyone = np.full(len(weights), -1), ~np.eye(len(weights), dtype=np.bool_)
    # With families counted down: else many variants make the label, and their errors vanish.
    start = first_state(setting, shares.share * setting.folded.sizes[:, np.newaxis], shares.use)
    start = run_rounds(setting, start, ROUNDS_ALONE, nobody, use=shares.use, alone=weights)
    first, _ = find_misfit(setting, start, everyone).discovered
    found = _attempt(setting, shares, strongest_forest(first, STRONG_EDGE), first)
    most = found.forest.n_edges + max(1, (len(weights) - 2) // 2)
    # Where errors last, weak residuals are those of labels and errors that were taken for each other.
    while found.misfit.worst > FITS and found.forest.n_edges < most:
        if np.median(found.misfit.discovered[1][0]) > LASTING:
            break
        again = _attempt(setting, shares, *_grown(found, first, most))
        if again.forest.n_edges == found.forest.n_edges or again.misfit.worst >= found.misfit.worst:
            break
        found = again
    return found


def _grown(found: GraphFinding, first: FloatArray, most: int) -> tuple[Forest, FloatArray]:
    """The forest with a few more edges, where the fit left the strongest residuals; and all strengths."""
    joined = ~found.forest.apart
    strength = np.where(joined, found.strength, found.misfit.discovered[0])
    few = min(most, found.forest.n_edges + max(1, len(first) // 4))
    return strongest_forest(np.where(joined, 1 + found.strength, strength), WEAK_EDGE, few), strength


def _better_start(setting: Setting, shares: Shares, background: int) -> Shares:
    """With a background, silence may be a vote for it as well: of the two starts the one that fits better.

    Sources that name one class or abstain, with many false alarms, need the second.
    """
    panel = setting.folded.rows
    asked = (panel.codes >= 0).sum(axis=1, keepdims=True)
    silent = (panel.codes == panel.coding.silent).sum(axis=1, keepdims=True)
    onto = np.eye(panel.coding.n_classes)[background]
    counted = (shares.share * (asked - silent) + silent * onto) / np.maximum(asked, 1)
    settled = (asked == 0) | (panel.known >= 0)[:, np.newaxis]
    other = replace(shares, share=np.where(settled, shares.share, counted))
    nothing = strongest_forest(np.zeros((panel.codes.shape[1],) * 2), 0.0)
    first, second = (_first_fit(setting, start, nothing).likelihood for start in (shares, other))
    return other if second > first + 1e-6 * abs(first) else shares


def _first_fit(setting: Setting, shares: Shares, forest: Forest) -> State:
    """From the vote, a few rounds without edges in time, then half of those with the chain; no self-dependence."""
    start = first_state(setting, shares.share * setting.folded.sizes[:, np.newaxis], shares.use)
    alone = run_rounds(setting, start, ROUNDS_ALONE, forest.parents, use=shares.use, alone=np.ones(len(forest.near)))
    state = first_state(setting, alone.weights, setting.folded.every)
    return run_rounds(setting, state, ROUNDS_CHAIN // 2, forest.parents)


def _attempt(
    setting: Setting, shares: Shares, forest: Forest, strength: FloatArray, repeats: Repeats | None = None
) -> GraphFinding:
    """Fit the model on one set of edges; who repeats itself is tested unless given."""
    state = _first_fit(setting, shares, forest)
    misfit = find_misfit(setting, state, forest.apart)
    if repeats is None or not repeats.rates.any():
        # The strongest of every source, at a lag that an exact chain can remember.
        lasting = misfit.discovered[1]
        lags = np.arange(1, len(lasting) + 1)
        possible = (lags == 1) | (float(setting.folded.rows.coding.n_classes) ** lags <= MOST_STATES)
        own = np.where(possible[:, np.newaxis] & (lasting > SELF_EDGE), lasting, 0.0)
        repeats = Repeats.about(own.max(axis=0), own.argmax(axis=0) + 1)
    state = replace(state, repeats=repeats)
    found = GraphFinding(forest=forest, strength=strength, state=state, misfit=misfit)
    if found.untestable:  # nothing is gained by a better fit of a model that is not used
        return found
    state = run_rounds(setting, state, ROUNDS_CHAIN // 2, forest.parents)
    misfit = find_misfit(setting, state, forest.apart)
    if misfit.worst > FITS:  # what looks like a missing edge may only be a fit that has not settled
        state = run_rounds(setting, state, ROUNDS_MORE, forest.parents)
        misfit = find_misfit(setting, state, forest.apart)
    return replace(found, state=state, misfit=misfit)

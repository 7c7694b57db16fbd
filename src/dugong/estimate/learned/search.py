"""The search for structure: which sources depend on each other or on themselves, and whether a model fits at all.

In: a panel of sources on elements and their vote shares. Out: a `Finding`: edges, self-dependence, a fitted law of the
labels, and the share of the answer that the model earns. Greedy with refitting: strong residual correlations of an
independent fit become edges at once, weaker ones after the first fit, if that improves the trust.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.estimate.learned.forest import Forest, no_edges, strongest_forest
from dugong.estimate.learned.residuals import Misfit, find_misfit
from dugong.estimate.learned.robust import Shares
from dugong.estimate.learned.rounds import Setting, State, first_law, run_rounds
from dugong.estimate.learned.settings import (
    FAILS,
    FITS,
    LASTING,
    ROUNDS_ALONE,
    ROUNDS_CHAIN,
    ROUNDS_MORE,
    SELF_EDGE,
    STRONG_EDGE,
    TESTABLE,
    WEAK_EDGE,
)
from dugong.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What the search found.

    Attributes
    ----------
    forest : dependent pairs
    repeats : (m,) probability that a source repeats its vote while the label stays; 0 if it does not
    strength : (m, m) residual correlation of errors under independence, or under the first fit where that found it
    state : the fitted labels and their law
    misfit : what is left unexplained
    trust : 1 if nothing, 0 if too much or nothing can be tested
    closed : no further edges are worth a search
    """

    forest: Forest
    repeats: FloatArray
    strength: FloatArray
    state: State
    misfit: Misfit
    trust: float
    closed: bool


def search(setting: Setting, shares: Shares) -> Finding:
    """Find edges and self-dependence, and fit the model."""
    panel = setting.panel
    alone = _independent(setting, shares)
    first = find_misfit(panel, alone.labels, None, shares.use, no_edges(panel.n_sources).apart()).correlation
    found = _attempt(setting, shares, strongest_forest(first, STRONG_EDGE), first)
    if found.trust < 1 and not found.closed and panel.n_sources > 3:
        joined = ~found.forest.apart()
        strength = np.where(joined, first, found.misfit.correlation)
        most = found.forest.n_edges + max(1, panel.n_sources // 4)
        forest = strongest_forest(np.where(joined, 1 + first, strength), WEAK_EDGE, most)
        again = _attempt(setting, shares, forest, strength)
        found = again if again.trust > found.trust else found
    if found.trust > 0:
        found = replace(found, state=_rounds(setting, found.state, ROUNDS_MORE, found.forest, found.repeats))
    return found


def _independent(setting: Setting, shares: Shares, forest: Forest | None = None) -> State:
    """A few rounds without edges in time, from the vote."""
    start = State(labels=shares.share, law=first_law(setting, shares.share, shares.use))
    parents = (forest or no_edges(setting.panel.n_sources)).parents
    return run_rounds(setting, start, shares.use, ROUNDS_ALONE, parents=parents, chain=False)


def _rounds(setting: Setting, state: State, rounds: int, forest: Forest, repeats: FloatArray) -> State:
    everywhere = setting.everywhere()
    return run_rounds(setting, state, everywhere, rounds, parents=forest.parents, repeats=repeats, chain=True)


def _attempt(setting: Setting, shares: Shares, forest: Forest, strength: FloatArray) -> Finding:
    """Fit the model on one set of edges; stop half-way where the residuals already rule it out."""
    panel = setting.panel
    apart, zero = forest.apart(), np.zeros(panel.n_sources)
    state = _independent(setting, shares, forest)
    state = replace(state, law=first_law(setting, state.labels, setting.everywhere()))
    state = _rounds(setting, state, ROUNDS_CHAIN // 2, forest, zero)
    misfit = find_misfit(panel, state.labels, state.kept, shares.use, apart)
    repeats = np.where(misfit.own > SELF_EDGE, np.clip(misfit.own, 0, 0.95), 0.0)
    lasting = misfit.persistence > LASTING
    few = panel.n_sources < 4
    hopeless = misfit.worst > 4 * FAILS or misfit.information < TESTABLE or (lasting and few)
    if not hopeless:
        state = _rounds(setting, state, ROUNDS_CHAIN // 2, forest, repeats)
        misfit = find_misfit(panel, state.labels, state.kept, shares.use, apart)
        if 0 < trust_in(misfit) < 1:
            state = _rounds(setting, state, ROUNDS_MORE, forest, repeats)
            misfit = find_misfit(panel, state.labels, state.kept, shares.use, apart)
    return Finding(
        forest=forest,
        repeats=repeats,
        strength=strength,
        state=state,
        misfit=misfit,
        trust=0.0 if hopeless else trust_in(misfit),
        closed=hopeless or lasting,
    )


def trust_in(misfit: Misfit) -> float:
    """From 1 (the residuals are noise) to 0 (they are not, or there is too little to test)."""
    if misfit.information < TESTABLE:
        return 0.0
    return 1 - min(max((misfit.worst - FITS) / (FAILS - FITS), 0.0), 1.0)

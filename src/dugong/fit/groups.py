"""Groups whose tables differ (patients, cameras, sites): each its own law, leaning on the one of all (sharing="group").

In: a fit to all votes, and passes over those of each group. Out: the same fit with a law for every group. How far a
table leans on the pooled one is decided by the data (empirical Bayes): rows of all groups are taken as draws from a
Dirichlet law around the pooled row, and its concentration, in votes, is the one under which the expected votes of the
groups are likeliest. Where groups are alike it is large and every group has the pooled table; where they differ it is
small, and groups with many votes go their own way. A row on which a group has hardly any votes, such as that of a label
which it does not have, stays the pooled one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from dugong.fit.beliefs import AnyBelief, Belief, Leaning, votes_by_label
from dugong.fit.em import EM, Ties, maximise, normalised
from dugong.fit.passes import Passes
from dugong.fit.result import Note
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Parameters
from dugong.priors import Markov
from dugong.types import FloatArray

# Votes' worth of the pooled row; beyond the last, groups have the same table.
_GRID = np.logspace(0, 5, 41)
_ALIKE = 1e4
# Few steps, because EM drifts: given time, it explains whatever is not alike inside of a group by labels.
_STEPS = EM(max_iter=2)


def concentrations(votes: FloatArray, mean: FloatArray) -> FloatArray:
    """Votes' worth of the mean row (K, ..., C) in every group, (K,), from expected votes by group (G, K, ..., C)."""
    weights = _GRID.reshape(-1, *(1,) * votes.ndim)
    # Of a Dirichlet-multinomial law; cells that no group has, and their zero mean, add nothing.
    inside = weights * np.maximum(mean, 1e-9)
    weights = weights[..., 0]
    likelihood = gammaln(weights) - gammaln(weights + votes.sum(axis=-1))
    likelihood = likelihood + (gammaln(inside + votes) - gammaln(inside)).sum(axis=-1)
    rows = tuple(range(3, likelihood.ndim))  # of one label: what its votes depend on besides
    return np.asarray(_GRID[likelihood.sum(axis=(1, *rows)).argmax(axis=0)])


def leanings(
    counts: Sequence[ExpectedCounts], parameters: Parameters, beliefs: Mapping[str, AnyBelief]
) -> dict[str, Leaning]:
    """How the tables of every source lean on the pooled ones, from the expected counts of all groups."""
    found = {}
    for factor in parameters.factors:
        votes = np.stack([votes_by_label(one.factors[factor.source]) for one in counts])
        mean = normalised(votes.sum(axis=0), np.full(votes.shape[1:], 1 / votes.shape[-1]))
        belief = beliefs.get(factor.source)
        found[factor.source] = Leaning(
            table=mean, weights=concentrations(votes, mean), belief=belief if isinstance(belief, Belief) else None
        )
    return found


def group_laws(parts: Mapping[str, Passes], law: Law, ties: Ties) -> tuple[dict[str, Law], Note]:
    """Exact E/M steps for all groups side by side, from the pooled law; and what they found, in words."""
    laws = dict.fromkeys(parts, law)
    for _ in range(_STEPS.max_iter):
        counts = {name: part.counts(laws[name]) for name, part in parts.items()}
        lean = leanings(list(counts.values()), law.parameters, ties.beliefs)
        own = replace(ties, keys={}, beliefs={name: one for name, one in lean.items() if name not in ties.known})
        laws = {name: maximise(one, laws[name], law, _STEPS, own) for name, one in counts.items()}
        # Also a prior that was given: it is that of all groups together, and one of them may have no positives at all.
        if isinstance(law.prior, Markov):
            priors = _priors(list(counts.values()), law.prior)
            laws = {name: replace(one, prior=prior) for (name, one), prior in zip(laws.items(), priors, strict=True)}
    return laws, describe(lean, len(parts))


def _priors(counts: Sequence[ExpectedCounts], prior: Markov) -> list[Markov]:
    """A chain for every group, leaning on the pooled one in the same way as tables do."""
    steps = np.stack([one.transitions for one in counts])
    first = np.stack([one.initial for one in counts])
    mean, start = np.asarray(prior.transition), np.asarray(prior.initial)
    rows = steps + concentrations(steps, mean)[:, np.newaxis] * mean
    firsts = first + concentrations(first[:, np.newaxis], start[np.newaxis])[0] * start
    return [
        Markov(initial=one / one.sum(), transition=own / own.sum(axis=1, keepdims=True))
        for one, own in zip(firsts, rows, strict=True)
    ]


def describe(lean: Mapping[str, Leaning], n_groups: int) -> Note:
    """Which sources differ between groups."""
    least = {name: float(one.weights.min()) for name, one in lean.items()}
    listed = ", ".join(f"{name!r} {weight:.3g}" for name, weight in least.items() if weight < _ALIKE)
    text = f"{n_groups} groups have tables of their own; what the pooled table counts in each, in votes: {listed}"
    if not listed:
        text = f"the tables of {n_groups} groups do not differ by more than chance: all have the pooled ones"
    return Note(kind="groups", text=text, size=min(least.values(), default=np.inf))

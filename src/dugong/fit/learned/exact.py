"""Exact rounds: expectation through the engine, with every source at every resolution, then maximisation.

In: votes, first factors and a first prior. Out: both after some rounds, and the expected counts of the last one, from
which the tables for people are read. Each table leans on the one that it began with by a few pseudo-votes; rounds end
when the likelihood gains next to nothing per vote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dugong.fit.beliefs import votes_by_label
from dugong.fit.em import FREE, Ties, normalised
from dugong.fit.learned.settings import PSEUDO_PAIRS, PSEUDO_VOTES
from dugong.fit.learned.tables import mute_unseen, smoothed
from dugong.infer.engine import expected_counts
from dugong.law import ExpectedCounts
from dugong.law.parameters import Factor, Parameters
from dugong.priors import Markov, Prior
from dugong.types import MISSING, Int8Array
from dugong.votes import Votes

_GAIN = 1e-7
_FIRST_CLASSES = 5.0
_STEPS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exact:
    """Parameters and prior after the rounds, the counts they were made from, and the likelihood before each round."""

    parameters: Parameters
    prior: Prior
    counts: ExpectedCounts
    likelihoods: tuple[float, ...]


def run_exact(
    votes: Votes,
    start: Parameters,
    prior: Prior,
    rounds: int,
    *,
    learn_prior: bool,
    ties: Ties = FREE,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> Exact:
    """At least one and at most `rounds` rounds; known tables are kept, and beliefs hold."""
    n_votes = max(sum(np.count_nonzero(column != MISSING) for column in votes.columns), 1)
    parameters, law, likelihoods = start, prior, list[float]()
    for _ in range(max(rounds, 1)):
        counts = expected_counts(votes, parameters, law, evidence=evidence, n_threads=n_threads)
        likelihoods.append(float(counts.log_likelihood))
        if learn_prior and isinstance(prior, Markov):
            initial, transition = np.asarray(prior.initial), np.asarray(prior.transition)
            first = normalised(counts.initial + _FIRST_CLASSES * initial, initial)
            law = Markov(initial=first, transition=normalised(counts.transitions + _STEPS * transition, transition))
        parameters = _maximised(counts, parameters, start, ties)
        # Per vote, because the likelihood grows with the votes, and so does what a round can gain.
        if len(likelihoods) > 1 and likelihoods[-1] - likelihoods[-2] < _GAIN * n_votes:
            break
    parameters = replace(parameters, factors=tuple(_mute(f, counts, ties.known) for f in parameters.factors))
    return Exact(parameters=parameters, prior=law, counts=counts, likelihoods=tuple(likelihoods))


def _mute(factor: Factor, counts: ExpectedCounts, pinned: frozenset[str]) -> Factor:
    """The same factor with votes that never occurred as no evidence."""
    if factor.source in pinned or factor.source not in counts.factors:
        return factor
    never = votes_by_label(counts.factors[factor.source]).sum(axis=0) <= 0
    if not never.any():
        return factor
    tables = {name: getattr(factor, name, None) for name in ("table", "marginal", "first", "step")}
    muted: dict[str, Any] = {name: mute_unseen(one, never) for name, one in tables.items() if one is not None}
    return replace(factor, **muted)


def _maximised(counts: ExpectedCounts, parameters: Parameters, start: Parameters, ties: Ties) -> Parameters:
    """The tables that explain the counts best, each leaning on the one that it began with; known ones stay."""
    pooled, anchors = ties.pool(counts, parameters).factors, {factor.source: factor for factor in start.factors}
    factors = []
    for factor in parameters.factors:
        seen = {} if factor.source in ties.known else pooled.get(factor.source, {})
        tables: dict[str, Any] = {}
        for name, table in seen.items():
            if name == "marginal":
                tables[name] = smoothed(votes_by_label(seen)[np.newaxis])[0]
            else:
                anchor, weight = (
                    getattr(anchors[factor.source], name),
                    PSEUDO_VOTES if table.ndim == 2 else PSEUDO_PAIRS,
                )
                tables[name] = normalised(table + weight * anchor, anchor)
        factors.append(replace(factor, **tables))
    return replace(parameters, factors=tuple(factors))

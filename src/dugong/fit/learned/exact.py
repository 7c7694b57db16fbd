"""Exact rounds: expectation through the engine, with every source at every resolution, then maximisation.

In: votes, first factors and a first prior. Out: both after some rounds, and the expected counts of the last one, from
which the tables for people are read. Each table leans on the one that it began with by a few pseudo-votes; rounds end
when the likelihood gains next to nothing per vote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.beliefs import votes_by_label
from dugong.fit.em import FREE, Ties, normalised
from dugong.fit.learned.settings import PSEUDO_PAIRS, PSEUDO_VOTES
from dugong.fit.learned.tables import mute_unseen, smoothed
from dugong.infer.engine import expected_counts
from dugong.law import ExpectedCounts
from dugong.law.parameters import Conditional, Crossed, Factor, Parameters, Temporal
from dugong.priors import Markov, Prior
from dugong.types import MISSING, FloatArray, Int8Array
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
    parameters, law = start, prior
    likelihoods: list[float] = []
    for _ in range(max(rounds, 1)):
        counts = expected_counts(votes, parameters, law, evidence=evidence, n_threads=n_threads)
        likelihoods.append(float(counts.log_likelihood))
        if learn_prior and isinstance(law, Markov) and isinstance(prior, Markov):
            initial, transition = np.asarray(prior.initial), np.asarray(prior.transition)
            law = Markov(
                initial=normalised(counts.initial + _FIRST_CLASSES * initial, initial),
                transition=normalised(counts.transitions + _STEPS * transition, transition),
            )
        parameters = _next_parameters(counts, parameters, start, ties)
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
    if isinstance(factor, Temporal):
        return replace(factor, first=mute_unseen(factor.first, never), step=mute_unseen(factor.step, never))
    assert isinstance(factor, Conditional | Crossed)
    marginal = None if factor.marginal is None else mute_unseen(factor.marginal, never)
    return replace(factor, table=mute_unseen(factor.table, never), marginal=marginal)


def _next_parameters(counts: ExpectedCounts, parameters: Parameters, start: Parameters, ties: Ties) -> Parameters:
    anchors = {factor.source: factor for factor in start.factors}
    pooled = ties.pool(counts, parameters).factors
    factors = tuple(
        factor
        if factor.source in ties.known or factor.source not in pooled
        else _next_factor(factor, anchors[factor.source], pooled[factor.source])
        for factor in parameters.factors
    )
    return Parameters(n_classes=parameters.n_classes, factors=factors)


def _next_factor(factor: Factor, anchor: Factor, counts: Mapping[str, FloatArray]) -> Factor:
    if isinstance(factor, Temporal) and isinstance(anchor, Temporal):
        first = normalised(counts["first"] + PSEUDO_VOTES * anchor.first, anchor.first)
        return replace(factor, first=first, step=normalised(counts["step"] + PSEUDO_PAIRS * anchor.step, anchor.step))
    assert isinstance(factor, Conditional | Crossed)
    assert isinstance(anchor, Conditional | Crossed)
    if isinstance(factor, Conditional) and not factor.parents:
        return replace(factor, table=normalised(counts["table"] + PSEUDO_VOTES * anchor.table, anchor.table))
    marginal = smoothed(votes_by_label(counts)[np.newaxis])[0]
    table = normalised(counts["table"] + PSEUDO_PAIRS * anchor.table, anchor.table)
    return replace(factor, table=table, marginal=marginal)

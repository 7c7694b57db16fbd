"""A few exact rounds of expectation and maximisation where sources repeat themselves.

In: a closed-form fit and its votes. Out: the same with all its tables re-estimated from expected counts. Proxies say
little about a source at the moment when a label changes; the posterior given all votes says much more. Transition
tables are drawn towards copying in every round, by the spread of their counts between groups of sequences.

Only with the votes at hand: moments alone (shards, `partial_fit`) keep the closed form.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dugong.estimate.copying import draw_to_copying
from dugong.estimate.design import Design
from dugong.estimate.em import EM, maximise
from dugong.estimate.errors import weighted_error
from dugong.estimate.fitting import Fitted
from dugong.estimate.readout import read_accuracies, read_correlations
from dugong.estimate.result import Note
from dugong.infer.engine import expected_counts
from dugong.infer.parameters import Parameters
from dugong.infer.results import ExpectedCounts
from dugong.moments import Grouping
from dugong.moments.groups import FEW
from dugong.priors import Prior
from dugong.types import BoolArray, FloatArray
from dugong.votes import Votes

ROUNDS = 2


def settle(
    fitted: Fitted,
    votes: Votes,
    design: Design,
    prior: Prior,
    grouping: Grouping,
    *,
    pinned: Collection[str] = (),
    n_threads: int | None = None,
) -> Fitted:
    """Raise the likelihood of a closed-form fit with sources that repeat themselves; others are left as they are."""
    if not design.graph.temporal or votes.n_sequences < FEW:
        return fitted
    parameters = start = fitted.estimate.parameters
    kept: dict[str, float] = {}
    likelihoods = []
    groups, members = np.unique(grouping.base, return_inverse=True)
    for _ in range(ROUNDS):
        counts = expected_counts(votes, parameters, prior, groups=members, n_threads=n_threads)
        likelihoods.append(float(counts.log_likelihood.sum()))
        drawn = {name: _drawn(counts.factors[name]["step"], groups > 0) for name in design.graph.temporal}
        kept = {name: share for name, (_, share) in drawn.items()}
        total = _total(counts, {name: steps for name, (steps, _) in drawn.items()})
        parameters = _next(total, parameters, start, prior, pinned)
    return _told(fitted, parameters, total, design, kept, likelihoods[-1] - likelihoods[0])


def _drawn(steps: FloatArray, drawn: BoolArray) -> tuple[FloatArray, float]:
    """Expected counts (n_groups, 2, 2, C, C) of a transition table, summed and drawn towards copying.

    `drawn` says which groups can be left out: all but the rest.
    """
    total, sizes = steps.sum(axis=0), steps.sum(axis=(1, 2, 3, 4))
    groups = np.flatnonzero(drawn & (sizes > 0))
    if sizes.sum() <= 0 or len(groups) < 2:
        return total, 1.0
    joint = total / sizes.sum()
    without = (total - steps[groups]) / (sizes.sum() - sizes[groups]).reshape(-1, 1, 1, 1, 1)
    errors = weighted_error(joint, without, sizes[groups] / sizes.sum())
    joint, share = draw_to_copying(joint, errors, joint.sum(axis=(2, 3)), len(groups))
    return np.maximum(joint, 0.0) * sizes.sum(), share


def _total(counts: ExpectedCounts, steps: dict[str, FloatArray]) -> ExpectedCounts:
    """Counts of all groups, with the given ones of transition tables."""
    factors = {
        source: {name: table.sum(axis=0) for name, table in tables.items()}
        | ({"step": steps[source]} if source in steps else {})
        for source, tables in counts.factors.items()
    }
    return ExpectedCounts(
        factors=factors,
        initial=counts.initial.sum(axis=0),
        transitions=counts.transitions.sum(axis=0),
        log_likelihood=counts.log_likelihood.sum(axis=0),
    )


def _next(
    counts: ExpectedCounts, parameters: Parameters, start: Parameters, prior: Prior, pinned: Collection[str]
) -> Parameters:
    following, _ = maximise(counts, parameters, prior, start, prior, EM())
    pairs = zip(parameters.factors, following.factors, strict=True)
    return replace(following, factors=tuple(old if old.source in pinned else new for old, new in pairs))


def _told(
    fitted: Fitted,
    parameters: Parameters,
    counts: ExpectedCounts,
    design: Design,
    kept: dict[str, float],
    gain: float,
) -> Fitted:
    """The fit with its new tables and a note on what the rounds did."""
    estimate = fitted.estimate
    shares = ", ".join(f"{name!r} {share:.0%}" for name, share in kept.items())
    text = (
        f"{ROUNDS} exact rounds, which changed the log-likelihood by {gain:+.4g} before the last; "
        f"kept of what sources do beside copying their last vote: {shares}"
    )
    note = Note(kind="rounds", text=text, size=gain)
    diagnostics = replace(estimate.diagnostics, notes=(*estimate.diagnostics.notes, note))
    correlations = read_correlations(parameters, counts, design.graph.edges)
    estimate = replace(
        estimate,
        parameters=parameters,
        accuracies=read_accuracies(parameters, counts),
        correlations={**estimate.correlations, **correlations},
        diagnostics=diagnostics,
    )
    return replace(fitted, estimate=estimate)

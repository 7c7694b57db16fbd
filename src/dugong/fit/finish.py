"""The end of a fit on little data: tables back from the edge, and exact E/M steps.

In: a closed-form estimate with its standard errors, then the expected counts under it. Out: an estimate that wastes
less of the votes. Both steps vanish as data grows: the truth is inside its limits, and a fixed point of EM.

A moment estimate with a large standard error often lies outside [0, 1]. The nearest valid table then says "never",
which a few hundred sequences cannot know, and one vote decides a label. The mean of all that the standard error leaves
possible does not claim more than was measured. From there one E/M step reaches most of what maximum likelihood would
(METHOD 3.3); more of them would gain little, and drift where sources share errors that nobody declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from scipy.special import erfcx

from dugong.fit.em import EM, Ties, maximise, read_accuracy, read_correlations
from dugong.fit.moments.copying import shrink_counts
from dugong.fit.passes import Passes
from dugong.fit.result import Estimate, Note
from dugong.graph import SourceGraph
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Conditional
from dugong.priors import Prior
from dugong.types import FloatArray

# Standard errors below this are rounding: the entry is known.
_KNOWN = 1e-10
_REPORTED = 1e-3
_FAR = -30.0  # standard errors from the edge at which it has no influence, and beyond which numbers overflow
_STEP = EM(max_iter=1)


def possible_mean(value: FloatArray, error: FloatArray) -> FloatArray:
    """Mean of a normal law around `value`, cut to [0, 1]; `value` itself where that is far inside."""
    low = np.minimum(value, 1 - value)  # by symmetry the nearer edge is at 0
    near, far = np.maximum(-low / error, _FAR), (1 - low) / error
    rest = np.exp((near**2 - far**2) / 2)
    mass = (erfcx(near / np.sqrt(2)) - erfcx(far / np.sqrt(2)) * rest) / 2
    mean = low + error * (1 - rest) / (np.sqrt(2 * np.pi) * mass)
    mean = np.clip(mean, _KNOWN**2, 1.0)  # far outside, digits cancel
    return np.asarray(np.where(value < 0.5, mean, 1 - mean))


def within_errors(estimate: Estimate, errors: Mapping[str, FloatArray]) -> Estimate:
    """Tables of sources without parents as the mean of what their standard errors, if any, leave possible."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for factor in estimate.parameters.factors:
        if isinstance(factor, Conditional) and not factor.parents and factor.source in errors:
            alike.setdefault(errors[factor.source].shape, []).append(factor.source)
    found, moved = dict[str, FloatArray](), dict[str, float]()
    for names in alike.values():
        error, raw, valid = (
            np.stack([tables[name] for name in names]) for tables in (errors, estimate.raw, estimate.accuracies)
        )
        # What is known exactly (a given table, a vote that never occurs) has no spread, and stays as it is.
        unsure = error > _KNOWN
        table = np.where(unsure, possible_mean(raw, np.where(unsure, error, 1.0)), valid)
        table /= table.sum(axis=-1, keepdims=True)
        found |= zip(names, table, strict=True)
        moved |= zip(names, np.abs(table - valid).reshape(len(names), -1).max(axis=1).tolist(), strict=True)
    factors = [
        replace(one, table=found[one.source].reshape(one.table.shape))
        if isinstance(one, Conditional) and one.source in found
        else one
        for one in estimate.parameters.factors
    ]
    told = {one.source: moved[one.source] for one in factors if moved.get(one.source, 0.0) > _REPORTED}
    listed = ", ".join(f"{name!r} {size:.3g}" for name, size in told.items())
    text = f"tables are the means of what their standard errors leave possible; how far that moved them: {listed}"
    notes = (Note(kind="possible", text=text, size=max(told.values())),) if told else ()
    parameters = replace(estimate.parameters, factors=tuple(factors))
    return replace(estimate, parameters=parameters, accuracies={**estimate.accuracies, **found}).noted(*notes)


def finish(estimate: Estimate, data: Passes, prior: Prior, graph: SourceGraph, ties: Ties) -> Estimate:
    """One exact E/M step; two where sources repeat themselves, whose closed form says least about a change of label."""
    law = start = Law(parameters=estimate.parameters, prior=prior)
    temporal, kept = graph.temporal, dict[str, float]()
    # No more steps, because real sources share errors that nobody declared, and EM drifts towards explaining these.
    for _ in range(2 if temporal else 1):
        # By group only where it matters: the spread between groups says which deviations from copying are no noise.
        counts = data.counts(law, apart=bool(temporal))
        if temporal:
            counts, kept = _sum_groups(counts, temporal)
        law = maximise(counts, law, start, _STEP, ties)
    pooled, accuracies = ties.pool(counts, law.parameters), dict(estimate.accuracies)
    for factor in law.parameters.factors:
        if factor.source not in ties.known:
            # Where a table is P(vote | label) itself, its pseudo-votes belong to what is shown.
            if isinstance(factor, Conditional) and not factor.parents:
                accuracies[factor.source] = np.array(factor.table)
            else:
                accuracies[factor.source] = read_accuracy(factor, pooled)
    size = max((float(np.abs(accuracies[n] - table).max()) for n, table in estimate.accuracies.items()), default=0.0)
    text = f"{'two exact E/M steps' if temporal else 'one exact E/M step'} moved the tables by up to {size:.3g}"
    if temporal:
        shares = ", ".join(f"{name!r} {share:.0%}" for name, share in kept.items())
        text += f"; kept of what sources do beside copying their last vote: {shares}"
    correlations = {**estimate.correlations, **read_correlations(law.parameters, counts, graph.edges)}
    found = replace(estimate, parameters=law.parameters, accuracies=accuracies, correlations=correlations)
    return found.noted(Note(kind="step", text=text, size=size))


def _sum_groups(counts: ExpectedCounts, temporal: Iterable[str]) -> tuple[ExpectedCounts, dict[str, float]]:
    """Counts of all groups together, transition tables shrunk towards copying; and what was kept of these."""
    names = tuple(temporal)
    shrunken = dict(zip(names, shrink_counts([counts.factors[name]["step"] for name in names]), strict=True))
    factors = {
        source: {
            name: shrunken[source][0] if name == "step" and source in shrunken else table.sum(axis=0)
            for name, table in tables.items()
        }
        for source, tables in counts.factors.items()
    }
    total = ExpectedCounts(
        factors=factors,
        initial=counts.initial.sum(axis=0),
        transitions=counts.transitions.sum(axis=0),
        log_likelihood=counts.log_likelihood.sum(axis=0),
    )
    return total, {name: share for name, (_, share) in shrunken.items()}

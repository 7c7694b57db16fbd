"""The end of a fit on little data: tables back from the edge, and one exact E/M step.

In: a closed-form estimate with its standard errors, then the expected counts under it. Out: an estimate that wastes
less of the votes. Both steps vanish as data grows: the truth is inside its limits, and a fixed point of EM.

A moment estimate with a large standard error often lies outside [0, 1]. The nearest valid table then says "never",
which a few hundred sequences cannot know, and one vote decides a label. The mean of all that the standard error leaves
possible does not claim more than was measured. From there one E/M step reaches most of what maximum likelihood would
(METHOD 3.3); more of them would gain little, and drift where sources share errors that nobody declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import erfcx

from dugong.estimate.em import EM, Ties, maximise
from dugong.estimate.readout import read_accuracies, read_correlations
from dugong.estimate.result import Estimate, Note
from dugong.infer.parameters import Conditional, Factor, Parameters
from dugong.infer.results import ExpectedCounts
from dugong.types import FloatArray

# Standard errors below this are rounding: the entry is known.
_KNOWN = 1e-10
_REPORTED = 1e-6
_FAR = -30.0  # standard errors from the edge at which it has no influence, and beyond which numbers overflow
_STEP = EM(max_iter=1)


def possible_mean(value: FloatArray, error: FloatArray) -> FloatArray:
    """Mean of a normal law around `value`, cut to [0, 1]; `value` itself where that is far inside."""
    low = np.minimum(value, 1 - value)  # by symmetry the nearer edge is at 0
    near, far = np.maximum(-low / error, _FAR), (1 - low) / error
    rest = np.exp((near**2 - far**2) / 2)
    mass = (erfcx(near / np.sqrt(2)) - erfcx(far / np.sqrt(2)) * rest) / 2
    mean = low + error * (1 - rest) / (np.sqrt(2 * np.pi) * mass)
    return np.asarray(np.where(value < 0.5, mean, 1 - mean))


def inside(estimate: Estimate, errors: Mapping[str, FloatArray]) -> Estimate:
    """Tables of sources without parents as the mean of what their standard errors, if any, leave possible."""
    found = {
        factor.source: _possible_table(
            estimate.accuracies[factor.source], estimate.raw[factor.source], errors[factor.source]
        )
        for factor in estimate.parameters.factors
        if isinstance(factor, Conditional) and not factor.parents and factor.source in errors
    }
    moved = {name: float(np.abs(table - estimate.accuracies[name]).max()) for name, table in found.items()}
    notes = tuple(
        Note(
            kind="possible",
            where=name,
            size=size,
            text=f"the table of {name!r} is the mean of what its standard errors leave possible: moved by {size:.3g}",
        )
        for name, size in moved.items()
        if size > _REPORTED
    )
    factors = tuple(_with_table(factor, found) for factor in estimate.parameters.factors)
    return replace(
        estimate,
        parameters=replace(estimate.parameters, factors=factors),
        accuracies={**estimate.accuracies, **found},
        diagnostics=replace(estimate.diagnostics, notes=(*estimate.diagnostics.notes, *notes)),
    )


def _possible_table(valid: FloatArray, raw: FloatArray, error: FloatArray) -> FloatArray:
    """P(vote | label) from the unprojected table; entries that are known exactly stay as they are."""
    unsure = error > _KNOWN
    table = np.where(unsure, possible_mean(raw, np.where(unsure, error, 1.0)), valid)
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def _with_table(factor: Factor, tables: Mapping[str, FloatArray]) -> Factor:
    if not isinstance(factor, Conditional) or factor.source not in tables:
        return factor
    return replace(factor, table=tables[factor.source].reshape(factor.table.shape))


def one_step(estimate: Estimate, counts: ExpectedCounts, edges: tuple[tuple[str, str], ...], ties: Ties) -> Estimate:
    """The estimate after one M-step on counts that are expected under it."""
    parameters = maximise(counts, estimate.parameters, estimate.parameters, _STEP, ties)
    accuracies = {**estimate.accuracies, **_read(parameters, replace(counts, factors=ties.pool(counts)), ties)}
    size = max((float(np.abs(accuracies[n] - t).max()) for n, t in estimate.accuracies.items()), default=0.0)
    note = Note(kind="step", text=f"one exact E/M step moved the tables by up to {size:.3g}", size=size)
    return replace(
        estimate,
        parameters=parameters,
        accuracies=accuracies,
        correlations={**estimate.correlations, **read_correlations(parameters, counts, edges)},
        diagnostics=replace(estimate.diagnostics, notes=(*estimate.diagnostics.notes, note)),
    )


def _read(parameters: Parameters, counts: ExpectedCounts, ties: Ties) -> dict[str, FloatArray]:
    """P(vote | label): the factor itself where it is just that, else what the counts say; known tables stay."""
    tables = read_accuracies(parameters, counts)
    for factor in parameters.factors:
        if isinstance(factor, Conditional) and not factor.parents:
            tables[factor.source] = np.array(factor.table)
    return {name: table for name, table in tables.items() if name not in ties.known}

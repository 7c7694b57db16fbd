"""Tables for people from expected counts: what EM-like estimators report.

In: the factors and their expected counts (an exact E-step). Out: P(vote | label) by source, P(vote a, vote b | label)
by pair, whatever shape the factors have.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.law.results import ExpectedCounts
from dugong.types import FloatArray


def read_accuracies(parameters: Parameters, counts: ExpectedCounts) -> dict[str, FloatArray]:
    """P(vote | label) by source, (K, C); (positions, K, C) and full tables as the factor has them."""
    return {factor.source: _accuracy(factor, counts) for factor in parameters.factors}


def read_correlations(
    parameters: Parameters, counts: ExpectedCounts, edges: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of the given pairs that share a factor, (K, C_a, C_b)."""
    found: dict[tuple[str, str], FloatArray] = {}
    factors = {factor.source: factor for factor in parameters.factors}
    for first, second in edges:
        for child, parent in ((second, first), (first, second)):
            factor = factors[child]
            if isinstance(factor, Conditional) and parent in factor.parents:
                table = _pair(factor, counts.factors[child]["table"], parent)
                found[first, second] = table if child == second else np.swapaxes(table, -1, -2)
    return found


def _accuracy(factor: Factor, counts: ExpectedCounts) -> FloatArray:
    seen = counts.factors[factor.source]
    if isinstance(factor, FullTable):
        return _normal(seen["table"], factor.table)
    if isinstance(factor, Temporal):
        return _normal(seen["step"].sum(axis=(0, 2)) + seen["first"], factor.first)
    if isinstance(factor, Crossed):
        total = seen["table"].sum(axis=(1, 2))
        fallback = factor.table.mean(axis=(1, 2))
    else:
        lead = 1 + factor.by_position
        between = tuple(range(lead, lead + len(factor.parents)))
        total = seen["table"].sum(axis=between)
        fallback = factor.table.mean(axis=between)
    return _normal(total + seen.get("marginal", 0.0), fallback)


def _pair(factor: Conditional, seen: FloatArray, parent: str) -> FloatArray:
    lead = 1 + factor.by_position
    others = tuple(lead + place for place, name in enumerate(factor.parents) if name != parent)
    total = seen.sum(axis=others)
    mass = total.sum(axis=(-2, -1), keepdims=True)
    return np.asarray(total / np.where(mass > 0, mass, 1.0))


def _normal(counts: FloatArray, fallback: FloatArray) -> FloatArray:
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), fallback)

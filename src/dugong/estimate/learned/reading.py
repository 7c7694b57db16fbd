"""From fitted factors to what people read: the source graph, strengths, accuracies and correlations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.estimate.learned.exact import Exact, marginal_counts, pair_counts
from dugong.estimate.learned.repeats import Repeats
from dugong.estimate.learned.tables import smoothed
from dugong.graph import SourceGraph, temporal
from dugong.infer.parameters import Conditional, Crossed
from dugong.types import FloatArray, IntArray


def graph_of(names: tuple[str, ...], on_elements: tuple[str, ...], parents: IntArray, repeats: Repeats) -> SourceGraph:
    """Learned edges and self-dependence as a source graph."""
    edges = [(on_elements[parent], on_elements[child]) for child, parent in enumerate(parents.tolist()) if parent >= 0]
    lags = [temporal(name) for name, again in zip(on_elements, repeats.sources, strict=True) if again]
    return SourceGraph.of(names, [*edges, *lags])


def strengths_of(
    graph: SourceGraph, names: tuple[str, ...], strength: FloatArray, repeats: Repeats
) -> dict[tuple[str, str], float]:
    """Residual correlation of every learned edge, and of a source with itself."""
    found = {(a, b): float(strength[names.index(a), names.index(b)]) for a, b in graph.edges}
    return found | {(name, name): float(repeats.rates[0, names.index(name)]) for name in graph.temporal}


def read_accuracies(exact: Exact, pinned: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """P(vote | label) of every source, (K, C)."""
    found = {}
    for factor in exact.parameters.factors:
        if factor.source in pinned:
            found[factor.source] = pinned[factor.source]
        elif isinstance(factor, Conditional) and not factor.parents:
            found[factor.source] = factor.table
        else:
            counts = marginal_counts(factor, exact.counts.factors[factor.source])
            found[factor.source] = smoothed(counts[np.newaxis])[0]
    return found


def read_correlations(exact: Exact, graph: SourceGraph) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of every edge, (K, C, C); between resolutions (K, 2, C, C), finer source first."""
    found: dict[tuple[str, str], FloatArray] = {}
    for factor in exact.parameters.factors:
        parents = (factor.parent,) if isinstance(factor, Crossed) else getattr(factor, "parents", ())
        for parent in parents:
            pairs = pair_counts(factor, parent, exact.counts.factors[factor.source])
            joint = pairs / np.maximum(pairs.sum(axis=(-2, -1), keepdims=True), 1e-12)
            if (parent, factor.source) in graph.edges and not isinstance(factor, Crossed):
                found[parent, factor.source] = joint
            else:
                edge = (factor.source, parent)
                key = edge if edge in graph.edges else edge[::-1]
                found[key] = np.swapaxes(joint, -1, -2)
    return {edge: found[edge] for edge in graph.edges if edge in found}

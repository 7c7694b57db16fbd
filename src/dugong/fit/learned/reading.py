"""From what the search found to what people read: the source graph, and the strength of every edge in it."""

from __future__ import annotations

import numpy as np

from dugong.fit.learned.repeats import Repeats
from dugong.graph import SourceGraph, temporal
from dugong.types import FloatArray, IntArray


def graph_of(names: tuple[str, ...], on_elements: tuple[str, ...], parents: IntArray, repeats: Repeats) -> SourceGraph:
    """Learned edges and self-dependence as a source graph."""
    edges = [(on_elements[parent], on_elements[child]) for child, parent in enumerate(parents.tolist()) if parent >= 0]
    lags = [temporal(on_elements[p], int(repeats.lags[p])) for p in np.flatnonzero(repeats.sources).tolist()]
    return SourceGraph.of(names, [*edges, *lags])


def strengths_of(
    graph: SourceGraph, names: tuple[str, ...], strength: FloatArray, repeats: Repeats
) -> dict[tuple[str, str], float]:
    """Residual correlation of every learned edge, and of a source with itself."""
    found = {(a, b): float(strength[names.index(a), names.index(b)]) for a, b in graph.edges}
    return found | {(name, name): float(repeats.rates[0, names.index(name)]) for name in graph.temporal}

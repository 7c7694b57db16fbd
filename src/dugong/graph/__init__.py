"""What depends on what: the source graph, independence, elimination, identifiability."""

from dugong.graph.dependencies import Dependency, SourceGraph, TemporalDependency, temporal
from dugong.graph.elimination import Elimination, eliminate
from dugong.graph.independence import Independence, even_agreement

__all__ = [
    "Dependency",
    "Elimination",
    "Independence",
    "SourceGraph",
    "TemporalDependency",
    "eliminate",
    "even_agreement",
    "temporal",
]

"""What depends on what: the source graph, the rows that determine every unknown, and whether they suffice."""

from dugong.graph.source_graph import (
    Dependency,
    Elimination,
    Independence,
    SourceGraph,
    TemporalDependency,
    connected,
    determined,
    eliminate,
    temporal,
)

__all__ = [
    "Dependency",
    "Elimination",
    "Independence",
    "SourceGraph",
    "TemporalDependency",
    "connected",
    "determined",
    "eliminate",
    "temporal",
]

"""Which pairs of votes are independent given the labels, and may therefore stand in a row of the moment equations.

Two votes are independent given all labels if no path of the source graph joins their sources. A source that depends on
itself in time carries earlier labels along, so it may appear only on its own task, together with a source that does
not; never across time or resolutions. (Paper, appendix "Conditional Independencies"; METHOD 3.3.)
"""

from __future__ import annotations

from dataclasses import dataclass

from dugong.graph.dependencies import SourceGraph


@dataclass(frozen=True, slots=True)
class Independence:
    """Answers which rows are valid."""

    component: dict[str, int]
    temporal: frozenset[str]

    @classmethod
    def of(cls, graph: SourceGraph) -> Independence:
        """Read the answers off a source graph."""
        return cls(component=graph.components(), temporal=frozenset(graph.temporal))

    def apart(self, first: str, second: str) -> bool:
        """No path of the source graph joins the two sources."""
        return self.component[first] != self.component[second]

    def same_task(self, first: str, second: str) -> bool:
        """A row on one task is valid."""
        return self.apart(first, second) and not (first in self.temporal and second in self.temporal)

    def elsewhere(self, first: str, second: str) -> bool:
        """A row across time or across resolutions is valid."""
        tangled = self.temporal & {first, second}
        return not tangled and (first == second or self.apart(first, second))


def even_agreement(n_votes: int, n_labels: int) -> bool:
    """Parity condition of the paper: one of the two agreements of a row must have an even number of terms."""
    return (n_votes + n_labels) % 2 == 0

"""Which pairs of votes are independent given the labels, and may therefore stand in a row of the moment equations.

Two votes are independent given all labels if no path of the source graph joins their sources. A source that depends on
itself in time carries earlier labels along, and one that follows a coarser source carries that one's label, so such a
source may appear only on its own task, together with one that does not; never across time or resolutions.
(Paper, appendix "Conditional Independencies"; METHOD 3.3.)
"""

from __future__ import annotations

from dataclasses import dataclass

from dugong.graph.dependencies import SourceGraph


@dataclass(frozen=True, slots=True)
class Independence:
    """Answers which rows are valid.

    Attributes
    ----------
    component : number of the connected component by source
    tangled : sources whose vote, given all labels, depends on other labels than that of their own task
    """

    component: dict[str, int]
    tangled: frozenset[str]

    @classmethod
    def of(cls, graph: SourceGraph, following: frozenset[str] = frozenset()) -> Independence:
        """Read the answers off a source graph; `following` are sources that follow one at a coarser resolution."""
        return cls(component=graph.components(), tangled=frozenset(graph.temporal) | following)

    def apart(self, first: str, second: str) -> bool:
        """No path of the source graph joins the two sources."""
        return self.component[first] != self.component[second]

    def same_task(self, first: str, second: str) -> bool:
        """A row on one task is valid."""
        return self.apart(first, second) and not (first in self.tangled and second in self.tangled)

    def elsewhere(self, first: str, second: str) -> bool:
        """A row across time or across resolutions is valid."""
        return not self.tangled & {first, second} and (first == second or self.apart(first, second))


def even_agreement(n_votes: int, n_labels: int) -> bool:
    """Parity condition of the paper: one of the two agreements of a row must have an even number of terms."""
    return (n_votes + n_labels) % 2 == 0

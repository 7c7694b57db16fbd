"""The source graph alone: which sources depend on each other or on themselves, and how strongly.

In: votes. Out: a `LearnedGraph`, by the residuals of a fitted model (what `LabelModel` does by default), or by a
low-rank-plus-sparse decomposition of the inverse covariance of the votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dugong.contract import typed
from dugong.exceptions import GraphError
from dugong.fit.learned.case import prepare_case
from dugong.fit.learned.indicators import low_rank_strengths
from dugong.fit.learned.learning import learn
from dugong.fit.learned.part import choose_part
from dugong.fit.learned.search import Method
from dugong.fit.learned.settings import SELF_EDGE
from dugong.graph import Dependency, SourceGraph, temporal
from dugong.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedGraph:
    """A source graph that was learned.

    Attributes
    ----------
    graph : edges between sources, and lags of sources that repeat themselves
    strengths : by pair of names; of a source that repeats itself under (name, name). Residual correlations of errors
        and probabilities of repeating by "residuals", partial correlations of votes by "low-rank"
    method : how it was learned
    """

    graph: SourceGraph
    strengths: Mapping[tuple[str, str], float]
    method: str

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """The same as a list that a `LabelModel` takes at its word."""
        return (*self.graph.edges, *(temporal(name, lag) for name, lag in self.graph.temporal.items()))


@typed(GraphError)
def learn_graph(votes: Votes, method: Method = "residuals", *, n_threads: int | None = None) -> LearnedGraph:
    """Learn which sources on elements depend on each other, given labels that nobody knows.

    Parameters
    ----------
    votes : Votes
    method : {"residuals", "low-rank"}
        "residuals": greedy with refitting, tests with a bound on false discoveries; the edges are a forest.
        "low-rank": one convex problem; edges may form any graph, and repetition is seen at a lag of 1 only.

    Returns
    -------
    LearnedGraph
        The graph, the strength of every edge, and `dependencies` for a `LabelModel`.
    """
    part = choose_part(votes).votes
    if method == "residuals":
        learned = learn(part, n_threads=n_threads)
        return LearnedGraph(graph=learned.graph, strengths=learned.strengths, method=method)
    case = prepare_case(part, None, None, {}, {}, n_threads)
    names = case.element_names
    pairs, own = low_rank_strengths(case.setting.folded.panel)
    edges = {(names[j], names[k]): float(pairs[j, k]) for j, k in np.argwhere(np.tril(pairs) > SELF_EDGE).tolist()}
    again = {names[j]: float(own[j]) for j in np.flatnonzero(own > SELF_EDGE).tolist()}
    graph = SourceGraph.of(votes.source_names, [*edges, *(temporal(name) for name in again)])
    strengths = {edge: edges.get(edge, edges.get(edge[::-1], 0.0)) for edge in graph.edges}
    return LearnedGraph(
        graph=graph, strengths=strengths | {(name, name): value for name, value in again.items()}, method=method
    )

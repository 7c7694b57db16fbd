"""What depends on what: the source graph as users declare it, and what can be read off it.

An edge says that two sources are dependent given the labels (they read the same detector); `temporal` says that a
source depends on its own earlier vote (paper, section 2.1: G_source). From it follows an order in which
P(votes | labels) is stored (`Elimination`); which pairs of votes are independent, `dugong.graph.design` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from dugong.contract import typed
from dugong.exceptions import GraphError
from dugong.types import BoolArray, IntArray

LARGEST_CLIQUE = 6


@typed(GraphError)
@dataclass(frozen=True, slots=True)
class TemporalDependency:
    """A source that depends, given the labels, on its own vote `lag` tasks earlier."""

    source: str
    lag: int = 1

    def __post_init__(self) -> None:
        if self.lag < 1:
            raise GraphError(f"the lag of a temporal dependency must be at least 1; found {self.lag}.")


def temporal(name: str, lag: int = 1) -> TemporalDependency:
    """Declare that a source repeats itself: given the labels, its vote depends on its vote `lag` tasks earlier."""
    return TemporalDependency(name, lag)


Dependency = tuple[str, str] | TemporalDependency


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """Undirected edges between sources, and sources that depend on themselves in time.

    Attributes
    ----------
    names : all sources, in the order of the votes
    edges : pairs of names, each sorted by the order of `names`
    temporal : lag by name of the sources that depend on themselves
    """

    names: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()
    temporal: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Sequence[str], dependencies: Iterable[Dependency] = ()) -> SourceGraph:
        """Check and sort declared dependencies."""
        place = {name: index for index, name in enumerate(names)}
        edges, lags = dict[tuple[str, str], None](), dict[str, int]()
        for dependency in dependencies:
            named = (dependency.source,) if isinstance(dependency, TemporalDependency) else _pair(dependency)
            unknown = [name for name in named if name not in place]
            if unknown:
                raise GraphError(
                    f"a dependency names the source {unknown[0]!r}, which does not vote here; known are "
                    f"{', '.join(map(repr, place))}."
                )
            if isinstance(dependency, TemporalDependency):
                lags[dependency.source] = dependency.lag
            else:
                first, second = sorted(named, key=place.__getitem__)
                edges[first, second] = None
        return cls(names=tuple(names), edges=tuple(edges), temporal=lags)

    def neighbours(self, name: str) -> set[str]:
        """Sources that share an edge with this one."""
        return {b if a == name else a for a, b in self.edges if name in (a, b)}

    def components(self) -> dict[str, int]:
        """Number of the connected component of every source."""
        place = {name: index for index, name in enumerate(self.names)}
        ends = np.array([(place[a], place[b]) for a, b in self.edges], dtype=np.int64).reshape(-1, 2)
        return dict(zip(self.names, connected(ends[:, 0], ends[:, 1], len(self.names)).tolist(), strict=True))


def _pair(dependency: object) -> tuple[str, str]:
    if isinstance(dependency, tuple | list) and len(dependency) == 2 and all(isinstance(d, str) for d in dependency):
        if dependency[0] == dependency[1]:
            raise GraphError(
                f"a source cannot share an edge with itself; found {dependency!r}.\n"
                f"  If it repeats itself in time, use temporal({dependency[0]!r}, lag=1)."
            )
        return dependency[0], dependency[1]
    raise GraphError(f'a dependency must be a pair of source names or temporal("name"); found {dependency!r}.')


def connected(left: IntArray, right: IntArray, n_nodes: int) -> IntArray:
    """Number of the connected component of every node, (n_nodes,), counted in the order of the nodes."""
    # Every node points at a smaller one of its component, and at last at the smallest. Graphs of sources are small, and
    # a few vector operations take a fifth of the time that building a sparse matrix does.
    lowest = np.arange(n_nodes)
    while True:
        low = np.minimum(lowest[left], lowest[right])
        moved = lowest.copy()
        for ends in (left, right):
            np.minimum.at(moved, lowest[ends], low)
        moved = moved[moved]
        if np.array_equal(moved, lowest):
            return np.asarray((np.cumsum(lowest == np.arange(n_nodes)) - 1)[lowest], dtype=np.int64)
        lowest = moved


def determined(left: IntArray, right: IntArray, fixed: BoolArray) -> BoolArray:
    """Nodes in components with an odd cycle (an edge from a node to itself counts) or with a fixed node, (n_nodes,).

    Edges are equations about the product of two unknowns. Around an odd cycle their product and quotient leave the
    square of one unknown, and from there every unknown of the component follows up to its sign.
    """
    n = len(fixed)
    known = np.flatnonzero(fixed)
    # Every node has a mirror image, and an edge joins each end to the image of the other. Then a node is joined to its
    # own image by walks of odd length alone; a fixed node is as good as an edge to itself.
    left, right = np.concatenate([left, known]), np.concatenate([right, known])
    part = connected(np.concatenate([left, right]), np.concatenate([right, left]) + n, 2 * n)
    return np.asarray(part[:n] == part[n:])


@dataclass(frozen=True, slots=True)
class Elimination:
    """Sources in order, each with the earlier ones that it is conditioned on; `fill` are edges that were added.

    P(votes | labels) is stored as conditionals along this order: every source given those of its neighbours that come
    before it. Conditionals always multiply to a distribution, whatever noise each of them carries.
    """

    order: tuple[str, ...]
    parents: dict[str, tuple[str, ...]]
    fill: tuple[tuple[str, str], ...]

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The maximal cliques of the triangulated graph."""
        families = [frozenset((name, *self.parents[name])) for name in self.order]
        largest = [f for f in families if not any(f < other for other in families)]
        return tuple(tuple(n for n in self.order if n in f) for f in dict.fromkeys(largest))


def eliminate(graph: SourceGraph) -> Elimination:
    """Greedy minimum-fill elimination; ties go by name, so that the order of the sources does not matter."""
    near: dict[str, set[str]] = {name: set() for name in graph.names}
    for a, b in graph.edges:
        near[a].add(b)
        near[b].add(a)
    left, removed, fill = list(graph.names), [], []
    families: dict[str, set[str]] = {}
    while left:
        gaps = {one: [(a, b) for a, b in combinations(sorted(near[one]), 2) if b not in near[a]] for one in left}
        name = min(left, key=lambda one: (len(gaps[one]), one))
        families[name] = set(near[name])
        for a, b in gaps[name]:
            fill.append((a, b))
            near[a].add(b)
            near[b].add(a)
        for other in near.pop(name):
            near[other].discard(name)
        left.remove(name)
        removed.append(name)
    order = tuple(reversed(removed))
    parents = {name: tuple(other for other in order if other in families[name]) for name in order}
    for name, above in parents.items():
        if len(above) >= LARGEST_CLIQUE:
            raise GraphError(
                f"source {name!r} depends on {len(above)} others at once ({', '.join(above)}); at most "
                f"{LARGEST_CLIQUE - 1} can be modelled jointly.\n  Leave out the weakest dependencies."
            )
    return Elimination(order=order, parents=parents, fill=tuple(fill))

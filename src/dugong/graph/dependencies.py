"""What depends on what: the source graph, as users declare it.

An edge says that two sources are dependent given the labels (they read the same detector); `temporal` says that a
source depends on its own earlier vote. (Paper, section 2.1: G_source.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dugong.exceptions import GraphError


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
        edges: dict[tuple[str, str], None] = {}
        lags: dict[str, int] = {}
        for dependency in dependencies:
            if isinstance(dependency, TemporalDependency):
                _known(dependency.source, place)
                lags[dependency.source] = dependency.lag
                continue
            first, second = _pair(dependency)
            _known(first, place)
            _known(second, place)
            edges[(first, second) if place[first] < place[second] else (second, first)] = None
        return cls(names=tuple(names), edges=tuple(edges), temporal=lags)

    def neighbours(self, name: str) -> set[str]:
        """Sources that share an edge with this one."""
        return {b if a == name else a for a, b in self.edges if name in (a, b)}

    def components(self) -> dict[str, int]:
        """Number of the connected component of every source."""
        component: dict[str, int] = {}
        for root in self.names:
            if root in component:
                continue
            queue, number = [root], len(set(component.values()))
            while queue:
                name = queue.pop()
                if name not in component:
                    component[name] = number
                    queue.extend(self.neighbours(name))
        return component


def _pair(dependency: object) -> tuple[str, str]:
    if isinstance(dependency, tuple | list) and len(dependency) == 2 and all(isinstance(d, str) for d in dependency):
        if dependency[0] == dependency[1]:
            raise GraphError(
                f"a source cannot share an edge with itself; found {dependency!r}.\n"
                f"  If it repeats itself in time, use temporal({dependency[0]!r}, lag=1)."
            )
        return dependency[0], dependency[1]
    raise GraphError(f'a dependency must be a pair of source names or temporal("name"); found {dependency!r}.')


def _known(name: str, place: dict[str, int]) -> None:
    if name not in place:
        known = ", ".join(map(repr, place))
        raise GraphError(f"a dependency names the source {name!r}, which does not vote here; known are {known}.")

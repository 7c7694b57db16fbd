"""An elimination order and the cliques of the source graph, triangulated where it is not chordal.

P(votes | labels) is stored as conditionals along this order: every source given those of its neighbours that come
before it. Conditionals always multiply to a distribution, whatever noise each of them carries.
"""

from __future__ import annotations

from dataclasses import dataclass

from dugong.exceptions import GraphError
from dugong.graph.dependencies import SourceGraph

LARGEST_CLIQUE = 6


@dataclass(frozen=True, slots=True)
class Elimination:
    """Sources in order, each with the earlier ones that it is conditioned on; `fill` are edges that were added."""

    order: tuple[str, ...]
    parents: dict[str, tuple[str, ...]]
    fill: tuple[tuple[str, str], ...]

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The maximal cliques of the triangulated graph."""
        families = [frozenset((name, *self.parents[name])) for name in self.order]
        largest = [f for f in families if not any(f < other for other in families)]
        return tuple(tuple(n for n in self.order if n in f) for f in dict.fromkeys(largest))


def eliminate(graph: SourceGraph, names: tuple[str, ...] | None = None) -> Elimination:
    """Greedy minimum-fill elimination over `names` (all sources by default).

    Ties go by name, so that the order of the sources does not matter.
    """
    chosen = graph.names if names is None else names
    near = {name: graph.neighbours(name) & set(chosen) for name in chosen}
    left, removed, fill = list(chosen), [], []
    families: dict[str, set[str]] = {}
    while left:
        name = min(left, key=lambda one: (_missing(near, one), one))
        families[name] = set(near[name])
        for a, b in _missing_pairs(near, name):
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


def _missing_pairs(near: dict[str, set[str]], name: str) -> list[tuple[str, str]]:
    around = sorted(near[name])
    return [(a, b) for i, a in enumerate(around) for b in around[i + 1 :] if b not in near[a]]


def _missing(near: dict[str, set[str]], name: str) -> int:
    return len(_missing_pairs(near, name))

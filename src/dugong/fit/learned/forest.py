"""Which pairs of sources depend on each other: a forest of the strongest residual correlations.

In: residual correlations of all pairs. Out: the parent of every source. A forest needs only tables of pairs, and the
strongest edges of a group explain most of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """A forest over sources: parents (m,), -1 for roots; (m, m) whether no path joins two sources."""

    parents: IntArray
    apart: BoolArray
    n_edges: int


def no_edges(n_sources: int) -> Forest:
    """Every source alone."""
    apart = ~np.eye(n_sources, dtype=np.bool_)
    return Forest(parents=np.full(n_sources, -1, dtype=np.int64), apart=apart, n_edges=0)


def strongest_forest(strength: FloatArray, threshold: float, most: int | None = None) -> Forest:
    """Maximum spanning forest over the pairs above a threshold, at most `most` edges."""
    m = len(strength)
    # Rounded, because equal strengths that differ in the last digit must not depend on the order of the sources.
    pairs = [(round(float(strength[j, k]), 9), j, k) for j in range(m) for k in range(j)]
    components = np.arange(m)
    near: list[list[int]] = [[] for _ in range(m)]
    n_edges = 0
    for value, j, k in sorted(pairs, reverse=True):
        if value <= threshold or n_edges == most:
            break
        if components[j] != components[k]:
            # Joining two sources of one component would close a ring, which tables of pairs cannot hold.
            components = np.where(components == components[k], components[j], components)
            near[j].append(k)
            near[k].append(j)
            n_edges += 1
    # The best connected source as root, because then most tables lean on one parent that has much to say.
    parents, _ = _turned(near, np.zeros(m), strength)
    return Forest(parents=parents, apart=components[:, np.newaxis] != components, n_edges=n_edges)


def reroot(forest: Forest, repeats: FloatArray, strength: FloatArray) -> tuple[IntArray, BoolArray]:
    """Parents, and who still repeats itself, such that no source does both: the stronger of the two stays.

    A component is turned so that its most self-dependent source is the root, which needs no parent.
    """
    near: list[list[int]] = [[] for _ in repeats]
    for child, parent in enumerate(forest.parents.tolist()):
        if parent >= 0:
            near[child].append(parent)
            near[parent].append(child)
    return _turned(near, repeats, strength)


def _turned(near: list[list[int]], repeats: FloatArray, strength: FloatArray) -> tuple[IntArray, BoolArray]:
    """Parents when the most self-dependent source of each component is its root, else the best connected one."""
    parents, kept = np.full(len(near), -1, dtype=np.int64), repeats > 0
    seen: set[int] = set()
    for root in sorted(range(len(near)), key=lambda j: (-repeats[j], -len(near[j]), j)):
        queue = [] if root in seen else [root]
        seen.add(root)
        while queue:
            one = queue.pop(0)
            for other in near[one]:
                if other in seen:
                    continue
                seen.add(other)
                queue.append(other)
                # A source that both follows another and itself would need a table over two earlier votes.
                if repeats[other] <= max(float(strength[one, other]), 0.0) or not kept[other]:
                    parents[other], kept[other] = one, False
    return parents, kept

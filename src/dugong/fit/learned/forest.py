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
    """A forest over sources: who is joined with whom, parents (m,), -1 for roots, and (m, m) whether no path joins two.

    `near` lists the neighbours of every source.
    """

    near: list[list[int]]
    parents: IntArray
    apart: BoolArray
    n_edges: int


def strongest_forest(strength: FloatArray, threshold: float, most: int | None = None) -> Forest:
    """Maximum spanning forest over the pairs above a threshold, at most `most` edges."""
    m, n_edges = len(strength), 0
    # Rounded, because equal strengths that differ in the last digit must not depend on the order of the sources.
    pairs = [(round(float(strength[j, k]), 9), j, k) for j in range(m) for k in range(j)]
    components, near = np.arange(m), list[list[int]]([] for _ in range(m))
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
    parents, _ = reroot(near, np.zeros(m), strength)
    return Forest(near=near, parents=parents, apart=components[:, np.newaxis] != components, n_edges=n_edges)


def reroot(near: list[list[int]], repeats: FloatArray, strength: FloatArray) -> tuple[IntArray, BoolArray]:
    """Parents, and who still repeats itself, such that no source does both: the stronger of the two stays.

    A component is turned so that its most self-dependent source is the root, which needs no parent; else the best
    connected one.
    """
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

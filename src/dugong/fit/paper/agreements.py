"""The agreements-to-products system of the paper, M l = q, over all independent pairs of sources.

In: counts of vote pairs. Out: E[a] = E[vote * label] of every source, given that it votes. A pair of
sources that are independent given the labels has ``E[vote * vote'] = E[a] E[a'] E[y y']``; on one task y^2
= 1 and the prior is not needed, across tasks it supplies E[y y']. Logarithms make this linear (Algorithm
1); signs follow. For a source with a full table the agreements a_k(V, V) of whole patterns are unknowns
too, one system per set V of tasks; for an ordinary source they are products over V.

Differs from the paper: means are taken given that both sources vote, because (1 + E[a]) / 2 is no
probability when a can be 0 (docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import product

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.moments.equations import Form, Given, Unknowns, join_equations, make_equations
from dugong.fit.moments.solve import solve_logs
from dugong.fit.moments.stages import Equate, Solution, Solve, solve_stages, turn_groups
from dugong.graph import determined
from dugong.graph.design import Design, full_pair_rows
from dugong.sums import MomentRow, Moments
from dugong.types import BoolArray, FloatArray

SIGNS = np.array([-1.0, 1.0])

Anchors = Mapping[str, FloatArray]


def find_agreements(given: Given, equate: Equate = make_equations, solve: Solve = solve_logs) -> Solution:
    """Solve for E[a] of every source that is not pinned, one unknown per position."""
    unknowns = Unknowns.of(given.design, given.moments, AGREEMENTS)
    start, pinned = _pinned(given, unknowns)
    varies = np.ones(unknowns.size, dtype=np.bool_)
    return solve_stages(given, unknowns, solve, start=start, pinned=pinned, varies=varies, equate=equate)


def _pinned(given: Given, unknowns: Unknowns) -> tuple[FloatArray, BoolArray]:
    """E[a] of sources with known tables, the others 0; and which they are."""
    design, laws = given.design, given.laws
    value, pinned = np.zeros(unknowns.size), np.zeros(unknowns.size, dtype=np.bool_)
    for name, table in given.accuracies.items():
        if design.levels[name] == "full":
            continue
        places = unknowns.places[design.keys[name]][:, 0]
        chance = laws.chances(design.infos[name].resolution, by_position=design.levels[name] == "task")[: len(places)]
        law = np.broadcast_to(np.asarray(table, dtype=np.float64), (len(chance), *np.shape(table)[-2:]))[..., :2]
        # E[vote * label] over those who vote: what the equations are about, by the law of total probability.
        agreement = np.einsum("pw,w,pwz,z->p", chance, SIGNS, law, SIGNS)
        voting = np.einsum("pw,pwz->p", chance, law)
        value[places], pinned[places] = agreement / np.where(voting > 0, voting, 1.0), True
    return value, pinned


def sum_products(votes: FloatArray) -> FloatArray:
    """Sums of products of two votes from counts (..., 2, 2), (..., 1, 1)."""
    return np.asarray(np.einsum("...ab,a,b->...", votes, SIGNS, SIGNS))[..., np.newaxis, np.newaxis]


def _measure(votes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of the products of two votes, its variance, and the pairs of votes behind, from counts (..., 2, 2)."""
    sums, total = sum_products(votes), votes.sum(axis=(-2, -1), keepdims=True)
    value = np.divide(sums, total, out=np.zeros_like(total), where=total > 0)
    return value, _variance(value, total), total


def _means(tables: Sequence[FloatArray] | FloatArray, axes: Iterable[int]) -> tuple[FloatArray, FloatArray]:
    """`mean_product` of several tables."""
    chosen = list(axes)
    found = np.array([mean_product(table, chosen) for table in tables]).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _variance(value: FloatArray, total: FloatArray) -> FloatArray:
    """Variance of the mean of a product of votes; 0 where there are none."""
    # A floor keeps pairs that always agree from having infinite weight.
    return np.where(total > 0, np.maximum(1 - value**2, 1e-3) / np.maximum(total, 1.0), 0.0)


# Votes where one of the two is missing say nothing about the product: they are left out of the mean. The scale is
# E[y y'], not a covariance, because the paper's agreements are raw products.
AGREEMENTS = Form(
    width=1,
    columns=2,
    sums=sum_products,
    measure=_measure,
    hidden=lambda pair: pair.covariance + pair.first * pair.second,
)


def mean_product(table: FloatArray, axes: Iterable[int]) -> tuple[float, float]:
    """Mean of the product of the votes on some axes over the anchors where all of them vote, and their number."""
    # Anchors where one of the votes is missing say nothing about the product, so that they are left out of the mean.
    chosen = sorted(axes)
    rest = tuple(axis for axis in range(table.ndim) if axis not in chosen)
    cells = table.sum(axis=rest)[(slice(0, 2),) * len(chosen)]
    total = float(cells.sum())
    for _ in chosen:
        cells = np.tensordot(SIGNS, cells, axes=(0, 0))
    return (float(cells) / total if total > 0 else 0.0), total


def mean_products(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`mean_product` for all subsets of the axes at once; index 1 on an axis means that its vote is in the product."""
    value = total = table
    for size in table.shape:
        silent = np.zeros(size - 2)
        # The first axis is taken off and comes back as the last, so that in the end all are in order.
        value = np.tensordot(value, [np.ones(size), np.append(SIGNS, silent)], axes=(0, 1))
        total = np.tensordot(total, [np.ones(size), np.append(np.ones(2), silent)], axes=(0, 1))
    return np.divide(value, total, out=np.zeros_like(value), where=total > 0), total


def ordinary_anchor(agreements: Solution, key: str, positions: range | tuple[int, ...]) -> FloatArray:
    """E[a_k(V, V)] of a source that reads its own task only, for all subsets V of some positions."""
    own = agreements.of(key)[:, 0]
    parts = [np.array([1.0, own[min(position, len(own) - 1)]]) for position in positions]
    return reduce(np.multiply.outer, parts)


def solve_anchors(design: Design, moments: Moments, agreements: Solution) -> dict[str, FloatArray]:
    """E[a_k(V, V)] of every source with a full table."""
    full = [info.name for info in design.sources if design.levels[info.name] == "full"]
    anchors: dict[str, FloatArray] = {}
    for resolution in dict.fromkeys(design.infos[name].resolution for name in full):
        here = [name for name in full if design.infos[name].resolution == resolution]
        anchors |= _anchors_at(design, moments, agreements, here)
    return anchors


def _anchors_at(design: Design, moments: Moments, agreements: Solution, full: list[str]) -> dict[str, FloatArray]:
    size = design.n_tasks[full[0]]
    rows = list(dict.fromkeys(row for name in full for row in full_pair_rows(design, name)))
    names = list(dict.fromkeys([*full, *(source for row in rows for source in row.sources)]))
    known = {name: ordinary_anchor(agreements, design.keys[name], range(size)) for name in names if name not in full}
    _check(full, rows, set(known))
    solved = {name: np.ones((2,) * size) for name in full}
    free = np.array([name in full for name in names])
    # Each set of tasks is a system of its own, because agreements on different sets never meet in a row.
    for subset in product((0, 1), repeat=size):
        if not any(subset):
            continue
        start = np.array([0.0 if name in full else float(known[name][subset]) for name in names])
        values = _solve_subset(moments, rows, names, subset, start, free)
        for name in full:
            solved[name][subset] = values[names.index(name)]
    return solved


def _solve_subset(
    moments: Moments,
    rows: list[MomentRow],
    names: list[str],
    subset: tuple[int, ...],
    start: FloatArray,
    free: BoolArray,
) -> FloatArray:
    size = len(subset)
    tasks = [task for task in range(size) if subset[task]]
    value, total = _means([moments.table(row) for row in rows], [*tasks, *(size + task for task in tasks)])
    left, right = (np.array([names.index(row.sources[side]) for row in rows]) for side in (0, -1))
    part = (left, right, value, np.ones(len(rows)), _variance(value, total), total)
    equations = join_equations([part], [(row, 1) for row in rows])
    solution, _ = solve_logs(equations, start, free)
    return turn_groups(equations, solution, ~free, np.ones(len(names)))


def _check(full: list[str], rows: list[MomentRow], known: set[str]) -> None:
    names = [*full, *sorted(known)]
    left, right = (np.array([names.index(row.sources[side]) for row in rows], dtype=np.int64) for side in (0, -1))
    settled = determined(left, right, np.arange(len(names)) >= len(full))
    lost = [name for name, found in zip(full, settled, strict=False) if not found]
    if lost:
        raise NotIdentifiableError(
            f"cannot find the full table of {lost[0]!r}: it needs two further sources of its resolution that are "
            'independent of it and of each other given the labels.\n  Add a source, or use sharing="tied" for some.'
        )

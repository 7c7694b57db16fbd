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

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import product

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.moments.equations import EquationForm, Given, Unknowns, join_equations
from dugong.fit.moments.solve import solve_logs
from dugong.fit.moments.stages import Solution, turn_groups
from dugong.graph import determined
from dugong.graph.design import full_pair_rows
from dugong.types import BoolArray, FloatArray

SIGNS = np.array([-1.0, 1.0])

Anchors = Mapping[str, FloatArray]


def _known_agreements(given: Given, unknowns: Unknowns) -> tuple[FloatArray, BoolArray, BoolArray]:
    """E[a] of sources with known tables, the others 0; which they are; and that all can be other than zero."""
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
    return value, pinned, np.ones(unknowns.size, dtype=np.bool_)


def sum_products(votes: FloatArray) -> FloatArray:
    """Sums of products of two votes from counts (..., 2, 2), (..., 1, 1)."""
    return np.asarray(np.einsum("...ab,a,b->...", votes, SIGNS, SIGNS))[..., np.newaxis, np.newaxis]


def _measure(votes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of the products of two votes, its variance, and the pairs of votes behind, from counts (..., 2, 2)."""
    sums, total = sum_products(votes), votes.sum(axis=(-2, -1), keepdims=True)
    value = np.divide(sums, total, out=np.zeros_like(total), where=total > 0)
    return value, _variance(value, total), total


def _variance(value: FloatArray, total: FloatArray) -> FloatArray:
    """Variance of the mean of a product of votes; 0 where there are none."""
    # A floor keeps pairs that always agree from having infinite weight.
    return np.where(total > 0, np.maximum(1 - value**2, 1e-3) / np.maximum(total, 1.0), 0.0)


# Votes where one of the two is missing say nothing about the product: they are left out of the mean. The scale is
# E[y y'], not a covariance, because the paper's agreements are raw products.
AGREEMENTS = EquationForm(
    width=1,
    columns=2,
    sums=sum_products,
    measure=_measure,
    hidden=lambda pair: pair.covariance + pair.first * pair.second,
    known=_known_agreements,
)


def mean_products(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means of the products of votes on all subsets of the axes, and the anchors where all of these vote.

    Index 1 on an axis means that its vote is in the product.
    """
    value = total = table
    for size in table.shape:
        silent = np.zeros(size - 2)
        # The first axis is taken off and comes back as the last, so that in the end all are in order.
        value = np.tensordot(value, [np.ones(size), np.append(SIGNS, silent)], axes=(0, 1))
        total = np.tensordot(total, [np.ones(size), np.append(np.ones(2), silent)], axes=(0, 1))
    return np.divide(value, total, out=np.zeros_like(value), where=total > 0), total


def ordinary_anchor(agreements: Solution, votes: Iterable[tuple[str, int]]) -> FloatArray:
    """E[a_k(V, V)] of sources that read their own task only, one per task with its position, by the set V of tasks."""
    own = [(agreements.of(key)[:, 0], position) for key, position in votes]
    return reduce(np.multiply.outer, [np.array([1.0, each[min(place, len(each) - 1)]]) for each, place in own])


def solve_anchors(given: Given, agreements: Solution) -> dict[str, FloatArray]:
    """E[a_k(V, V)] of every source with a full table."""
    design = given.design
    full = [info.name for info in design.sources if design.levels[info.name] == "full"]
    anchors: dict[str, FloatArray] = {}
    for resolution in dict.fromkeys(design.infos[name].resolution for name in full):
        here = [name for name in full if design.infos[name].resolution == resolution]
        anchors |= _anchors_at(given, agreements, here)
    return anchors


def _anchors_at(given: Given, agreements: Solution, full: list[str]) -> dict[str, FloatArray]:
    design, size = given.design, given.design.n_tasks[full[0]]
    rows = list(dict.fromkeys(row for name in full for row in full_pair_rows(design, name)))
    names = list(dict.fromkeys([*full, *(source for row in rows for source in row.sources)]))
    free = np.arange(len(names)) < len(full)
    left, right = (np.array([names.index(row.sources[side]) for row in rows], dtype=np.int64) for side in (0, -1))
    _check(full, determined(left, right, ~free))
    tasks = range(size)
    others = [ordinary_anchor(agreements, [(design.keys[name], task) for task in tasks]) for name in names[len(full) :]]
    solved = np.stack([*np.ones((len(full), *(2,) * size)), *others], axis=-1)
    counted = [mean_products(given.moments.table(row)) for row in rows]
    # Each set of tasks is a system of its own, because agreements on different sets never meet in a row.
    for subset in list(product((0, 1), repeat=size))[1:]:  # the first one is empty
        value, total = (np.array([found[part][subset + subset] for found in counted]) for part in (0, 1))
        numbers = (left, right, value, np.ones(len(rows)), _variance(value, total), total)
        equations = join_equations([numbers], [(row, 1) for row in rows])
        solution, _ = solve_logs(equations, solved[subset], free)
        solved[subset] = turn_groups(equations, solution, ~free, np.ones(len(names)))
    return dict(zip(full, np.moveaxis(solved, -1, 0), strict=False))


def _check(full: list[str], settled: BoolArray) -> None:
    lost = [name for name, found in zip(full, settled, strict=False) if not found]
    if lost:
        raise NotIdentifiableError(
            f"cannot find the full table of {lost[0]!r}: it needs two further sources of its resolution that are "
            'independent of it and of each other given the labels.\n  Add a source, or use sharing="tied" for some.'
        )

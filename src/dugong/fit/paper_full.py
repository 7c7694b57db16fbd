"""Full tables in the paper's estimator: agreements a_k(V, V) of whole patterns, for all subsets V of the tasks.

For an ordinary source, which reads its own task only, E[a_k(V, V)] is a product over V. For a source with a
full table it is one more unknown of a system M l = q, one system per V, over all pairs of sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import product

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.paper_agreements import Agreements, mean_product
from dugong.fit.solve import Equations, solve_logs
from dugong.graph import determined
from dugong.graph.design import Design, full_pair_rows
from dugong.sums import Moments, Row
from dugong.types import FloatArray

Anchors = Mapping[str, FloatArray]


def ordinary_anchor(agreements: Agreements, key: str, positions: range | tuple[int, ...]) -> FloatArray:
    """E[a_k(V, V)] of a source that reads its own task only, for all subsets V of some positions."""
    own = agreements.values[key]
    parts = [np.array([1.0, own[min(position, len(own) - 1)]]) for position in positions]
    return reduce(np.multiply.outer, parts)


def solve_anchors(design: Design, moments: Moments, agreements: Agreements) -> dict[str, FloatArray]:
    """E[a_k(V, V)] of every source with a full table."""
    full = [info.name for info in design.sources if design.levels[info.name] == "full"]
    anchors: dict[str, FloatArray] = {}
    for resolution in dict.fromkeys(design.info(name).resolution for name in full):
        here = [name for name in full if design.info(name).resolution == resolution]
        anchors |= _anchors_at(design, moments, agreements, here)
    return anchors


def _anchors_at(design: Design, moments: Moments, agreements: Agreements, full: list[str]) -> dict[str, FloatArray]:
    size = design.n_tasks[full[0]]
    rows = list(dict.fromkeys(row for name in full for row in full_pair_rows(design, name)))
    names = list(dict.fromkeys([*full, *(source for row in rows for source in row.sources)]))
    known = {name: ordinary_anchor(agreements, design.key(name), range(size)) for name in names if name not in full}
    _check(full, rows, set(known))
    solved = {name: np.ones((2,) * size) for name in full}
    free = np.array([name in full for name in names])
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
    rows: list[Row],
    names: list[str],
    subset: tuple[int, ...],
    start: FloatArray,
    free: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> FloatArray:
    size = len(subset)
    tasks = [task for task in range(size) if subset[task]]
    found = [mean_product(moments.table(row), [*tasks, *(size + task for task in tasks)]) for row in rows]
    value, total = (np.array(column) for column in zip(*found, strict=True))
    equations = Equations(
        left=np.array([names.index(row.sources[0]) for row in rows]),
        right=np.array([names.index(row.sources[-1]) for row in rows]),
        value=value,
        scale=np.ones(len(rows)),
        variance=np.where(total > 0, np.maximum(1 - value**2, 1e-3) / np.maximum(total, 1.0), 0.0),
    )
    solution, _ = solve_logs(equations, start, free)
    # The group of connected sources is better than chance on average; known sources have their sign already.
    flip = free.all() and solution.sum() < 0
    return -solution if flip else solution


def _check(full: list[str], rows: list[Row], known: set[str]) -> None:
    names = [*full, *sorted(known)]
    left, right = (np.array([names.index(row.sources[side]) for row in rows], dtype=np.int64) for side in (0, -1))
    settled = determined(left, right, np.arange(len(names)) >= len(full))
    lost = [name for name, found in zip(full, settled, strict=False) if not found]
    if lost:
        raise NotIdentifiableError(
            f"cannot find the full table of {lost[0]!r}: it needs two further sources of its resolution that are "
            'independent of it and of each other given the labels.\n  Add a source, or use sharing="tied" for some.'
        )

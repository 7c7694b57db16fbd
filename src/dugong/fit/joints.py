"""Joint tables of several votes given their labels, by unbiased proxies (METHOD 3.4).

One idea serves all: for votes F and tasks V, ``E[F * product of y] = E[F * product of proxies]`` is
observable; the inverse Walsh transform over the subsets V turns these into ``P(F, labels)``. Cliques of
sources, a source with itself in time, a fine with a coarse source, and full tables differ only in which
votes and tasks enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.copying import FEWEST_GROUPS, shrink_to_copying
from dugong.fit.errors import weighted_error
from dugong.fit.proxies import Tables, combined, expectation
from dugong.fit.tables import products_to_joints
from dugong.graph.design import Design, clique_rows, crossed_rows, full_rows, temporal_rows
from dugong.sums import Row, Slot
from dugong.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentredTables(Tables):
    """The joint tables of the centred estimator (`assemble.JointTables`)."""

    _shrunken: dict[str, tuple[FloatArray, float]] = field(init=False, default_factory=dict)

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task)."""
        return clique_joint(self, names)

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote)."""
        return self.shrunken(name, lag)[0]

    def shrunken(self, name: str, lag: int) -> tuple[FloatArray, float]:
        """The same with the share of its deviations from copying that was kept."""
        if name not in self._shrunken:
            self._shrunken[name] = shrink_temporal(self, name, lag, temporal_joint(self, name, lag))
        return self._shrunken[name]

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label), and how many first votes there were."""
        return first_table(self, name)

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote)."""
        return crossed_joint(self, fine, coarse)

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks)."""
        return full_joint(self, name)


def clique_joint(tables: Tables, names: tuple[str, ...]) -> FloatArray:
    """P(votes of a clique, label), shape (positions, 2, C, ..., C)."""
    rows = clique_rows(tables.design, names)
    need_rows(rows, tables.design, names)
    counted = [_by_position(tables, row) for row in rows]
    joint = np.stack([_clique_at(tables, rows, counted, position) for position in range(len(counted[0]))])
    joint = pool_positions(tables.design, names, joint, counted[0])
    slots = rows[0].sources[:-1]
    return joint.transpose(0, 1, *(2 + slots.index(name) for name in names))


def pool_positions(design: Design, names: tuple[str, ...], joint: FloatArray, counts: FloatArray) -> FloatArray:
    """One table for all positions where no source of a clique keeps positions apart, though its proxies do."""
    if len(joint) == 1 or any(design.levels[name] == "task" for name in names):
        return joint
    weights = counts.reshape(len(counts), -1).sum(axis=1)
    return np.average(joint, axis=0, weights=weights if weights.any() else None)[np.newaxis]


def _clique_at(tables: Tables, rows: list[Row], counted: list[FloatArray], position: int) -> FloatArray:
    proxies = [row.sources[-1] for row in rows]
    scores, _ = combined(tables, proxies, position)
    axis = len(rows[0].slots) - 1
    with_label = np.zeros(counted[0].shape[1:-1])
    for proxy, table in zip(proxies, counted, strict=True):
        with_label += expectation(table[position], {axis: scores[proxy]}, max(table[position].sum(), 1.0))
    largest = max(counted, key=lambda table: float(table[position].sum()))[position]
    alone = largest.sum(axis=-1) / max(largest.sum(), 1.0)
    return products_to_joints(np.stack([alone, with_label]), 1)


def temporal_joint(tables: Tables, name: str, lag: int) -> FloatArray:
    """P(earlier label, label, earlier vote, vote) of a source `lag` tasks apart, unbiased, shape (2, 2, C, C)."""
    rows = _repeats(tables, name, lag)
    need_rows(rows, tables.design, (name,))
    return _pattern_joint(tables, rows, n_votes=2, proxies=_own_proxies(rows))


def shrink_temporal(tables: Tables, name: str, lag: int, joint: FloatArray) -> tuple[FloatArray, float]:
    """Such a table drawn towards copying, and the share of its deviations from copying that was kept.

    Its standard errors are those that leaving groups out gives, with the proxies held fixed.
    """
    rows = _repeats(tables, name, lag)
    counts = [np.asarray(tables.moments.counts[tables.moments.plan.place(row)], dtype=np.float64) for row in rows]
    sizes = np.sum([table.reshape(len(table), -1).sum(axis=1) for table in counts], axis=0)
    groups = 1 + np.flatnonzero(sizes[1:])  # group 0 is what no group was drawn for
    if len(groups) < FEWEST_GROUPS:
        return joint, 1.0
    everything = [table.sum(axis=0) for table in counts]
    pairs = zip(everything, counts, strict=True)
    replicates = [np.concatenate([whole[np.newaxis], whole - own[groups]]) for whole, own in pairs]
    full, *without = _pattern_joints(tables, replicates, n_votes=2, proxies=_own_proxies(rows))
    errors = weighted_error(full, np.stack(without), sizes[groups] / sizes.sum())
    return shrink_to_copying(joint, errors, _label_pairs(tables, name, lag), len(groups))


def _repeats(tables: Tables, name: str, lag: int) -> list[Row]:
    return [row for row in temporal_rows(tables.design, name, lag) if not row.by_position]


def _own_proxies(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.sources[2],) * 2 for row in rows]


def _label_pairs(tables: Tables, name: str, lag: int) -> FloatArray:
    """P(earlier label, label) of the tasks of a source `lag` tasks apart, (2, 2)."""
    where = tables.moments.resolution(name)
    pair = tables.laws.pair(Row(slots=(Slot(name), Slot(name, lag))), where, where)
    first, second, both = pair.first[0], pair.second[0], pair.covariance[0] + pair.first[0] * pair.second[0]
    return np.maximum(products_to_joints(np.array([[1.0, second], [first, both]]), 2), 0.0)


def crossed_joint(tables: Tables, fine: str, coarse: str) -> FloatArray:
    """P(fine label, coarse label, fine vote, coarse vote), shape (2, 2, C, C)."""
    rows = crossed_rows(tables.design, fine, coarse)
    need_rows(rows, tables.design, (fine, coarse))
    return _pattern_joint(tables, rows, n_votes=2, proxies=[(row.sources[2], row.sources[3]) for row in rows])


def full_joint(tables: Tables, name: str) -> FloatArray:
    """P(labels of all tasks, votes on all tasks), shape (2, ..., 2, C, ..., C)."""
    rows = full_rows(tables.design, name)
    need_rows(rows, tables.design, (name,))
    size = len(rows[0].slots) // 2
    return _pattern_joint(
        tables, rows, n_votes=size, proxies=[(row.sources[size],) * size for row in rows], placed=True
    )


def _pattern_joint(
    tables: Tables, rows: list[Row], *, n_votes: int, proxies: Sequence[tuple[str, ...]], placed: bool = False
) -> FloatArray:
    """Votes on `n_votes` tasks (the first slots of every row), with one proxy per task (the last slots)."""
    counted = [tables.moments.table(row)[np.newaxis] for row in rows]
    return np.asarray(_pattern_joints(tables, counted, n_votes=n_votes, proxies=proxies, placed=placed)[0])


def _pattern_joints(
    tables: Tables,
    counted: list[FloatArray],
    *,
    n_votes: int,
    proxies: Sequence[tuple[str, ...]],
    placed: bool = False,
) -> FloatArray:
    """The same from several counts of the rows at once: one per replicate, along the first axis."""
    n_tasks = len(proxies[0])
    scored = [
        [tables.score(name, position if placed else 0) for position, name in enumerate(names)] for names in proxies
    ]
    products = np.zeros((*(2,) * n_tasks, *counted[0].shape[: 1 + n_votes]))
    for subset in product((0, 1), repeat=n_tasks):
        weights = np.array([_precision(scores, subset) for scores in scored])
        weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(counted), 1 / len(counted))
        for weight, table, scores in zip(weights, counted, scored, strict=True):
            axes = {
                1 + n_votes + task: scores[task][0] if chosen else np.ones(table.shape[1 + n_votes + task])
                for task, chosen in enumerate(subset)
            }
            total = np.maximum(table.reshape(len(table), -1).sum(axis=1), 1.0)
            products[subset] += weight * expectation(table, axes, total.reshape(-1, *(1,) * n_votes))
    return np.moveaxis(products_to_joints(products, n_tasks), n_tasks, 0)


def _precision(scores: list[tuple[FloatArray, float]], subset: tuple[int, ...]) -> float:
    return float(np.prod([precision for (_, precision), chosen in zip(scores, subset, strict=True) if chosen]))


def first_table(tables: Tables, name: str) -> tuple[FloatArray, float]:
    """P(first vote | first label) of a source, shape (2, C), and the number of first votes behind it."""
    rows = [row for row in temporal_rows(tables.design, name, tables.design.graph.temporal[name]) if row.by_position]
    proxies = [row.sources[1] for row in rows]
    scores, _ = combined(tables, proxies)
    counted = [tables.moments.table(row)[0] for row in rows]
    with_label = np.zeros(counted[0].shape[0])
    for proxy, table in zip(proxies, counted, strict=True):
        with_label += expectation(table, {1: scores[proxy]}, max(table.sum(), 1.0))
    alone = counted[0].sum(axis=1) / max(counted[0].sum(), 1.0)
    joint = products_to_joints(np.stack([alone, with_label]), 1)
    mean = float(tables.laws.mean(tables.moments.resolution(name), by_position=True)[0])
    chance = np.array([(1 - mean) / 2, (1 + mean) / 2])
    return joint / np.maximum(chance, 1e-12)[:, np.newaxis], float(counted[0].sum())


def _by_position(tables: Tables, row: Row) -> FloatArray:
    table = tables.moments.table(row)
    return table if row.by_position else table[np.newaxis]


def need_rows(rows: list[Row], design: Design, names: tuple[str, ...]) -> None:
    """Raise a `NotIdentifiableError` unless there are rows from which a joint table can be measured."""
    if rows:
        return
    listed = ", ".join(map(repr, names))
    raise NotIdentifiableError(
        f"cannot measure how {listed} depend on each other or on themselves: no other source at "
        f"{' and '.join(sorted({design.info(name).resolution.name for name in names}))} resolution is independent of "
        "all of them given the labels.\n  Add an independent source there, or remove the dependency."
    )

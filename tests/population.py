"""Exact moments of short sequences by enumeration of every label pattern: the oracle of the estimator tests.

A `Group` is one or more sources that vote jointly given all labels; groups are independent given the labels. Written
without any code of the library's worlds, so that the two can check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from dugong.priors import Prior
from dugong.sums import MomentRow, Moments, Plan, Shapes
from dugong.tasks import Layout, Resolution, Window, links
from dugong.tasks import Sequence as WholeSequence
from dugong.votes import SourceInfo

Law = Callable[[tuple[tuple[int, ...], ...]], np.ndarray]


@dataclass(frozen=True)
class Group:
    """Sources, and ``law(labels of the tasks of each source)`` -> array with one axis per source and task."""

    sources: tuple[SourceInfo, ...]
    law: Law


def each_task(source: SourceInfo, table: np.ndarray) -> Group:
    """A source that votes on every task by itself: table (2, C), or (positions, 2, C)."""
    table = np.asarray(table, dtype=float)
    return Group((source,), lambda labels: _outer([_at(table, 2, i)[y] for i, y in enumerate(labels[0])]))


def together(sources: Sequence[SourceInfo], table: np.ndarray) -> Group:
    """Sources of one resolution that vote jointly on every task: table (2, C, ..., C), or with positions first."""
    table, n = np.asarray(table, dtype=float), len(sources)

    def law(labels):
        joint = _outer([_at(table, n + 1, i)[y] for i, y in enumerate(labels[0])])
        n_tasks = len(labels[0])
        return joint.transpose([task * n + member for member in range(n) for task in range(n_tasks)])

    return Group(tuple(sources), law)


def repeating(source: SourceInfo, first: np.ndarray, step: np.ndarray) -> Group:
    """A source that depends on its previous vote: first (2, C), step (2, 2, C, C)."""

    def law(labels):
        ys = labels[0]
        joint = np.asarray(first)[ys[0]]
        for before, now in pairwise(ys):
            joint = joint[..., np.newaxis] * np.asarray(step)[before, now]
        return joint

    return Group((source,), law)


def whole(source: SourceInfo, law_of_pattern: Callable[[tuple[int, ...]], np.ndarray]) -> Group:
    """A source whose votes depend on all labels of the sequence: pattern -> (C, ..., C)."""
    return Group((source,), lambda labels: law_of_pattern(labels[0]))


def population(
    plan: Plan, prior: Prior, groups: Sequence[Group], lengths: dict[int, float], scale: float = 1e6
) -> Moments:
    """Expected counts of a plan when `lengths` (weight by number of elements) of `scale` sequences are seen."""
    sources = tuple(source for group in groups for source in group.sources)
    order = {source.name: source for source in sources}
    n_columns = 3
    longest = max(lengths)
    tables = {}
    for row in plan.rows:
        shape = (n_columns,) * len(row.slots)
        if row.by_position:
            tasks = Layout.of(order[row.sources[0]].resolution, np.array([longest])).n_tasks
            shape = (tasks, *shape)
        tables[row] = np.zeros(shape)
    for length, weight in lengths.items():
        for pattern in product((0, 1), repeat=length):
            chance = prior.probability([(-1, 1)[y] for y in pattern]) * weight * scale
            if chance > 0:
                laws = [_pattern_laws(group, pattern) for group in groups]
                for row, table in tables.items():
                    _add(row, table, laws, order, length, chance)
    named = {name for row in plan.rows for name in row.sources}
    return Moments(
        plan=plan,
        sources=tuple(source for source in sources if source.name in named),
        n_classes=2,
        counts=tuple(table[np.newaxis] for table in tables.values()),
        shapes=Shapes(
            lengths=np.array(sorted(lengths)),
            counts=np.array([round(lengths[n] * scale) for n in sorted(lengths)]),
        ),
    )


def task_labels(resolution: Resolution, pattern: tuple[int, ...]) -> tuple[int, ...]:
    """Labels of all tasks of a resolution for one pattern of element labels."""
    if not isinstance(resolution, Window | WholeSequence):
        return pattern
    starts, stops = Layout.of(resolution, np.array([len(pattern)])).bounds()
    labels = []
    for start, stop in zip(starts, stops, strict=True):
        state = links.start(resolution.link)
        for y in pattern[start:stop]:
            state = links.step(resolution.link, state, bool(y))
        labels.append(int(links.accept(resolution.link, state)))
    return tuple(labels)


def _pattern_laws(group, pattern):
    labels = tuple(task_labels(source.resolution, pattern) for source in group.sources)
    axes = [(source.name, task) for source, ys in zip(group.sources, labels, strict=True) for task in range(len(ys))]
    return group.law(labels), {axis: place for place, axis in enumerate(axes)}


def _add(row: MomentRow, table, laws, order, length, chance):
    for place, anchors in _anchors(row, order, length):
        factors, letters = [], "abcdefgh"[: len(row.slots)]
        for law, axes in laws:
            held = [(i, axes[anchor]) for i, anchor in enumerate(anchors) if anchor in axes]
            if held:
                kept = [axis for _, axis in held]
                marginal = law.sum(axis=tuple(a for a in range(law.ndim) if a not in kept))
                ranks = np.argsort(np.argsort(kept))
                marginal = marginal.transpose(ranks)
                factors.append((marginal, "".join(letters[i] for i, _ in held)))
        joint = np.einsum(",".join(f for _, f in factors) + "->" + letters, *(m for m, _ in factors))
        if row.by_position:
            table[place] += chance * joint
        else:
            table += chance * joint


def _anchors(row: MomentRow, order, length):
    """Every anchor of a row in one sequence: its position, and the (source, task) of every slot."""
    layouts = [Layout.of(order[slot.source].resolution, np.array([length])) for slot in row.slots]
    if row.relation == "same":
        n_tasks = layouts[0].n_tasks
        for task in range(n_tasks):
            places = [task + slot.offset for slot in row.slots]
            if all(0 <= place < n_tasks for place in places):
                yield task, [(slot.source, place) for slot, place in zip(row.slots, places, strict=True)]
        return
    fine, coarse = list(dict.fromkeys(order[slot.source].resolution for slot in row.slots))
    starts = Layout.of(fine, np.array([length])).bounds()[0]
    lows, highs = Layout.of(coarse, np.array([length])).bounds()
    for w, (low, high) in enumerate(zip(lows, highs, strict=True)):
        for i, start in enumerate(starts):
            if low <= start < high:
                at = {fine: i, coarse: w}
                yield i, [(slot.source, at[order[slot.source].resolution]) for slot in row.slots]


def _at(table, n_axes, position):
    return table if table.ndim == n_axes else table[min(position, len(table) - 1)]


def _outer(parts):
    joint = np.ones(())
    for part in parts:
        joint = np.multiply.outer(joint, part)
    return joint

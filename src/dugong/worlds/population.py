"""Exact population sums of a world, by enumeration over label patterns.

The votes of a row belong to *units* that are independent given the labels: a block on one task (with the
sources that depend on it from below), a temporal source along its own past, a full source. For every
pattern of the labels that some unit needs, the laws of the units multiply; patterns are weighted by the
prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from dugong.exceptions import TaskError
from dugong.priors import Prior
from dugong.priors.geometry import pair_indices
from dugong.sums import Moments, Plan, Row, Shapes
from dugong.tasks import Layout, Resolution, SpanTable
from dugong.types import FloatArray, IntArray
from dugong.worlds.blocks import Block
from dugong.worlds.units import LabelTask, OneSequence, Unit, label_unit, make_units

if TYPE_CHECKING:
    from dugong.worlds.world import World

MOST_TASKS = 16


def slot_law(
    world: World,
    slots: Sequence[tuple[str, int]],
    length: int,
    spans: Mapping[str, SpanTable] | None = None,
    tasks: Sequence[LabelTask] = (),
) -> FloatArray:
    """Joint law of some votes, and labels if asked, in a sequence of `length` elements.

    Parameters
    ----------
    slots : sequence of (source, task index)
    spans : mapping of name to SpanTable, optional
        The pieces of this one sequence.
    tasks : sequence of (resolution, index)
        Labels to keep as further axes.

    Returns
    -------
    array with one axis per slot (vote columns, abstain last) and one per task (classes)
    """
    one = OneSequence(world=world, length=length, spans=spans or {})
    units = [*make_units(one, list(slots)), *(label_unit(one, task, len(slots) + k) for k, task in enumerate(tasks))]
    needed = tuple(dict.fromkeys(task for unit in units for task in unit.tasks))
    if len(needed) > MOST_TASKS:
        raise TaskError(
            f"these votes depend on {len(needed)} labels; enumeration allows {MOST_TASKS}.\n  Use shorter sequences."
        )
    laws = _label_law(world.prior, needed, length, _plain(spans), world.class_names)
    total = _sum_products(units, needed, laws)
    order = [place for unit in units for place in unit.places]
    return np.transpose(total, np.argsort(order))


def population_counts(
    world: World,
    row: Row,
    lengths: IntArray,
    counts: FloatArray | IntArray | None = None,
    spans: Mapping[str, SpanTable] | None = None,
) -> FloatArray:
    """Expected contingency table of one row, ([positions,] C_1, ..., C_k), over `counts` sequences of each length."""
    weights = np.ones(len(lengths)) if counts is None else np.asarray(counts, dtype=np.float64)
    resolutions = [world.block(source).resolution for source in row.sources]
    columns = [world.block(source).n_columns for source in row.sources]
    n_positions = int(np.diff(Layout.of(resolutions[0], lengths, spans).offsets).max(initial=0))
    table = np.zeros((n_positions, *columns))
    for place, length in enumerate(lengths.tolist()):
        own = {name: pieces.select(np.array([place])) for name, pieces in (spans or {}).items()}
        for position, slots in _anchors(row, resolutions, length, own):
            table[position] += weights[place] * slot_law(world, slots, length, own)
    return table if row.by_position else table.sum(axis=0)


def population_moments(
    world: World,
    plan: Plan,
    lengths: IntArray,
    counts: FloatArray | IntArray | None = None,
    spans: Mapping[str, SpanTable] | None = None,
) -> Moments:
    """Expected sums of a plan as one group."""
    weights = np.ones(len(lengths), dtype=np.int64) if counts is None else counts
    named = {source for row in plan.rows for source in row.sources}
    return Moments(
        plan=plan,
        sources=tuple(info for info in world.sources if info.name in named),
        n_classes=world.n_classes,
        counts=tuple(population_counts(world, row, lengths, weights, spans)[np.newaxis] for row in plan.rows),
        shapes=Shapes(lengths=lengths, counts=cast("IntArray", weights), spans=spans or {}),
    )


def true_accuracies(world: World, length: int) -> dict[str, FloatArray]:
    """P(vote | label) by source; (positions, K, C) where the table differs by position."""
    found: dict[str, FloatArray] = {}
    for block in world.blocks:
        for name in block.names:
            if isinstance(block, Block):
                table = block.marginal((name,))
                found[name] = table if block.by_position else table[0]
            else:
                found[name] = _mean_accuracy(world, name, length)
    return found


def _mean_accuracy(world: World, name: str, length: int) -> FloatArray:
    resolution = world.block(name).resolution
    n_tasks = Layout.of(resolution, np.array([length])).n_tasks
    laws = [slot_law(world, [(name, i)], length, tasks=[(resolution, i)]).T for i in range(n_tasks)]
    joint = np.sum(laws, axis=0)
    totals = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0))


def _anchors(
    row: Row, resolutions: list[Resolution], length: int, spans: Mapping[str, SpanTable]
) -> list[tuple[int, list[tuple[str, int]]]]:
    """Position and (source, task) slots of every anchor in one sequence."""
    fine = resolutions[0]
    if row.relation == "same":
        n_tasks = Layout.of(fine, np.array([length]), spans).n_tasks
        low, high = min(s.offset for s in row.slots), max(s.offset for s in row.slots)
        inside = range(max(0, -low), n_tasks - max(0, high))
        return [(i, [(slot.source, i + slot.offset) for slot in row.slots]) for i in inside]
    coarse = next(resolution for resolution in resolutions if resolution != fine)
    first, second = pair_indices(fine, coarse, "inside", 0, length, spans)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    names = list(zip(row.sources, resolutions, strict=True))
    return [(i, [(name, i if own == fine else w) for name, own in names]) for i, w in pairs]


def _plain(spans: Mapping[str, SpanTable] | None) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """Spans of one sequence as a hashable value."""
    return tuple(
        (name, tuple(zip(one.starts.tolist(), one.stops.tolist(), strict=True))) for name, one in (spans or {}).items()
    )


@lru_cache(maxsize=4096)
def _label_law(
    prior: Prior,
    tasks: tuple[LabelTask, ...],
    length: int,
    spans: tuple[tuple[str, tuple[tuple[int, int], ...]], ...],
    class_names: tuple[str, ...] | None,
) -> FloatArray:
    return prior.joint_law(tasks, length, dict(spans), class_names)


def _sum_products(units: list[Unit], needed: tuple[LabelTask, ...], laws: FloatArray) -> FloatArray:
    """Sum over label patterns of P(pattern) times the product of the laws of the units."""
    where = [[needed.index(task) for task in unit.tasks] for unit in units]
    total: FloatArray | None = None
    for pattern in np.argwhere(laws > 0).reshape(-1, len(needed)).tolist():
        term = np.asarray(laws[tuple(pattern)])
        for unit, places in zip(units, where, strict=True):
            term = np.multiply.outer(term, unit.law(tuple(pattern[place] for place in places)))
        total = term if total is None else total + term
    assert total is not None
    return total

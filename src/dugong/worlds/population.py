"""Exact population sums of a world, by enumeration over label patterns.

The votes of a row belong to *units* that are independent given the labels: a block on one task (with the sources that
depend on it from below), a temporal source along its own past, a full source. For every pattern of the labels that some
unit needs, the laws of the units multiply; patterns are weighted by the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.priors import Prior
from dugong.priors.base import kept_by_prior
from dugong.priors.geometry import pair_indices
from dugong.sums import MomentRow, Moments, Plan, Shapes
from dugong.tasks import Layout, Resolution, SpanTable, describe
from dugong.tasks.layout import containing
from dugong.types import FloatArray, IntArray
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock

if TYPE_CHECKING:
    from dugong.worlds.world import World

MOST_TASKS = 16

LabelTask = tuple[Resolution, int]
VoteSlot = tuple[str, int]


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
    # Spans of one sequence as a hashable value
    laws = _label_law(
        world.prior,
        needed,
        length,
        tuple(
            (name, tuple(zip(one.starts.tolist(), one.stops.tolist(), strict=True)))
            for name, one in (spans or {}).items()
        ),
        world.class_names,
    )
    total = _sum_products(units, needed, laws)
    order = [place for unit in units for place in unit.places]
    return np.transpose(total, np.argsort(order))


def population_counts(
    world: World,
    row: MomentRow,
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
    row: MomentRow, resolutions: list[Resolution], length: int, spans: Mapping[str, SpanTable]
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


@kept_by_prior(maxsize=4096)
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


# --- units ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneSequence:
    """A sequence of a world: its length and the spans in it."""

    world: World
    length: int
    spans: Mapping[str, SpanTable]

    def layout(self, resolution: Resolution) -> Layout:
        """Where the tasks of the sequence lie."""
        return Layout.of(resolution, np.array([self.length]), self.spans)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unit:
    """Some slots (`places` in the list of slots), the labels they need, and their law given those labels."""

    places: tuple[int, ...]
    tasks: tuple[LabelTask, ...]
    law: Callable[[tuple[int, ...]], FloatArray]


def label_unit(one: OneSequence, task: LabelTask, place: int) -> Unit:
    """A label itself as a slot."""
    n_classes = one.world.n_classes if task[0].kind == "element" else 2
    return Unit(places=(place,), tasks=(task,), law=lambda labels: np.eye(n_classes)[labels[0]])


def make_units(one: OneSequence, slots: list[VoteSlot]) -> list[Unit]:
    """Group slots into units that are independent of each other given the labels."""
    groups: dict[tuple[AnyBlock, int], list[int]] = {}
    for place, (source, index) in enumerate(slots):
        resolution = one.world.block(source).resolution
        if not 0 <= index < one.layout(resolution).n_tasks:
            raise TaskError(
                f"there is no task {index} at {describe(resolution)} in a sequence of {one.length} elements."
            )
        groups.setdefault(_unit_of(one, source, index), []).append(place)
    makers: dict[type, Callable[..., Unit]] = {
        Block: _block_unit,
        TemporalBlock: _temporal_unit,
        FullBlock: _full_unit,
        CrossedBlock: _alone_unit,
    }
    return [makers[type(block)](one, block, index, places, slots) for (block, index), places in groups.items()]


def _unit_of(one: OneSequence, source: str, index: int) -> tuple[AnyBlock, int]:
    """The block whose law holds the vote of a source on a task, and the task of the block."""
    block = one.world.block(source)
    if not isinstance(block, CrossedBlock):
        return block, index if isinstance(block, Block) else 0
    parent = one.world.block(block.parent)
    if not isinstance(parent, Block):
        raise GraphError(
            f"the population of {source!r} is known if its parent {block.parent!r} depends on its own task only."
        )
    above = int(containing(one.layout(block.resolution), one.layout(parent.resolution))[index])
    return (block, index) if above < 0 else (parent, above)


def _at(table: FloatArray, index: int) -> FloatArray:
    """The table of a position; positions beyond the last use the last."""
    return np.asarray(table[min(index, len(table) - 1)])


def _block_unit(one: OneSequence, block: Block, index: int, places: list[int], slots: list[VoteSlot]) -> Unit:
    own = [place for place in places if slots[place][0] in block.names]
    below = [place for place in places if place not in own]
    if not below:
        table = _at(block.marginal(tuple(slots[place][0] for place in own)), index)
        return Unit(places=tuple(own), tasks=((block.resolution, index),), law=lambda labels: table[labels[0]])
    return _family_unit(one, block, index, own, below, slots)


def _family_unit(
    one: OneSequence, block: Block, index: int, own: list[int], below: list[int], slots: list[VoteSlot]
) -> Unit:
    """A block on one task together with sources of finer tasks that depend on one of its votes."""
    children = [(one.world.block(slots[place][0]), slots[place][1]) for place in below]
    full = _at(block.tables(), index)
    dropped = tuple(k for k, name in enumerate(block.names) if name not in {slots[place][0] for place in own})
    order = [block.names.index(slots[place][0]) for place in own]

    def law(labels: tuple[int, ...]) -> FloatArray:
        term = full[labels[0]]
        for (child, _), label in zip(children, labels[1:], strict=True):
            assert isinstance(child, CrossedBlock)
            given = child.table[label, labels[0]]
            axis = block.names.index(child.parent)
            shape = [1] * term.ndim + [child.n_columns]
            shape[axis] = given.shape[0]
            term = term[..., np.newaxis] * given.reshape(shape)
        summed = term.sum(axis=dropped)
        ranks = np.argsort(np.argsort(order)).tolist()
        return np.transpose(summed, (*ranks, *range(len(order), summed.ndim)))

    tasks = ((block.resolution, index), *((child.resolution, at) for child, at in children))
    return Unit(places=(*own, *below), tasks=tasks, law=law)


def _alone_unit(_: OneSequence, block: CrossedBlock, index: int, places: list[int], slots: list[VoteSlot]) -> Unit:
    """A source that depends on a coarser one, where no coarser task contains its own."""
    if block.marginal is None or len(places) > 1:
        raise GraphError(f"{slots[places[0]][0]!r} needs a marginal table where no coarser task contains its own.")
    table = block.marginal
    return Unit(places=tuple(places), tasks=((block.resolution, index),), law=lambda labels: table[labels[0]])


def _temporal_unit(
    _one: OneSequence, block: TemporalBlock, _index: int, places: list[int], slots: list[VoteSlot]
) -> Unit:
    wanted = sorted(places, key=lambda place: slots[place][1])
    indices = [slots[place][1] for place in wanted]
    past = sorted({i for index in indices for i in range(index, -1, -block.lag)})

    def law(labels: tuple[int, ...]) -> FloatArray:
        label = dict(zip(past, labels, strict=True))
        return _temporal_law(block, label, indices)

    return Unit(places=tuple(wanted), tasks=tuple((block.resolution, i) for i in past), law=law)


def _temporal_law(block: TemporalBlock, label: dict[int, int], indices: list[int]) -> FloatArray:
    """Joint law of the votes at `indices` (sorted): one strand per residue modulo the lag."""
    total, order = np.ones(()), []
    for residue in sorted({index % block.lag for index in indices}):
        strand = [index for index in indices if index % block.lag == residue]
        now = block.first[label[residue]]
        # The last axis is the newest vote; axes before it are votes to be kept.
        for index in range(residue, strand[-1] + 1, block.lag):
            if index > residue:
                now = now @ block.step[label[index - block.lag], label[index]]
            if index in strand:
                now = now[..., np.newaxis] * np.eye(block.n_columns)
        total = np.multiply.outer(total, now.sum(axis=-1))
        order += strand
    return np.transpose(total, np.argsort(order))


def _full_unit(one: OneSequence, block: FullBlock, _: int, places: list[int], slots: list[VoteSlot]) -> Unit:
    n_tasks, shape = block.n_tasks, (block.n_columns,) * block.n_tasks
    if one.layout(block.resolution).n_tasks != n_tasks:
        raise GraphError(f"{block.name!r} has a full table over {n_tasks} tasks; this sequence has another number.")
    wanted = sorted(places, key=lambda place: slots[place][1])
    dropped = tuple(i for i in range(n_tasks) if i not in {slots[place][1] for place in wanted})

    def law(labels: tuple[int, ...]) -> FloatArray:
        row = int(np.ravel_multi_index(labels, (block.n_classes,) * n_tasks))
        return np.asarray(block.table[row].reshape(shape).sum(axis=dropped))

    tasks = tuple((block.resolution, i) for i in range(n_tasks))
    return Unit(places=tuple(wanted), tasks=tasks, law=law)

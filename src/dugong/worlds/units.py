"""Votes that must be looked at together given the labels: the pieces of which a population law is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.tasks import Layout, Resolution, SpanTable, describe
from dugong.types import FloatArray
from dugong.worlds.blocks import Block, CrossedBlock, FullBlock, TemporalBlock
from dugong.worlds.sampling import containing

if TYPE_CHECKING:
    from dugong.worlds.world import World

LabelTask = tuple[Resolution, int]
Slot = tuple[str, int]


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


def make_units(one: OneSequence, slots: list[Slot]) -> list[Unit]:
    """Group slots into units that are independent of each other given the labels."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for place, (source, index) in enumerate(slots):
        _check_index(one, source, index)
        groups.setdefault(_unit_of(one, source, index), []).append(place)
    makers = {"block": _block_unit, "temporal": _temporal_unit, "full": _full_unit, "alone": _alone_unit}
    return [makers[kind](one, name, index, places, slots) for (kind, name, index), places in groups.items()]


def _check_index(one: OneSequence, source: str, index: int) -> None:
    resolution = one.world.block(source).resolution
    if not 0 <= index < one.layout(resolution).n_tasks:
        raise TaskError(f"there is no task {index} at {describe(resolution)} in a sequence of {one.length} elements.")


def _unit_of(one: OneSequence, source: str, index: int) -> tuple[str, str, int]:
    block = one.world.block(source)
    if isinstance(block, Block):
        return "block", block.names[0], index
    if isinstance(block, TemporalBlock):
        return "temporal", source, 0
    if isinstance(block, FullBlock):
        return "full", source, 0
    parent = one.world.block(block.parent)
    if not isinstance(parent, Block):
        raise GraphError(
            f"the population of {source!r} is known if its parent {block.parent!r} depends on its own task only."
        )
    above = _above(one, block, index)
    return ("alone", source, index) if above < 0 else ("block", parent.names[0], above)


def _above(one: OneSequence, block: CrossedBlock, index: int) -> int:
    outer = one.layout(one.world.block(block.parent).resolution)
    return int(containing(one.layout(block.resolution), outer)[index])


def _at(table: FloatArray, index: int) -> FloatArray:
    """The table of a position; positions beyond the last use the last."""
    return np.asarray(table[min(index, len(table) - 1)])


def _block_unit(one: OneSequence, name: str, index: int, places: list[int], slots: list[Slot]) -> Unit:
    block = one.world.block(name)
    assert isinstance(block, Block)
    own = [place for place in places if slots[place][0] in block.names]
    below = [place for place in places if place not in own]
    if not below:
        table = _at(block.marginal(tuple(slots[place][0] for place in own)), index)
        return Unit(places=tuple(own), tasks=((block.resolution, index),), law=lambda labels: table[labels[0]])
    return _family_unit(one, block, index, own, below, slots)


def _family_unit(
    one: OneSequence, block: Block, index: int, own: list[int], below: list[int], slots: list[Slot]
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


def _alone_unit(one: OneSequence, name: str, index: int, places: list[int], slots: list[Slot]) -> Unit:
    """A source that depends on a coarser one, where no coarser task contains its own."""
    block = one.world.block(name)
    assert isinstance(block, CrossedBlock)
    if block.marginal is None or len(places) > 1:
        raise GraphError(f"{slots[places[0]][0]!r} needs a marginal table where no coarser task contains its own.")
    table = block.marginal
    return Unit(places=tuple(places), tasks=((block.resolution, index),), law=lambda labels: table[labels[0]])


def _temporal_unit(one: OneSequence, name: str, _: int, places: list[int], slots: list[Slot]) -> Unit:
    block = one.world.block(name)
    assert isinstance(block, TemporalBlock)
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


def _full_unit(one: OneSequence, name: str, _: int, places: list[int], slots: list[Slot]) -> Unit:
    block = one.world.block(name)
    assert isinstance(block, FullBlock)
    n_tasks, shape = block.n_tasks, (block.n_columns,) * block.n_tasks
    if one.layout(block.resolution).n_tasks != n_tasks:
        raise GraphError(f"{name!r} has a full table over {n_tasks} tasks; this sequence has another number.")
    wanted = sorted(places, key=lambda place: slots[place][1])
    dropped = tuple(i for i in range(n_tasks) if i not in {slots[place][1] for place in wanted})

    def law(labels: tuple[int, ...]) -> FloatArray:
        row = int(np.ravel_multi_index(labels, (block.n_classes,) * n_tasks))
        return np.asarray(block.table[row].reshape(shape).sum(axis=dropped))

    tasks = tuple((block.resolution, i) for i in range(n_tasks))
    return Unit(places=tuple(wanted), tasks=tasks, law=law)

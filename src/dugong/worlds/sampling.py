"""Votes drawn from the tables of blocks, given the labels. In: blocks and `Labels`. Out: one flat column per source."""

from __future__ import annotations

import numpy as np

from dugong.exceptions import GraphError
from dugong.tasks import Layout, Resolution
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.worlds._kernels import draw_cells, draw_temporal
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock
from dugong.worlds.labels import Labels


def draw_votes(blocks: tuple[AnyBlock, ...], labels: Labels, rng: np.random.Generator) -> dict[str, Int8Array]:
    """Votes of all sources, block after block, in our own coding."""
    codes: dict[str, IntArray] = {}
    where: dict[str, Resolution] = {}
    known = {b.resolution: class_places(labels[b.resolution], b.n_classes) for b in blocks}
    for block in blocks:
        layout = Layout.of(block.resolution, labels.lengths, labels.spans)
        places = known[block.resolution]
        uniforms = rng.random(layout.n_tasks)
        if isinstance(block, Block):
            drawn = _joint(block, layout, places, uniforms)
        elif isinstance(block, TemporalBlock):
            drawn = {block.name: _temporal(block, layout, places, uniforms)}
        elif isinstance(block, FullBlock):
            drawn = {block.name: _full(block, layout, places, uniforms)}
        else:
            parent = (codes[block.parent], where[block.parent])
            drawn = {block.name: _crossed(block, layout, places, parent, labels, uniforms)}
        codes |= drawn
        where |= dict.fromkeys(block.names, block.resolution)
    return {name: vote_values(column, _n_classes(blocks, name)) for name, column in codes.items()}


def class_places(values: Int8Array, n_classes: int) -> IntArray:
    """Class index of every label."""
    wide = values.astype(np.int64)
    return (wide + 1) // 2 if n_classes == 2 else wide - 1


def vote_values(columns: IntArray, n_classes: int) -> Int8Array:
    """Votes in our own coding from table columns (abstain last)."""
    values = [-1, 1, 0] if n_classes == 2 else [*range(1, n_classes + 1), 0]
    return np.array(values, dtype=np.int8)[columns]


def _n_classes(blocks: tuple[AnyBlock, ...], name: str) -> int:
    return next(block.n_classes for block in blocks if name in block.names)


def _cumulative(table: FloatArray) -> FloatArray:
    return np.cumsum(table, axis=-1)


def _joint(block: Block, layout: Layout, places: IntArray, uniforms: FloatArray) -> dict[str, IntArray]:
    tables = block.tables()
    rows = places
    if block.by_position:
        rows = np.minimum(layout.positions(), len(tables) - 1) * block.n_classes + places
    flat = tables.reshape(len(tables) * block.n_classes, -1)
    cells = draw_cells(_cumulative(flat), rows, uniforms)
    if len(block.names) == 1:
        return {block.names[0]: cells}
    return dict(zip(block.names, np.unravel_index(cells, tables.shape[2:]), strict=True))


def _temporal(block: TemporalBlock, layout: Layout, places: IntArray, uniforms: FloatArray) -> IntArray:
    first, step = _cumulative(block.first), _cumulative(block.step)
    return np.asarray(draw_temporal(first, step, places, layout.offsets.copy(), block.lag, uniforms))


def _full(block: FullBlock, layout: Layout, places: IntArray, uniforms: FloatArray) -> IntArray:
    if (np.diff(layout.offsets) != block.n_tasks).any():
        raise GraphError(
            f"{block.name!r} has a full table over {block.n_tasks} tasks; every sequence must have exactly as many."
        )
    n_tasks, shape = block.n_tasks, (-1, block.n_tasks)
    digits = block.n_classes ** np.arange(n_tasks - 1, -1, -1)
    patterns = places.reshape(shape) @ digits
    cells = draw_cells(_cumulative(block.table), patterns, uniforms[: len(patterns)])
    columns = np.unravel_index(cells, (block.n_columns,) * n_tasks)
    return np.stack(columns, axis=1).astype(np.int64).reshape(-1)


def _crossed(
    block: CrossedBlock,
    layout: Layout,
    places: IntArray,
    parent: tuple[IntArray, Resolution],
    labels: Labels,
    uniforms: FloatArray,
) -> IntArray:
    codes, resolution = parent
    outer = containing(layout, Layout.of(resolution, labels.lengths, labels.spans))
    above = class_places(labels[resolution], block.table.shape[1])
    given = block.table.reshape(-1, block.n_columns)
    rows = (places * block.table.shape[1] + above[outer]) * block.table.shape[2] + codes[outer]
    if (outer < 0).any():
        if block.marginal is None:
            raise GraphError(
                f"{block.name!r} needs a marginal table for tasks that no task of {block.parent!r} contains."
            )
        rows = np.where(outer < 0, len(given) + places, rows)
        given = np.concatenate([given, block.marginal])
    return np.asarray(draw_cells(_cumulative(given), rows, uniforms))


def containing(inner: Layout, outer: Layout) -> IntArray:
    """The coarse task in which each fine task starts, or -1; coarse tasks must not overlap."""
    begins, starts = inner.flat_bounds()[0], outer.flat_bounds()[0]
    found = np.searchsorted(starts, begins, side="right") - 1
    stops = outer.flat_bounds()[1]
    return np.where((found >= 0) & (begins < stops[np.maximum(found, 0)]), found, -1)

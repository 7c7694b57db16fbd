"""A sample of a world: lengths of sequences, then labels at every resolution, then votes given the labels.

In: laws of lengths, a prior, blocks of sources. Out: `Truth`, the truth of all tasks, and one flat column of votes per
source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.priors import Joint, Prior
from dugong.priors.chain import positive_class
from dugong.tasks import Element, Layout, Resolution, SpanTable, find_resolution, link_labels
from dugong.tasks.layout import containing
from dugong.types import ABSTAIN, FloatArray, Int8Array, IntArray, class_values, read_only
from dugong.worlds._kernels import draw_cells, draw_temporal
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock

LengthLaw = Callable[[int, np.random.Generator], IntArray]
Lengths = int | Sequence[int] | IntArray | LengthLaw


@dataclass(frozen=True, slots=True)
class Between:
    """Every length from `low` to `high` (included) equally likely."""

    low: int
    high: int

    def __call__(self, n_sequences: int, rng: np.random.Generator) -> IntArray:
        """Draw lengths."""
        return rng.integers(self.low, self.high + 1, size=n_sequences)


@dataclass(frozen=True, slots=True)
class Shots:
    """Cuts every sequence into consecutive spans, one cut before each element with probability 1 / `mean`."""

    mean: float
    name: str = "shot"

    def __call__(self, lengths: IntArray, rng: np.random.Generator) -> dict[str, SpanTable]:
        """Draw spans that cover all elements."""
        spans = []
        for length in lengths.tolist():
            cuts = [0, *(1 + np.flatnonzero(rng.random(max(length - 1, 0)) < 1 / self.mean)).tolist(), length]
            spans.append(list(pairwise(cuts)) if length else [])
        return {self.name: SpanTable.from_lists(spans)}


def draw_lengths(lengths: Lengths, n_sequences: int, rng: np.random.Generator) -> IntArray:
    """Length of every sequence."""
    given = lengths(n_sequences, rng) if callable(lengths) else lengths
    drawn = np.full(n_sequences, given) if np.ndim(given) == 0 else np.asarray(given)
    if drawn.dtype.kind not in "iu" or drawn.shape != (n_sequences,) or (drawn < 0).any():
        raise TaskError(
            f"a world needs one length of at least 0 for each of {n_sequences} sequences; found shape {drawn.shape}."
        )
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth(Mapping[str | Resolution, Int8Array]):
    """Class values of all tasks, flat, by resolution; ``labels["element"]`` or ``labels[Window(...)]``.

    Attributes
    ----------
    by_resolution : mapping of Resolution to (n_tasks,) int8
        -1/+1, or 1..K for elements with more than two classes.
    lengths : (n_sequences,) elements of each sequence
    spans : mapping of name to SpanTable
    """

    by_resolution: Mapping[Resolution, Int8Array]
    lengths: IntArray
    spans: Mapping[str, SpanTable] = field(default_factory=dict)

    def __getitem__(self, resolution: str | Resolution) -> Int8Array:
        return self.by_resolution[find_resolution(resolution, self.by_resolution)]

    def __iter__(self) -> Iterator[str | Resolution]:
        return iter(self.by_resolution)

    def __len__(self) -> int:
        return len(self.by_resolution)

    def sequence(self, place: int, resolution: str | Resolution = "element") -> Int8Array:
        """The labels of one sequence."""
        found = find_resolution(resolution, self.by_resolution)
        return self.by_resolution[found][Layout.of(found, self.lengths, self.spans).rows(place)]


def draw_labels(
    prior: Prior,
    resolutions: tuple[Resolution, ...],
    lengths: IntArray,
    spans: Mapping[str, SpanTable],
    rng: np.random.Generator,
    class_names: tuple[str, ...] | None = None,
) -> Truth:
    """Draw element labels from the prior, and what follows from them (or, with a joint table, was drawn beside)."""
    drawn: dict[Resolution, Int8Array] = {}
    if isinstance(prior, Joint):
        drawn = _from_joint(prior, resolutions, lengths, spans, rng)
    elements = drawn[Element()] if drawn else prior.sample_lengths(lengths, rng)
    for resolution in resolutions:
        if resolution not in drawn:
            layout = Layout.of(resolution, lengths, spans)
            positive = prior.classes[positive_class(resolution, prior.n_classes, class_names)]
            drawn[resolution] = link_labels(elements, layout, positive)
    ordered = {resolution: read_only(drawn[resolution]) for resolution in resolutions}
    return Truth(by_resolution=ordered, lengths=lengths, spans=spans)


def _from_joint(
    prior: Joint,
    resolutions: tuple[Resolution, ...],
    lengths: IntArray,
    spans: Mapping[str, SpanTable],
    rng: np.random.Generator,
) -> dict[Resolution, Int8Array]:
    for length in np.unique(lengths):
        prior.check_length(int(length))
    cells = prior.sample_tasks(len(lengths), rng)
    drawn: dict[Resolution, Int8Array] = {}
    for resolution in resolutions:
        n_tasks = int(np.diff(Layout.of(resolution, lengths[:1], spans).offsets)[0]) if len(lengths) else 0
        places = [prior.place(resolution, index) for index in range(n_tasks)]
        named = [place for place in places if place is not None]
        if len(named) == n_tasks:
            values = np.array(prior.classes if isinstance(resolution, Element) else (-1, 1), dtype=np.int8)
            drawn[resolution] = values[cells[:, named].reshape(-1)]
    return drawn


def draw_votes(blocks: tuple[AnyBlock, ...], labels: Truth, rng: np.random.Generator) -> dict[str, Int8Array]:
    """Votes of all sources, block after block, in our own coding."""
    codes: dict[str, IntArray] = {}
    where: dict[str, Resolution] = {}
    known = {b.resolution: np.searchsorted(class_values(b.n_classes), labels[b.resolution]) for b in blocks}
    for block in blocks:
        layout = Layout.of(block.resolution, labels.lengths, labels.spans)
        places = known[block.resolution]
        uniforms = rng.random(layout.n_tasks)
        if isinstance(block, Block):
            drawn = _joint(block, layout, places, uniforms)
        elif isinstance(block, TemporalBlock):
            first, step = np.cumsum(block.first, axis=-1), np.cumsum(block.step, axis=-1)
            drawn = {block.name: draw_temporal(first, step, places, layout.offsets.copy(), block.lag, uniforms)}
        elif isinstance(block, FullBlock):
            drawn = {block.name: _full(block, layout, places, uniforms)}
        else:
            parent = (codes[block.parent], where[block.parent])
            drawn = {block.name: _crossed(block, layout, places, parent, labels, uniforms)}
        codes |= drawn
        where |= dict.fromkeys(block.names, block.resolution)
    # Table columns are classes, then abstain.
    values = {name: (*class_values(block.n_classes), ABSTAIN) for block in blocks for name in block.names}
    return {name: np.array(values[name], dtype=np.int8)[column] for name, column in codes.items()}


def _joint(block: Block, layout: Layout, places: IntArray, uniforms: FloatArray) -> dict[str, IntArray]:
    tables = block.tables()
    rows = places
    if block.by_position:
        rows = np.minimum(layout.positions(), len(tables) - 1) * block.n_classes + places
    flat = tables.reshape(len(tables) * block.n_classes, -1)
    cells = draw_cells(np.cumsum(flat, axis=-1), rows, uniforms)
    if len(block.names) == 1:
        return {block.names[0]: cells}
    return dict(zip(block.names, np.unravel_index(cells, tables.shape[2:]), strict=True))


def _full(block: FullBlock, layout: Layout, places: IntArray, uniforms: FloatArray) -> IntArray:
    if (np.diff(layout.offsets) != block.n_tasks).any():
        raise GraphError(
            f"{block.name!r} has a full table over {block.n_tasks} tasks; every sequence must have exactly as many."
        )
    n_tasks, shape = block.n_tasks, (-1, block.n_tasks)
    digits = block.n_classes ** np.arange(n_tasks - 1, -1, -1)
    patterns = places.reshape(shape) @ digits
    cells = draw_cells(np.cumsum(block.table, axis=-1), patterns, uniforms[: len(patterns)])
    columns = np.unravel_index(cells, (block.n_columns,) * n_tasks)
    return np.stack(columns, axis=1).astype(np.int64).reshape(-1)


def _crossed(
    block: CrossedBlock,
    layout: Layout,
    places: IntArray,
    parent: tuple[IntArray, Resolution],
    labels: Truth,
    uniforms: FloatArray,
) -> IntArray:
    codes, resolution = parent
    outer = containing(layout, Layout.of(resolution, labels.lengths, labels.spans))
    above = np.searchsorted(class_values(block.table.shape[1]), labels[resolution])
    given = block.table.reshape(-1, block.n_columns)
    rows = (places * block.table.shape[1] + above[outer]) * block.table.shape[2] + codes[outer]
    if (outer < 0).any():
        if block.marginal is None:
            raise GraphError(
                f"{block.name!r} needs a marginal table for tasks that no task of {block.parent!r} contains."
            )
        rows = np.where(outer < 0, len(given) + places, rows)
        given = np.concatenate([given, block.marginal])
    return np.asarray(draw_cells(np.cumsum(given, axis=-1), rows, uniforms))

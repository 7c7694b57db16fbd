"""The short engine: all label patterns of sequences of a few elements, for all sequences of a block at once.

In: prepared votes on sequences so short that their patterns are few. Out: marginals and expected counts (see `runs`),
exact whatever overlaps or depends on what. Patterns grow element by element, and a task is weighed as soon as its last
element is there; every pattern is one vector over the sequences, so that no loop runs over these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dugong.infer.blocks import report_impossible
from dugong.infer.emissions import UNIT
from dugong.infer.factors import Channel
from dugong.infer.patterns import LabelPatterns, chain_law, channel_codes, link_labels
from dugong.infer.prepare import Prepared, VotesBlock, read_block
from dugong.infer.runs import BlockAnswer
from dugong.priors.chain import LabelChain
from dugong.priors.pieces import positive_class
from dugong.tasks import Element, Layout, Resolution
from dugong.types import AnyArray, FloatArray, IntArray

MOST_PATTERNS = 32
_BLOCK = 1 << 13  # elements whose patterns stay in the second-level cache, and in memory that was touched before
_SMALLEST = 1e-200  # a sequence with less weight than this is worked out in logarithms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Site:
    """A task as one channel sees it: the code of every pattern, once enough elements are there."""

    channel: int
    task: int
    codes: IntArray
    hot: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shape:
    """Sequences of one length: prior of all patterns; sites by number of elements, beside those of the elements."""

    law: FloatArray
    sites: tuple[tuple[_Site, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShortEngine:
    """Votes on short sequences."""

    prepared: Prepared
    block_size: int = _BLOCK
    exact: bool = True

    @staticmethod
    def fits(prepared: Prepared) -> bool:
        """Whether all sequences have few patterns, and none has spans of its own."""
        longest = int(prepared.votes.lengths.max(initial=0))
        return (
            longest * np.log(prepared.n_classes) <= np.log(MOST_PATTERNS)
            and all(layout.spans is None for layout in prepared.layouts)
            and all(isinstance(one, Element) or one.link != "joint" for one in prepared.resolutions)
        )

    def read(self, begin: int, end: int) -> VotesBlock:
        """The votes of some sequences."""
        return read_block(self.prepared, begin, end)

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        codes, lengths, n_classes = self.prepared.codes, block.layouts[0].lengths, self.prepared.n_classes
        values = codes.pieces(block.emissions.values, block.layouts)
        powers = codes.pieces(block.emissions.powers, block.layouts) if block.emissions.powers.any() else None
        parts = [np.empty(value.shape) for value in values]
        pairs, logs = np.zeros((len(lengths), n_classes, n_classes)), np.zeros(len(lengths))
        for length in np.unique(lengths[lengths > 0]).tolist():
            own, shape = np.flatnonzero(lengths == length), self._shape(length)
            rows = [_tasks(block.layouts[place], own) for place in codes.places]
            numbers = [_by_task(value, row) for value, row in zip(values, rows, strict=True)]
            # One piece of memory for all steps: new pages cost more than what is done with them.
            room = np.empty((3, len(shape.law), len(own)))
            found = None if powers is not None else _multiplied(shape, numbers, room)
            if found is None:
                shifts = powers and [_by_task(power, row) * UNIT for power, row in zip(powers, rows, strict=True)]
                found = _added(shape, numbers, shifts or [np.zeros(())] * len(numbers), room)
            weights, logs[own] = found
            if not np.isfinite(found[1]).all():
                report_impossible(self.prepared.votes, begin + int(own[np.argmin(np.isfinite(found[1]))]))
            marginals = [np.empty((row.shape[1], size, len(own))) for row, size in zip(rows, codes.sizes, strict=True)]
            together = _read_off(shape, weights, room, marginals, n_classes, counting=counting)
            pairs[own] = together.transpose(2, 0, 1)
            for part, row, one in zip(parts, rows, marginals, strict=True):
                if row.size == len(part):
                    part.reshape(*row.shape, -1)[...] = one.transpose(2, 0, 1)
                else:
                    part[row] = one.transpose(2, 0, 1)
        return BlockAnswer(parts=parts, transitions=pairs, log_likelihood=logs)

    def _shape(self, length: int) -> _Shape:
        prepared = self.prepared
        positive = tuple(
            0 if isinstance(one, Element) else positive_class(one, prepared.n_classes, prepared.votes.class_names)
            for one in prepared.resolutions
        )
        codes = prepared.codes
        return _make_shape(prepared.chain, codes.channels, codes.sizes, prepared.resolutions, positive, length)


def _tasks(layout: Layout, sequences: IntArray) -> IntArray:
    """Tasks of some sequences of one length, (n_sequences, n_tasks)."""
    begins = layout.offsets[sequences]
    n_tasks = int(layout.offsets[sequences[0] + 1] - begins[0])
    return np.asarray(begins[:, np.newaxis] + np.arange(n_tasks))


@lru_cache(maxsize=32)
def _make_shape(
    chain: LabelChain,
    channels: tuple[Channel, ...],
    sizes: tuple[int, ...],
    resolutions: tuple[Resolution, ...],
    positive: tuple[int, ...],
    length: int,
) -> _Shape:
    layouts = {one: Layout.of(one, np.array([length])) for one in resolutions}
    sites: list[list[_Site]] = [[] for _ in range(length)]
    for n_elements in range(1, length + 1):
        grid = np.indices((chain.n_classes,) * n_elements).reshape(n_elements, -1)
        labels = {
            one: grid.T if isinstance(one, Element) else link_labels(layouts[one], 0, grid, wanted)
            for one, wanted in zip(resolutions, positive, strict=True)
        }
        patterns = LabelPatterns(labels=labels, log_prior=np.zeros(grid.shape[1]))
        for place, channel in enumerate(channels):
            if isinstance(channel.resolution, Element) and not channel.lag and channel.parent is None:
                continue
            for task, last in enumerate(_last(layouts, channel.resolution, channel.parent)):
                if last == n_elements:
                    n_labels = chain.n_classes if isinstance(channel.resolution, Element) else 2
                    code = channel_codes(channel, n_labels, patterns, layouts, 0, task)
                    hot = np.asarray(np.arange(sizes[place])[:, np.newaxis] == code, dtype=np.float64)
                    sites[n_elements - 1].append(_Site(channel=place, task=task, codes=code, hot=hot))
    return _Shape(law=chain_law(chain, grid), sites=tuple(map(tuple, sites)))


def _last(layouts: dict[Resolution, Layout], resolution: Resolution, parent: Resolution | None) -> list[int]:
    """How many elements must be there before what a channel sees of every task is known."""
    starts, stops = layouts[resolution].bounds()
    if parent is None:
        return list(map(int, stops))
    outer = list(zip(*layouts[parent].bounds(), strict=True))
    return [
        max([int(stop), *(int(end) for begin, end in outer if begin <= start < end)])
        for start, stop in zip(starts, stops, strict=True)
    ]


def _by_task(values: AnyArray, rows: IntArray) -> AnyArray:
    """Numbers of tasks and codes for all sequences, (n_tasks, codes, n_sequences)."""
    found = values.reshape(*rows.shape, -1) if rows.size == len(values) else values[rows]
    return np.ascontiguousarray(found.transpose(1, 2, 0))


def _grow(
    shape: _Shape, numbers: list[AnyArray], combine: Callable[..., AnyArray], law: FloatArray, room: FloatArray
) -> FloatArray:
    """Weights of all patterns, (n_patterns, n_sequences); patterns of more and more elements take turns in `room`."""
    weights, n = numbers[0][0][:0], room.shape[-1]
    for place, (own, sites) in enumerate(zip(numbers[0], shape.sites, strict=True)):
        before, weights = weights, room[place % 2, : len(own) ** (place + 1)]
        if place:
            combine(before[:, np.newaxis], own, out=weights.reshape(-1, len(own), n))
        else:
            weights[...] = own
        for site in sites:
            seen = numbers[site.channel][site.task]
            combine(weights, np.take(seen, site.codes, 0, room[2, : len(weights)], "clip"), out=weights)
    return combine(weights, law[:, np.newaxis], out=weights)


def _multiplied(shape: _Shape, numbers: list[AnyArray], room: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Posterior of all patterns and log-likelihoods; None where numbers get too small or too large."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        weights = _grow(shape, numbers, np.multiply, shape.law, room)
        total = weights.sum(axis=0)
        if not (total.min() > _SMALLEST and np.isfinite(total.max())):
            return None
        weights /= total
        return weights, np.log(total)


def _added(
    shape: _Shape, numbers: list[AnyArray], shifts: list[FloatArray], room: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same in logarithms, whatever the range of numbers; minus infinity where a sequence is impossible."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(one) + shift for one, shift in zip(numbers, shifts, strict=True)]
        weights = _grow(shape, logs, np.add, np.log(shape.law), room)
        top = weights.max(axis=0)
        weights = np.exp(weights - top, out=weights)
        total = weights.sum(axis=0)
        weights /= total
        return weights, np.where(np.isfinite(top), top + np.log(total), -np.inf)


def _read_off(
    shape: _Shape, weights: FloatArray, room: FloatArray, found: list[FloatArray], n_classes: int, *, counting: bool
) -> FloatArray:
    """Write the posterior by channel, (n_tasks, codes, n_sequences) each; returns expected pairs of labels."""
    n = weights.shape[-1]
    pairs = np.zeros((n_classes, n_classes, n))
    for place in range(len(shape.sites) - 1, -1, -1):
        for site in shape.sites[place]:
            np.matmul(site.hot, weights, out=found[site.channel][site.task])
        if counting and place:
            pairs += weights.reshape(-1, n_classes, n_classes, n).sum(axis=0)
        by_label = weights.reshape(-1, n_classes, n)
        by_label.sum(axis=0, out=found[0][place])
        weights = by_label.sum(axis=1, out=room[(place + 1) % 2, : len(by_label)])
    return pairs

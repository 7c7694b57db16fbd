"""Questions about all sequences, answered block by block: what the chain engines share.

In: an engine that answers about one block of sequences. Out: marginals, expected counts, decoded or sampled labels of
all. Blocks do not depend on the number of threads, so results do not either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from dugong.infer._kernels import add_owned
from dugong.infer.blocks import Progress, Sums, block_bounds, on_threads, sum_by, sum_groups
from dugong.infer.lookups import split_cells
from dugong.infer.prepare import Prepared, VotesBlock, read_block
from dugong.tasks import Resolution
from dugong.types import FloatArray, Int8Array, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockAnswer:
    """What is known about the labels of a block.

    Attributes
    ----------
    parts : posterior by channel, (n_tasks, codes) each
    transitions : (n_sequences, K, K) expected pairs of labels
    log_likelihood : by sequence
    """

    parts: list[FloatArray]
    transitions: FloatArray
    log_likelihood: FloatArray


class Smoother(Protocol):
    """Marginals of sequences begin..end; raises a `PriorError` if one of them is impossible."""

    @property
    def prepared(self) -> Prepared:
        """The votes."""

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""

    @property
    def exact(self) -> bool:
        """Whether answers are exact."""

    @property
    def block_size(self) -> int:
        """Elements of one block."""


class BlockEngine(Smoother, Protocol):
    """Answers about joint labels as well."""

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior; of the most likely ones without a generator."""


def smooth(
    engine: Smoother,
    wanted: tuple[Resolution, ...],
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[Resolution, FloatArray], FloatArray]:
    """Marginals of the wanted resolutions, and the log-likelihood of every sequence."""
    prepared = engine.prepared
    layouts = dict(zip(prepared.resolutions, prepared.layouts, strict=True))
    marginals = {one: np.empty((layouts[one].n_tasks, prepared.n_labels(one))) for one in wanted}

    def work(bounds: tuple[int, int]) -> FloatArray:
        block = read_block(prepared, *bounds)
        answer = engine.smooth(block, bounds[0], counting=False)
        for resolution, found in marginals.items():
            place = prepared.resolutions.index(resolution)
            # The first channel of a resolution is that of its labels.
            found[block.rows[place]] = answer.parts[prepared.codes.places.index(place)]
        return answer.log_likelihood

    found = on_threads(work, block_bounds(prepared.layouts[0].offsets, engine.block_size), n_threads, progress)
    return marginals, np.concatenate([np.zeros(0), *found])


def count(
    engine: Smoother, owners: IntArray, n_groups: int, n_threads: int | None = None
) -> tuple[list[FloatArray], Sums]:
    """Expected counts by group of sequences: by cell of every factor's flat table, and of labels and pairs."""
    prepared = engine.prepared
    total = Sums.none(prepared.n_classes, sum(lookup.table.size for lookup in prepared.lookups), n_groups)
    offsets = prepared.layouts[0].offsets
    sum_groups(partial(_count, engine), total, offsets, owners, n_threads, engine.block_size)
    return split_cells(prepared.lookups, total.cells), total


def _count(engine: Smoother, bounds: tuple[int, int], owners: IntArray, n_groups: int) -> Sums:
    """Sum the posterior of codes by the cells that the votes pointed at, and that of the first labels."""
    prepared, block = engine.prepared, read_block(engine.prepared, *bounds)
    answer = engine.smooth(block, bounds[0], counting=True)
    cells = [np.zeros((n_groups, 0))]
    for lookup, rows in zip(prepared.lookups, block.emissions.rows, strict=True):
        channel = prepared.codes.channels.index(lookup.channel)
        layout, found = block.layouts[prepared.codes.places[channel]], np.zeros((n_groups, lookup.table.size))
        values, n_rows = np.ascontiguousarray(answer.parts[channel]), len(lookup.rows)
        add_owned(owners, layout.offsets, rows, n_rows, values, found.reshape(n_groups * n_rows, -1))
        cells.append(found)
    firsts, filled = block.layouts[0].offsets[:-1], block.layouts[0].lengths > 0
    return Sums(
        cells=np.concatenate(cells, axis=1),
        initial=sum_by(owners[filled], answer.parts[0][firsts[filled]], n_groups),
        transitions=sum_by(owners, answer.transitions, n_groups),
        log_likelihood=sum_by(owners, answer.log_likelihood, n_groups),
    )


def draw(
    engine: BlockEngine, rng: np.random.Generator | None = None, n_draws: int = 1, n_threads: int | None = None
) -> Int8Array:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements).

    Without a generator, those of the most likely joint labels.
    """
    prepared = engine.prepared
    labels = np.zeros((n_draws, prepared.votes.n_elements), dtype=np.int8)
    bounds = block_bounds(prepared.layouts[0].offsets, engine.block_size)
    # A generator per block, because threads take blocks in any order.
    generators = {} if rng is None else dict(zip(bounds, rng.spawn(len(bounds)), strict=True))

    def work(bound: tuple[int, int]) -> None:
        block = read_block(prepared, *bound)
        labels[:, block.rows[0]] = engine.draw(block, bound[0], generators.get(bound), n_draws)

    for _ in on_threads(work, bounds, n_threads):
        pass
    return labels

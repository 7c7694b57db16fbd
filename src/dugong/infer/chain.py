"""The chain engine: exact inference for sequences of any length, linear in their length.

In: votes, flat factors and a label chain. Out: marginals, expected counts, decoded or sampled labels. The state
space is a product of automata (`product`), the work is done block by block of sequences by `_kernels`, on threads.
Blocks do not depend on the number of threads, so results do not either.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.blocks import Progress, Sums, block_bounds, on_threads, report_impossible, sum_runs
from dugong.infer.lookups import split_cells
from dugong.infer.prepare import Block, Chained, cut, prepare
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray

__all__ = ["Chained", "count", "decode", "draw", "prepare", "smooth"]


def smooth(
    chained: Chained,
    wanted: tuple[Resolution, ...],
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[Resolution, FloatArray], FloatArray]:
    """Marginals of the wanted resolutions, and the log-likelihood of every sequence."""
    shapes = {r: (chained.layouts[chained.resolutions.index(r)].n_tasks, n_labels(chained, r)) for r in wanted}
    marginals = {resolution: np.empty(shape) for resolution, shape in shapes.items()}
    work, bounds = partial(_smooth_block, chained, marginals, 0), block_bounds(chained.layouts[0].offsets)
    parts = [part.log_likelihood for part in on_threads(work, bounds, n_threads, progress)]
    return marginals, np.concatenate([np.zeros(0), *parts])


def count(chained: Chained, runs: IntArray, n_threads: int | None = None) -> Iterator[tuple[list[FloatArray], Sums]]:
    """Expected counts by cell of every factor's flat table, and of labels and pairs, of each run of sequences."""
    n_cells = sum(lookup.table.size for lookup in chained.lookups)
    nothing = partial(Sums.none, chained.n_classes, n_cells)
    work = partial(_smooth_block, chained, None, n_cells)
    for total in sum_runs(work, nothing, chained.layouts[0].offsets, runs, n_threads):
        yield split_cells(chained.lookups, total.cells), total


def n_labels(chained: Chained, resolution: Resolution) -> int:
    """Classes of the tasks of a resolution."""
    return chained.n_classes if isinstance(resolution, Element) else 2


def _smooth_block(
    chained: Chained,
    marginals: dict[Resolution, FloatArray] | None,
    n_cells: int,
    bounds: tuple[int, int],
) -> Sums:
    begin, end = bounds
    block, machine = cut(chained, begin, end), chained.machine
    mass, sums = np.zeros(len(block.emissions.values)), Sums.none(chained.n_classes, n_cells, end - begin)
    failed = kernels.smooth(
        *_tables(chained, block),
        machine.weights,
        block.emissions.values,
        block.emissions.powers,
        *_scratch(block),
        block.paths.widest,
        mass,
        sums.log_likelihood,
        machine.pairs if marginals is None else machine.pairs[:0],
        sums.transitions.reshape(-1),
    )
    _check(chained, begin, failed)
    parts = chained.codes.pieces(mass, block.layouts)
    for resolution, found in (marginals or {}).items():
        place = chained.resolutions.index(resolution)
        found[block.rows[place]] = parts[chained.codes.places.index(place)]
    if marginals is None:
        _count(chained, block, parts, sums)
    return sums


def _count(chained: Chained, block: Block, parts: list[FloatArray], sums: Sums) -> None:
    """Sum the posterior of codes by the cells that the votes pointed at, and that of the first labels."""
    firsts = block.layouts[0].offsets[:-1][block.layouts[0].lengths > 0]
    sums.initial += parts[0][firsts].sum(axis=0)
    cells = []
    for lookup, rows in zip(chained.lookups, block.emissions.rows, strict=True):
        part = parts[chained.codes.channels.index(lookup.channel)]
        columns = [np.bincount(rows, weights=column, minlength=len(lookup.rows)) for column in part.T]
        cells.append(np.column_stack(columns).reshape(-1))
    sums.cells[:] = np.concatenate([sums.cells[:0], *cells])


def _tables(chained: Chained, block: Block) -> tuple[AnyArray, ...]:
    """What every kernel reads first: the paths of a block, what channels see, the edges."""
    paths, machine = block.paths, chained.machine
    codes = machine.codes.reshape(-1)
    return paths.sequences, paths.rows, paths.weighings, codes, machine.pointers, machine.targets


def _scratch(block: Block) -> tuple[AnyArray, AnyArray]:
    """Room for one value and one integer per state of a path, of layer 0, and of two more elements."""
    size = 1 + block.paths.n_states + 2 * block.paths.widest
    return np.empty(size), np.empty(size, dtype=np.int64)


def _check(chained: Chained, begin: int, failed: int) -> None:
    if failed >= 0:
        report_impossible(chained.votes, begin + failed)


def decode(chained: Chained, n_threads: int | None = None) -> Int8Array:
    """Class indices of the most likely joint labels, flat over elements."""
    labels = np.zeros(chained.votes.n_elements, dtype=np.int8)
    log_weights = np.log(chained.machine.weights)

    def work(bounds: tuple[int, int]) -> None:
        block = cut(chained, *bounds)
        logs, part = block.emissions.logs(), labels[block.rows[0]]
        failed = kernels.find_best(*_tables(chained, block), log_weights, logs, *_scratch(block), part)
        _check(chained, bounds[0], failed)

    for _ in on_threads(work, block_bounds(chained.layouts[0].offsets), n_threads):
        pass
    return labels


def draw(chained: Chained, rng: np.random.Generator, n_draws: int, n_threads: int | None = None) -> Int8Array:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements)."""
    labels = np.zeros((n_draws, chained.votes.n_elements), dtype=np.int8)
    bounds = block_bounds(chained.layouts[0].offsets)
    generators = dict(zip(bounds, rng.spawn(len(bounds)), strict=True))

    def work(bound: tuple[int, int]) -> None:
        block, weights = cut(chained, *bound), chained.machine.weights
        uniforms = generators[bound].random((n_draws, block.layouts[0].n_tasks))
        drawn, emissions = np.zeros(uniforms.shape, dtype=np.int8), block.emissions
        likelihood = emissions.values, emissions.powers
        scratch = *_scratch(block), block.paths.widest
        failed = kernels.draw(*_tables(chained, block), weights, *likelihood, *scratch, uniforms, drawn)
        _check(chained, bound[0], failed)
        labels[:, block.rows[0]] = drawn

    for _ in on_threads(work, bounds, n_threads):
        pass
    return labels

"""The chain engine: exact inference for sequences of any length, linear in their length.

In: votes, flat factors and a label chain. Out: marginals, expected counts, decoded or sampled labels. The state
space is a product of automata (`product`), the work is done block by block of sequences by `_kernels`, on threads.
Blocks do not depend on the number of threads, so results do not either.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.blocks import Progress, Sums, block_bounds, on_threads, report_impossible
from dugong.infer.lookups import split_cells
from dugong.infer.machine import Chained, make_block, make_path, prepare
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array

__all__ = ["Chained", "decode", "draw", "prepare", "smooth", "table_counts"]


def smooth(
    chained: Chained,
    wanted: tuple[Resolution, ...],
    *,
    counting: bool = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[Resolution, FloatArray], Sums]:
    """Marginals of the wanted resolutions, log-likelihoods and, when counting, expected counts."""
    shapes = {r: (chained.layouts[chained.resolutions.index(r)].n_tasks, n_labels(chained, r)) for r in wanted}
    marginals = {resolution: np.empty(shape) for resolution, shape in shapes.items()}
    log_likelihood = np.zeros(chained.votes.n_sequences)
    n_classes = chained.n_classes
    total = Sums(
        cells=np.zeros(len(chained.laws.table) if counting else 0),
        initial=np.zeros(n_classes),
        transitions=np.zeros((n_classes, n_classes)),
        log_likelihood=log_likelihood,
    )
    work = partial(_smooth_block, chained, marginals, log_likelihood, len(total.cells))
    bounds = block_bounds(chained.layouts[0].offsets)
    for part in on_threads(work, bounds, n_threads, progress):
        total.cells += part.cells
        total.initial += part.initial
        total.transitions += part.transitions
    return marginals, total


def n_labels(chained: Chained, resolution: Resolution) -> int:
    """Classes of the tasks of a resolution."""
    return chained.n_classes if isinstance(resolution, Element) else 2


def _smooth_block(
    chained: Chained,
    marginals: dict[Resolution, FloatArray],
    log_likelihood: FloatArray,
    n_cells: int,
    bounds: tuple[int, int],
) -> Sums:
    begin, end = bounds
    block = _vote_block(chained, begin, end)
    parts = [_part(chained, marginals, place, begin, end) for place in range(len(chained.resolutions))]
    sizes = np.array([0 if part is None else part.size for part in parts])
    out_first = np.cumsum(sizes) - sizes
    out_first[[part is None for part in parts]] = -1
    out = np.empty(sum(part.size for part in parts if part is not None))
    n_classes = chained.n_classes
    sums = Sums(cells=np.zeros(n_cells), initial=np.zeros(n_classes), transitions=np.zeros((n_classes, n_classes)))
    failed = kernels.smooth(
        chained.machine,
        chained.laws,
        block,
        make_path(block),
        out,
        out_first,
        log_likelihood[begin:end],
        sums.cells,
        sums.initial,
        sums.transitions,
    )
    if failed >= 0:
        report_impossible(chained.votes, begin + failed)
    for part, first in zip(parts, out_first, strict=True):
        if part is not None:
            part[...] = out[first : first + part.size].reshape(part.shape)
    return sums


def _part(
    chained: Chained, marginals: dict[Resolution, FloatArray], place: int, begin: int, end: int
) -> FloatArray | None:
    resolution = chained.resolutions[place]
    if resolution not in marginals:
        return None
    offsets = chained.layouts[place].offsets
    return marginals[resolution][offsets[begin] : offsets[end]]


def _vote_block(chained: Chained, begin: int, end: int) -> kernels.Block:
    return make_block(chained.layouts, chained.slots, chained.votes, begin, end)


def table_counts(chained: Chained, sums: Sums) -> list[FloatArray]:
    """Expected counts by cell of every factor's flat table."""
    return split_cells(chained.lookups, sums.cells)


def decode(chained: Chained, n_threads: int | None = None) -> Int8Array:
    """Class indices of the most likely joint labels, flat over elements."""
    labels = np.zeros(chained.votes.n_elements, dtype=np.int8)
    offsets = chained.layouts[0].offsets

    def work(bounds: tuple[int, int]) -> None:
        begin, end = bounds
        block = _vote_block(chained, begin, end)
        part = labels[offsets[begin] : offsets[end]]
        failed = kernels.decode(chained.machine, chained.laws, block, make_path(block), part)
        if failed >= 0:
            report_impossible(chained.votes, begin + failed)

    for _ in on_threads(work, block_bounds(chained.layouts[0].offsets), n_threads):
        pass
    return labels


def draw(chained: Chained, rng: np.random.Generator, n_draws: int, n_threads: int | None = None) -> Int8Array:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements)."""
    labels = np.zeros((n_draws, chained.votes.n_elements), dtype=np.int8)
    offsets = chained.layouts[0].offsets
    bounds = block_bounds(chained.layouts[0].offsets)
    generators = dict(zip(bounds, rng.spawn(len(bounds)), strict=True))

    def work(bound: tuple[int, int]) -> None:
        begin, end = bound
        block = _vote_block(chained, begin, end)
        uniforms = generators[bound].random((n_draws, int(offsets[end] - offsets[begin])))
        drawn = np.zeros(uniforms.shape, dtype=np.int8)
        failed = kernels.draw(chained.machine, chained.laws, block, make_path(block), uniforms, drawn)
        if failed >= 0:
            report_impossible(chained.votes, begin + failed)
        labels[:, offsets[begin] : offsets[end]] = drawn

    for _ in on_threads(work, bounds, n_threads):
        pass
    return labels

"""Blocks of sequences: how both chain engines cut the work, run it on threads and sum it up.

Blocks follow from the lengths alone, and sums are added in the order of blocks, so no result depends on the number of
threads. Kernels release the interpreter's lock, so plain threads are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numba
import numpy as np

from dugong.exceptions import PriorError
from dugong.infer._kernels import add_rows
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

BLOCK = 1 << 16

Progress = Callable[[int, int], None]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, kw_only=True, eq=False)
class Sums:
    """Expected counts by group of sequences: of table cells, labels and pairs of labels; log-likelihoods."""

    cells: FloatArray
    initial: FloatArray
    transitions: FloatArray
    log_likelihood: FloatArray

    @classmethod
    def none(cls, n_classes: int, n_cells: int, n_groups: int) -> Sums:
        """Nothing counted yet."""
        return cls(
            cells=np.zeros((n_groups, n_cells)),
            initial=np.zeros((n_groups, n_classes)),
            transitions=np.zeros((n_groups, n_classes, n_classes)),
            log_likelihood=np.zeros(n_groups),
        )


def sum_by(owners: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Sums of values (n_values, ...) by owner, in order, shape (n, ...)."""
    sums = np.zeros((n, prod(values.shape[1:])))
    add_rows(owners, np.ascontiguousarray(values.reshape(len(values), sums.shape[1])), sums)
    return sums.reshape(n, *values.shape[1:])


def block_bounds(offsets: IntArray, size: int = BLOCK) -> list[tuple[int, int]]:
    """Cut the sequences into runs of about `size` elements; the same for any number of threads.

    `offsets` are those of the elements, (n_sequences + 1,); a sequence without elements counts as one.
    """
    # A million empty sequences are work too: without this they would all be one block.
    ends, empty = offsets[1:], offsets[1:] == offsets[:-1]
    if empty.any():
        ends = ends + np.cumsum(empty)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(size, total, size), side="left") + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(ends)]]))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def on_threads(
    work: Callable[[tuple[int, int]], ResultT],
    bounds: list[tuple[int, int]],
    n_threads: int | None,
    progress: Progress | None = None,
) -> Iterator[ResultT]:
    """Run the work on all blocks and yield the results in order."""
    workers = len(bounds) if len(bounds) < 2 else min(len(bounds), n_threads or numba.get_num_threads())
    done = 0
    # No pool for one worker, because starting threads takes longer than a small fit.
    if workers <= 1:
        results: Iterator[ResultT] = map(work, bounds)
        pool = None
    else:
        pool = ThreadPoolExecutor(workers)
        results = pool.map(work, bounds)
    try:
        for (begin, end), result in zip(bounds, results, strict=True):
            done += end - begin
            if progress is not None:
                progress(done, bounds[-1][1])
            yield result
    finally:
        if pool is not None:
            # An error in one block must not wait for all the others.
            pool.shutdown(cancel_futures=True)


def sum_groups(
    work: Callable[[tuple[int, int], IntArray, int], Sums],
    total: Sums,
    offsets: IntArray,
    owners: IntArray,
    n_threads: int | None,
    size: int = BLOCK,
) -> Sums:
    """Counts by group, block after block; `work` gets the owner of every sequence among the groups of its block."""
    bounds, n_groups = block_bounds(offsets, size), len(total.cells)
    groups, places = list[IntArray](), dict[tuple[int, int], tuple[IntArray, int]]()
    for begin, end in bounds:
        # Of every block the groups that occur in it: counted, which is quicker than sorted.
        present = np.flatnonzero(np.bincount(owners[begin:end], minlength=n_groups))
        place = np.zeros(n_groups, dtype=np.int64)
        place[present] = np.arange(len(present))
        groups.append(present)
        places[begin, end] = place[owners[begin:end]], len(present)
    parts = on_threads(lambda bound: work(bound, *places[bound]), bounds, n_threads)
    for present, part in zip(groups, parts, strict=True):
        total.cells[present] += part.cells
        total.initial[present] += part.initial
        total.transitions[present] += part.transitions
        total.log_likelihood[present] += part.log_likelihood
    return total


def report_impossible(votes: Votes, sequence: int) -> None:
    """Raise: the votes (and known labels) of a sequence have probability zero."""
    raise PriorError(
        f"the votes must be possible under the model; those of sequence {str(votes.sequence_ids[sequence])!r} have "
        "probability zero: a zero in the prior or in a source's table rules them out.\n"
        "  Replace zeros by small probabilities, or check the known labels of that sequence."
    )

"""Blocks of sequences: how both chain engines cut the work, run it on threads and sum it up.

Blocks follow from the lengths alone, and sums are added in the order of blocks, so no result depends on the number of
threads. Kernels release the interpreter's lock, so plain threads are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numba
import numpy as np

from dugong.exceptions import PriorError
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

BLOCK = 1 << 16

Progress = Callable[[int, int], None]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, kw_only=True, eq=False)
class Sums:
    """Expected counts by table cell, of labels and of pairs of labels; log-likelihoods of the sequences."""

    cells: FloatArray
    initial: FloatArray
    transitions: FloatArray
    log_likelihood: FloatArray

    @classmethod
    def none(cls, n_classes: int, n_cells: int, n_sequences: int = 0) -> Sums:
        """Nothing counted yet, about so many sequences."""
        return cls(
            cells=np.zeros(n_cells),
            initial=np.zeros(n_classes),
            transitions=np.zeros((n_classes, n_classes)),
            log_likelihood=np.zeros(n_sequences),
        )

    def add(self, first: int, part: Sums) -> None:
        """Add the counts of a block, and write the log-likelihoods of its sequences from `first` on."""
        self.cells += part.cells
        self.initial += part.initial
        self.transitions += part.transitions
        self.log_likelihood[first : first + len(part.log_likelihood)] = part.log_likelihood


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
    workers = min(len(bounds), numba.get_num_threads() if n_threads is None else n_threads)
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


def sum_runs(
    work: Callable[[tuple[int, int]], Sums],
    nothing: Callable[[int], Sums],
    offsets: IntArray,
    runs: IntArray,
    n_threads: int | None,
    size: int = BLOCK,
) -> Iterator[Sums]:
    """Counts of runs of sequences, one after the other; a run goes from one of `runs` to the next.

    Blocks do not cross runs: every run is counted as if it were alone.
    """
    blocks = [block_bounds(offsets[begin : end + 1] - offsets[begin], size) for begin, end in pairwise(runs.tolist())]
    places = zip(runs.tolist(), blocks, strict=False)
    # All runs in one queue, because the blocks of a short run would leave threads idle.
    parts = on_threads(work, [(begin + a, begin + b) for begin, own in places for a, b in own], n_threads)
    for own, n_sequences in zip(blocks, np.diff(runs).tolist(), strict=True):
        total = nothing(n_sequences)
        for first, _ in own:
            total.add(first, next(parts))
        yield total


def report_impossible(votes: Votes, sequence: int) -> None:
    """Raise: the votes (and known labels) of a sequence have probability zero."""
    raise PriorError(
        f"the votes must be possible under the model; those of sequence {str(votes.sequence_ids[sequence])!r} have "
        "probability zero: a zero in the prior or in a source's table rules them out.\n"
        "  Replace zeros by small probabilities, or check the known labels of that sequence."
    )

"""Run the packed chain: pack a block of votes, look up, forward and backward, write the marginals in place.

Serves the commonest case: elements only, one state per class, all transitions possible, no dependence in time.
Everything else goes through the product of automata. Memory: the output and one block of packed votes per thread.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dugong.infer._kernels import pack as add_places
from dugong.infer.blocks import Progress, Sums, block_bounds, on_threads, report_impossible
from dugong.infer.factors import FlatFactor
from dugong.infer.groups import Group, fits_table, make_groups, split_counts
from dugong.infer.packed import _kernels as kernels
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

MOST_CLASSES = 32
# Messages are rescaled below 1e-100; with these bounds one step cannot leave the range of float64.
SMALLEST_STEP = 1e-30
SMALLEST_LOG = -345.0
_BLOCK = 1 << 15


def fits(factors: tuple[FlatFactor, ...], law: LabelChain, wanted: tuple[Resolution, ...]) -> bool:
    """Whether this engine answers the question."""
    return (
        law.n_classes <= MOST_CLASSES
        and np.array_equal(law.labels, np.arange(law.n_classes))
        and min(law.initial.min(), law.transition.min()) >= SMALLEST_STEP
        and all(isinstance(resolution, Element) for resolution in wanted)
        and all(_plain(flat) for flat in factors)
        and sum(_smallest_log(flat) for flat in factors) > SMALLEST_LOG
    )


def _plain(flat: FlatFactor) -> bool:
    channel = flat.channel
    alone = channel.lag == 0 and channel.parent is None and isinstance(channel.resolution, Element)
    present = all(reading.column >= 0 for reading in flat.readings)
    return alone and present and len(flat.table) == 1 and fits_table(flat)


def _smallest_log(flat: FlatFactor) -> float:
    return float(np.log(flat.table.min(initial=1.0, where=flat.table > 0)))


def smooth(
    votes: Votes,
    factors: tuple[FlatFactor, ...],
    law: LabelChain,
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, Sums]:
    """Marginals of all elements, shape (n_elements, K), and the log-likelihood of every sequence."""
    marginals = np.empty((votes.n_elements, law.n_classes))
    groups = make_groups(factors)
    sums = _run(votes, groups, law, marginals, False, n_threads, progress)[1]
    return marginals, sums


def count(
    votes: Votes, factors: tuple[FlatFactor, ...], law: LabelChain, *, n_threads: int | None = None
) -> tuple[list[FloatArray], Sums]:
    """Expected counts by cell of every factor's flat table, and of labels and pairs."""
    groups = make_groups(factors)
    tables, sums = _run(votes, groups, law, None, True, n_threads, None)
    cells: dict[int, FloatArray] = {}
    ends = np.cumsum([group.table.size for group in groups])[:-1]
    for group, own in zip(groups, np.split(tables, ends), strict=True):
        cells |= split_counts(group, own, factors)
    return [cells[place] for place in range(len(factors))], sums


def _run(
    votes: Votes,
    groups: tuple[Group, ...],
    law: LabelChain,
    marginals: FloatArray | None,
    counting: bool,
    n_threads: int | None,
    progress: Progress | None,
) -> tuple[FloatArray, Sums]:
    n_classes = law.n_classes
    total = Sums(
        cells=np.zeros(sum(group.table.size for group in groups) if counting else 0),
        initial=np.zeros(n_classes),
        transitions=np.zeros((n_classes, n_classes)),
        log_likelihood=np.zeros(votes.n_sequences),
    )
    offsets = votes.layout("element").offsets
    work = partial(_run_block, votes, offsets, groups, law, marginals, total)
    for part in on_threads(work, block_bounds(votes.lengths, _BLOCK), n_threads, progress):
        total.cells += part.cells
        total.initial += part.initial
        total.transitions += part.transitions
    return total.cells, total


def _run_block(
    votes: Votes,
    all_offsets: IntArray,
    groups: tuple[Group, ...],
    law: LabelChain,
    marginals: FloatArray | None,
    total: Sums,
    bounds: tuple[int, int],
) -> Sums:
    begin, end = bounds
    offsets = all_offsets[begin : end + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    rows = pack(votes, groups, first, last)
    out = np.empty((last - first, law.n_classes)) if marginals is None else marginals[first:last]
    sums = Sums(
        cells=np.zeros(len(total.cells)),
        initial=np.zeros(law.n_classes),
        transitions=np.zeros((law.n_classes, law.n_classes)),
    )
    tables = np.concatenate([np.zeros(0), *(group.table.reshape(-1) for group in groups)])
    firsts = np.concatenate([[0], np.cumsum([group.table.size for group in groups])]).astype(np.int64)
    kernel = kernels.smooth_two if law.n_classes == 2 else kernels.smooth_many
    likelihood = total.log_likelihood[begin:end]
    local: IntArray = offsets - first
    pairs = sums.transitions if len(sums.cells) else np.zeros((0, 0))
    law_arrays = np.array(law.initial), np.array(law.transition)
    failed = kernel(rows, tables, firsts, *law_arrays, local, out, likelihood, pairs)
    if failed >= 0:
        report_impossible(votes, begin + failed)
    if len(sums.cells):
        kernels.count(rows, firsts, local, out, sums.cells, sums.initial)
    return sums


def pack(votes: Votes, groups: tuple[Group, ...], first: int, last: int) -> IntArray:
    """Table row of every element in every group, shape (n_groups, n), uint16."""
    rows = np.zeros((len(groups), last - first), dtype=np.uint16)
    for own, group in zip(rows, groups, strict=True):
        for column, places in zip(group.columns, group.places, strict=True):
            add_places(votes.columns[column][first:last], places.astype(np.uint16), own)
    return rows

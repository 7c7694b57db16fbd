"""Run the packed chain: pack a block of votes, look up, forward and backward, write the marginals in place.

Serves the commonest case: elements only, one state per class, all transitions possible, no dependence in time.
Everything else goes through the product of automata. Memory: the output and one block of packed votes per thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from dugong.infer.blocks import Progress, Sums, block_bounds, on_threads, report_impossible, sum_groups
from dugong.infer.factors import FlatFactor
from dugong.infer.lookups import Group, is_plain, make_groups, pack_columns, split_counts
from dugong.infer.packed import _kernels as kernels
from dugong.infer.potentials import NOTHING, soften, sum_by_sequence
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, IntArray
from dugong.votes import Votes

MOST_CLASSES = 32
# Messages are rescaled below 1e-100; with these bounds one step cannot leave the range of float64.
SMALLEST_STEP = 1e-30
SMALLEST_LOG = -345.0
# Large enough that threads seldom wait for the interpreter; the packed votes stay in the second-level cache.
_BLOCK = 1 << 17
_COUNTED_BLOCK = 1 << 15  # with the marginals beside them
_NOBODY = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0))


def fits(factors: tuple[FlatFactor, ...], law: LabelChain, wanted: tuple[Resolution, ...]) -> bool:
    """Whether this engine answers the question."""
    return (
        law.n_classes <= MOST_CLASSES
        and np.array_equal(law.labels, np.arange(law.n_classes))
        and min(law.initial.min(), law.transition.min()) >= SMALLEST_STEP
        and all(isinstance(resolution, Element) for resolution in wanted)
        and all(is_plain(flat) and isinstance(flat.channel.resolution, Element) for flat in factors)
        and sum(np.log(flat.table.min(initial=1.0, where=flat.table > 0)) for flat in factors) > SMALLEST_LOG
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedPlan:
    """What the kernels need: groups with all their tables in one array, potentials, the chain, sequences."""

    votes: Votes
    offsets: IntArray
    groups: tuple[Group, ...]
    tables: FloatArray
    firsts: IntArray
    potentials: FloatArray | None
    initial: FloatArray
    transition: FloatArray


def _plan(votes: Votes, factors: tuple[FlatFactor, ...], law: LabelChain, potentials: FloatArray | None) -> PackedPlan:
    groups = make_groups(factors)
    return PackedPlan(
        votes=votes,
        offsets=votes.layout(Element()).offsets,
        groups=groups,
        tables=np.concatenate([np.zeros(0), *(group.table.reshape(-1) for group in groups)]),
        firsts=np.concatenate([[0], np.cumsum([group.table.size for group in groups])]).astype(np.int64),
        potentials=potentials,
        initial=np.array(law.initial),
        transition=np.array(law.transition),
    )


def smooth(
    votes: Votes,
    factors: tuple[FlatFactor, ...],
    law: LabelChain,
    *,
    potentials: FloatArray | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Marginals of all elements, shape (n_elements, K), and the log-likelihood of every sequence."""
    marginals = np.empty((votes.n_elements, law.n_classes))
    plan = _plan(votes, factors, law, potentials)
    likelihood = np.zeros(votes.n_sequences)

    def work(bounds: tuple[int, int]) -> None:
        first, last = (int(plan.offsets[one]) for one in bounds)
        _run_block(plan, bounds, marginals[first:last], likelihood[slice(*bounds)], _NOBODY)

    for _ in on_threads(work, block_bounds(plan.offsets, _BLOCK), n_threads, progress):
        pass
    return marginals, likelihood


def count(
    votes: Votes,
    factors: tuple[FlatFactor, ...],
    law: LabelChain,
    owners: IntArray,
    n_groups: int,
    *,
    potentials: FloatArray | None = None,
    n_threads: int | None = None,
) -> tuple[list[FloatArray], Sums]:
    """Expected counts by group of sequences: by cell of every factor's flat table, and of labels and pairs."""
    plan = _plan(votes, factors, law, potentials)
    total = Sums.none(law.n_classes, len(plan.tables), n_groups)
    sum_groups(partial(_count_block, plan), total, plan.offsets, owners, n_threads, _COUNTED_BLOCK)
    cells: dict[int, FloatArray] = {}
    for group, piece in zip(plan.groups, pairwise(plan.firsts.tolist()), strict=True):
        cells |= dict(zip(group.members, split_counts(group, total.cells[:, slice(*piece)]), strict=True))
    return [cells[place] for place in range(len(factors))], total


def _count_block(plan: PackedPlan, bounds: tuple[int, int], owners: IntArray, n_groups: int) -> Sums:
    offsets = plan.offsets[bounds[0] : bounds[1] + 1]
    first, last, n_classes = int(offsets[0]), int(offsets[-1]), len(plan.initial)
    sums, likelihood = Sums.none(n_classes, len(plan.tables), n_groups), np.zeros(len(owners))
    marginals = np.empty((last - first, n_classes))
    rows = _run_block(plan, bounds, marginals, likelihood, (owners, sums.transitions))
    kernels.count(rows, plan.firsts, offsets - first, owners, marginals, sums.cells, sums.initial)
    sums.log_likelihood += np.bincount(owners, likelihood, n_groups)
    return sums


def _run_block(
    plan: PackedPlan,
    bounds: tuple[int, int],
    marginals: FloatArray,
    likelihood: FloatArray,
    counted: tuple[IntArray, FloatArray],
) -> AnyArray:
    """Marginals and log-likelihoods of one block; pairs of labels too, if their owners are given.

    Returns
    -------
    (n_groups, n) uint16, the table row of every element in every group
    """
    begin, end = bounds
    offsets = plan.offsets[begin : end + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    rows = np.zeros((len(plan.groups), last - first), dtype=np.uint16)
    for own, group in zip(rows, plan.groups, strict=True):
        pack_columns(plan.votes, group.columns, group.places, slice(first, last), own)
    soft, tops = NOTHING if plan.potentials is None else soften(plan.potentials, first, last)
    kernel = kernels.smooth_two if len(plan.initial) == 2 else kernels.smooth_many
    known = kernels.PackedBlock(rows, plan.tables, plan.firsts, soft, plan.initial, plan.transition)
    failed = kernel(known, offsets - first, kernels.PackedAnswer(marginals, likelihood, *counted))
    if failed >= 0:
        report_impossible(plan.votes, begin + failed)
    if len(tops):
        likelihood += sum_by_sequence(tops, offsets - first)
    return rows

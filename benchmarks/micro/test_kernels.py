"""The kernels of fitting and labelling, one by one, on a million elements of ten sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dugong.infer import packed
from dugong.infer._kernels import pack
from dugong.infer.engine import decode, expected_counts, posterior
from dugong.infer.factors import flatten
from dugong.sums import MomentRow, Shapes, Slot, _kernels, assign_groups, count, pair
from dugong.sums.pairs import TILE
from dugong.sums.sums import Plan
from dugong.votes import Votes
from dugong.worlds import World

Measure = Callable[[Callable[[], object]], None]


def test_hash_three_sources(against_floor: Measure, votes: Votes) -> None:
    """Folding the votes of a sequence into one number."""
    offsets, hashes = votes.layout("element").offsets, np.zeros(votes.n_sequences, dtype=np.uint64)
    against_floor(lambda: [_kernels.hash_sequences(column, offsets, hashes) for column in votes.columns[:3]])


def test_spread_duplicates(against_floor: Measure, votes: Votes) -> None:
    """Drawing groups by content and number of the copy, all sequences sorted into parts before."""
    offsets, n, bits = votes.layout("element").offsets, votes.n_sequences, 9
    hashes, entries, groups = np.zeros(n, dtype=np.uint64), np.empty(n, dtype=np.uint64), np.zeros(n, dtype=np.int32)
    _kernels.hash_sequences(votes.columns[0], offsets, hashes)
    tally = np.zeros(1 << bits, dtype=np.int64)
    _kernels.tally_parts(hashes, bits, tally)
    begins = np.append(0, np.cumsum(tally))
    _kernels.sort_parts(hashes, 0, bits, n.bit_length(), begins[:-1].copy(), entries)
    against_floor(lambda: _kernels.spread_duplicates(entries, begins, n.bit_length(), 64, 32, groups))


def test_pack_votes(against_floor: Measure, votes: Votes) -> None:
    """Bit planes of all votes, tile by tile."""
    planes = np.zeros((3, TILE // 64), dtype=np.uint64)
    tiles = range(0, votes.n_elements // TILE * TILE, TILE)
    against_floor(lambda: [_kernels.pack_votes(c[t : t + TILE], planes) for t in tiles for c in votes.columns])


def test_count_packed_pairs(against_floor: Measure, votes: Votes) -> None:
    """All cells of all pairs of sources from bit planes."""
    n_tiles, m = votes.n_elements // TILE, votes.n_sources
    planes = np.random.default_rng(0).integers(0, 1 << 63, (m, 3, TILE // 64)).astype(np.uint64)
    first, second = np.triu_indices(m)
    asked, counts = np.ones(m, dtype=np.bool_), np.zeros((len(first), 3, 3), dtype=np.int64)
    size = TILE // 64
    work = [(planes, asked, 0, size, first, second, counts)] * n_tiles
    against_floor(lambda: [_kernels.count_packed_pairs(*one) for one in work])


def test_count_lagged_row(against_floor: Measure, votes: Votes) -> None:
    """One row of the general kernel: two votes, one element apart."""
    plan, grouping = Plan.of([pair("s0", "s1", lag=1)]), assign_groups(votes)
    against_floor(lambda: count(votes, plan, grouping, n_threads=1))


def test_count_single_source(against_floor: Measure, votes: Votes) -> None:
    """What counting costs beside the pairs: groups, shapes, one source."""
    plan, grouping = Plan.of([MomentRow(slots=(Slot("s0"),))]), assign_groups(votes)
    against_floor(lambda: count(votes, plan, grouping, n_threads=1))


def test_shapes(against_floor: Measure, votes: Votes) -> None:
    """How many sequences of each length there are."""
    against_floor(lambda: Shapes.of(votes.lengths, votes.spans))


def test_pack_places(against_floor: Measure, votes: Votes) -> None:
    """Votes of five sources as one number per element."""
    places = np.zeros((5, 256), dtype=np.uint16)
    rows = np.zeros(votes.n_elements, dtype=np.uint16)
    against_floor(lambda: [pack(votes.columns[j], places[j], rows) for j in range(5)])


def test_packed_smoothing(against_floor: Measure, world: World, votes: Votes) -> None:
    """Forward and backward over all elements: two classes, no other resolutions."""
    factors, law = flatten(votes, world.parameters()), world.prior.chain()
    against_floor(lambda: packed.smooth(votes, factors, law, n_threads=1))


def test_element_labels(against_floor: Measure, world: World, votes: Votes) -> None:
    """The same through the door."""
    against_floor(lambda: posterior(votes, world.parameters(), world.prior, resolutions=["element"], n_threads=1))


def test_expected_counts(against_floor: Measure, world: World, votes: Votes) -> None:
    """One E-step."""
    against_floor(lambda: expected_counts(votes, world.parameters(), world.prior, n_threads=1))


def test_best_path(against_floor: Measure, world: World, votes: Votes) -> None:
    """Viterbi, through the chain over products of automata."""
    few = votes[np.arange(votes.n_sequences // 10)]
    against_floor(lambda: decode(few, world.parameters(), world.prior, n_threads=1))

"""Groups of sequences for the delete-one-group jackknife.

Membership depends on ids, on a user's group column, or on content, never on position: shuffling changes nothing.
With fewer than `FEW` sequences the groups are contiguous blocks of elements inside the sequences, much longer than any
lag that is modelled, because single elements are not independent of each other. Of very many elements about `SAMPLE`
are divided into groups, which is plenty for standard errors; the others are group 0, the rest, counted in total only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numba
import numpy as np

from dugong.exceptions import VoteError
from dugong.sums._kernels import hash_sequences, sort_parts, spread_duplicates, tally_parts
from dugong.tasks import Layout
from dugong.types import AnyArray, IntArray
from dugong.votes import Votes

WorkT = TypeVar("WorkT")
ResultT = TypeVar("ResultT")

N_GROUPS = 32
N_NAMED_GROUPS = 256
FEW = 20
SAMPLE = 1 << 18
_SHORTEST_BLOCK = 16
_HASHED_SOURCES = 3
_WORTH_A_THREAD = 1 << 17
# Parts hold one or two thousand sequences, so that a table of their contents stays in the nearest caches.
_PART_BITS, _MOST_PART_BITS = 11, 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """Group of element t of sequence i: ``base[i] + t * blocks[i] // lengths[i]``; group 0 is the rest."""

    base: IntArray
    blocks: IntArray
    n_groups: int

    def of_tasks(self, layout: Layout) -> IntArray:
        """Group of every task of a resolution: that of its first element."""
        if (self.blocks == 1).all():
            return np.repeat(self.base, np.diff(layout.offsets))
        owners = layout.owners()
        lengths = np.maximum(layout.lengths[owners], 1)
        return np.asarray(self.base[owners] + layout.bounds()[0] * self.blocks[owners] // lengths)


def assign_groups(
    votes: Votes,
    groups: Sequence[object] | AnyArray | None = None,
    *,
    n_elements: int | None = None,
    n_threads: int | None = None,
) -> Grouping:
    """Divide sequences into groups; `groups` (one label per sequence: patient, video) takes precedence.

    `n_elements` is that of all shards where these votes are one of several: groups then do not depend on the shard.
    """
    n_sequences = votes.n_sequences
    if groups is not None:
        if len(groups) != n_sequences:
            raise VoteError(f"groups must name one group per sequence ({n_sequences}); found {len(groups)}.")
        # Named groups may be any number; hashing them bounds what is kept, and shards agree without talking.
        base, n_groups = 1 + _hash_labels(groups, N_NAMED_GROUPS), N_NAMED_GROUPS
    elif n_sequences < FEW and n_elements is None:
        return _blocks(votes)
    else:
        # Hashing into more places than there are groups leaves the surplus to the rest.
        places, n_groups = N_GROUPS * max(1, (n_elements or votes.n_elements) // SAMPLE), N_GROUPS
        if votes.ids is None:
            base = _hash_content(votes, places, n_threads)
        else:
            hashed = _hash_labels(votes.ids, places)
            base = np.where(hashed < N_GROUPS, 1 + hashed, 0)
    return Grouping(base=base, blocks=np.ones(n_sequences, dtype=np.int32), n_groups=n_groups + 1)


def _hash_labels(labels: Iterable[object], places: int) -> IntArray:
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        # Numbers in a row would all fall into neighbouring places: they are mixed first.
        mixed = labels.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed >> np.uint64(40)) % np.uint64(places)).astype(np.int64)
    return np.array([zlib.crc32(str(label).encode()) % places for label in labels], dtype=np.int64)


def _hash_content(votes: Votes, places: int, n_threads: int | None) -> IntArray:
    """Hash the sequences, sort them into parts by content, then draw groups part by part: each on threads."""
    n = votes.n_sequences
    # A few sources tell contents apart well enough, and hashing is what grouping costs.
    chosen = np.argsort(np.array(votes.source_names))[:_HASHED_SOURCES]
    offsets = {where: votes.layout(where).offsets for where in {votes.sources[place].resolution for place in chosen}}
    hashes, entries = np.zeros(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    groups: AnyArray = np.zeros(n, dtype=np.int32)
    index_bits = n.bit_length()
    part_bits = min(max(index_bits - _PART_BITS, 0), _MOST_PART_BITS)
    workers = 1 if n < _WORTH_A_THREAD else numba.get_num_threads() if n_threads is None else n_threads
    cuts = np.linspace(0, n, workers + 1).astype(np.int64).tolist()
    tallies = np.zeros((workers, 1 << part_bits), dtype=np.int64)

    def hash_share(share: int) -> None:
        rows = slice(cuts[share], cuts[share + 1])
        # By name, so that the order of the sources does not matter; equal hashes are told apart by their number.
        for place in chosen:
            own = offsets[votes.sources[place].resolution][rows.start : rows.stop + 1]
            hash_sequences(votes.columns[place], own, hashes[rows])
        tally_parts(hashes[rows], part_bits, tallies[share])

    def sort_share(share: int) -> None:
        sort_parts(hashes[cuts[share] : cuts[share + 1]], cuts[share], part_bits, index_bits, ends[share], entries)

    def draw_share(parts: AnyArray) -> None:
        spread_duplicates(entries, begins[parts[0] : parts[-1] + 2], index_bits, places, N_GROUPS, groups)

    on_threads(hash_share, list(range(workers)))
    # Part after part, and inside a part share after share: the order of the sequences.
    ends = np.ascontiguousarray((np.cumsum(tallies.T).reshape(-1, workers) - tallies.T).T)
    begins = np.append(ends[0], n)
    on_threads(sort_share, list(range(workers)))
    on_threads(draw_share, np.array_split(np.arange(1 << part_bits), min(workers, 1 << part_bits)))
    return groups


def _blocks(votes: Votes) -> Grouping:
    lengths = votes.lengths
    size = max(_SHORTEST_BLOCK, -(-votes.n_elements // N_GROUPS))
    blocks = np.maximum(1, np.rint(lengths / size)).astype(np.int64)
    ends = np.cumsum(blocks)
    return Grouping(base=1 + ends - blocks, blocks=blocks, n_groups=int(ends[-1]) + 1)


def divide(work: range, n_threads: int | None) -> list[range]:
    """Every thread its share of the work, at least one; as many threads as numba would use by default."""
    workers = 1 if len(work) < 2 else max(1, min(len(work), n_threads or numba.get_num_threads()))
    return [work[place::workers] for place in range(workers)]


def on_threads(work: Callable[[WorkT], ResultT], shares: list[WorkT]) -> list[ResultT]:
    """Do one share of the work on each thread; the results are in the order of the shares."""
    if len(shares) == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))

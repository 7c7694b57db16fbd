"""Some whole sequences of a folder of votes, for what cannot be added up.

In: a folder of votes and a number of elements. Out: `Votes` in memory. A hash of its id decides about a sequence, and
hashes decide about the order, so that neither the division into shards, nor their order, nor an engine matters.

A limit of memory such as ``"2GB"`` says how many processes fit side by side, and how large a sample can be learned on.
The numbers are measured: a process of Dugong holds about 0.3 GB before it has seen a vote, and a shard takes a few
hundred bytes per element while it is labelled.
"""

from __future__ import annotations

import hashlib

import numpy as np

from dugong.engines import Engine, Serial, reduce_sums
from dugong.exceptions import VoteError
from dugong.shards.folder import Shard, VoteShards
from dugong.texts import read_size
from dugong.types import IntArray
from dugong.votes import Votes
from dugong.votes.concat import concat
from dugong.votes.summary import Summary, Tally, summary_of

SAMPLE = 1 << 21


def read_sample(shards: VoteShards, n_elements: int = SAMPLE) -> Votes:
    """Whole sequences with about `n_elements` elements from all shards; if there are no more, all of them in order."""
    share = min(1.0, n_elements / max(shards.n_elements, 1))
    parts = []
    for votes in shards:
        chosen = np.flatnonzero(hashes_of(votes) <= share * 2.0**32)
        if len(chosen):
            parts.append(votes if len(chosen) == votes.n_sequences else votes[chosen])
    if not parts:  # a few sequences that are each longer than the sample
        parts = [_lowest(shards)]
    found = parts[0] if len(parts) == 1 else concat(parts)
    if found.n_sequences == shards.n_sequences:
        return found
    return found[np.lexsort((found.sequence_ids.astype(str), hashes_of(found)))]


def hashes_of(votes: Votes) -> IntArray:
    """A hash below 2 ** 32 of the id of every sequence."""
    digests = (hashlib.blake2b(str(one).encode(), digest_size=4).digest() for one in votes.sequence_ids.tolist())
    return np.array([int.from_bytes(digest) for digest in digests], dtype=np.int64)


def _lowest(shards: VoteShards) -> Votes:
    """The one sequence with the lowest hash."""
    found = [
        (int(hashes.min()), shard, int(hashes.argmin()))
        for shard in shards.shards
        if len(hashes := hashes_of(shard.read()))
    ]
    _, shard, place = min(found, key=lambda one: one[0])
    return shard.read()[[place]]


PROCESS = 300_000_000
_ELEMENT, _PER_SOURCE, _PER_CLASS = 100, 4, 40  # bytes


def words(n_bytes: float) -> str:
    """A size in words."""
    return f"{n_bytes / 1e9:.1f} GB"


def need(n_elements: int, shards: VoteShards) -> int:
    """Bytes of a process that works on so many elements of these votes."""
    return PROCESS + n_elements * (_ELEMENT + _PER_SOURCE * shards.n_sources + _PER_CLASS * shards.n_classes)


def check_memory(shards: VoteShards, memory: str | int | None) -> None:
    """Refuse a limit that the largest shard does not fit into."""
    jobs_within(shards, memory, 1)


def jobs_within(shards: VoteShards, memory: str | int | None, n_jobs: int) -> int:
    """How many of `n_jobs` processes have room for a shard each."""
    if memory is None:
        return n_jobs
    limit, largest = read_size(memory), max(shards.shards, key=lambda shard: shard.n_elements)
    wanted = need(largest.n_elements, shards)
    if wanted > limit:
        raise VoteError(
            f"the memory must hold one shard; {largest} has {largest.n_elements:,} elements, which need about "
            f"{words(wanted)}, and the limit is {words(limit)}.\n  Write smaller shards (--shard-size), or allow more."
        )
    return min(n_jobs, limit // wanted)


def sample_within(shards: VoteShards, memory: str | int | None, sample: int = SAMPLE) -> int:
    """Elements that can be learned on at once; what is not given does not change the sample."""
    if memory is None:
        return sample
    per_element = need(1, shards) - PROCESS
    return max(1, min(sample, (read_size(memory) - PROCESS) // per_element))


# --- what is in a folder ----------------------------------------------------------------------------------------------
# Counts are exact; whole columns (copies of each other) are compared in a bounded sample.
COMPARED = 1 << 18


def summarize_shards(shards: VoteShards, *, engine: Engine | None = None) -> Summary:
    """The summary of all shards, as `Votes.summary` gives it for votes in memory."""
    tally = reduce_sums(engine or Serial(), _tally, shards.shards, describe=str)
    return summary_of(tally, read_sample(shards, COMPARED))


def _tally(shard: Shard) -> Tally:
    return Tally.of(shard.read())

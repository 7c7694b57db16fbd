"""Some whole sequences of a folder of votes, for what cannot be added up.

In: a folder of votes and a number of elements. Out: `Votes` in memory. A hash of its id decides about a sequence, and
hashes decide about the order, so that neither the division into shards, nor their order, nor an engine matters.
"""

from __future__ import annotations

import hashlib

import numpy as np

from dugong.shards.folder import VoteShards
from dugong.types import IntArray
from dugong.votes import Votes
from dugong.votes.concat import concat

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
    return found if found.n_sequences == shards.n_sequences else found[_order(found)]


def _order(votes: Votes) -> IntArray:
    """By hash, and by id where hashes are equal."""
    return np.lexsort((votes.sequence_ids.astype(str), hashes_of(votes)))


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

"""How much memory a step over shards needs, and what to do with less of it.

In: a limit such as ``"2GB"`` and a folder of votes. Out: how many processes fit side by side, and how large a sample
can be learned on. The numbers are measured: a process of Dugong holds about 0.3 GB before it has seen a vote, and a
shard takes a few hundred bytes per element while it is labelled.
"""

from __future__ import annotations

from dugong.exceptions import VoteError
from dugong.shards.folder import VoteShards
from dugong.shards.sampling import SAMPLE
from dugong.texts import read_size

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

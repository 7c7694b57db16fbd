"""What is in a folder of votes, in one pass: the table of `Votes.summary` from sums over shards.

In: a folder of votes. Out: a `Summary`. Coverage, overlaps, conflicts and the remarks that follow from counts are
exact. Remarks that compare whole columns (copies) come from a bounded sample of whole sequences.
"""

from __future__ import annotations

from dugong.engines import Engine, Serial, reduce_sums
from dugong.shards.folder import Shard, VoteShards
from dugong.shards.sampling import read_sample
from dugong.votes.summary import Summary, Tally, summary_of

COMPARED = 1 << 18


def summarize_shards(shards: VoteShards, *, engine: Engine | None = None) -> Summary:
    """The summary of all shards, as `Votes.summary` gives it for votes in memory."""
    tally = reduce_sums(engine or Serial(), _tally, shards.shards, describe=str)
    return summary_of(tally, read_sample(shards, COMPARED))


def _tally(shard: Shard) -> Tally:
    return Tally.of(shard.read())

"""More than one machine holds: votes as a folder of shards, and every stage as a stream over it."""

from dugong.shards.applying import AppliedShards, apply_shards
from dugong.shards.fitting import LabelledShards, fit_shards, label_shards
from dugong.shards.folder import Shard, VoteShards, read_sample, summarize_shards

__all__ = [
    "AppliedShards",
    "LabelledShards",
    "Shard",
    "VoteShards",
    "apply_shards",
    "fit_shards",
    "label_shards",
    "read_sample",
    "summarize_shards",
]

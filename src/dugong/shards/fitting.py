"""A label model from shards: sums where sums are enough, a bounded sample where they are not.

In: a label model and a folder of votes. Out: the fitted model. With two classes, a given prior, given dependencies
and a closed-form estimator, every shard is counted by itself and the moments add up; the class balance of the sample
takes one more pass. Anything else (``"learn"``, EM, more classes) needs its votes in memory: it is learned on whole
sequences that a hash of their ids chooses from all shards, and `diagnostics_` says so.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from dugong.engines import Engine, Serial, reduce_sums
from dugong.estimate.balance import LabelSums, sum_labels
from dugong.estimate.result import Estimate, Note
from dugong.exceptions import GraphError
from dugong.infer.parameters import Parameters
from dugong.model import LabelModel
from dugong.moments import Moments, Plan, assign_groups, count
from dugong.priors import Prior
from dugong.shards.folder import Shard, VoteShards
from dugong.types import IntArray
from dugong.votes import Votes
from dugong.votes.concat import concat

SAMPLE = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """From a shard to its moments."""

    plan: Plan
    n_elements: int

    def __call__(self, shard: Shard) -> Moments:
        votes = shard.read()
        return count(votes, self.plan, assign_groups(votes, n_elements=self.n_elements))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SumLabels:
    """From a shard to its class balance."""

    parameters: Parameters
    prior: Prior
    n_elements: int
    n_threads: int | None

    def __call__(self, shard: Shard) -> LabelSums:
        votes = shard.read()
        grouping = assign_groups(votes, n_elements=self.n_elements)
        return sum_labels(votes, self.parameters, self.prior, grouping, self.n_threads)


def count_shards(shards: VoteShards, plan: Plan, engine: Engine | None = None) -> Moments:
    """The moments of all shards together; the same for any engine, to the last bit."""
    return reduce_sums(engine or Serial(), _Count(plan=plan, n_elements=shards.n_elements), shards.shards, describe=str)


def fit_shards(
    model: LabelModel, shards: VoteShards, *, engine: Engine | None = None, sample: int = SAMPLE
) -> LabelModel:
    """Fit a model to votes that need not fit into memory.

    Parameters
    ----------
    model : LabelModel
        Is fitted in place, as `LabelModel.fit` does it.
    shards : VoteShards
    engine : Engine, optional
        Where shards are counted; this process by default.
    sample : int
        Elements that what cannot be added up is learned on, about; whole sequences are taken.
    """
    specimen = shards.specimen()
    if not model.streamable(specimen):
        return _fit_sample(model, shards, sample)
    if model.sharing != "tied" and specimen.spans:
        raise GraphError(
            f"sharing={model.sharing!r} with spans needs all votes at once.\n"
            '  Use sharing="tied", or votes in one file.'
        )
    run = engine or Serial()
    moments = count_shards(shards, model.plan(specimen), run)

    def measure(estimate: Estimate) -> LabelSums:
        assert isinstance(model.prior, Prior)
        step = _SumLabels(
            parameters=estimate.parameters, prior=model.prior, n_elements=shards.n_elements, n_threads=model.n_threads
        )
        return reduce_sums(run, step, shards.shards, describe=str)

    return model.fit_moments(moments, specimen, measure)


# --- the sample ----------------------------------------------------------------------------------------------------
def read_sample(shards: VoteShards, n_elements: int = SAMPLE) -> Votes:
    """Whole sequences with about `n_elements` elements from all shards, all of them if there are no more.

    A hash of its id decides about a sequence, so the sample does not depend on how votes are divided into shards.
    """
    share = min(1.0, n_elements / max(shards.n_elements, 1))
    parts = []
    for votes in shards:
        chosen = np.flatnonzero(_hashes(votes) <= share * 2.0**32)
        if len(chosen):
            parts.append(votes if len(chosen) == votes.n_sequences else votes[chosen])
    if not parts:  # a few sequences that are each longer than the sample
        parts = [_lowest(shards)]
    return parts[0] if len(parts) == 1 else concat(parts)


def _hashes(votes: Votes) -> IntArray:
    digests = (hashlib.blake2b(str(one).encode(), digest_size=4).digest() for one in votes.sequence_ids.tolist())
    return np.array([int.from_bytes(digest) for digest in digests], dtype=np.int64)


def _lowest(shards: VoteShards) -> Votes:
    """The one sequence with the lowest hash."""
    found = [
        (int(hashes.min()), shard, int(hashes.argmin()))
        for shard in shards.shards
        if len(hashes := _hashes(shard.read()))
    ]
    _, shard, place = min(found, key=lambda one: one[0])
    return shard.read()[[place]]


def _fit_sample(model: LabelModel, shards: VoteShards, n_elements: int) -> LabelModel:
    votes = read_sample(shards, n_elements)
    model.fit(votes)
    if votes.n_sequences < shards.n_sequences:
        text = (
            f"learned on {votes.n_sequences:,} of {shards.n_sequences:,} sequences ({votes.n_elements:,} of "
            f"{shards.n_elements:,} elements), chosen by a hash of their ids; with two classes, a given prior and "
            "given dependencies, all of them are counted"
        )
        note = Note(kind="sample", text=text, size=votes.n_elements / shards.n_elements)
        model.diagnostics_ = replace(model.diagnostics_, notes=(*model.diagnostics_.notes, note))
    return model

"""Known labels of a folder of votes: the sequences that have some, in memory.

In: a file of gold labels and a folder of votes. Out: the votes on all sequences with a known label and their labels,
read one shard after the other. If those are more than memory should hold, a hash of the ids chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from dugong.cli.gold import table_labels
from dugong.exceptions import LabelError
from dugong.paths import Place, place_of
from dugong.shards.sampling import SAMPLE, hashes_of
from dugong.tasks import Element
from dugong.types import Int8Array
from dugong.votes import SourceInfo, Summary, Votes, gold_at
from dugong.votes.concat import concat

if TYPE_CHECKING:
    from dugong.shards import VoteShards

Labels = Callable[[Votes, int], Int8Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """Votes on sequences with known labels.

    Attributes
    ----------
    votes : Votes
    gold : one label per element, 0 where unknown
    n_known : sequences with a known label in the whole folder
    """

    votes: Votes
    gold: Int8Array
    n_known: int

    @property
    def remark(self) -> str:
        """On how much the comparison rests."""
        if self.votes.n_sequences == self.n_known:
            return f"compared on the {self.n_known:,} sequences with known labels"
        return (
            f"compared on {self.votes.n_sequences:,} of the {self.n_known:,} sequences with known labels, chosen by a "
            "hash of their ids"
        )

    def graded(self, summary: Summary) -> Summary:
        """A summary of all votes, with right and wrong votes where labels are known."""
        rows = zip(summary.sources, self.votes.summary(self.gold).sources, strict=True)
        sources = tuple(replace(row, correct=known.correct, incorrect=known.incorrect) for row, known in rows)
        return replace(summary, sources=sources, has_gold=True)


def read_known(
    path: str | PathLike[str], shards: VoteShards, n_elements: int = SAMPLE, *, missing_ok: bool = False
) -> Known:
    """The sequences of a folder that have a known label, at most about `n_elements` elements of them.

    With `missing_ok` the labels may name sequences that have no votes.
    """
    place = place_of(path)
    labels = _flat(place, shards) if place.suffix == ".npy" else table_labels(place, shards, missing_ok=missing_ok)
    sizes = [int(votes.lengths[known].sum()) for votes, _, known in _walk(shards, labels)]
    share = min(1.0, n_elements / max(sum(sizes), 1))
    votes, gold, n_known = [], [], 0
    for part, found, known in _walk(shards, labels):
        n_known += int(known.sum())
        chosen = known & (hashes_of(part) <= share * 2.0**32)
        if chosen.any():
            votes.append(part[np.flatnonzero(chosen)])
            gold.append(found[np.repeat(chosen, part.lengths)])
    if not votes:
        raise LabelError(f"{place} has no label of a sequence of {shards.folder}.")
    return Known(votes=concat(votes), gold=np.concatenate(gold), n_known=n_known)


def with_others(known: Known, others: Votes) -> tuple[Votes, Int8Array]:
    """Sequences with known labels, and after them those of `others` without, whose labels are 0."""
    named = set(known.votes.sequence_ids.tolist())
    rest = [place for place, one in enumerate(others.sequence_ids.tolist()) if one not in named]
    if not rest:
        return known.votes, known.gold
    more = others[np.array(rest)]
    return concat([known.votes, more]), np.concatenate([known.gold, np.zeros(more.n_elements, dtype=np.int8)])


def _walk(shards: VoteShards, labels: Labels) -> Iterator[tuple[Votes, Int8Array, np.ndarray]]:
    """Every shard, its labels, and which of its sequences have one."""
    start = 0
    for votes in shards:
        found = labels(votes, start)
        ends = np.concatenate([[0], np.cumsum(np.concatenate([[0], found != 0]))[np.cumsum(votes.lengths)]])
        yield votes, found, np.diff(ends) > 0
        start += votes.n_elements


def _flat(place: Place, shards: VoteShards) -> Labels:
    """One label per element of all shards, in their order."""
    if not place.is_file():
        raise LabelError(f"there is no file {place}.")
    with place.open("rb") as handle:
        every = np.load(handle, allow_pickle=False)
    # All labels at once: whether 0 and 1 are classes or not can be seen only in all of them.
    nobody = Votes(
        sources=(SourceInfo(name="nobody", resolution=Element()),),
        columns=(np.zeros(shards.n_elements, dtype=np.int8),),
        lengths=np.array([shards.n_elements]),
        n_classes=shards.n_classes,
    )
    labels = gold_at(nobody, every, Element())
    return lambda votes, start: labels[start : start + votes.n_elements]

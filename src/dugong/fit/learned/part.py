"""The part of very many votes that the defaults learn from.

In: votes, known labels and groups. Out: the same of some whole sequences, about `PART` elements: what more of them
would tell is lost in the last digits. Sequences are chosen by a hash of what was voted on them, never by position, name
or order: shuffling sequences or sources changes nothing. Sequences with known labels, or with votes that occur nowhere
else, stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dugong.exceptions import VoteError
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.settings import FEWEST_SEQUENCES, PART
from dugong.sums._kernels import add_hashes
from dugong.types import AnyArray, BoolArray, Int8Array
from dugong.votes import Votes, count_codes

_HASHED = 1 << 15  # sequences at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Votes, and what belongs to their sequences."""

    votes: Votes
    evidence: Int8Array | None
    groups: Sequence[object] | None


def choose_part(
    votes: Votes, evidence: Int8Array | None = None, groups: Sequence[object] | None = None, most: int = PART
) -> Part:
    """Sequences with about `most` elements; all of them if there are at most twice as many, or few sequences."""
    if groups is not None and len(groups) != votes.n_sequences:
        raise VoteError(f"groups must name one group per sequence ({votes.n_sequences}); found {len(groups)}.")
    n = -(-votes.n_elements // most)
    if n <= 2 or votes.n_sequences < FEWEST_SEQUENCES * n:
        return Part(votes=votes, evidence=evidence, groups=groups)
    chosen = choose_pieces(hash_sequences(votes, evidence), n) | _labelled(votes, evidence, most)
    part = votes[np.flatnonzero(chosen)]
    if (more := _only_votes(votes, part)).any():
        chosen |= more
        part = votes[np.flatnonzero(chosen)]
    return Part(
        votes=part,
        evidence=None if evidence is None else evidence[np.repeat(chosen, votes.lengths)],
        groups=None if groups is None else [groups[place] for place in np.flatnonzero(chosen).tolist()],
    )


def choose_pieces(hashes: AnyArray, n: int) -> BoolArray:
    """One of `n` pieces by its hash; of pieces with the same content as well, whichever comes first."""
    chosen = np.empty(len(hashes), dtype=np.bool_)
    firsts, copies = np.zeros(1 << (2 * len(hashes) + 16).bit_length(), np.uint32), np.zeros(len(hashes) + 1, np.uint32)
    kernels.choose(hashes, n, firsts, copies, chosen)
    return chosen


def hash_sequences(votes: Votes, evidence: Int8Array | None) -> AnyArray:
    """One number per sequence: the sum over sources of a hash of their votes, so that no order enters."""
    hashes = np.zeros(votes.n_sequences, dtype=np.uint64)
    offsets = [votes.layout(info.resolution).offsets for info in votes.sources]
    # Some sequences of all sources after others, so that their hashes stay in the cache.
    for begin in range(0, votes.n_sequences, _HASHED):
        own = hashes[begin : begin + _HASHED]
        for column, borders in zip(votes.columns, offsets, strict=True):
            add_hashes(column, borders[begin : begin + len(own) + 1], np.uint64(0), own)
    if evidence is not None:
        add_hashes(evidence, votes.layout("element").offsets, np.uint64(1), hashes)
    return hashes


def _labelled(votes: Votes, evidence: Int8Array | None, most: int) -> BoolArray:
    """Sequences with known labels, unless they alone are too many."""
    known = np.zeros(votes.n_sequences, dtype=np.bool_)
    if evidence is not None:
        known[np.repeat(np.arange(votes.n_sequences), votes.lengths)[evidence != 0]] = True
    return known if votes.lengths[known].sum() <= most else np.zeros_like(known)


def _only_votes(votes: Votes, part: Votes) -> BoolArray:
    """Sequences with votes that do not occur in a part: a class of which nobody heard would not be learned."""
    more = np.zeros(votes.n_sequences, dtype=np.bool_)
    for info, column, known in zip(votes.sources, votes.columns, part.columns, strict=True):
        heard = sorted(count_codes(known))
        # Where all codes from the lowest to the highest were heard, those two tell, and not every vote is looked up.
        if heard and len(heard) == heard[-1] - heard[0] + 1 and heard[0] <= column.min() <= column.max() <= heard[-1]:
            continue
        rare = np.array(sorted(set(count_codes(column)) - set(heard)), dtype=np.int8)
        if len(rare):
            more[votes.layout(info.resolution).owners()[np.isin(column, rare)]] = True
    return more

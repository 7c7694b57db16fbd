"""Codes of votes as numbers that tables and counts can be indexed with.

In: a flat int8 column. Out: class indices, or how often each code occurs. Both read a byte at a time, so
that fifty million votes take a fraction of a second and no memory to speak of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dugong.types import ABSTAIN, MISSING, Int8Array, IntArray

if TYPE_CHECKING:
    from dugong.votes.container import Votes

__all__ = ["MAX_CODE", "class_indices", "count_codes", "n_spoken"]

MAX_CODE = 120
_BLOCK = 1 << 18


def class_indices(votes: Votes, column: Int8Array, n_classes: int) -> Int8Array:  # noqa: ARG001
    """Codes as table columns: classes 0..K-1, abstain K, underspecified K+1.., not asked -1."""
    if n_classes == 2:
        lookup = np.full(256, -1, dtype=np.int8)
        lookup[[255, 1, 0]] = [0, 1, 2]
    else:
        lookup = np.arange(-1, 255).astype(np.int8)
        lookup[0] = n_classes
        lookup[n_classes + 1 : MAX_CODE + 1] = np.arange(n_classes + 1, MAX_CODE + 1)
    lookup[MISSING % 256] = -1
    return lookup[column.view(np.uint8)]


def count_codes(column: Int8Array) -> dict[int, int]:
    """How often each code occurs in a column, codes in increasing order."""
    counts: IntArray = np.zeros(256, dtype=np.int64)
    for start in range(0, len(column), _BLOCK):
        counts += np.bincount(column[start : start + _BLOCK].view(np.uint8), minlength=256)
    seen = np.flatnonzero(counts)
    return {code: int(counts[code % 256]) for code in sorted(seen.astype(np.int8).tolist())}


def n_spoken(counts: dict[int, int]) -> int:
    """Votes that say something: neither abstain nor missing."""
    return sum(count for code, count in counts.items() if code not in (ABSTAIN, MISSING))

"""Pair events with events, each at most once.

In: two lists of intervals, each sorted and without overlaps. Out: index pairs. Two lists of n and m such
intervals have at most n + m - 1 overlapping pairs, so all of them are listed, in a few array operations.
Pairs are then taken greedily: largest intersection over union first, among equals the earlier one. Above an
IoU of one half no event has two candidates and the greedy choice is the only one.
"""

from __future__ import annotations

import numpy as np

from dugong.types import BoolArray, FloatArray, IntArray

__all__ = ["match", "overlaps"]

Pairs = tuple[IntArray, IntArray, FloatArray]


def overlaps(
    start: IntArray, end: IntArray, kind: IntArray,
    other_start: IntArray, other_end: IntArray, other_kind: IntArray,
) -> Pairs:  # fmt: skip
    """Return all overlapping pairs of the same kind: indices on both sides, and their IoU."""
    first = np.searchsorted(other_end, start, side="right")
    n_candidates = np.searchsorted(other_start, end, side="left") - first
    left = np.repeat(np.arange(len(start)), n_candidates)
    rank = np.arange(len(left)) - np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
    right = first[left] + rank
    same = kind[left] == other_kind[right]
    left, right = left[same], right[same]
    shared = np.minimum(end[left], other_end[right]) - np.maximum(start[left], other_start[right])
    union = (end - start)[left] + (other_end - other_start)[right] - shared
    return left, right, shared / union


def match(left: IntArray, right: IntArray, iou: FloatArray, threshold: float) -> tuple[IntArray, IntArray]:
    """Choose pairs with at least the given IoU, no event in two of them; sorted by the left index."""
    enough = iou >= threshold
    left, right, iou = left[enough], right[enough], iou[enough]
    single = _occurs_once(left) & _occurs_once(right)
    chosen = single.copy()
    contested = np.flatnonzero(~single)
    best_first = contested[np.lexsort((right[contested], left[contested], -iou[contested]))]
    chosen[_greedy(left, right, best_first)] = True
    return left[chosen], right[chosen]


def _occurs_once(indices: IntArray) -> BoolArray:
    return np.asarray(np.bincount(indices, minlength=1)[indices] == 1)


def _greedy(left: IntArray, right: IntArray, best_first: IntArray) -> IntArray:
    """Go through contested pairs in order and keep those both of whose events are still free."""
    used_left: set[int] = set()
    used_right: set[int] = set()
    kept: list[int] = []
    triples = zip(best_first.tolist(), left[best_first].tolist(), right[best_first].tolist(), strict=True)
    for pair, one, other in triples:
        if one not in used_left and other not in used_right:
            used_left.add(one)
            used_right.add(other)
            kept.append(pair)
    return np.array(kept, dtype=np.int64)

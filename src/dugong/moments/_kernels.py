"""Counting kernels: arrays in, integer sums out.

Codes are table columns (classes, abstain, underspecified); -1 means "not asked" and leaves the anchor out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import AnyArray, Int8Array, IntArray


@njit(cache=True, nogil=True)
def hash_sequences(column: Int8Array, offsets: IntArray, hashes: AnyArray) -> None:
    """Fold the votes of one source into the running hash of every sequence (FNV-1a)."""
    prime = np.uint64(0x100000001B3)
    for i in range(len(offsets) - 1):
        value = hashes[i] ^ np.uint64(0xCBF29CE484222325)
        for t in range(offsets[i], offsets[i + 1]):
            value = (value ^ np.uint64(column[t] & 0xFF)) * prime
        hashes[i] = value ^ (value >> np.uint64(29))


@njit(cache=True, nogil=True)
def spread_duplicates(hashes: AnyArray, n_groups: int) -> IntArray:
    """Group of every sequence; copies of the same content go to successive groups, whatever their order."""
    size = 16
    while size < 2 * len(hashes):
        size *= 2
    mask = np.uint64(size - 1)
    keys = np.zeros(size, dtype=np.uint64)
    seen = np.zeros(size, dtype=np.int64)
    groups = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        value = hashes[i] * np.uint64(0x9E3779B97F4A7C15)
        place = value & mask
        while seen[place] > 0 and keys[place] != value:
            place = (place + np.uint64(1)) & mask
        keys[place] = value
        groups[i] = np.int64(((value >> np.uint64(33)) + np.uint64(seen[place])) % np.uint64(n_groups))
        seen[place] += 1
    return groups


@njit(cache=True, nogil=True)
def count_pairs(codes: Int8Array, groups: IntArray, first: IntArray, second: IntArray, counts: IntArray) -> None:
    """Add the contingency of every pair (first[p], second[p]) of rows of `codes` to ``counts[group, p]``."""
    for p in range(len(first)):
        left = codes[first[p]]
        right = codes[second[p]]
        for i in range(len(groups)):
            if left[i] >= 0 and right[i] >= 0:
                counts[groups[i], p, left[i], right[i]] += 1


@njit(cache=True, nogil=True)
def count_cells(codes: Int8Array, strides: IntArray, cells: IntArray, counts: IntArray) -> None:
    """Add one to ``counts[cells[i] + sum of codes * strides]`` for every anchor i where all codes are known."""
    for i in range(codes.shape[1]):
        cell = cells[i]
        for slot in range(codes.shape[0]):
            if codes[slot, i] < 0:
                cell = -1
                break
            cell += codes[slot, i] * strides[slot]
        if cell >= 0:
            counts[cell] += 1

"""Counting kernels: arrays in, integer sums out.

Codes are table columns (classes, abstain, underspecified); -1 means "not asked" and leaves the anchor out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

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
def find_owners(start: int, owner: int, offsets: IntArray, owners: IntArray) -> None:
    """Sequence of every task from `start` on, whose own sequence is `owner`."""
    for i in range(len(owners)):
        while offsets[owner + 1] <= start + i:
            owner += 1
        owners[i] = owner


@njit(cache=True, nogil=True)
def find_groups(
    places: IntArray, owners: IntArray, lengths: IntArray, base: IntArray, blocks: IntArray, groups: IntArray
) -> None:
    """Group of every task from the place of its first element in its sequence."""
    for i in range(len(owners)):
        owner = owners[i]
        groups[i] = base[owner]
        if blocks[owner] > 1:
            groups[i] += places[i] * blocks[owner] // lengths[owner]


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


def _count_bits(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  the signature is Numba's
    """Number of set bits of a 64-bit word, as one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_popcount: Any = intrinsic(_count_bits)


@njit(cache=True, nogil=True)
def pack_votes(votes: AnyArray, planes: AnyArray) -> None:
    """Bit planes of binary votes: planes[0] votes -1, planes[1] votes +1, planes[2] asked.

    `votes` are int8 codes read as 64-bit words, eight votes each, in multiples of eight words. The codes are
    0xFF, 0x00, 0x01 and 0x80 for -1, 0, +1 and not asked, so two bits of each byte tell them apart; the product
    gathers the lowest bits of eight bytes into one byte.
    """
    ones, gather = np.uint64(0x0101010101010101), np.uint64(0x0102040810204080)
    for word in range(len(votes) // 8):
        negative, positive, asked = np.uint64(0), np.uint64(0), np.uint64(0)
        for part in range(8):
            eight = votes[word * 8 + part]
            high = eight >> np.uint64(1)
            shift = np.uint64(8 * part)
            negative |= (((high & ones) * gather) >> np.uint64(56)) << shift
            positive |= (((eight & ~high & ones) * gather) >> np.uint64(56)) << shift
            silent = (eight >> np.uint64(7)) & ~eight & ones
            asked |= (((silent ^ ones) * gather) >> np.uint64(56)) << shift
        planes[0, word], planes[1, word], planes[2, word] = negative, positive, asked


@njit(cache=True, nogil=True)
def count_packed_pairs(planes: AnyArray, n_words: int, first: IntArray, second: IntArray, counts: IntArray) -> None:
    """Add the 3 x 3 contingency of every pair of sources to ``counts[pair]``, all cells from bit planes."""
    for p in range(len(first)):
        left, right = planes[first[p]], planes[second[p]]
        nn, np_, pn, pp = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        n_left, p_left, n_right, p_right, both = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for word in range(n_words):
            a_n, a_p, a_k = left[0, word], left[1, word], left[2, word]
            b_n, b_p, b_k = right[0, word], right[1, word], right[2, word]
            nn += _popcount(a_n & b_n)
            np_ += _popcount(a_n & b_p)
            pn += _popcount(a_p & b_n)
            pp += _popcount(a_p & b_p)
            n_left += _popcount(a_n & b_k)
            p_left += _popcount(a_p & b_k)
            n_right += _popcount(a_k & b_n)
            p_right += _popcount(a_k & b_p)
            both += _popcount(a_k & b_k)
        cell = counts[p]
        cell[0, 0] += nn
        cell[0, 1] += np_
        cell[0, 2] += n_left - nn - np_
        cell[1, 0] += pn
        cell[1, 1] += pp
        cell[1, 2] += p_left - pn - pp
        cell[2, 0] += n_right - nn - pn
        cell[2, 1] += p_right - np_ - pp
        cell[2, 2] += both + nn + np_ + pn + pp - n_left - p_left - n_right - p_right

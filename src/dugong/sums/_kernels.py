"""Counting kernels: arrays in, integer sums out.

Codes are table columns (classes, abstain, underspecified); -1 means "not asked" and leaves the anchor out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np import arrayobj

from dugong.types import AnyArray, Int8Array, IntArray

_array_of: Any = arrayobj.make_array


def _load_word(typing_context: Any, column: Any, start: Any) -> Any:  # noqa: ARG001  the signature is Numba's
    """Eight bytes of an array from any place on, as one 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _array_of(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(column, types.int64), generate


def _store_word(typing_context: Any, column: Any, start: Any, word: Any) -> Any:  # noqa: ARG001
    """Write one 64-bit word over eight bytes of an array, from any place on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _array_of(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(column, types.int64, types.uint64), generate


_word_at: Any = intrinsic(_load_word)
_set_word: Any = intrinsic(_store_word)


@njit(cache=True, nogil=True, inline="always")
def _fold_votes(column: Int8Array, t: int, end: int, value: Any) -> Any:
    """Fold the votes t..end into a running hash, eight at a time."""
    # The odd number nearest to 2^64 over the golden ratio: multiplying by it moves every bit of a word upwards.
    mixer, eight = np.uint64(0x9E3779B97F4A7C15), np.uint64(8)
    value ^= np.uint64(end - t)
    while t < end:
        if t + 8 <= len(column):
            word = _word_at(column, t)
            # Bytes beyond the end belong to the next sequence and must not tell equal ones apart.
            if end - t < 8:
                word &= (np.uint64(1) << (eight * np.uint64(end - t))) - np.uint64(1)
        else:
            word = np.uint64(0)
            for place in range(end - t):
                word |= np.uint64(np.uint8(column[t + place])) << (eight * np.uint64(place))
        # The upper half goes back to the lower one, because a product alone never carries bits downwards.
        value = (value ^ word) * mixer
        value ^= value >> np.uint64(32)
        t += 8
    return value


@njit(cache=True, nogil=True)
def hash_sequences(column: Int8Array, offsets: IntArray, hashes: AnyArray) -> None:
    """Fold the votes of one source into the running hash of every sequence."""
    for i in range(len(hashes)):
        hashes[i] = _fold_votes(column, offsets[i], offsets[i + 1], hashes[i])


@njit(cache=True, nogil=True)
def add_hashes(column: Int8Array, borders: IntArray, salt: Any, hashes: AnyArray) -> None:
    """Add a hash of what one source voted on every piece to that of the piece: the same in any order of sources."""
    mixer, every, n_words = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFFFFFFFFFF), len(hashes)
    shortest, longest = 8, 1
    for p in range(len(hashes)):
        shortest, longest = min(shortest, borders[p + 1] - borders[p]), max(longest, borders[p + 1] - borders[p])
    # Where every piece is part of one word, the same hash takes no loop and no branch, and two thirds of the time.
    while n_words > 0 and (shortest < 1 or longest > 8 or borders[n_words - 1] + 8 > len(column)):
        n_words -= 1
    for p in range(n_words):
        size = np.uint64(borders[p + 1] - borders[p])
        word = _word_at(column, borders[p]) & (every >> (np.uint64(64) - np.uint64(8) * size))
        value = (salt ^ size ^ word) * mixer
        value = (value ^ (value >> np.uint64(32))) * np.uint64(0xFF51AFD7ED558CCD)
        hashes[p] += value ^ (value >> np.uint64(33))
    for p in range(n_words, len(hashes)):
        # Added, not folded, because a sum is the same in any order of the sources; the salt tells sources apart.
        value = _fold_votes(column, borders[p], borders[p + 1], salt) * np.uint64(0xFF51AFD7ED558CCD)
        hashes[p] += value ^ (value >> np.uint64(33))


_MIX: Any = np.uint64(0xD6E8FEB86659FD93)


@njit(cache=True, nogil=True)
def tally_parts(hashes: AnyArray, part_bits: int, tally: IntArray) -> None:
    """Count how many hashes fall into each part: their upper bits, once they are mixed."""
    # A shift by 64 is undefined, so that it is done in two steps where there is one part only.
    shift = np.uint64(63 - part_bits)
    for i in range(len(hashes)):
        tally[(hashes[i] * _MIX) >> np.uint64(1) >> shift] += 1


@njit(cache=True, nogil=True)
def sort_parts(
    hashes: AnyArray, start: int, part_bits: int, index_bits: int, ends: IntArray, entries: AnyArray
) -> None:
    """Write the sequences from `start` on to their parts, in order; `ends` is where each part is filled up to.

    An entry holds the upper bits of a hash, which stand for the content, and below them the number of the sequence.
    """
    shift = np.uint64(63 - part_bits)
    mask = (np.uint64(1) << np.uint64(index_bits)) - np.uint64(1)
    for i in range(len(hashes)):
        value = hashes[i] * _MIX
        part = value >> np.uint64(1) >> shift
        entries[ends[part]] = (value & ~mask) | np.uint64(start + i)
        ends[part] += 1


@njit(cache=True, nogil=True)
def spread_duplicates(
    entries: AnyArray, begins: IntArray, index_bits: int, n_places: int, n_groups: int, groups: AnyArray
) -> None:
    """Group of every sequence of some parts, drawn by its content and its number among the copies of that content.

    The copies of a content go to groups as independent draws would, whichever of them comes first. Of the places that
    are drawn from, the first are groups 1, 2, ...; all others are group 0, which `groups` must hold already. The
    table of copies is that of one part, so that it stays in the cache.
    """
    low = np.uint64(index_bits)
    mask = (np.uint64(1) << low) - np.uint64(1)
    # One table for the largest part is enough, because parts are done one after the other.
    room = 16
    for part in range(len(begins) - 1):
        while room < 2 * (begins[part + 1] - begins[part]):
            room *= 2
    contents, copies = np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.uint32)
    for part in range(len(begins) - 1):
        begin, end = begins[part], begins[part + 1]
        size = 16
        while size < 2 * (end - begin):
            size *= 2
        for place in range(size):
            copies[place] = 0
        for k in range(begin, end):
            content = entries[k] >> low
            # Open addressing: at most half of the table is used, so that runs of taken places stay short.
            spot = ((content * _MIX) >> np.uint64(32)) & np.uint64(size - 1)
            while copies[spot] != 0 and contents[spot] != content:
                spot = (spot + np.uint64(1)) & np.uint64(size - 1)
            contents[spot] = content
            drawn = ((content << low) ^ (np.uint64(copies[spot]) * np.uint64(0x9E3779B97F4A7C15))) * _MIX
            copies[spot] += np.uint32(1)
            # The upper half of a product is an even draw without the division that a remainder takes.
            group = int(((drawn >> np.uint64(32)) * np.uint64(n_places)) >> np.uint64(32))
            if group < n_groups:
                groups[entries[k] & mask] = group + 1


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
def count_cells(left: IntArray, right: IntArray, counts: IntArray) -> None:
    """Add one to ``counts[left + right]`` for every anchor where both are known (not negative)."""
    for i in range(len(left)):
        # A vote that was not asked takes the whole anchor out: all means run over the same anchors.
        if left[i] >= 0 and right[i] >= 0:
            counts[left[i] + right[i]] += 1


@njit(cache=True, nogil=True)
def add_digit(cells: IntArray, codes: Int8Array, size: int) -> None:
    """Every cell as a number with one more digit, the code; negative where that is unknown."""
    times = np.int32(size)
    for i in range(len(cells)):
        code, cell = np.int32(codes[i]), np.int32(cells[i])
        cells[i] = np.int32(-1) if (code | cell) < 0 else np.int32(cell * times + code)


@njit(cache=True, nogil=True)
def find_places(keys: IntArray, values: IntArray, places: IntArray) -> None:
    """How many of the sorted keys are smaller than each value; quick where values are nearly sorted as well."""
    place = 0
    for i in range(len(values)):
        while place > 0 and keys[place - 1] >= values[i]:
            place -= 1
        while place < len(keys) and keys[place] < values[i]:
            place += 1
        places[i] = place


def _count_bits(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  the signature is Numba's
    """Number of set bits of a 64-bit word, a signed number, as one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


_popcount: Any = intrinsic(_count_bits)


def _compare_64(typing_context: Any, votes: Any, start: Any, code: Any) -> Any:  # noqa: ARG001
    """Which of 64 votes from some place on are a code, as the bits of one word: a few vector instructions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _array_of(signature.args[0])(context, builder, arguments[0])
        sixty_four = ir.VectorType(ir.IntType(8), 64)
        place = builder.gep(array.data, [arguments[1]])
        found = builder.load(builder.bitcast(place, sixty_four.as_pointer()), align=1)
        one = builder.insert_element(ir.Constant(sixty_four, ir.Undefined), arguments[2], ir.IntType(32)(0))
        nought = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        same = builder.icmp_signed("==", found, builder.shuffle_vector(one, one, nought))
        return builder.bitcast(same, ir.IntType(64))

    return types.uint64(votes, types.int64, types.int8), generate


_which_are: Any = intrinsic(_compare_64)


@njit(cache=True, nogil=True)
def pack_votes(votes: Int8Array, planes: AnyArray) -> bool:
    """Bit planes of binary votes: planes[0] votes -1, planes[1] votes +1, planes[2] asked; returns "all asked".

    The votes are a multiple of 64.
    """
    anywhere = np.uint64(0)
    for word in range(len(votes) // 64):
        silent = _which_are(votes, 64 * word, np.int8(-128))
        anywhere |= silent
        planes[0, word] = _which_are(votes, 64 * word, np.int8(-1))
        planes[1, word] = _which_are(votes, 64 * word, np.int8(1))
        planes[2, word] = ~silent
    return bool(anywhere == 0)


@njit(cache=True, nogil=True)
def count_packed_pairs(
    planes: AnyArray, asked: AnyArray, begin: int, end: int, first: IntArray, second: IntArray, counts: IntArray
) -> None:
    """Add the 3 x 3 contingency of every pair of sources to ``counts[pair]``, all cells from bit planes.

    Words from `begin` to `end` are looked at; `asked` says of each source whether all tasks of the planes were asked.
    """
    size = end - begin
    # Four products of planes give the cells of two votes; the other five follow from the margins, which are
    # counted once per source and not once per pair.
    totals = np.zeros((len(planes), 2), dtype=np.int64)
    for source in range(len(planes)):
        for sign in range(2):
            plane, total = planes[source, sign, begin:end], 0
            for word in range(size):
                total += _popcount(plane[word])
            totals[source, sign] = total
    for p in range(len(first)):
        a, b = first[p], second[p]
        left_n, left_p = planes[a, 0, begin:end], planes[a, 1, begin:end]
        right_n, right_p = planes[b, 0, begin:end], planes[b, 1, begin:end]
        nn, np_, pn, pp = 0, 0, 0, 0
        for word in range(size):
            a_n, a_p, b_n, b_p = left_n[word], left_p[word], right_n[word], right_p[word]
            nn += _popcount(a_n & b_n)
            np_ += _popcount(a_n & b_p)
            pn += _popcount(a_p & b_n)
            pp += _popcount(a_p & b_p)
        n_left, p_left, n_right, p_right = totals[a, 0], totals[a, 1], totals[b, 0], totals[b, 1]
        both = 64 * size
        # Margins must be over tasks that both were asked; where all were, those of the source serve.
        if not (asked[a] and asked[b]):
            n_left, p_left, n_right, p_right, both = 0, 0, 0, 0, 0
            left_k, right_k = planes[a, 2, begin:end], planes[b, 2, begin:end]
            for word in range(size):
                a_k, b_k = left_k[word], right_k[word]
                n_left += _popcount(left_n[word] & b_k)
                p_left += _popcount(left_p[word] & b_k)
                n_right += _popcount(a_k & right_n[word])
                p_right += _popcount(a_k & right_p[word])
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


@njit(cache=True, nogil=True)
def gather_runs(column: Int8Array, starts: IntArray, stops: IntArray, targets: IntArray, gathered: Int8Array) -> None:
    """Copy the votes of some runs of tasks, each to its target place.

    Short runs are copied as one word whose other bytes say "not asked"; the next run of the group is written over
    them, and seven bytes after the last run of every group belong to nobody.
    """
    unasked, eight = np.uint64(0x8080808080808080), np.uint64(8)
    for i in range(len(starts)):
        begin, size, target = starts[i], stops[i] - starts[i], targets[i]
        if 0 < size < 8 and begin + 8 <= len(column):
            kept = (np.uint64(1) << (eight * np.uint64(size))) - np.uint64(1)
            _set_word(gathered, target, (_word_at(column, begin) & kept) | (unasked & ~kept))
        else:
            for t in range(size):
                gathered[target + t] = column[begin + t]

"""Compiled loops over residuals: sums of their products, by pairs of sources, with jackknife errors.

Under a fitted model the residual of one source (wrong or not, minus what is expected given the label) is unrelated to
that of another, and to earlier ones. Products are summed within blocks of a sequence; the squares of the sums of the
blocks are the squared error of the total (the delete-one-block jackknife). Sums are (4, m, m): products, scales, second
and fourth powers of block sums.

Every label that an element may have is one *entry*. Entries are taken a tile of blocks at a time and laid out so that
the first entries of all blocks come first, then the second ones, and so on, longest blocks first: then the sums of all
blocks of the tile grow together, one vector operation for many blocks. Indices are unsigned or begin at zero: that they
cannot be negative is what lets the compiler use vectors. Letters as in the other kernels; e entry.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import AnyArray, BoolArray, FloatArray, Int8Array, IntArray

_NEGLIGIBLE = 1e-6
_TILE = 1024  # elements, at least: a few hundred KB of residuals

ERRORS, SPEAKING = 0, 1  # what a residual is about: being wrong, or speaking at all

kernel = njit(cache=True, nogil=True)
in_any_order = njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # sums whose terms need not wait


@kernel
def expect(
    past: int, again: float, silent: int, wrong: float, speaks: float, past_wrong: np.bool_
) -> tuple[float, float]:
    """P(wrong | speaks) and P(speaks) of a source that repeats its vote `past` with probability `again`."""
    if past < 0 or again <= 0.0:
        return wrong, speaks
    spoke = 1.0 if past != silent else 0.0
    speaking = (1.0 - again) * speaks + again * spoke
    # A repeated vote is as wrong as the vote that it repeats, under the label of now.
    joint = (1.0 - again) * speaks * wrong + (again if spoke > 0.0 and past_wrong else 0.0)
    return min(max(joint / max(speaking, 1e-12), 1e-3), 1 - 1e-3), speaking


@kernel
def list_entries(
    weights: FloatArray, place: IntArray, length: int, begin: int
) -> tuple[AnyArray, AnyArray, AnyArray, FloatArray, IntArray]:
    """Entries of elements, the first of which is `begin`: element, label, branch, weight; where each round starts.

    A round holds the first, second, ... entries of all blocks that have so many.
    """
    n_branches, n, n_classes = weights.shape
    sizes, n_blocks = np.zeros(n, dtype=np.int64), 0
    for i in range(n):
        n_blocks += place[i] % length == 0
        for b in range(n_branches):
            for y in range(n_classes):
                sizes[n_blocks - 1] += weights[b, i, y] >= _NEGLIGIBLE
    # How many blocks have more than so many entries: where the next block with exactly so many goes.
    ranks, starts = np.zeros(sizes.max() + 1, dtype=np.int64), np.zeros(sizes.max() + 1, dtype=np.int64)
    for block in range(n_blocks):
        for q in range(sizes[block]):
            ranks[q] += 1
    for q in range(len(starts) - 1):
        starts[q + 1] = starts[q] + ranks[q]
    for block in range(n_blocks):
        size = sizes[block]
        sizes[block] = ranks[size]
        ranks[size] += 1
    element, label, branch = np.empty((3, starts[-1]), dtype=np.uint64)
    weight = np.empty(starts[-1])
    block, nth = -1, 0
    for i in range(n):
        if place[i] % length == 0:
            block, nth = block + 1, 0
        for b in range(n_branches):
            for y in range(n_classes):
                if weights[b, i, y] >= _NEGLIGIBLE:
                    e = starts[nth] + sizes[block]
                    element[e], label[e], branch[e], weight[e] = begin + i, y, b, weights[b, i, y]
                    nth += 1
    return element, label, branch, weight, starts


@kernel
def fill_residuals(
    codes: Int8Array,
    place: IntArray,
    element: AnyArray,
    label: AnyArray,
    branch: AnyArray,
    rates: FloatArray,
    is_wrong: BoolArray,
    silent: int,
    about: int,
    repeats: FloatArray,
    lags: IntArray,
    left: FloatArray,
    spread: FloatArray,
) -> None:
    """Residuals and their standard deviations by source and entry, zero where there is no vote to look at.

    `rates` are P(wrong | speaks, label) and P(speaks | label), (2, m, K), of which residuals are `about` one.
    """
    n_codes, n_classes = is_wrong.shape
    speaking = about == SPEAKING
    lefts, spreads = np.zeros((n_codes + 1, n_classes)), np.zeros((n_codes + 1, n_classes))
    for j in range(codes.shape[1]):
        for z in range(n_codes):
            for y in range(n_classes):
                if speaking or z != silent:
                    event = z != silent if speaking else is_wrong[z, y]
                    rate = rates[about, j, y]
                    lefts[z + 1, y] = (1.0 if event else 0.0) - rate
                    spreads[z + 1, y] = np.sqrt(rate * (1.0 - rate))
        for e in range(len(element)):
            row = np.uint64(codes[element[e], j] + 1)
            left[j, e], spread[j, e] = lefts[row, label[e]], spreads[row, label[e]]
        # What one vote expects of the next depends on both, so it cannot be looked up by code and label.
        if repeats[0, j] <= 0.0:
            continue
        for e in range(len(element)):
            i, y, b = np.int64(element[e]), label[e], branch[e]
            z = codes[i, j]
            if place[i] >= lags[j] and z >= 0 and (speaking or z != silent) and codes[i - lags[j], j] >= 0:
                past = codes[i - lags[j], j]
                rate = expect(past, repeats[b, j], silent, rates[0, j, y], rates[1, j, y], is_wrong[past, y])[about]
                left[j, e] += rates[about, j, y] - rate
                spread[j, e] = np.sqrt(rate * (1.0 - rate))


@in_any_order
def add_powers(one: FloatArray, other: FloatArray, starts: IntArray, block: FloatArray) -> tuple[float, float, float]:
    """Sum of products of two residuals, of squares and of fourth powers of the sums of blocks."""
    for s in range(starts[1]):
        block[s] = 0.0
    for q in range(len(starts) - 1):
        ones, others = one[starts[q] : starts[q + 1]], other[starts[q] : starts[q + 1]]
        for s in range(len(ones)):
            block[s] += ones[s] * others[s]
    total, square, fourth = 0.0, 0.0, 0.0
    for s in range(starts[1]):
        power = block[s] * block[s]
        total += block[s]
        square += power
        fourth += power * power
    return total, square, fourth


@in_any_order
def dot(one: FloatArray, other: FloatArray) -> float:
    """A dot product in any order."""
    total = 0.0
    for e in range(len(one)):
        total += one[e] * other[e]
    return total


@kernel
def add_products(
    codes: Int8Array,
    place: IntArray,
    weights: FloatArray,
    rates: FloatArray,
    earlier: FloatArray,
    lag: int,
    is_wrong: BoolArray,
    silent: int,
    about: int,
    repeats: FloatArray,
    lags: IntArray,
    length: int,
    pairs: BoolArray,
    sums: FloatArray,
) -> None:
    """Products of the residual of a source (row) and of that of a source `lag` elements earlier (column).

    Weights (branches, n, K) of labels: that stayed and that changed, if a repeating source repeats itself differently;
    without a vote that is repeated, one branch. `rates` and `earlier` are P(wrong | speaks, label) and
    P(speaks | label), (2, m, K), now and earlier; `pairs` (m, m) says which pairs count.
    """
    n, m = codes.shape
    none, room = np.zeros(repeats.shape), np.zeros(0)
    begin = 0
    while begin < n:
        end = min(begin + _TILE, n)
        # A tile ends where a block ends, because the squares are of sums of whole blocks.
        while end < n and place[end] % length != 0:
            end += 1
        element, label, branch, weight, starts = list_entries(weights[:, begin:end], place[begin:end], length, begin)
        begin, size = end, len(element)
        if size == 0:
            continue
        # One piece of memory for all tiles: making room anew took longer than the sums themselves.
        if len(room) < (4 * m + 3) * size:
            room = np.empty((4 * m + 3) * size)
        tile = room[: (4 * m + 3) * size].reshape(4 * m + 3, size)
        left, spread, before, spread_before = tile[:m], tile[m : 2 * m], tile[2 * m : 3 * m], tile[3 * m : 4 * m]
        one, scale, block = tile[4 * m], tile[4 * m + 1], tile[4 * m + 2]
        fill_residuals(
            codes, place, element, label, branch, rates, is_wrong, silent, about, repeats, lags, left, spread
        )
        if lag > 0:
            for e in range(size):
                element[e] -= np.uint64(lag)
            fill_residuals(
                codes,
                place,
                element,
                label,
                branch,
                earlier,
                is_wrong,
                silent,
                about,
                none,
                lags,
                before,
                spread_before,
            )
        else:
            before, spread_before = left, spread
        for j in range(m):
            for e in range(size):
                one[e], scale[e] = weight[e] * left[j, e], weight[e] * spread[j, e]
            for k in range(m):
                if pairs[j, k]:
                    total, square, fourth = add_powers(one, before[k], starts, block)
                    sums[0, j, k] += total
                    sums[1, j, k] += dot(scale, spread_before[k])
                    sums[2, j, k] += square
                    sums[3, j, k] += fourth

"""Compiled loops over residuals: sums of their products, by pairs of sources and by lag, with jackknife errors.

Under a fitted model the residual of one source (wrong or not, minus what is expected given the label) is unrelated to
that of another, and to earlier ones. Products are summed within blocks of a sequence; the squares of the sums of the
blocks are the squared error of the total (the delete-one-block jackknife). Sums are (4, ...): products, scales, second
and fourth powers of block sums. Letters as in the other kernels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import BoolArray, FloatArray, Int8Array, IntArray

_NEGLIGIBLE = 1e-6

kernel = njit(cache=True, nogil=True)


@kernel
def expect(
    past: int, again: float, silent: int, wrong: float, speaks: float, past_wrong: np.bool_
) -> tuple[float, float]:
    """P(wrong | speaks) and P(speaks) of a source that repeats its vote `past` with probability `again`."""
    if past < 0 or again <= 0.0:
        return wrong, speaks
    spoke = 1.0 if past != silent else 0.0
    speaking = (1.0 - again) * speaks + again * spoke
    joint = (1.0 - again) * speaks * wrong + (again if spoke > 0.0 and past_wrong else 0.0)
    return min(max(joint / max(speaking, 1e-12), 1e-3), 1 - 1e-3), speaking


@kernel
def close_block(block: FloatArray, sums: FloatArray) -> None:
    """Add the sums of one block, (2, ...), to all, and begin a new one."""
    for j in range(block.shape[1]):
        for k in range(block.shape[2]):
            if block[1, j, k] > 0.0:
                sums[0, j, k] += block[0, j, k]
                sums[1, j, k] += block[1, j, k]
                square = block[0, j, k] * block[0, j, k]
                sums[2, j, k] += square
                sums[3, j, k] += square * square
                block[0, j, k] = 0.0
                block[1, j, k] = 0.0


@kernel
def add_pairs(weight: float, n: int, who: IntArray, left: FloatArray, spread: FloatArray, block: FloatArray) -> None:
    """Add all pairs of the first `n` residuals to sums of products and of scales (lower triangle)."""
    for a in range(n):
        one, scale = weight * left[a], weight * spread[a]
        for b in range(a + 1):
            block[0, who[a], who[b]] += one * left[b]
            block[1, who[a], who[b]] += scale * spread[b]


@kernel
def add_residuals(
    codes: Int8Array,
    place: IntArray,
    labels: FloatArray,
    kept: FloatArray,
    rates: FloatArray,
    is_wrong: BoolArray,
    silent: int,
    repeats: FloatArray,
    lags: IntArray,
    length: int,
    errors: FloatArray,
    speaking: FloatArray,
) -> None:
    """Products of the residuals of two sources on one element: of being wrong, and of speaking at all.

    `rates` are P(wrong | speaks, label) and P(speaks | label), (2, m, K). With `kept`, labels that stayed and labels
    that changed count apart, because a repeating source repeats itself differently.
    """
    n_elements, m = codes.shape
    who, whose = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    left, spread, lefts, spreads = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    spreads_of = np.sqrt(rates * (1.0 - rates))
    branches = 2 if len(kept) > 0 else 1
    error_block, speaking_block = np.zeros((2, m, m)), np.zeros((2, m, m))
    for i in range(n_elements):
        for y in range(labels.shape[1]):
            for b in range(branches):
                weight = labels[i, y]
                if branches == 2:
                    weight = kept[i, y] if b == 0 else labels[i, y] - kept[i, y]
                if weight < _NEGLIGIBLE:
                    continue
                n, asked = 0, 0
                for j in range(m):
                    z = codes[i, j]
                    if z < 0:
                        continue
                    past = codes[i - lags[j], j] if place[i] >= lags[j] else -1
                    wrong, speaks = expect(
                        past, repeats[b, j], silent, rates[0, j, y], rates[1, j, y], is_wrong[max(past, 0), y]
                    )
                    usual = past < 0 or repeats[b, j] <= 0.0
                    if z != silent:
                        who[n] = j
                        left[n] = (1.0 if is_wrong[z, y] else 0.0) - wrong
                        spread[n] = spreads_of[0, j, y] if usual else np.sqrt(wrong * (1.0 - wrong))
                        n += 1
                    if speaks < 1.0:
                        whose[asked] = j
                        lefts[asked] = (0.0 if z == silent else 1.0) - speaks
                        spreads[asked] = spreads_of[1, j, y] if usual else np.sqrt(speaks * (1.0 - speaks))
                        asked += 1
                add_pairs(weight, n, who, left, spread, error_block)
                add_pairs(weight, asked, whose, lefts, spreads, speaking_block)
        if i + 1 == n_elements or place[i + 1] % length == 0:
            close_block(error_block, errors)
            close_block(speaking_block, speaking)


@kernel
def add_lagged(
    codes: Int8Array,
    place: IntArray,
    kept: FloatArray,
    rates: FloatArray,
    marginal: FloatArray,
    is_wrong: BoolArray,
    silent: int,
    repeats: FloatArray,
    lags: IntArray,
    length: int,
    sums: FloatArray,
) -> None:
    """Products of the residual error of a source (row) and of another one element earlier, where the label stayed."""
    n_elements, m = codes.shape
    spreads, spreads_now = np.sqrt(marginal * (1.0 - marginal)), np.sqrt(rates[0] * (1.0 - rates[0]))
    who, before, spread = np.empty(m, dtype=np.int64), np.empty(m), np.empty(m)
    block = np.zeros((2, m, m))
    for i in range(n_elements):
        for y in range(kept.shape[1]):
            weight = kept[i, y]
            if place[i] == 0 or weight < _NEGLIGIBLE:
                continue
            n = 0
            for k in range(m):
                past = codes[i - 1, k]
                if past >= 0 and past != silent:
                    who[n], spread[n] = k, spreads[k, y]
                    before[n] = (1.0 if is_wrong[past, y] else 0.0) - marginal[k, y]
                    n += 1
            for j in range(m):
                z = codes[i, j]
                if z < 0 or z == silent:
                    continue
                own = codes[i - lags[j], j] if place[i] >= lags[j] else -1
                wrong, _ = expect(own, repeats[0, j], silent, rates[0, j, y], rates[1, j, y], is_wrong[max(own, 0), y])
                one = weight * ((1.0 if is_wrong[z, y] else 0.0) - wrong)
                usual = own < 0 or repeats[0, j] <= 0.0
                scale = weight * (spreads_now[j, y] if usual else np.sqrt(wrong * (1.0 - wrong)))
                for a in range(n):
                    block[0, j, who[a]] += one * before[a]
                    block[1, j, who[a]] += scale * spread[a]
        if i + 1 == n_elements or place[i + 1] % length == 0:
            close_block(block, sums)


@kernel
def add_own(
    codes: Int8Array,
    place: IntArray,
    labels: FloatArray,
    kept: FloatArray,
    rates: FloatArray,
    marginal: FloatArray,
    is_wrong: BoolArray,
    silent: int,
    repeats: FloatArray,
    lags: IntArray,
    length: int,
    sums: FloatArray,
) -> None:
    """Products of the residual errors of a source some elements apart, where the label stayed all the time.

    Sums are (4, n_lags, m), the first row for neighbours.
    """
    n_elements, m = codes.shape
    block = np.zeros((2, sums.shape[1], m))
    for i in range(n_elements):
        for y in range(labels.shape[1]):
            weight = labels[i, y]
            for lag in range(1, min(sums.shape[1], place[i]) + 1):
                # P(same label one element earlier still | it stayed until here)
                weight *= kept[i - lag + 1, y] / max(labels[i - lag + 1, y], 1e-300)
                if weight < _NEGLIGIBLE:
                    break
                for j in range(m):
                    z, past = codes[i, j], codes[i - lag, j]
                    if z < 0 or z == silent or past < 0 or past == silent:
                        continue
                    own = codes[i - lags[j], j] if place[i] >= lags[j] else -1
                    wrong, _ = expect(
                        own, repeats[0, j], silent, rates[0, j, y], rates[1, j, y], is_wrong[max(own, 0), y]
                    )
                    left = (1.0 if is_wrong[z, y] else 0.0) - wrong
                    before = (1.0 if is_wrong[past, y] else 0.0) - marginal[j, y]
                    block[0, lag - 1, j] += weight * left * before
                    block[1, lag - 1, j] += weight * np.sqrt(
                        wrong * (1.0 - wrong) * marginal[j, y] * (1.0 - marginal[j, y])
                    )
        if i + 1 == n_elements or place[i + 1] % length == 0:
            close_block(block, sums)

"""Compiled loops of the packed chain: emissions by a few look-ups, forward messages stored in the output.

Forward: a_t = (a_{t-1} A) * e_t, kept unnormalised and rescaled only when small. Backward, without emissions:
g_t(i) = a_t(i) sum_j A_ij g_{t+1}(j) / p_{t+1}(j) with p_{t+1} = a_t A. A transitions, e emissions, g posteriors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dugong.infer._kernels import inner
from dugong.types import AnyArray, FloatArray, IntArray

_SMALL = 1e-100
_TILE = 1 << 12  # elements whose messages stay in the nearest caches
_EVERY = 64  # steps between two normalisations of the posterior, which rounding moves by 1e-16 a step


class PackedBlock(NamedTuple):
    """What is known about a block.

    Attributes
    ----------
    rows, tables, firsts : by group of sources, table row of every element; all tables; where each of them begins
    soft : (n, K) what is known about the elements beside their votes, at most one each; empty where nothing is
    initial, transition : the chain
    """

    rows: AnyArray
    tables: FloatArray
    firsts: IntArray
    soft: FloatArray
    initial: FloatArray
    transition: FloatArray


class PackedAnswer(NamedTuple):
    """What is written: posteriors, log-likelihoods and, if there are `owners`, pairs of labels by owner, (G, K, K)."""

    out: FloatArray
    likelihood: FloatArray
    owners: IntArray
    transitions: FloatArray


@njit(cache=True, nogil=True)
def smooth_two(known: PackedBlock, offsets: IntArray, found: PackedAnswer) -> int:
    """Posterior marginals for two classes; returns -1 or the first impossible sequence.

    Forward for some sequences, then backward for them: the processor works on several short sequences at a time,
    since none waits for another.
    """
    n_sequences, first = len(offsets) - 1, 0
    while first < n_sequences:
        # At least one sequence, however long; more as long as their messages stay in the cache for the way back.
        last = first + 1
        while last < n_sequences and offsets[last + 1] - offsets[first] <= _TILE:
            last += 1
        for sequence in range(first, last):
            begin, end = offsets[sequence], offsets[sequence + 1]
            if not forward_two(known, begin, end, found, sequence):
                return sequence
        for sequence in range(first, last):
            begin, end = offsets[sequence], offsets[sequence + 1]
            if begin < end:
                backward_two(known.transition, begin, end, found, sequence)
        first = last
    return -1


@inner
def forward_two(known: PackedBlock, begin: int, end: int, found: PackedAnswer, sequence: int) -> bool:
    """Forward messages of one sequence, and the logarithm of what they were divided by; whether it is possible."""
    (rows, tables, firsts, soft, initial, transition), out = known, found.out
    s00, s01, s10, s11 = transition[0, 0], transition[0, 1], transition[1, 0], transition[1, 1]
    log_scale, softly = 0.0, len(soft) > 0
    p0, p1 = initial[0], initial[1]
    # Numba takes unsigned places as they are; signed ones might count from the end.
    for t in range(np.uint64(begin), np.uint64(end)):
        for g in range(len(rows)):
            cell = np.uint64(firsts[g]) + np.uint64(2) * np.uint64(rows[g, t])
            p0 *= tables[cell]
            p1 *= tables[cell + np.uint64(1)]
        if softly:
            p0 *= soft[t, 0]
            p1 *= soft[t, 1]
        a0, a1 = p0, p1
        total = a0 + a1
        # Not at every element, because divisions are slow and messages may shrink for long before they underflow.
        if total < _SMALL:
            if total == 0.0:
                return False
            log_scale += np.log(total)
            a0 /= total
            a1 /= total
        out[t, 0] = a0
        out[t, 1] = a1
        # Predicted here and not at the top, because the first element has the initial law in its place.
        p0 = a0 * s00 + a1 * s10
        p1 = a0 * s01 + a1 * s11
    found.likelihood[sequence] = log_scale
    return True


@inner
def backward_two(transition: FloatArray, begin: int, end: int, found: PackedAnswer, sequence: int) -> None:
    """From forward messages to posterior marginals, in place."""
    out, likelihood, owners, transitions = found
    s00, s01, s10, s11 = transition[0, 0], transition[0, 1], transition[1, 0], transition[1, 1]
    counting = len(owners) > 0
    # Sums in registers: adding to an array at every element would wait for memory.
    n00, n01, n10, n11 = 0.0, 0.0, 0.0, 0.0
    last = np.uint64(end - 1)
    a0, a1 = out[last, 0], out[last, 1]
    total = a0 + a1
    likelihood[sequence] += np.log(total)
    g0, g1 = a0 / total, a1 / total
    out[last, 0] = g0
    out[last, 1] = g1
    for back in range(2, end - begin + 1):
        t = np.uint64(end - back)
        a0, a1 = out[t, 0], out[t, 1]
        # The scale of the forward messages cancels here, which is why they need not be normalised.
        r0 = g0 / (a0 * s00 + a1 * s10)
        r1 = g1 / (a0 * s01 + a1 * s11)
        if counting:
            n00 += a0 * s00 * r0
            n01 += a0 * s01 * r1
            n10 += a1 * s10 * r0
            n11 += a1 * s11 * r1
        g0 = a0 * (s00 * r0 + s01 * r1)
        g1 = a1 * (s10 * r0 + s11 * r1)
        if back % _EVERY == 0:
            total = g0 + g1
            g0 /= total
            g1 /= total
        out[t, 0] = g0
        out[t, 1] = g1
    if counting:
        own = owners[sequence]
        transitions[own, 0, 0] += n00
        transitions[own, 0, 1] += n01
        transitions[own, 1, 0] += n10
        transitions[own, 1, 1] += n11


@njit(cache=True, nogil=True)
def smooth_many(known: PackedBlock, offsets: IntArray, found: PackedAnswer) -> int:
    """The same for any number of classes."""
    rows, tables, firsts, soft, initial, transition = known
    out, likelihood, owners, transitions = found
    n_classes, n_groups = len(initial), len(rows)
    counting, softly = len(owners) > 0, len(soft) > 0
    p, r = np.empty(n_classes), np.empty(n_classes)
    for sequence in range(len(offsets) - 1):
        begin, end = offsets[sequence], offsets[sequence + 1]
        likelihood[sequence] = 0.0
        if begin == end:
            continue
        log_scale = 0.0
        for t in range(begin, end):
            if t == begin:
                for k in range(n_classes):
                    p[k] = initial[k]
            else:
                predict(out, t - 1, transition, p)
            for g in range(n_groups):
                cell = firsts[g] + n_classes * np.int64(rows[g, t])
                for k in range(n_classes):
                    p[k] *= tables[cell + k]
            if softly:
                for k in range(n_classes):
                    p[k] *= soft[t, k]
            total = 0.0
            for k in range(n_classes):
                total += p[k]
            if total == 0.0:
                return sequence
            scale = 1.0
            if total < _SMALL:
                log_scale += np.log(total)
                scale = 1.0 / total
            for k in range(n_classes):
                out[t, k] = p[k] * scale
        normalise(out, end - 1)
        likelihood[sequence] = log_scale + np.log(total * scale)
        for t in range(end - 2, begin - 1, -1):
            predict(out, t, transition, p)
            for k in range(n_classes):
                # Where a step is impossible both are zero.
                r[k] = out[t + 1, k] / p[k] if p[k] > 0.0 else 0.0
            # `p` may be written again, because the predictions are in `r` by now.
            for i in range(n_classes):
                total = 0.0
                for j in range(n_classes):
                    total += transition[i, j] * r[j]
                    if counting:
                        transitions[owners[sequence], i, j] += out[t, i] * transition[i, j] * r[j]
                p[i] = out[t, i] * total
            for k in range(n_classes):
                out[t, k] = p[k]
            if (end - t) % _EVERY == 0:
                normalise(out, t)
    return -1


@njit(cache=True, nogil=True)
def predict(out: FloatArray, t: int, transition: FloatArray, p: FloatArray) -> None:
    """Message at t, one step ahead."""
    n_classes = len(p)
    for j in range(n_classes):
        p[j] = 0.0
    for i in range(n_classes):
        weight = out[t, i]
        for j in range(n_classes):
            p[j] += weight * transition[i, j]


@njit(cache=True, nogil=True)
def normalise(out: FloatArray, t: int) -> None:
    """Let one row sum to one."""
    total = 0.0
    for k in range(out.shape[1]):
        total += out[t, k]
    for k in range(out.shape[1]):
        out[t, k] /= total


@njit(cache=True, nogil=True)
def count(
    rows: AnyArray,
    firsts: IntArray,
    offsets: IntArray,
    owners: IntArray,
    out: FloatArray,
    cells: FloatArray,
    initial: FloatArray,
) -> None:
    """Add the posterior of every element to the table rows that its votes point at, and of first elements, by owner."""
    n_classes = out.shape[1]
    for sequence in range(len(offsets) - 1):
        own = owners[sequence]
        # Tables outside, elements inside: one table at a time stays in the cache.
        for g in range(len(rows)):
            for t in range(offsets[sequence], offsets[sequence + 1]):
                cell = firsts[g] + n_classes * np.int64(rows[g, t])
                for k in range(n_classes):
                    cells[own, cell + k] += out[t, k]
        if offsets[sequence] < offsets[sequence + 1]:
            for k in range(n_classes):
                initial[own, k] += out[offsets[sequence], k]


@njit(cache=True, nogil=True)
def match(
    targets: FloatArray,
    offsets: IntArray,
    initial: FloatArray,
    transition: FloatArray,
    tolerance: float,
    most_rounds: int,
    weights: FloatArray,
) -> float:
    """Weights of the elements under which the chain has the marginals `targets` (n, K); returns the largest gap.

    Neighbours decide for themselves: given its two marginals, the law of a pair is u_i A_ij v_j (u before, v after),
    and a chain is the product of its pairs over the marginals of its inner elements.
    """
    n_classes, worst = len(initial), 0.0
    u, v = np.ones(n_classes), np.ones(n_classes)
    for sequence in range(len(offsets) - 1):
        begin, end = offsets[sequence], offsets[sequence + 1]
        for t in range(begin, end):
            if t == begin:  # what the chain says about the first element itself
                for k in range(n_classes):
                    v[k] = targets[t, k] / initial[k] if initial[k] > 0.0 else 0.0
            for k in range(n_classes):
                weights[t, k] = v[k]
            if t + 1 < end:
                for k in range(n_classes):
                    u[k] = 1.0
                # Two classes start at the answer: the rounds then only confirm it, where scaling alone would take many.
                if n_classes == 2:
                    match_two(targets, t, transition, u)
                worst = max(worst, match_pair(targets, t, transition, u, v, tolerance, most_rounds))
                for k in range(n_classes):
                    weights[t, k] *= u[k] / targets[t, k] if targets[t, k] > 0.0 else 0.0
    return worst


@inner
def match_two(targets: FloatArray, t: int, transition: FloatArray, u: FloatArray) -> None:
    """The exact start for two classes: a pair with given marginals and odds ratio is the root of a quadratic."""
    odds, other = transition[0, 0] * transition[1, 1], transition[0, 1] * transition[1, 0]
    same = odds >= other  # else for the opposite of the later label, so that all numbers stay positive
    if not same:
        odds, other = other, odds
    p, q = targets[t, 1], targets[t + 1, 1] if same else targets[t + 1, 0]
    total = other + (p + q) * (odds - other)
    both = 2.0 * odds * p * q
    # The form of the root without a difference of near numbers, because pairs may be nearly independent.
    if both > 0.0:
        both /= total + np.sqrt(max(total * total - 4.0 * odds * (odds - other) * p * q, 0.0))
    later = 1 if same else 0
    step = transition[1, later]
    if p > both and q > both and transition[0, later] > 0.0 and step > 0.0 and both > 0.0:
        u[1] = both * transition[0, later] / (step * (q - both))


@inner
def match_pair(
    targets: FloatArray,
    t: int,
    transition: FloatArray,
    u: FloatArray,
    v: FloatArray,
    tolerance: float,
    most_rounds: int,
) -> float:
    """Scale rows and columns of the steps in turn until both marginals are met; how far the first one is missed."""
    n_classes, gap = len(u), np.inf
    for _attempt in range(most_rounds):
        for j in range(n_classes):
            total = 0.0
            for i in range(n_classes):
                total += u[i] * transition[i, j]
            v[j] = targets[t + 1, j] / total if total > 0.0 else 0.0
        gap = 0.0
        for i in range(n_classes):
            total = 0.0
            for j in range(n_classes):
                total += transition[i, j] * v[j]
            gap = max(gap, abs(u[i] * total - targets[t, i]))
            u[i] = targets[t, i] / total if total > 0.0 else 0.0
        if gap <= tolerance:
            break
    return gap

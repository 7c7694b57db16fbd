"""Compiled loops of the packed chain: emissions by a few look-ups, forward messages stored in the output.

Forward: a_t = (a_{t-1} A) * e_t, kept unnormalised and rescaled only when small. Backward, without emissions:
g_t(i) = a_t(i) sum_j A_ij g_{t+1}(j) / p_{t+1}(j) with p_{t+1} = a_t A. A transitions, e emissions, g posteriors.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import AnyArray, FloatArray, IntArray

_SMALL = 1e-100
_EVERY = 64  # steps between two normalisations of the posterior, which rounding moves by 1e-16 a step


@njit(cache=True, nogil=True)
def smooth_two(
    rows: AnyArray,
    tables: FloatArray,
    firsts: IntArray,
    initial: FloatArray,
    transition: FloatArray,
    offsets: IntArray,
    out: FloatArray,
    likelihood: FloatArray,
    transitions: FloatArray,
) -> int:
    """Posterior marginals for two classes; returns -1 or the first impossible sequence.

    Adds the expected pairs of labels to `transitions` unless that is empty.
    """
    s00, s01, s10, s11 = transition[0, 0], transition[0, 1], transition[1, 0], transition[1, 1]
    n00 = n01 = n10 = n11 = 0.0
    n_groups = len(rows)
    counting = transitions.size > 0
    for sequence in range(len(offsets) - 1):
        begin, end = offsets[sequence], offsets[sequence + 1]
        log_scale = 0.0
        p0, p1 = initial[0], initial[1]
        a0, a1 = 1.0, 0.0
        for t in range(begin, end):
            for g in range(n_groups):
                cell = firsts[g] + 2 * np.int64(rows[g, t])
                p0 *= tables[cell]
                p1 *= tables[cell + 1]
            a0, a1 = p0, p1
            total = a0 + a1
            if total < _SMALL:
                if total == 0.0:
                    return sequence
                log_scale += np.log(total)
                a0 /= total
                a1 /= total
            out[t, 0] = a0
            out[t, 1] = a1
            p0 = a0 * s00 + a1 * s10
            p1 = a0 * s01 + a1 * s11
        total = a0 + a1
        likelihood[sequence] = log_scale + np.log(total)
        if begin == end:
            continue
        g0, g1 = a0 / total, a1 / total
        out[end - 1, 0] = g0
        out[end - 1, 1] = g1
        for t in range(end - 2, begin - 1, -1):
            a0, a1 = out[t, 0], out[t, 1]
            r0 = g0 / (a0 * s00 + a1 * s10)
            r1 = g1 / (a0 * s01 + a1 * s11)
            if counting:
                n00 += a0 * s00 * r0
                n01 += a0 * s01 * r1
                n10 += a1 * s10 * r0
                n11 += a1 * s11 * r1
            g0 = a0 * (s00 * r0 + s01 * r1)
            g1 = a1 * (s10 * r0 + s11 * r1)
            if t % _EVERY == 0:
                total = g0 + g1
                g0 /= total
                g1 /= total
            out[t, 0] = g0
            out[t, 1] = g1
    if counting:
        transitions[0, 0] += n00
        transitions[0, 1] += n01
        transitions[1, 0] += n10
        transitions[1, 1] += n11
    return -1


@njit(cache=True, nogil=True)
def smooth_many(
    rows: AnyArray,
    tables: FloatArray,
    firsts: IntArray,
    initial: FloatArray,
    transition: FloatArray,
    offsets: IntArray,
    out: FloatArray,
    likelihood: FloatArray,
    transitions: FloatArray,
) -> int:
    """The same for any number of classes."""
    n_classes = len(initial)
    n_groups = len(rows)
    counting = transitions.size > 0
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
                r[k] = out[t + 1, k] / p[k]
            for i in range(n_classes):
                total = 0.0
                for j in range(n_classes):
                    total += transition[i, j] * r[j]
                    if counting:
                        transitions[i, j] += out[t, i] * transition[i, j] * r[j]
                p[i] = out[t, i] * total
            for k in range(n_classes):
                out[t, k] = p[k]
            if t % _EVERY == 0:
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
    rows: AnyArray, firsts: IntArray, offsets: IntArray, out: FloatArray, cells: FloatArray, initial: FloatArray
) -> None:
    """Add the posterior of every element to the table rows that its votes point at, and of first elements."""
    n_classes = out.shape[1]
    for g in range(len(rows)):
        for t in range(len(out)):
            cell = firsts[g] + n_classes * np.int64(rows[g, t])
            for k in range(n_classes):
                cells[cell + k] += out[t, k]
    for sequence in range(len(offsets) - 1):
        if offsets[sequence] < offsets[sequence + 1]:
            for k in range(n_classes):
                initial[k] += out[offsets[sequence], k]

"""Compiled loops of the learned defaults: expected counts, log-likelihoods, a two-track chain, near-copies.

Codes are table columns by element and source, (n, m) int8: classes, abstain, underspecified; -1 was not asked.
Single letters: i element, j and k sources, y label, x earlier label, z a vote, w its weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import BoolArray, FloatArray, Int8Array, IntArray

_FLOOR = 1e-280

kernel = njit(cache=True, nogil=True)


@kernel
def count_votes(codes: Int8Array, labels: FloatArray, use: BoolArray, counts: FloatArray) -> None:
    """Add the soft labels of every vote to ``counts[source, label, vote]``."""
    for i in range(codes.shape[0]):
        if use[i]:
            for j in range(codes.shape[1]):
                z = codes[i, j]
                if z >= 0:
                    for y in range(labels.shape[1]):
                        counts[j, y, z] += labels[i, y]


@kernel
def count_fresh(
    codes: Int8Array,
    labels: FloatArray,
    kept: FloatArray,
    starts: BoolArray,
    single: FloatArray,
    repeats: FloatArray,
    counts: FloatArray,
    again: FloatArray,
) -> None:
    """Votes of repeating sources that were not repetitions, by ``[source, label, vote]``; and how many were.

    `again` holds, for labels that stayed and for those that changed, repetitions and chances to repeat, (2, m, 2).
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            z = codes[i, j]
            if z < 0 or repeats[0, j] <= 0.0:
                continue
            before = codes[i - 1, j] if not starts[i] else -1
            for y in range(labels.shape[1]):
                if before < 0:
                    counts[j, y, z] += labels[i, y]
                    continue
                for b in range(2):
                    weight = kept[i, y] if b == 0 else max(labels[i, y] - kept[i, y], 0.0)
                    fresh = 1.0
                    if before == z:
                        fresh = (1.0 - repeats[b, j]) * single[j, y, z]
                        fresh /= max(fresh + repeats[b, j], 1e-300)
                    counts[j, y, z] += weight * fresh
                    again[b, j, 0] += weight * (1.0 - fresh)
                    again[b, j, 1] += weight


@kernel
def count_edges(
    codes: Int8Array, labels: FloatArray, use: BoolArray, children: IntArray, parents: IntArray, counts: FloatArray
) -> None:
    """Add the soft labels of every pair of votes to ``counts[edge, label, vote of the parent, vote]``."""
    for i in range(codes.shape[0]):
        if use[i]:
            for e in range(len(children)):
                z, above = codes[i, children[e]], codes[i, parents[e]]
                if z >= 0 and above >= 0:
                    for y in range(labels.shape[1]):
                        counts[e, y, above, z] += labels[i, y]


@kernel
def add_evidence(codes: Int8Array, logs: FloatArray, weights: FloatArray, use: BoolArray, out: FloatArray) -> None:
    """Discounted log-likelihood of the votes on every element, by label; zero where `use` is off."""
    for i in range(codes.shape[0]):
        for y in range(out.shape[1]):
            out[i, y] = 0.0
        if use[i]:
            for j in range(codes.shape[1]):
                z = codes[i, j]
                if z >= 0:
                    w = weights[i, j]
                    for y in range(out.shape[1]):
                        out[i, y] += w * logs[j, y, z]


@kernel
def add_model(
    codes: Int8Array,
    logs: FloatArray,
    edge_logs: FloatArray,
    slots: IntArray,
    parents: IntArray,
    repeats: FloatArray,
    starts: BoolArray,
    moved: FloatArray,
    stayed: FloatArray,
) -> None:
    """Log-likelihood of the votes by label, if the label changed (`moved`) and if it is the one before (`stayed`).

    A source repeats its last vote with probability ``repeats[0, source]`` if the label stayed, ``repeats[1, source]``
    if it changed.
    """
    for i in range(codes.shape[0]):
        for y in range(moved.shape[1]):
            moved[i, y] = 0.0
            stayed[i, y] = 0.0
        for j in range(codes.shape[1]):
            z = codes[i, j]
            if z < 0:
                continue
            above = codes[i, parents[j]] if parents[j] >= 0 else -1
            before = codes[i - 1, j] if not starts[i] else -1
            for y in range(moved.shape[1]):
                value = edge_logs[slots[j], y, above, z] if above >= 0 else logs[j, y, z]
                if repeats[0, j] > 0.0 and before >= 0:
                    fresh = np.exp(value)
                    again = 1.0 if before == z else 0.0
                    stayed[i, y] += np.log(max((1.0 - repeats[0, j]) * fresh + repeats[0, j] * again, 1e-300))
                    moved[i, y] += np.log(max((1.0 - repeats[1, j]) * fresh + repeats[1, j] * again, 1e-300))
                else:
                    stayed[i, y] += value
                    moved[i, y] += value


@kernel
def smooth(
    moved: FloatArray,
    stayed: FloatArray,
    starts: BoolArray,
    initial: FloatArray,
    transition: FloatArray,
    labels: FloatArray,
    steps: FloatArray,
    kept: FloatArray,
) -> None:
    """Forward and backward: marginals `labels`, expected `steps`, and P(label before = label) as `kept`.

    `kept` may be empty. Messages are scaled at every element and floored, so that contradictory evidence is shared.
    """
    n, K = moved.shape
    forward = np.empty((n, K))
    scale = np.empty(n)
    jump = np.empty((n, K))
    hold = np.empty((n, K))
    for t in range(n):
        most = -np.inf
        for y in range(K):
            most = max(most, moved[t, y], stayed[t, y])
        total = 0.0
        for y in range(K):
            jump[t, y] = np.exp(moved[t, y] - most)
            hold[t, y] = np.exp(stayed[t, y] - most)
            if starts[t]:
                value = initial[y] * jump[t, y]
            else:
                value = 0.0
                for x in range(K):
                    if x != y:
                        value += forward[t - 1, x] * transition[x, y]
                value = value * jump[t, y] + forward[t - 1, y] * transition[y, y] * hold[t, y]
            forward[t, y] = value + _FLOOR
            total += forward[t, y]
        scale[t] = total
        for y in range(K):
            forward[t, y] /= total
    backward = np.ones(K)
    earlier = np.empty(K)
    for t in range(n - 1, -1, -1):
        if t == n - 1 or starts[t + 1]:
            backward[:] = 1.0
        total = 0.0
        for y in range(K):
            labels[t, y] = forward[t, y] * backward[y]
            total += labels[t, y]
        for y in range(K):
            labels[t, y] /= total
        if not starts[t]:
            for x in range(K):
                value = 0.0
                for y in range(K):
                    flow = transition[x, y] * (hold[t, y] if x == y else jump[t, y]) * backward[y] / scale[t]
                    value += flow
                    steps[x, y] += forward[t - 1, x] * flow
                    if x == y and len(kept) > 0:
                        kept[t, y] = forward[t - 1, x] * flow
                earlier[x] = value
            backward[:] = earlier
        elif len(kept) > 0:
            kept[t] = 0.0


@kernel
def find_weights(codes: Int8Array, similar: FloatArray, silent: int, shared: float, weights: FloatArray) -> None:
    """Weight of every vote: 1 / (1 + near-copies that spoke), and the design effect of the votes that remain."""
    m = codes.shape[1]
    for i in range(codes.shape[0]):
        effective = 0.0
        for j in range(m):
            size = 1.0
            for k in range(m):
                if k != j and codes[i, k] >= 0 and codes[i, k] != silent:
                    size += similar[j, k]
            weights[i, j] = 1.0 / size
            if codes[i, j] >= 0 and codes[i, j] != silent:
                effective += 1.0 / size
        effect = 1.0 / (1.0 + max(effective - 1.0, 0.0) * shared)
        for j in range(m):
            weights[i, j] *= effect


@kernel
def count_agreements(codes: Int8Array, silent: int, both: FloatArray, same: FloatArray) -> None:
    """How often two sources speak about one element, and how often they then say the same."""
    m = codes.shape[1]
    for i in range(codes.shape[0]):
        for j in range(m):
            z = codes[i, j]
            if z < 0 or z == silent:
                continue
            for k in range(j + 1):
                other = codes[i, k]
                if other >= 0 and other != silent:
                    both[j, k] += 1.0
                    if other == z:
                        same[j, k] += 1.0


@kernel
def count_shares(codes: Int8Array, split: FloatArray, weights: FloatArray, counts: FloatArray) -> None:
    """Add what every vote says to ``counts[element, label]``: ``split[vote]`` times the weight of its source."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            z = codes[i, j]
            if z >= 0:
                for y in range(counts.shape[1]):
                    counts[i, y] += weights[j] * split[z, y]

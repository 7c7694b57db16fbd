"""Compiled loops of the learned defaults: expected counts, log-likelihoods, a two-track chain, near-copies.

Codes are table columns by element and source, (n, m) int8: classes, abstain, underspecified; -1 was not asked.
Single letters: i element, j and k sources, y label, x earlier label, z a vote, w its weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import AnyArray, BoolArray, FloatArray, Int8Array, IntArray

_FLOOR = 1e-280
_SMALL = 1e-60

kernel = njit(cache=True, nogil=True)


@kernel
def choose(hashes: AnyArray, n: int, firsts: AnyArray, copies: AnyArray, chosen: BoolArray) -> None:
    """Choose one of `n` pieces by its hash, and of pieces with the same hash every `n`-th, whichever comes first.

    `firsts`, of a power of two places, becomes the table of pieces with a new hash, `copies` how many had it; both 0.
    """
    mask, parts = np.uint64(len(firsts) - 1), np.uint64(n)
    for p in range(len(hashes)):
        value = hashes[p]
        place = value & mask
        while firsts[place] > 0 and hashes[firsts[place] - np.uint32(1)] != value:
            place = (place + np.uint64(1)) & mask
        if firsts[place] == 0:
            firsts[place] = np.uint32(p + 1)
        # The upper half of the hash decides, because the lower half chose the place in the table.
        chosen[p] = ((value >> np.uint64(32)) + np.uint64(copies[firsts[place]])) % parts == 0
        copies[firsts[place]] += np.uint32(1)


@kernel
def add_by_row(which: IntArray, values: FloatArray, total: FloatArray) -> None:
    """Add the values of every element (n, K) to the total of its row."""
    for i in range(len(which)):
        for y in range(values.shape[1]):
            total[which[i], y] += values[i, y]


@kernel
def number_keys(keys: IntArray, table: IntArray, first: IntArray, which: IntArray) -> int:
    """Number keys in the order in which they first occur; `table`, of a power of two places, holds -1.

    `which` becomes the number of every key, and `first` where each number first occurred; returns how many there are.
    """
    mask, n = np.uint64(len(table) - 1), 0
    for i in range(len(keys)):
        value = np.uint64(keys[i]) * np.uint64(0x9E3779B97F4A7C15)
        place = (value ^ (value >> np.uint64(29))) & mask
        while table[place] >= 0 and keys[table[place]] != keys[i]:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            table[place], first[n], which[i] = i, i, n
            n += 1
        else:
            which[i] = which[table[place]]
    return n


@kernel
def fill_codes(column: Int8Array, lookup: Int8Array, place: int, codes: Int8Array) -> None:
    """Write the codes of one source, by the unsigned byte of its votes."""
    for i in range(len(column)):
        codes[i, place] = lookup[np.uint8(column[i])]


@kernel
def count_votes(codes: Int8Array, labels: FloatArray, use: BoolArray, counts: FloatArray) -> None:
    """Add the soft labels of every vote to ``counts[source, vote, label]``."""
    for i in range(codes.shape[0]):
        if use[i] and labels.shape[1] == 2:  # no inner loop: half the time
            a, b = labels[i, 0], labels[i, 1]
            for j in range(codes.shape[1]):
                if codes[i, j] >= 0:
                    z = np.uint64(codes[i, j])  # a signed index would be asked whether it counts from the end
                    counts[j, z, 0] += a
                    counts[j, z, 1] += b
        elif use[i]:
            for j in range(codes.shape[1]):
                if codes[i, j] >= 0:
                    z = np.uint64(codes[i, j])
                    for y in range(labels.shape[1]):
                        counts[j, z, y] += labels[i, y]


@kernel
def count_fresh(
    codes: Int8Array,
    labels: FloatArray,
    kept: FloatArray,
    place: IntArray,
    single: FloatArray,
    repeats: FloatArray,
    lags: IntArray,
    counts: FloatArray,
    again: FloatArray,
) -> None:
    """Votes of repeating sources that were not repetitions, by ``[source, label, vote]``; and how many were.

    `place` is that of every element in its sequence. `again` holds, for labels that stayed and for those that changed,
    repetitions and chances to repeat, (2, m, 2); a source that repeats an earlier vote than its last does so alike.
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            z = codes[i, j]
            if z < 0 or repeats[0, j] <= 0.0:
                continue
            before = codes[i - lags[j], j] if place[i] >= lags[j] else -1
            for y in range(labels.shape[1]):
                if before < 0:
                    counts[j, y, z] += labels[i, y]
                    continue
                for b in range(2 if lags[j] == 1 else 1):
                    # Rounding may leave slightly more that stayed than there is.
                    weight = kept[i, y] if b == 0 else max(labels[i, y] - kept[i, y], 0.0)
                    if lags[j] > 1:
                        weight = labels[i, y]
                    fresh = 1.0
                    if before == z:
                        fresh = (1.0 - repeats[b, j]) * single[j, y, z]
                        fresh /= max(fresh + repeats[b, j], 1e-300)
                    counts[j, y, z] += weight * fresh
                    again[b, j, 0] += weight * (1.0 - fresh)
                    again[b, j, 1] += weight


@kernel
def count_own(sources: IntArray, votes: IntArray, labels: FloatArray, tables: FloatArray, counts: FloatArray) -> None:
    """Add P(label | what peers say, and the vote) of every vote to ``counts[source, label, vote]``; tables likewise."""
    for i in range(len(sources)):
        j, z, total = np.uint64(sources[i]), np.uint64(votes[i]), 1e-300
        for y in range(labels.shape[1]):
            total += labels[i, y] * tables[j, y, z]
        for y in range(labels.shape[1]):
            counts[j, y, z] += labels[i, y] * tables[j, y, z] / total


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
def add_logs(codes: Int8Array, logs: FloatArray, use: BoolArray, out: FloatArray) -> None:
    """Add the logs (m, C, K) of the votes on every element, by label; nothing where `use` is off."""
    for i in range(codes.shape[0]):
        if use[i] and out.shape[1] == 2:  # two sums in registers
            a, b = out[i, 0], out[i, 1]
            for j in range(codes.shape[1]):
                if codes[i, j] >= 0:
                    z = np.uint64(codes[i, j])
                    a += logs[j, z, 0]
                    b += logs[j, z, 1]
            out[i, 0], out[i, 1] = a, b
        elif use[i]:
            for j in range(codes.shape[1]):
                if codes[i, j] >= 0:
                    z = np.uint64(codes[i, j])
                    for y in range(out.shape[1]):
                        out[i, y] += logs[j, z, y]


@kernel
def mix(logs: FloatArray, edge_logs: FloatArray, slots: IntArray, parents: IntArray, repeats: FloatArray) -> FloatArray:
    """Logs of fresh votes mixed with repetitions, so that no element needs an exponential.

    By source, vote of its parent (one further, the first place is none), vote, whether it is the earlier one, whether
    the label stayed or changed, and label.
    """
    m, n_codes, K = logs.shape
    joined = False
    for j in range(m):
        joined |= repeats[0, j] > 0.0 and parents[j] >= 0
    mixed = np.zeros((m, n_codes + 1 if joined else 1, n_codes, 2, 2, K))
    for j in range(m):
        if repeats[0, j] <= 0.0:
            continue
        for above in range(-1, n_codes if parents[j] >= 0 else 0):
            for z in range(n_codes):
                for y in range(K):
                    fresh = np.exp(logs[j, z, y] if above < 0 else edge_logs[slots[j], above, z, y])
                    for again in range(2):
                        for b in range(2):
                            chance = (1.0 - repeats[b, j]) * fresh + repeats[b, j] * again
                            mixed[j, above + 1, z, again, b, y] = np.log(max(chance, 1e-300))
    return mixed


@kernel
def add_model(
    codes: Int8Array,
    logs: FloatArray,
    edge_logs: FloatArray,
    slots: IntArray,
    parents: IntArray,
    repeats: FloatArray,
    lags: IntArray,
    place: IntArray,
    moved: FloatArray,
    stayed: FloatArray,
) -> None:
    """Log-likelihood of the votes by label, if the label changed (`moved`) and if it is the one before (`stayed`).

    Logs are (m, C, K) and (n_edges, C, C, K). A source repeats its vote `lags` elements earlier with probability
    ``repeats[0, source]`` if the label stayed, ``repeats[1, source]`` if it changed. Where none does, `stayed` is
    empty: it is the same.
    """
    K = moved.shape[1]
    apart = len(stayed) > 0
    mixed = mix(logs, edge_logs, slots, parents, repeats) if apart else np.zeros((0, 0, 0, 2, 2, K))
    for i in range(codes.shape[0]):
        for y in range(K):
            moved[i, y] = 0.0
        if apart:
            for y in range(K):
                stayed[i, y] = 0.0
        for j in range(codes.shape[1]):
            z = codes[i, j]
            if z < 0:
                continue
            above = codes[i, parents[j]] if parents[j] >= 0 else -1
            before = codes[i - lags[j], j] if apart and place[i] >= lags[j] else -1
            if before >= 0 and repeats[0, j] > 0.0:
                own = mixed[j, above + 1, z, 1 if before == z else 0]
                for y in range(K):
                    stayed[i, y] += own[0, y]
                    moved[i, y] += own[1, y]
                continue
            value = edge_logs[slots[j], above, z] if above >= 0 else logs[j, z]
            for y in range(K):
                moved[i, y] += value[y]
            if apart:
                for y in range(K):
                    stayed[i, y] += value[y]


@kernel
def join(forward: FloatArray, backward: FloatArray, starts: BoolArray, t: int, labels: FloatArray) -> None:
    """Marginals of element t from the two messages; behind the last element of a sequence nothing is said."""
    if t == len(starts) - 1 or starts[t + 1]:
        backward[:] = 1.0
    total = 0.0
    for y in range(len(backward)):
        labels[t, y] = forward[t, y] * backward[y]
        total += labels[t, y]
    for y in range(len(backward)):
        labels[t, y] /= total


@kernel
def likelihoods(logs: FloatArray, likely: FloatArray, most: FloatArray) -> None:
    """Exponentials of every row over its largest, and that one: all of them might underflow."""
    for r in range(len(logs)):
        most[r] = -np.inf
        for y in range(logs.shape[1]):
            most[r] = max(most[r], logs[r, y])
        for y in range(logs.shape[1]):
            likely[r, y] = np.exp(logs[r, y] - most[r])


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
) -> float:
    """Forward and backward: marginals `labels`, expected `steps`, and P(label before = label) as `kept`.

    Returns the log-likelihood of all the evidence.

    `kept` may be empty, and so may `stayed` if it is the same as `moved`. Messages are scaled at every element and
    floored, so that contradictory evidence is shared.
    """
    n, K = moved.shape
    apart = len(stayed) > 0
    likelihood = 0.0
    forward = np.empty((n, K))
    scale = np.empty(n)
    jump = np.empty((n, K))
    hold = np.empty((n, K)) if apart else jump
    for t in range(n):
        most = -np.inf
        for y in range(K):
            most = max(most, moved[t, y])
            if apart:
                most = max(most, stayed[t, y])
        for y in range(K):
            jump[t, y] = np.exp(moved[t, y] - most)
            if apart:
                hold[t, y] = np.exp(stayed[t, y] - most)
        total = 0.0
        for y in range(K):
            if starts[t]:
                value = initial[y] * jump[t, y]
            else:
                value = 0.0
                for x in range(K):
                    if x != y:
                        value += forward[t - 1, x] * transition[x, y]
                value = value * jump[t, y] + forward[t - 1, y] * transition[y, y] * hold[t, y]
            # Without the floor, evidence that contradicts itself would leave no label at all.
            forward[t, y] = value + _FLOOR
            total += forward[t, y]
        scale[t] = total
        likelihood += most + np.log(total)
        for y in range(K):
            forward[t, y] /= total
    backward = np.ones(K)
    earlier = np.empty(K)
    for t in range(n - 1, -1, -1):
        join(forward, backward, starts, t, labels)
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
    return likelihood


@kernel
def smooth_two(
    likely: FloatArray,
    most: FloatArray,
    which: IntArray,
    starts: BoolArray,
    initial: FloatArray,
    transition: FloatArray,
    labels: FloatArray,
    steps: FloatArray,
    kept: FloatArray,
) -> float:
    """What `smooth_rows` does, for two classes, in registers; forward messages wait in `labels`."""
    n, keeps = len(which), len(kept) > 0
    s00, s01, s10, s11 = transition[0, 0], transition[0, 1], transition[1, 0], transition[1, 1]
    n00, n01, n10, n11 = 0.0, 0.0, 0.0, 0.0
    likelihood, p0, p1 = 0.0, initial[0], initial[1]
    for t in range(n):
        r = np.uint64(which[t])
        if starts[t]:
            p0, p1 = initial[0], initial[1]
        a0, a1 = p0 * likely[r, 0] + _FLOOR, p1 * likely[r, 1] + _FLOOR
        total = a0 + a1
        likelihood += most[r]
        # At the end of a sequence always: what is left there belongs to its likelihood.
        if total < _SMALL or t == n - 1 or starts[t + 1]:
            likelihood += np.log(total)
            a0, a1 = a0 / total, a1 / total
        labels[t, 0], labels[t, 1] = a0, a1
        p0, p1 = a0 * s00 + a1 * s10, a0 * s01 + a1 * s11
    b0, b1 = 1.0, 1.0
    for t in range(n - 1, -1, -1):
        r = np.uint64(which[t])
        g0, g1 = labels[t, 0] * b0, labels[t, 1] * b1
        total = 1.0 / (g0 + g1)
        labels[t, 0], labels[t, 1] = g0 * total, g1 * total
        if starts[t]:
            b0, b1 = 1.0, 1.0
            if keeps:
                kept[t, 0], kept[t, 1] = 0.0, 0.0
            continue
        # Forward messages of the element before still wait in `labels`: the walk back has not reached it.
        a0, a1 = labels[t - 1, 0], labels[t - 1, 1]
        e0, e1 = likely[r, 0] * b0, likely[r, 1] * b1
        b0, b1 = s00 * e0 + s01 * e1, s10 * e0 + s11 * e1
        total = 1.0 / (a0 * b0 + a1 * b1)
        a0, a1 = a0 * total, a1 * total
        n00 += a0 * s00 * e0
        n01 += a0 * s01 * e1
        n10 += a1 * s10 * e0
        n11 += a1 * s11 * e1
        if keeps:
            kept[t, 0], kept[t, 1] = a0 * s00 * e0, a1 * s11 * e1
        largest = max(b0, b1)
        if largest < _SMALL:
            b0, b1 = b0 / largest, b1 / largest
    steps[0, 0] += n00
    steps[0, 1] += n01
    steps[1, 0] += n10
    steps[1, 1] += n11
    return likelihood


@kernel
def smooth_rows(
    logs: FloatArray,
    which: IntArray,
    starts: BoolArray,
    initial: FloatArray,
    transition: FloatArray,
    labels: FloatArray,
    steps: FloatArray,
    kept: FloatArray,
) -> float:
    """The same where elements with the same row have the same evidence, whether the label stayed or not.

    Logs are (n_rows, K); `which` is the row of every element.
    """
    n, K = len(which), logs.shape[1]
    likely, most = np.empty(logs.shape), np.empty(len(logs))
    likelihoods(logs, likely, most)
    if K == 2:
        return smooth_two(likely, most, which, starts, initial, transition, labels, steps, kept)
    likelihood = 0.0
    forward = np.empty((n, K))
    for t in range(n):
        r = which[t]
        likelihood += most[r]
        total = 0.0
        for y in range(K):
            value = initial[y] if starts[t] else 0.0
            if not starts[t]:
                for x in range(K):
                    value += forward[t - 1, x] * transition[x, y]
            forward[t, y] = value * likely[r, y] + _FLOOR
            total += forward[t, y]
        if total < _SMALL or t == n - 1 or starts[t + 1]:
            likelihood += np.log(total)
            for y in range(K):
                forward[t, y] /= total
    backward, ahead, earlier = np.ones(K), np.empty(K), np.empty(K)
    for t in range(n - 1, -1, -1):
        r = which[t]
        join(forward, backward, starts, t, labels)
        if starts[t]:
            if len(kept) > 0:
                kept[t] = 0.0
            continue
        for y in range(K):
            ahead[y] = likely[r, y] * backward[y]
        total, largest = 0.0, 0.0
        for x in range(K):
            earlier[x] = 0.0
            for y in range(K):
                earlier[x] += transition[x, y] * ahead[y]
            total += forward[t - 1, x] * earlier[x]
            largest = max(largest, earlier[x])
        total = 1.0 / total
        for x in range(K):
            before = forward[t - 1, x] * total
            for y in range(K):
                steps[x, y] += before * transition[x, y] * ahead[y]
            if len(kept) > 0:
                kept[t, x] = before * transition[x, x] * ahead[x]
        # Sums are scaled only where they grow small: no division waits for another.
        for x in range(K):
            backward[x] = earlier[x] / largest if largest < _SMALL else earlier[x]
    return likelihood


@kernel
def cell_of_two(row: float, other_row: float, column: float, ratio: float) -> float:
    """A cell of two rows and columns with this odds ratio: P(its row), P(other row) and P(its column) are given.

    A root of (ratio - 1) x^2 - s x + ratio * row * column = 0, in the form that does not cancel.
    """
    s = (other_row - column) + ratio * (row + column)
    root = np.sqrt(max(s * s - 4.0 * ratio * (ratio - 1.0) * row * column, 0.0))
    found = (s - root) / (2.0 * (ratio - 1.0)) if s < 0.0 else 2.0 * ratio * row * column / (s + root)
    return float(max(found, 1e-300))


@kernel
def scale_two(
    before: FloatArray, after: FloatArray, transition: FloatArray, left: FloatArray, right: FloatArray
) -> None:
    """Scale two rows and columns to their margins at once: the joint law keeps the odds ratio of the transition.

    Scaling in turn takes thousands of rounds where labels hardly ever change.
    """
    ratio = transition[0, 0] * transition[1, 1] / (transition[0, 1] * transition[1, 0])
    total_before, total_after = before[0] + before[1], after[0] + after[1]
    a0, a1 = before[0] / total_before, before[1] / total_before
    b0, b1 = after[0] / total_after, after[1] / total_after
    # Each by its own formula: as differences, cells beside a known label would be rounding errors.
    j11, j00 = cell_of_two(a1, a0, b1, ratio), cell_of_two(a0, a1, b0, ratio)
    j10, j01 = cell_of_two(a1, a0, b0, 1 / ratio), cell_of_two(a0, a1, b1, 1 / ratio)
    right[0] = 1.0
    left[0], left[1] = j00 / transition[0, 0], j10 / transition[1, 0]
    # Of the two equal expressions the one with the larger cell loses fewer digits.
    right[1] = j01 / (transition[0, 1] * left[0]) if j01 > j11 else j11 / (transition[1, 1] * left[1])


@kernel
def scale_pairs(
    labels: FloatArray,
    starts: BoolArray,
    initial: FloatArray,
    transition: FloatArray,
    rounds: int,
    potentials: FloatArray,
) -> None:
    """Log-potentials with which a chain has given marginals: every pair of neighbours scaled to its two margins.

    Where the margins cannot be met with this transition (a step that is impossible), the later one holds.
    """
    n, K = labels.shape
    left, right = np.ones(K), np.ones(K)
    for t in range(n):
        for y in range(K):
            if starts[t]:
                potentials[t, y] = np.log(labels[t, y] / initial[y])
            else:
                potentials[t, y] = np.log(right[y])
        if t == n - 1 or starts[t + 1]:
            continue
        if K == 2:
            scale_two(labels[t], labels[t + 1], transition, left, right)
            for y in range(K):
                potentials[t, y] += np.log(left[y] / labels[t, y])
            continue
        for y in range(K):
            right[y] = 1.0
        for _ in range(rounds):
            change = 0.0
            for x in range(K):
                total = 0.0
                for y in range(K):
                    total += transition[x, y] * right[y]
                left[x] = labels[t, x] / total
            for y in range(K):
                total = 0.0
                for x in range(K):
                    total += left[x] * transition[x, y]
                value = labels[t + 1, y] / total
                change = max(change, abs(value - right[y]) / value)
                right[y] = value
            # Rows and columns settle geometrically: further rounds would change less than this.
            if change < 1e-10:
                break
        for y in range(K):
            potentials[t, y] += np.log(left[y] / labels[t, y])

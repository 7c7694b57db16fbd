"""Compiled loops of the chain engine: forward-backward, Viterbi and sampling over product states.

In: a block of sequences as plain tables (`BlockWay`), the steps of the product as sparse matrices
(`product.Machine`), and the likelihood of the votes on every task by code (`prepare.Emissions`). Out: arrays.
Probabilities are kept as a float and an integer power of 2 ** 512, so nothing underflows however long a sequence is and
however certain its sources are (steps of the prior may go down to 1e-200); exact zeros stay exact. Where all states of
an element share one power, as they mostly do, a step is a plain sparse product.

Single letters: e a row of a path, i and j states, p an edge, k a weighing, v a value and x its exponent. `at` and `to`
are places of the states of one element in the scratch arrays `values` and `exponents`. Tables are plain arrays, and
nothing is allocated here, because compiling takes longer than most runs. All in one file, because numba's disk cache
notices changes only in the file of the kernel itself.
"""

# ruff: noqa: FBT001  (kernels take places, not names)
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dugong.priors._kernels import interpreted_first
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray

_LOW, _HIGH = 2.0**-256, 2.0**256
_UP, _DOWN = 2.0**512, 2.0**-512
_LN2 = 0.6931471805599453

# Columns of the tables of a block (see `BlockWay`): of sequences, rows of paths, and weighings.
LENGTH, PATH, TASKS = 0, 1, 2
SIZE, STEP, WEIGHINGS = 0, 1, 2
CODES, CHANNEL, TASK = 0, 1, 2

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
entry = njit(**_OPTIONS)  # type: ignore[call-overload]  # numba's type stubs lack these options
# Called from other kernels only: no wrapper for Python, which takes longer to compile than the loop itself.
inner = njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)  # type: ignore[call-overload]


@entry
def pack(votes: Int8Array, places: AnyArray, rows: AnyArray) -> None:
    """Add the place of every vote to the row of its element."""
    for i in range(len(rows)):
        rows[i] += places[np.uint8(votes[i])]


@entry
def pack_binary(votes: Int8Array, places: AnyArray, rows: AnyArray) -> None:
    """The same where votes are -1, 0, +1 or not asked: comparisons, many at a time, in place of a look-up each."""
    negative, silent, positive, unasked = places[255], places[0], places[1], places[128]
    for i in range(len(rows)):
        vote = votes[i]
        if vote == 0:
            place = silent
        elif vote == 1:
            place = positive
        elif vote == -1:
            place = negative
        else:
            place = unasked
        rows[i] += place


@entry
def move_rows(votes: AnyArray, cells: int, lag: int, absent: int, offsets: IntArray, rows: IntArray) -> None:
    """Move the row of every task by the vote `lag` tasks before it; by `absent` where its sequence has no such task."""
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        first = min(begin + lag, end)
        for i in range(begin, first):
            rows[i] += absent
        for i in range(first, end):
            rows[i] += np.int64(votes[i - lag]) * cells


@entry
def add_rows(places: IntArray, values: FloatArray, sums: FloatArray) -> None:
    """Add every row of values to that of the sums at its place."""
    for i in range(len(places)):
        place = places[i]
        for c in range(values.shape[1]):
            sums[place, c] += values[i, c]


@entry
def add_owned(
    owners: IntArray, offsets: IntArray, rows: IntArray, n_rows: int, values: FloatArray, sums: FloatArray
) -> None:
    """The same for the tasks of sequences, where every owner of sequences has `n_rows` places."""
    for s in range(len(offsets) - 1):
        first = owners[s] * n_rows
        for i in range(offsets[s], offsets[s + 1]):
            place = first + rows[i]
            for c in range(values.shape[1]):
                sums[place, c] += values[i, c]


@entry
def multiply(table: FloatArray, rows: AnyArray, values: FloatArray) -> bool:
    """Multiply the values of every task by its row of a table; returns whether all stay near one."""
    low, high = 1.0, 1.0
    for i in range(len(rows)):
        row = rows[i]
        for c in range(values.shape[1]):
            value = values[i, c] * table[row, c]
            values[i, c] = value
            low, high = min(low, value), max(high, value)
    return low >= _LOW and high <= _HIGH


@interpreted_first(lambda *tables: len(tables[0]) - tables[4])
def follow(kinds: IntArray, starts: IntArray, steps: IntArray, following: IntArray, e: int, found: IntArray) -> int:
    """Steps of the product along some paths, from row e on; stops at a step that is not known yet.

    `kinds` says which tasks close and open before every row, `starts` which rows begin a path (in layer 0).
    """
    layer = 0 if e == 0 else following[found[e - 1]]
    while e < len(kinds):
        if starts[e]:
            layer = 0
        step = steps[layer, kinds[e]]
        if step < 0:
            return e
        found[e] = step
        layer = following[step]
        e += 1
    return e


class BlockWay(NamedTuple):
    """What the kernels read of a block: its paths (as many as lengths), the steps of the product, what the votes say.

    Attributes
    ----------
    sequences : (n_sequences, 2 + n_channels) length; row where its path begins; where the likelihoods of its tasks
        begin, by channel
    path : (n_rows + 1, 3) by element of a path: number of states; where the step to it begins in `pointers`; its first
        weighing (as many as up to that of the next row)
    weighings : (n_weighings, 3) where the codes of the states begin; channel; place among the sequence's likelihoods
    longest, widest : states of all elements of the longest path, and of the largest layer
    codes : of all layers, flat
    pointers, targets, weights : edges of the steps
    likelihood, power : of the votes on every task by code
    """

    sequences: IntArray
    path: IntArray
    weighings: IntArray
    longest: int
    widest: int
    codes: IntArray
    pointers: IntArray
    targets: IntArray
    weights: FloatArray
    likelihood: FloatArray
    power: IntArray


# --- values with exponents -----------------------------------------------------------------------------------
@inner
def scale(v: float, x: int, reference: int) -> float:
    """The value of (v, x) in units of the exponent `reference`, which it does not exceed by much."""
    if x == reference:
        return v
    # Two powers apart is below 2 ** -512 of the larger one, far below its rounding: zero.
    if x == reference - 1:
        return v * _DOWN
    if x == reference + 1:
        return v * _UP
    return 0.0


@inner
def put(values: FloatArray, exponents: IntArray, i: int, v: float, x: int) -> None:
    """Store (v, x), brought near one."""
    if 0.0 < v < _LOW:
        v *= _UP
        x -= 1
    elif v > _HIGH:
        v *= _DOWN
        x += 1
    values[i] = v
    exponents[i] = x


@inner
def add(values: FloatArray, exponents: IntArray, i: int, v: float, x: int) -> None:
    """Add (v, x) to entry i."""
    # A zero has no exponent of its own, and must not change that of a value.
    if v == 0.0:
        return
    if v < _LOW:
        v *= _UP
        x -= 1
    old = exponents[i]
    if values[i] == 0.0:
        values[i] = v
        exponents[i] = x
    elif x <= old:
        values[i] += scale(v, x, old)
    else:
        values[i] = v + scale(values[i], old, x)
        exponents[i] = x


@inner
def top_of(values: FloatArray, exponents: IntArray, at: int, size: int) -> int:
    """Largest exponent of the entries that are not zero; that of the first one if all are."""
    top: int = exponents[at]
    seen = values[at] != 0.0
    for i in range(at, at + size):
        if values[i] != 0.0 and (exponents[i] > top or not seen):
            top, seen = exponents[i], True
    return top


@inner
def are_even(exponents: IntArray, at: int, size: int) -> bool:
    """Whether all entries have the same exponent."""
    # No early end: without branches the loop runs in vectors.
    differences = 0
    for i in range(at, at + size):
        differences |= exponents[i] ^ exponents[at]
    return differences == 0


# --- steps of the chain ----------------------------------------------------------------------------------------
@inner
def push(
    way: BlockWay, step: int, values: FloatArray, exponents: IntArray, at: int, size: int, to: int, width: int
) -> None:
    """From the `size` states stored at `at` to the `width` states stored at `to`."""
    even = are_even(exponents, at, size)
    for j in range(to, to + width):
        values[j] = 0.0
    for i in range(size):
        v, x = values[at + i], exponents[at + i]
        if even:
            for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                values[to + way.targets[p]] += v * way.weights[p]
        elif v != 0.0:
            for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                add(values, exponents, to + way.targets[p], v * way.weights[p], x)
    # One exponent for all that come in: values are brought near one only after the sums.
    if even:
        x = exponents[at]
        for j in range(to, to + width):
            put(values, exponents, j, values[j], x)


@inner
def pull(
    way: BlockWay, step: int, values: FloatArray, exponents: IntArray, at: int, size: int, to: int, width: int
) -> None:
    """Backwards, from the `size` states after a step, stored at `at`, to the `width` states before it."""
    even, x = are_even(exponents, at, size), exponents[at]
    for i in range(width):
        total = 0.0
        if even:
            for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                total += values[at + way.targets[p]] * way.weights[p]
        put(values, exponents, to + i, total, x)
        if not even:
            for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                j = at + way.targets[p]
                if values[j] != 0.0:
                    add(values, exponents, to + i, values[j] * way.weights[p], exponents[j])


@inner
def forward(way: BlockWay, s: int, values: FloatArray, exponents: IntArray) -> np.int64:
    """P(state, votes so far) of every element of a sequence, one after the other; returns where the last one is."""
    values[0], exponents[0] = 1.0, 0
    sequences, path, weighings = way.sequences, way.path, way.weighings
    at, size = np.int64(0), np.int64(1)  # numba would compile the steps twice for the type of a literal
    for e in range(sequences[s, PATH], sequences[s, PATH] + sequences[s, LENGTH]):
        to, width = at + size, path[e, SIZE]
        push(way, path[e, STEP], values, exponents, at, size, to, width)
        for k in range(path[e, WEIGHINGS], path[e + 1, WEIGHINGS]):
            code = weighings[k, CODES]
            task = sequences[s, TASKS + weighings[k, CHANNEL]] + weighings[k, TASK]
            for i in range(width):
                d, v, x = task + way.codes[code + i], values[to + i], exponents[to + i]
                put(values, exponents, to + i, v * way.likelihood[d], x + way.power[d])
        at, size = to, width
    return at


# --- questions ---------------------------------------------------------------------------------------------------
@entry
def smooth(
    way: BlockWay,
    values: FloatArray,
    exponents: IntArray,
    mass: FloatArray,
    logs: FloatArray,
    labels: IntArray,
    pairs: FloatArray,
) -> int:
    """Add the posterior of all tasks by code to `mass`; pairs of labels by sequence too, if edges have `labels`.

    `logs` becomes the log-likelihood of every sequence. Returns -1, or the first sequence that is impossible.
    """
    sequences, path, weighings = way.sequences, way.path, way.weighings
    for s in range(len(sequences)):
        first, length = sequences[s, PATH], sequences[s, LENGTH]
        logs[s] = 0.0
        if length == 0:
            continue
        at = forward(way, s, values, exponents)
        size = path[first + length - 1, SIZE]
        # The power of the end serves all elements, because forward times backward has the same sum at each of them.
        top = top_of(values, exponents, at, size)
        total = 0.0
        for i in range(at, at + size):
            total += scale(values[i], exponents[i], top)
        if not total > 0.0:
            return s
        logs[s] = np.log(total) + top * 512.0 * _LN2
        # P(votes from here on | state), of one element at a time, is at the end of the scratch arrays.
        after, before = len(values) - 2 * way.widest, len(values) - way.widest
        for i in range(after, after + size):
            values[i] = 1.0
            exponents[i] = 0
        for e in range(first + length - 1, first - 1, -1):
            size = path[e, SIZE]
            total = 0.0
            for i in range(size):  # the posterior takes the place of the forward values
                x = exponents[at + i] + exponents[after + i]
                values[at + i] = scale(values[at + i] * values[after + i], x, top)
                total += values[at + i]
            for i in range(at, at + size):
                values[i] /= total
            for k in range(path[e, WEIGHINGS], path[e + 1, WEIGHINGS]):
                code = weighings[k, CODES]
                task = sequences[s, TASKS + weighings[k, CHANNEL]] + weighings[k, TASK]
                for i in range(size):
                    d, v, x = task + way.codes[code + i], values[after + i], exponents[after + i]
                    mass[d] += values[at + i]
                    put(values, exponents, after + i, v * way.likelihood[d], x + way.power[d])
            if e > first:
                step, width = path[e, STEP], path[e - 1, SIZE]
                at -= width
                if len(labels) > 0:
                    for i in range(width):
                        for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                            j = after + way.targets[p]
                            v = values[at + i] * values[j] * way.weights[p]
                            pairs[s, labels[p]] += scale(v, exponents[at + i] + exponents[j], top) / total
                pull(way, step, values, exponents, after, size, before, width)
                after, before = before, after
    return -1


@entry
def find_best(way: BlockWay, scores: FloatArray, origins: IntArray, labels: Int8Array) -> int:
    """Class indices of the most likely joint labels of every sequence (Viterbi); ties go to the first origin.

    Weights and likelihoods are logarithms here.
    """
    sequences, path, weighings, done = way.sequences, way.path, way.weighings, 0
    for s in range(len(sequences)):
        first, length = sequences[s, PATH], sequences[s, LENGTH]
        scores[0], at, size = 0.0, 0, 1
        for e in range(first, first + length):
            step, to, width = path[e, STEP], at + size, path[e, SIZE]
            for j in range(to, to + width):
                scores[j] = -np.inf
                origins[j] = 0
            for i in range(size):
                for p in range(way.pointers[step + i], way.pointers[step + i + 1]):
                    v, j = scores[at + i] + way.weights[p], to + way.targets[p]
                    # Strictly larger, because ties go to the first origin.
                    if v > scores[j]:
                        scores[j] = v
                        origins[j] = i
            for k in range(path[e, WEIGHINGS], path[e + 1, WEIGHINGS]):
                code = weighings[k, CODES]
                task = sequences[s, TASKS + weighings[k, CHANNEL]] + weighings[k, TASK]
                for i in range(width):
                    scores[to + i] += way.likelihood[task + way.codes[code + i]]
            at, size = to, width
        best = 0
        for i in range(size):
            if scores[at + i] > scores[at + best]:
                best = i
        if scores[at + best] == -np.inf:
            return s
        for e in range(first + length - 1, first - 1, -1):
            # The first weighing of an element is that of its own label.
            labels[done + e - first] = way.codes[weighings[path[e, WEIGHINGS], CODES] + best]
            best = origins[at + best]
            if e > first:
                at -= path[e - 1, SIZE]
        done += length
    return -1


@entry
def draw(way: BlockWay, values: FloatArray, exponents: IntArray, uniforms: FloatArray, labels: Int8Array) -> int:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements), one uniform each."""
    sequences, path, done, spare = way.sequences, way.path, 0, len(values) - way.widest
    for s in range(len(sequences)):
        first, length = sequences[s, PATH], sequences[s, LENGTH]
        last = forward(way, s, values, exponents)
        for n in range(len(uniforms)):
            at, state = last, -1
            for e in range(first + length - 1, first - 1, -1):
                size = path[e, SIZE]
                for i in range(size):
                    v = values[at + i]
                    if state >= 0:
                        v *= weight_of(way, path[e + 1, STEP] + i, state)
                    values[spare + i] = v
                    exponents[spare + i] = exponents[at + i]
                state = pick(values, exponents, spare, size, uniforms[n, done + e - first])
                if state < 0:
                    return s
                labels[n, done + e - first] = way.codes[way.weighings[path[e, WEIGHINGS], CODES] + state]
                if e > first:
                    at -= path[e - 1, SIZE]
        done += length
    return -1


@inner
def weight_of(way: BlockWay, origin: int, target: int) -> float:
    """Probability of a step from one state to another."""
    weight = 0.0
    for p in range(way.pointers[origin], way.pointers[origin + 1]):
        if way.targets[p] == target:
            weight += way.weights[p]
    return weight


@inner
def pick(values: FloatArray, exponents: IntArray, at: int, size: int, uniform: float) -> int:
    """A state drawn in proportion to its weight; -1 if all are zero."""
    top = top_of(values, exponents, at, size)
    left = 0.0
    for i in range(at, at + size):
        left += scale(values[i], exponents[i], top)
    left *= uniform
    found = -1
    for i in range(size):
        weight = scale(values[at + i], exponents[at + i], top)
        if weight > 0.0:
            found = i
            left -= weight
            if left < 0.0:
                break
    return found


# --- all label patterns of short sequences -------------------------------------------------------------------------
# Room is flat: rows of LANES numbers, one per sequence of a tile, so that every loop over sequences runs in vectors.
LANES = 32
LEVEL, SEES, OF = 0, 1, 2  # columns of a site: elements that must be there, channel, task
_FEW, _MANY = 1e-200, 1e300  # a tile with weights beyond these is worked out in logarithms


class Grown(NamedTuple):
    """All label patterns of sequences of one length, and what is seen of them.

    Attributes
    ----------
    widths : by channel, how many codes it has
    sites : (n_sites, 3) elements that must be there, channel, task, in this order; all but the labels of the elements
    codes : (n_sites, n_patterns) what the channel sees of the first patterns, as many as there are with these elements
    law : (n_patterns,) prior
    logs : whether the law and what the votes say are logarithms
    """

    widths: IntArray
    sites: IntArray
    codes: IntArray
    law: FloatArray
    n_classes: int
    length: int
    logs: bool


@inner
def load(values: FloatArray, firsts: IntArray, task: int, width: int, room: FloatArray, to: int, lanes: int) -> None:
    """What the votes on one task of every sequence say, row by code."""
    for c in range(np.uint64(width)):
        at, into = np.uint64(task * width) + c, np.uint64(to) + c * np.uint64(lanes)
        for i in range(np.uint64(lanes)):
            room[into + i] = values[np.uint64(firsts[i]) + at]


@inner
def store(
    room: FloatArray, at: int, lanes: int, firsts: IntArray, n: int, task: int, width: int, found: FloatArray
) -> None:
    """Write the posterior of one task of `n` sequences."""
    for c in range(np.uint64(width)):
        to, source = np.uint64(task * width) + c, np.uint64(at) + c * np.uint64(lanes)
        for i in range(np.uint64(n)):
            found[np.uint64(firsts[i]) + to] = room[source + i]


@inner
def combine(room: FloatArray, one: int, other: int, to: int, lanes: int, logs: bool) -> None:
    """Row `one` times row `other`; plus, where numbers are logarithms."""
    a, b, c = np.uint64(one), np.uint64(other), np.uint64(to)
    if logs:
        for i in range(np.uint64(lanes)):
            room[c + i] = room[a + i] + room[b + i]
    else:
        for i in range(np.uint64(lanes)):
            room[c + i] = room[a + i] * room[b + i]


@inner
def weigh(room: FloatArray, to: int, by: int, lanes: int, logs: bool) -> None:
    """Multiply a row by another; add, where numbers are logarithms. Apart from `combine`: vectors need rows apart."""
    a, b = np.uint64(by), np.uint64(to)
    if logs:
        for i in range(np.uint64(lanes)):
            room[b + i] += room[a + i]
    else:
        for i in range(np.uint64(lanes)):
            room[b + i] *= room[a + i]


@inner
def fill_rows(room: FloatArray, to: int, size: int, value: float) -> None:
    """A run of one number."""
    for i in range(np.uint64(to), np.uint64(to + size)):
        room[i] = value


@inner
def from_logs(room: FloatArray, at: int, n_patterns: int, lanes: int, top: int) -> None:
    """Weights from their logarithms, the largest of a sequence one; its logarithm is left in row `top`."""
    for p in range(n_patterns):
        for i in range(lanes):
            room[top + i] = max(room[top + i], room[at + p * lanes + i])
    for p in range(n_patterns):
        for i in range(lanes):
            room[at + p * lanes + i] = np.exp(room[at + p * lanes + i] - room[top + i])


@inner
def grow(values: FloatArray, firsts: IntArray, patterns: Grown, room: FloatArray, half: int, seen: int) -> int:
    """Weights of all patterns of a tile; returns in which half of the room they are."""
    widths, sites, codes, law, n_classes, length, logs = patterns
    now, size, s, lanes = 0, 1, 0, firsts.shape[1]
    fill_rows(room, 0, lanes, 0.0 if logs else 1.0)
    for place in range(length):
        load(values, firsts[0], place, widths[0], room, seen, lanes)
        for p in range(size):
            for y in range(n_classes):
                to = (half - now) + (p * n_classes + y) * lanes
                combine(room, now + p * lanes, seen + y * lanes, to, lanes, logs)
        now, size = half - now, size * n_classes
        while s < len(sites) and sites[s, LEVEL] == place + 1:
            k = sites[s, SEES]
            load(values, firsts[k], sites[s, OF], widths[k], room, seen, lanes)
            for p in range(size):
                weigh(room, now + p * lanes, seen + codes[s, p] * lanes, lanes, logs)
            s += 1
    for p in range(size):
        fill_rows(room, seen, lanes, law[p])
        weigh(room, now + p * lanes, seen, lanes, logs)
    return now


@entry
def weigh_patterns(
    values: FloatArray,
    begins: IntArray,
    patterns: Grown,
    counting: bool,
    firsts: IntArray,
    room: FloatArray,
    found: FloatArray,
    totals: FloatArray,
    likelihood: FloatArray,
) -> int:
    """Posterior of all tasks of sequences of one length; returns the first whose weights are out of range, or -1.

    `begins` (n_channels, n_sequences) say where in `values` and `found` the tasks of a sequence are. Patterns of more
    and more elements are grown in one half of the room from those in the other. `totals` (n_sequences, K, K) are
    expected pairs of labels, if `counting`.
    """
    widths, sites, codes, law, n_classes, length, logs = patterns
    n_channels, n_sequences, n_patterns, lanes = begins.shape[0], begins.shape[1], len(law), firsts.shape[1]
    half = n_patterns * lanes
    top, total, pairs = 2 * half, 2 * half + lanes, 2 * half + 2 * lanes
    seen = pairs + n_classes * n_classes * lanes
    for tile in range(0, n_sequences, lanes):
        n = min(lanes, n_sequences - tile)
        for k in range(n_channels):
            for i in range(lanes):  # beyond the end, the last one again: loops have the same length always
                firsts[k, i] = begins[k, min(tile + i, n_sequences - 1)]
        now = grow(values, firsts, patterns, room, half, seen)
        if logs:
            fill_rows(room, top, lanes, -np.inf)
            from_logs(room, now, n_patterns, lanes, top)
        fill_rows(room, total, lanes, 0.0)
        size, s = n_patterns, len(sites)
        for p in range(size):
            weigh(room, total, now + p * lanes, lanes, True)
        for i in range(lanes):
            weight = room[total + i]
            if i < n:
                if not (weight > 0.0 if logs else _FEW < weight < _MANY):
                    return tile + i
                likelihood[tile + i] = np.log(weight) + (room[top + i] if logs else 0.0)
            room[total + i] = 1.0 / weight
        for p in range(size):
            weigh(room, now + p * lanes, total, lanes, False)
        fill_rows(room, pairs, n_classes * n_classes * lanes, 0.0)
        for place in range(length - 1, -1, -1):
            while s > 0 and sites[s - 1, LEVEL] == place + 1:
                s -= 1
                k = sites[s, SEES]
                fill_rows(room, seen, widths[k] * lanes, 0.0)
                for p in range(size):
                    weigh(room, seen + codes[s, p] * lanes, now + p * lanes, lanes, True)
                store(room, seen, lanes, firsts[k], n, sites[s, OF], widths[k], found)
            fill_rows(room, seen, n_classes * lanes, 0.0)
            fill_rows(room, half - now, size // n_classes * lanes, 0.0)
            for p in range(size):
                if counting and place > 0:
                    weigh(room, pairs + p % (n_classes * n_classes) * lanes, now + p * lanes, lanes, True)
                weigh(room, seen + p % n_classes * lanes, now + p * lanes, lanes, True)
                weigh(room, half - now + p // n_classes * lanes, now + p * lanes, lanes, True)
            store(room, seen, lanes, firsts[0], n, place, widths[0], found)
            now, size = half - now, size // n_classes
        for i in range(n):
            for c in range(n_classes * n_classes):
                totals[tile + i, c // n_classes, c % n_classes] = room[pairs + c * lanes + i]
    return -1

"""Compiled loops for windows that do not overlap: a chain whose state also counts, inside a window.

The state inside a window is (state s of the label chain, count c of the class that the window asks about). Counts are
kept only as far as they matter: `top`, one more than the threshold, stands for all above it (the window is positive
whatever follows), and the lowest row stands for all that cannot reach `top` any more. So a step costs at most half the
size of the window times S * S, however many windows overlap elsewhere.

A step is one table (S, S), weights of (state before, state after) with all that is known about the element; the first
element of a sequence reads row 0 of its table. F is the forward weight of (s, c), one *layer* of S * R numbers per
element of a window (R rows), B the same backward. `low` and `high` bound the rows in use. Layers of a long window are
kept for `room` elements at a time only, and filled again from every so-many-th one (a checkpoint), because a majority
over a night would otherwise take gigabytes. A room of 0 means that there is place for the layers of all windows.

Flat arrays and unsigned places, because numba then vectorises the loops over counts.
"""

# ruff: noqa: FBT001  (kernels take places, not names)
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dugong.types import BoolArray, FloatArray, Int8Array, IntArray

# Columns of the table of windows (elements begin..end, sorted, apart), and of that of sequences (elements begin..end,
# windows first..last).
BEGIN, END, THRESHOLD = 0, 1, 2
FIRST, LAST = 2, 3
NEVER = 1 << 60

_SMALL = 1e-100
# Sites: conditional laws below the floor and ratios beyond the most are rounding, and would grow from sweep to sweep.
_TINY, _FLOOR, _MOST = 1e-200, 1e-15, 1e30
# Sums may be taken in any order, which lets the loops over counts run in vectors; zero and infinity keep their meaning.
_SUMS = {"reassoc", "contract", "nsz"}
# Nothing is allocated here: without counting who holds an array, values that hold several cost nothing to pass on.
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False, "fastmath": _SUMS}
entry = njit(**_OPTIONS)  # type: ignore[call-overload]  # numba's type stubs lack these options
inner = njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]
inline = njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)  # type: ignore[call-overload]


class Apart(NamedTuple):
    """Windows that lie apart, (W, 3), which states they count, (S,), and what the votes on them say, (W, 2)."""

    windows: IntArray
    counted: BoolArray
    factors: FloatArray


class Scratch(NamedTuple):
    """Where a pass writes to.

    Attributes
    ----------
    R, room : rows of a layer, and elements whose layers are kept at a time
    alpha : (N, S) weights of the states after every element
    F, kept : layers, and those at checkpoints
    back : two layers backwards, and weights of the states
    bounds : (layers, 2) lowest and highest row in use
    """

    R: int
    room: int
    alpha: FloatArray
    F: FloatArray
    kept: FloatArray
    back: FloatArray
    bounds: IntArray


class Layers(NamedTuple):
    """The layers of one window: their numbers, the bounds of their rows, and how many rows there are."""

    F: FloatArray
    bounds: IntArray
    R: int


@inline
def axpy(F: FloatArray, at: int, to: int, size: int, weight: float, best: bool) -> None:
    """Add `weight` times some rows of a layer to rows of the next; for the best path, take the larger of the two."""
    a, b, n = np.uint64(at), np.uint64(to), np.uint64(max(size, 0))
    if best:
        for c in range(n):
            F[b + c] = max(F[b + c], weight * F[a + c])
    else:
        for c in range(n):
            F[b + c] += weight * F[a + c]


@inline
def fused(
    F: FloatArray, at: int, B: FloatArray, to: int, before: FloatArray, into: int, size: int, weight: float
) -> float:
    """Add `weight` times B to the backward weights before a step, and return the sum of F times B."""
    a, b, d, total = np.uint64(at), np.uint64(to), np.uint64(into), 0.0
    for c in range(np.uint64(max(size, 0))):
        value = B[b + c]
        total += F[a + c] * value
        before[d + c] += weight * value
    return total


@inner
def advance(
    layers: Layers,
    at: int,
    to: int,
    steps: FloatArray,
    t: int,
    counted: BoolArray,
    top: int,
    i: int,
    left: int,
    best: bool,
) -> float:
    """Fill the layer at `to` from that at `at` by the step into element t; returns its sum after scaling it.

    Rows i - 1 and i of `bounds` are (low, high) before and after.
    """
    (F, bounds, R), S = layers, len(counted)
    # One element adds at most one to the count, and nothing beyond `top` is told apart.
    low, high = bounds[i - 1, 0], bounds[i - 1, 1]
    reach = min(high + 1, top)
    for s in range(S):
        for c in range(np.uint64(to + s * R + low), np.uint64(to + s * R + reach + 1)):
            F[c] = 0.0
        for r in range(S):
            weight = steps[t, r, s]
            # Impossible steps are common (BIO tags, patterns), and a loop over counts costs more than a comparison.
            if weight == 0.0:
                continue
            source, target = at + r * R, to + s * R
            # A counted state comes from one row below; the top row stays where it is.
            if counted[s]:
                axpy(F, source + low, target + low + 1, min(high, top - 1) - low + 1, weight, best)
                if high == top:
                    axpy(F, source + top, target + top, 1, weight, best)
            else:
                axpy(F, source + low, target + low, high - low + 1, weight, best)
    if low < top - 1 - left:  # what lies in the lowest row cannot come above the threshold any more
        for s in range(S):
            axpy(F, to + s * R + low, to + s * R + low + 1, 1, 1.0, best)
        low += 1
    total = 0.0
    for s in range(S):
        for c in range(np.uint64(to + s * R + low), np.uint64(to + s * R + reach + 1)):
            total += F[c]
    bounds[i, 0], bounds[i, 1] = low, reach
    return total


@inner
def rescale(F: FloatArray, at: int, R: int, S: int, low: int, high: int, total: float) -> None:
    """Divide a layer by its sum."""
    for s in range(S):
        for c in range(np.uint64(at + s * R + low), np.uint64(at + s * R + high + 1)):
            F[c] /= total


@inner
def fill(
    layers: Layers,
    kept: FloatArray,
    group: Apart,
    w: int,
    steps: FloatArray,
    first: int,
    last: int,
    room: int,
    best: bool,
) -> float:
    """Forward layers of elements first..last of a window; returns the logarithm of what was divided out.

    Layer 0 of `F` holds the weights before element `first`. With a `room`, two layers take turns, and every `room`-th
    is put into `kept`; with 0, the layers of all these elements stay, one after the other.
    """
    (F, bounds, R), (windows, counted, _) = layers, group
    S, begin, size = len(counted), windows[w, BEGIN], windows[w, END] - windows[w, BEGIN]
    top, scale, layer = windows[w, THRESHOLD] + 1, 0.0, S * R
    for i in range(first, last):
        at, to = (i - first) * layer, (i - first + 1) * layer
        if room > 0:
            at, to = (i % 2) * layer, ((i + 1) % 2) * layer
            # The layer is still that before element i, which is where a piece is filled again from.
            if room < NEVER and i % room == 0:
                copy_layer(F, at, kept, i // room * layer, R, S, bounds, i)
        total = advance(layers, at, to, steps, begin + i, counted, top, i + 1, size - i - 1, best)
        # Written so that NaN counts as impossible too.
        if not total > 0.0:
            return -np.inf
        # Scaling costs a pass over the layer: only where numbers grow small, and once at the end.
        if total < _SMALL or i + 1 == size:
            rescale(F, to, R, S, bounds[i + 1, 0], bounds[i + 1, 1], total)
            scale += np.log(total)
    return scale


@inner
def copy_layer(
    source: FloatArray, at: int, target: FloatArray, to: int, R: int, S: int, bounds: IntArray, i: int
) -> None:
    """Copy the rows in use."""
    for s in range(S):
        for c in range(s * R + bounds[i, 0], s * R + bounds[i, 1] + 1):
            target[to + c] = source[at + c]


@inner
def enter(layers: Layers, alpha: FloatArray, t: int, start: int) -> None:
    """Layer 0 of a window that begins at element t: nothing is counted yet."""
    for s in range(alpha.shape[1]):
        layers.F[s * layers.R] = (1.0 if s == 0 else 0.0) if t == start else alpha[t - 1, s]
    layers.bounds[0, 0], layers.bounds[0, 1] = 0, 0


@inner
def leave(layers: Layers, at: int, size: int, group: Apart, w: int, alpha: FloatArray, t: int, best: bool) -> float:
    """Weights of the states at the last element t of a window, its own factor included; returns their sum."""
    (F, bounds, R), total = layers, 0.0
    top = group.windows[w, THRESHOLD] + 1
    for s in range(alpha.shape[1]):
        value = 0.0
        for c in range(bounds[size, 0], bounds[size, 1] + 1):
            weight = F[at + s * R + c] * group.factors[w, 1 if c >= top else 0]
            value = max(value, weight) if best else value + weight
        alpha[t, s] = value
        total += value
    return total


@inner
def forward(
    steps: FloatArray, spans: IntArray, q: int, group: Apart, scratch: Scratch, keep: bool, best: bool
) -> float:
    """Weights `alpha` of the states after every element outside windows, and after every window, of sequence q.

    With `keep`, the layers of all windows stay, each window's at its own place. Returns the logarithm of the sum over
    all labels; minus infinity if none is possible.
    """
    windows, alpha, R = group.windows, scratch.alpha, scratch.R
    S, logs, w, t = alpha.shape[1], 0.0, spans[q, FIRST], spans[q, BEGIN]
    while t < spans[q, END]:
        scale, end = 0.0, t + 1
        if w < spans[q, LAST] and windows[w, BEGIN] == t:
            end = windows[w, END]
            # A window of n elements has n + 1 layers: w windows before this one take w more places than elements.
            own = t + w if keep else 0
            layers = Layers(scratch.F[own * S * R :], scratch.bounds[own:], R)
            enter(layers, alpha, t, spans[q, BEGIN])
            scale = fill(layers, layers.F, group, w, steps, 0, end - t, 0 if keep else NEVER, best)
            at = (end - t if keep else (end - t) % 2) * S * R
            total = leave(layers, at, end - t, group, w, alpha, end - 1, best)
            w += 1
        else:
            total = 0.0
            for s in range(S):
                value = steps[t, 0, s]
                if t > spans[q, BEGIN]:
                    value = 0.0
                    for r in range(S):
                        step = alpha[t - 1, r] * steps[t, r, s]
                        value = max(value, step) if best else value + step
                alpha[t, s] = value
                total += value
        # Looked for in this pass alone, because every question begins with it.
        if not (total > 0.0 and scale > -np.inf):
            return -np.inf
        for s in range(S):
            alpha[end - 1, s] /= total
        logs += scale + np.log(total)
        t = end
    return logs


# --- questions -----------------------------------------------------------------------------------------------------
@entry
def smooth(
    steps: FloatArray,
    spans: IntArray,
    active: BoolArray,
    group: Apart,
    scratch: Scratch,
    pairs: FloatArray,
    positive: FloatArray,
    logs: FloatArray,
) -> int:
    """Posterior of (state before, state) of every element as `pairs`, and of every window, of the active sequences.

    `positive` (W, 2): the probability that a window is positive, given everything, and given all but its own factor.
    Returns -1, or the first sequence that is impossible.
    """
    windows, alpha, S = group.windows, scratch.alpha, scratch.alpha.shape[1]
    beta = scratch.back[len(scratch.back) - S :]
    for q in range(len(spans)):
        if not active[q]:
            continue
        logs[q] = forward(steps, spans, q, group, scratch, scratch.room == 0, False)
        if logs[q] == -np.inf:
            return q
        # Backward: nothing is known behind the last element, so that all states weigh the same.
        start, t, w = spans[q, BEGIN], spans[q, END] - 1, spans[q, LAST] - 1
        for s in range(S):
            beta[s] = 1.0
        while t >= start:
            if w >= spans[q, FIRST] and windows[w, END] == t + 1:
                backward_window(steps, start, group, w, scratch, pairs, positive)
                t = windows[w, BEGIN] - 1
                w -= 1
            else:
                backward_one(steps, start, alpha, t, pairs, beta)
                t -= 1
    return -1


@entry
def smooth_two(
    steps: FloatArray, spans: IntArray, active: BoolArray, alpha: FloatArray, pairs: FloatArray, logs: FloatArray
) -> int:
    """The same for two states and no windows, in registers: a quarter of the time."""
    for q in range(len(spans)):
        if not active[q]:
            continue
        begin, end = spans[q, BEGIN], spans[q, END]
        # The first element has no state before: row 0 stands for the beginning.
        a, b, scale, log = 1.0, 0.0, 1.0, 0.0
        for t in range(begin, end):
            a, b = a * steps[t, 0, 0] + b * steps[t, 1, 0], a * steps[t, 0, 1] + b * steps[t, 1, 1]
            total = a + b
            if not total > 0.0:
                return q
            a, b = a / total, b / total
            alpha[t, 0], alpha[t, 1] = a, b
            # Logarithms cost more than all the rest: one for as many elements as a product can hold.
            scale *= total
            if not 1e-150 < scale < 1e150:
                log += np.log(scale)
                scale = 1.0
        logs[q] = log + np.log(scale)
        a, b = 1.0, 1.0  # from here on, what comes after: weights of the states behind the last element
        for t in range(end - 1, begin - 1, -1):
            first, second = (alpha[t - 1, 0], alpha[t - 1, 1]) if t > begin else (1.0, 0.0)
            p, q0 = steps[t, 0, 0] * a, steps[t, 0, 1] * b
            r, s = steps[t, 1, 0] * a, steps[t, 1, 1] * b
            a, b = p + q0, r + s
            total = first * a + second * b
            first, second = first / total, second / total
            pairs[t, 0, 0], pairs[t, 0, 1] = p * first, q0 * first
            pairs[t, 1, 0], pairs[t, 1, 1] = r * second, s * second
            most = max(a, b)
            a, b = a / most, b / most
    return -1


@inline
def late_step(
    transition: FloatArray, own: FloatArray, late: FloatArray, t: int
) -> tuple[float, float, float, float, float]:
    """Weights of (label before, label) at an element, and what they were divided by: 1, unless they are far from it."""
    p, q = transition[0, 0] * own[t, 0] * late[t, 0], transition[0, 1] * own[t, 1] * late[t, 1]
    r, s = transition[1, 0] * own[t, 0] * late[t, 2], transition[1, 1] * own[t, 1] * late[t, 3]
    top = max(p, q, r, s)
    if _SMALL < top < 1 / _SMALL or top == 0.0:
        return p, q, r, s, 1.0
    return p / top, q / top, r / top, s / top, top


@entry
def smooth_late(
    initial: FloatArray,
    transition: FloatArray,
    own: FloatArray,
    late: FloatArray,
    offsets: IntArray,
    labels: FloatArray,
    pairs: FloatArray,
    totals: FloatArray,
    logs: FloatArray,
) -> int:
    """Two labels and sources that look one element back, straight from what the votes say about both.

    `own` (n_elements, 2) and `late` (n_elements, 4) are likelihoods by label and by pair of labels. Forward messages
    are kept in `labels`, which then become the posterior; that of pairs (at first elements: of labels) is written if
    `pairs` has rows, their sums by sequence to `totals`.
    """
    counting = len(pairs) > 0
    for n in range(len(offsets) - 1):
        begin, end = offsets[n], offsets[n + 1]
        if begin == end:
            continue
        a, b = initial[0] * own[begin, 0] * late[begin, 0], initial[1] * own[begin, 1] * late[begin, 1]
        scale, log = 1.0, 0.0
        for t in range(begin, end):
            if t > begin:
                p, q, r, s, top = late_step(transition, own, late, t)
                a, b = a * p + b * r, a * q + b * s
                if top != 1.0:
                    log += np.log(top)
            total = a + b
            if not total > 0.0:
                return n
            a, b = a / total, b / total
            labels[t, 0], labels[t, 1] = a, b
            if not 1e-150 < total < 1e150:
                log += np.log(total)
                continue
            # Logarithms cost more than all the rest: one for as many elements as a product can hold.
            scale *= total
            if not 1e-150 < scale < 1e150:
                log += np.log(scale)
                scale = 1.0
        logs[n] = log + np.log(scale)
        a, b = 1.0, 1.0  # from here on, what comes after: weights of the labels behind the last element
        for t in range(end - 1, begin, -1):
            p, q, r, s, top = late_step(transition, own, late, t)
            p, q, r, s = p * a, q * b, r * a, s * b
            a, b = p + q, r + s
            first, second = labels[t - 1, 0], labels[t - 1, 1]
            share = 1 / (first * a + second * b)
            first, second = first * share, second * share
            p, q, r, s = p * first, q * first, r * second, s * second
            labels[t, 0], labels[t, 1] = p + r, q + s
            if counting:
                pairs[t, 0], pairs[t, 1], pairs[t, 2], pairs[t, 3] = p, q, r, s
                totals[n, 0, 0] += p
                totals[n, 0, 1] += q
                totals[n, 1, 0] += r
                totals[n, 1, 1] += s
            share = 1 / max(a, b)
            a, b = a * share, b * share
        a, b = labels[begin, 0] * a, labels[begin, 1] * b
        share = 1 / (a + b)
        labels[begin, 0], labels[begin, 1] = a * share, b * share
        if counting:
            pairs[begin, 0], pairs[begin, 1], pairs[begin, 2], pairs[begin, 3] = a * share, b * share, 0.0, 0.0
    return -1


@inner
def backward_one(steps: FloatArray, start: int, alpha: FloatArray, t: int, pairs: FloatArray, beta: FloatArray) -> None:
    """One element outside windows: its pair, and the backward weights `beta` before it."""
    S, total, most = len(beta), 0.0, 0.0
    for r in range(S):
        before = (1.0 if r == 0 else 0.0) if t == start else alpha[t - 1, r]
        for s in range(S):
            pairs[t, r, s] = steps[t, r, s] * beta[s]
        value = 0.0
        for s in range(S):
            value += pairs[t, r, s]
            pairs[t, r, s] *= before
            total += pairs[t, r, s]
        alpha[t, r] = value  # no longer needed: it carries the new weights until all of them are known
        most = max(most, value)
    # Pairs are probabilities at once; messages are only kept near one, as their scale cancels in the next pair.
    for r in range(S):
        for s in range(S):
            pairs[t, r, s] /= total
    for r in range(S):
        beta[r] = alpha[t, r] / most


@inner
def open_piece(
    layers: Layers, group: Apart, w: int, steps: FloatArray, start: int, scratch: Scratch, piece: int, best: bool
) -> None:
    """Layers of the next piece of a window, for whoever walks back through it; pieces come from the last to the first.

    Where the layers of all windows are kept (no room is given) there is nothing to do. A window that is longer than the
    room is walked forward once more for its checkpoints, then from one of them for every piece.
    """
    if scratch.room == 0:
        return
    S, begin, length = scratch.alpha.shape[1], group.windows[w, BEGIN], scratch.room
    size = group.windows[w, END] - begin
    first, last = piece * length, min(size, (piece + 1) * length)
    if last == size:
        enter(layers, scratch.alpha, begin, start)
        if size > length:
            fill(layers, scratch.kept, group, w, steps, 0, size, length, best)
    if size > length:
        copy_layer(scratch.kept, piece * S * scratch.R, layers.F, 0, scratch.R, S, layers.bounds, first)
    fill(layers, scratch.kept, group, w, steps, first, last, 0, best)


@inner
def backward_window(
    steps: FloatArray, start: int, group: Apart, w: int, scratch: Scratch, pairs: FloatArray, positive: FloatArray
) -> None:
    """All elements of a window, from its last to its first."""
    windows, back, R, S = group.windows, scratch.back, scratch.R, scratch.alpha.shape[1]
    begin, layer = windows[w, BEGIN], S * R
    beta = back[len(back) - S :]  # as in `smooth`: what lies behind the window goes in, what lies before it comes out
    size, top = windows[w, END] - begin, windows[w, THRESHOLD] + 1
    own, length, here = begin + w if scratch.room == 0 else 0, size if scratch.room == 0 else scratch.room, 0
    layers = Layers(scratch.F[own * layer :], scratch.bounds[own:], R)
    for piece in range((size - 1) // length, -1, -1):
        first, last = piece * length, min(size, (piece + 1) * length)
        open_piece(layers, group, w, steps, start, scratch, piece, False)
        if last == size:
            turn(layers, (last - first) * layer, back, size, group, w, beta, positive)
        for i in range(last - 1, first - 1, -1):
            retreat(layers, (i - first) * layer, back, here, steps, begin + i, group.counted, top, i, pairs)
            here = 1 - here
    for s in range(S):
        beta[s] = back[here * layer + s * R]


@inner
def turn(
    layers: Layers, at: int, back: FloatArray, size: int, group: Apart, w: int, beta: FloatArray, positive: FloatArray
) -> None:
    """Backward weights at the end of a window, and what follows for the window itself."""
    (F, bounds, R), factors, top = layers, group.factors, group.windows[w, THRESHOLD] + 1
    p0, p1 = 0.0, 0.0
    for s in range(len(beta)):
        for c in range(bounds[size, 0], bounds[size, 1] + 1):
            value = F[at + s * R + c] * beta[s]
            if c >= top:
                p1 += value
            else:
                p0 += value
            back[s * R + c] = beta[s] * factors[w, 1 if c >= top else 0]
    # The second is the message that the window gets from everything else, from which its own factor is left out.
    positive[w, 0] = p1 * factors[w, 1] / (p0 * factors[w, 0] + p1 * factors[w, 1])
    positive[w, 1] = p1 / (p0 + p1)


@inner
def retreat(
    layers: Layers,
    at: int,
    back: FloatArray,
    here: int,
    steps: FloatArray,
    t: int,
    counted: BoolArray,
    top: int,
    i: int,
    pairs: FloatArray,
) -> None:
    """One element of a window: its pair, and the backward weights before it. The mirror of `advance`."""
    (F, bounds, R), S = layers, len(counted)
    low, high, after = bounds[i, 0], bounds[i, 1], bounds[i + 1, 0]
    now, before, total, most = here * S * R, (1 - here) * S * R, 0.0, 0.0
    for r in range(S):
        source, into = at + r * R, before + r * R
        for c in range(np.uint64(into + low), np.uint64(into + high + 1)):
            back[c] = 0.0
        for s in range(S):
            weight, target, found = steps[t, r, s], now + s * R, 0.0
            # The shifts of `advance` the other way: a counted state has a count of one more after the step.
            if counted[s]:
                size = min(high, top - 1) - low + 1
                found += fused(F, source + low, back, target + low + 1, back, into + low, size, weight)
                if high == top:
                    found += fused(F, source + top, back, target + top, back, into + top, 1, weight)
            else:
                # Where `advance` lifted the lowest row, two rows before the step lead to the lowest one after it.
                found += fused(F, source + after, back, target + after, back, into + after, high - after + 1, weight)
                if low < after:
                    found += fused(F, source + low, back, target + after, back, into + low, 1, weight)
            # The weight is the same for all counts, and so is multiplied once, behind the sum over them.
            pairs[t, r, s] = weight * found
            total += weight * found
        for c in range(np.uint64(into + low), np.uint64(into + high + 1)):
            most = max(most, back[c])
    for r in range(S):
        for s in range(S):
            pairs[t, r, s] /= total
        for c in range(np.uint64(before + r * R + low), np.uint64(before + r * R + high + 1)):
            back[c] /= most


# --- paths ---------------------------------------------------------------------------------------------------------
@inner
def choose(weights: FloatArray, at: int, size: int, uniform: float) -> int:
    """A place drawn in proportion to its weight; the largest if the number is negative; -1 if all are zero."""
    found, left = -1, 0.0
    for i in range(size):
        if uniform < 0.0:
            if weights[at + i] > left:
                found, left = i, weights[at + i]
        else:
            left += weights[at + i]
    if uniform < 0.0:
        return found
    # Only places with a weight are taken, so that rounding at the end of the sum never finds an impossible state.
    left *= uniform
    for i in range(size):
        if weights[at + i] > 0.0:
            found = i
            left -= weights[at + i]
            if left < 0.0:
                break
    return found


@entry
def trace(
    steps: FloatArray,
    spans: IntArray,
    group: Apart,
    scratch: Scratch,
    uniforms: FloatArray,
    now: IntArray,
    states: Int8Array,
) -> int:
    """States drawn from the posterior, (n_draws, N), one uniform number each; the best path for negative numbers.

    `now` (n_draws, 2) is room for the state and the count of every draw. Returns -1, or the first impossible sequence.
    """
    # Best path and draws are the same walk back: only sums and maxima change places, so the loops are shared.
    windows, alpha, back, best = group.windows, scratch.alpha, scratch.back, uniforms[0, 0] < 0.0
    for q in range(len(spans)):
        if forward(steps, spans, q, group, scratch, scratch.room == 0, best) == -np.inf:
            return q
        start, t, w = spans[q, BEGIN], spans[q, END] - 1, spans[q, LAST] - 1
        while t >= start:
            last = t + 1 == spans[q, END]
            if w >= spans[q, FIRST] and windows[w, END] == t + 1:
                trace_window(steps, start, last, group, w, scratch, uniforms, now, states)
                t = windows[w, BEGIN] - 1
                w -= 1
                continue
            for d in range(len(uniforms)):
                # Forward weights know the votes up to t; given the state that follows, later votes tell nothing more.
                for s in range(alpha.shape[1]):
                    back[s] = alpha[t, s] * (1.0 if last else steps[t + 1, s, now[d, 0]])
                now[d, 0] = choose(back, 0, alpha.shape[1], uniforms[d, t])
                states[d, t] = now[d, 0]
            t -= 1
    return -1


@inner
def trace_window(
    steps: FloatArray,
    start: int,
    last: bool,
    group: Apart,
    w: int,
    scratch: Scratch,
    uniforms: FloatArray,
    now: IntArray,
    states: Int8Array,
) -> None:
    """The states of all elements of a window, from its last to its first."""
    windows, counted, back, R, S = group.windows, group.counted, scratch.back, scratch.R, scratch.alpha.shape[1]
    begin, layer = windows[w, BEGIN], S * R
    size, top, best = windows[w, END] - begin, windows[w, THRESHOLD] + 1, uniforms[0, 0] < 0.0
    own, length = begin + w if scratch.room == 0 else 0, size if scratch.room == 0 else scratch.room
    layers = Layers(scratch.F[own * layer :], scratch.bounds[own:], R)
    for piece in range((size - 1) // length, -1, -1):
        first, end = piece * length, min(size, (piece + 1) * length)
        open_piece(layers, group, w, steps, start, scratch, piece, best)
        for d in range(len(uniforms)):
            if end == size:
                turn_back(layers, (end - first) * layer, back, size, group, w, steps, last, now[d, 0])
                place = choose(back, 0, layer, uniforms[d, begin + size - 1])
                now[d, 0], now[d, 1] = place // R, place % R
                states[d, begin + size - 1] = now[d, 0]
            # Down to the first element only: the state before it is drawn by whatever precedes the window.
            for i in range(end - 1, max(first, 1) - 1, -1):
                step_back(layers, (i - first) * layer, back, steps, begin + i, counted, top, i, now[d])
                place = choose(back, 0, 2 * S, uniforms[d, begin + i - 1])
                came = came_from(counted[now[d, 0]], now[d, 1], top, layers.bounds, i, place // S)
                now[d, 0], now[d, 1] = place % S, came
                states[d, begin + i - 1] = now[d, 0]


@inner
def turn_back(
    layers: Layers,
    at: int,
    back: FloatArray,
    size: int,
    group: Apart,
    w: int,
    steps: FloatArray,
    last: bool,
    following: int,
) -> None:
    """Weights of (state, count) at the end of a window, given the state that follows, if any does."""
    (F, bounds, R), factors, S = layers, group.factors, steps.shape[1]
    top = group.windows[w, THRESHOLD] + 1
    for s in range(S):
        ahead = 1.0 if last else steps[group.windows[w, END], s, following]
        for c in range(R):
            inside = bounds[size, 0] <= c <= bounds[size, 1]
            back[s * R + c] = F[at + s * R + c] * factors[w, 1 if c >= top else 0] * ahead if inside else 0.0


@inner
def came_from(is_counted: bool, count: int, top: int, bounds: IntArray, i: int, which: int) -> int:
    """The first or second row from which a step leads to a row; -1 if there is none."""
    if is_counted:
        row = count - 1 if which == 0 else (top if count == top else -1)
    else:
        # The lowest row may also have been lifted from the one below, as `advance` does.
        row = count if which == 0 else (count - 1 if count == bounds[i + 1, 0] else -1)
    return row if bounds[i, 0] <= row <= bounds[i, 1] else -1


@inner
def step_back(
    layers: Layers,
    at: int,
    back: FloatArray,
    steps: FloatArray,
    t: int,
    counted: BoolArray,
    top: int,
    i: int,
    after: IntArray,
) -> None:
    """Weights of the states before element t, by which of two rows they were in, given state and count after it."""
    (F, bounds, R), S = layers, len(counted)
    for which in range(2):
        row = came_from(counted[after[0]], after[1], top, bounds, i, which)
        for r in range(S):
            back[which * S + r] = F[at + r * R + row] * steps[t, r, after[0]] if row >= 0 else 0.0


# --- propagation between groups ------------------------------------------------------------------------------------
@entry
def take_out(total: FloatArray, site: FloatArray, spans: IntArray, active: BoolArray, cavity: FloatArray) -> None:
    """The chain without one site."""
    for q in range(len(spans)):
        if active[q]:
            for t in range(spans[q, BEGIN], spans[q, END]):
                for r in range(total.shape[1]):
                    for s in range(total.shape[1]):
                        cavity[t, r, s] = total[t, r, s] / site[t, r, s]


@entry
def put_in(
    pairs: FloatArray,
    cavity: FloatArray,
    total: FloatArray,
    site: FloatArray,
    damped: bool,
    spans: IntArray,
    active: BoolArray,
) -> None:
    """Let the chain be P(after | before) of `pairs`, and the site what that is over the cavity.

    Damped, it is a geometric mean with a quarter of what it was, because sites that react to each other overshoot;
    two roots take a fifth of the time of a power. A state that cannot be has no conditional law: its steps stay.
    """
    for q in range(len(spans)):
        if not active[q]:
            continue
        for t in range(spans[q, BEGIN], spans[q, END]):
            for r in range(total.shape[1]):
                mass = 0.0
                for s in range(total.shape[1]):
                    mass += pairs[t, r, s]
                # Dividing by next to nothing would make a law out of rounding.
                if not mass > _TINY:
                    continue
                for s in range(total.shape[1]):
                    # A step that is impossible without the site stays impossible, and needs no site.
                    if cavity[t, r, s] > 0.0:
                        new, old = max(pairs[t, r, s] / mass, _FLOOR), total[t, r, s]
                        if damped:
                            new = np.sqrt(np.sqrt(new * old) * new)
                        ratio = min(max(new / cavity[t, r, s], 1.0 / _MOST), _MOST)
                        site[t, r, s] = ratio
                        total[t, r, s] = ratio * cavity[t, r, s]


@entry
def changes(new: FloatArray, old: FloatArray, spans: IntArray, active: BoolArray, change: FloatArray) -> None:
    """Largest change of the probability of a state, by sequence."""
    for q in range(len(spans)):
        if active[q]:
            change[q] = 0.0
            for t in range(spans[q, BEGIN], spans[q, END]):
                for s in range(new.shape[1]):
                    # Of the state and not of the pair, because labels are what the caller wants settled.
                    difference = 0.0
                    for r in range(new.shape[1]):
                        difference += new[t, r, s] - old[t, r, s]
                    change[q] = max(change[q], abs(difference))


# --- a walk whose law is the posterior itself ----------------------------------------------------------------------
class WalkSpace(NamedTuple):
    """The sequence of a walk.

    Attributes
    ----------
    base, total : (N, S, S) the steps without windows, and those that propose
    windows : (W, 3) of all groups
    groups : (G, 3) for every group, its first and last window and the row of `counted`
    counted : (kinds, S) which states are counted
    logs : (W, 2) what the votes on the windows say
    """

    base: FloatArray
    total: FloatArray
    windows: IntArray
    groups: IntArray
    counted: BoolArray
    logs: FloatArray


@entry
def walk(
    space: WalkSpace,
    counts: IntArray,
    states: Int8Array,
    sweeps: int,
    lengths: IntArray,
    seed: int,
    scratch: FloatArray,
    new: Int8Array,
    tallies: FloatArray,
    positive: FloatArray,
) -> float:
    """Metropolis-Hastings over the states of one sequence; the chain with all sites proposes a run of them at a time.

    After every sweep the states are added to `tallies` (N, S), and the windows above their threshold to `positive`
    (W,). `scratch` has room for (longest run + 1) * (S + kinds). Returns the share of runs that were accepted.
    """
    np.random.seed(seed)  # noqa: NPY002  (compiled code has its own generator, one per thread)
    windows, groups, end, accepted, tried = space.windows, space.groups, len(space.base), 0.0, 0.0
    recount(space, states, counts)
    for sweep in range(sweeps):
        n_runs = 2 * end // (lengths[0] + lengths[1]) + 1
        for _run in range(n_runs):
            # Runs may begin before the sequence and are then cut, because its ends would be moved less often otherwise.
            length = np.random.randint(lengths[0], lengths[1] + 1)  # noqa: NPY002
            first = np.random.randint(-length + 1, end)  # noqa: NPY002
            last, first = min(end, first + length), max(0, first)
            ratio = propose(space, first, last, states, scratch, new)
            ratio += weigh_windows(space, counts, states, first, last, new, scratch, False)
            tried += 1.0
            # Metropolis and Hastings: accepted as often as it is likelier than what it replaces.
            if np.log(np.random.random()) < ratio:  # noqa: NPY002
                accepted += 1.0
                weigh_windows(space, counts, states, first, last, new, scratch, True)
                for t in range(first, last):
                    states[t] = new[t - first]
        if 5 * sweep >= sweeps:  # the first fifth is forgotten
            for t in range(end):
                tallies[t, states[t]] += 1.0
            for g in range(len(groups)):
                for w in range(groups[g, 0], groups[g, 1]):
                    positive[w] += 1.0 if counts[w] > windows[w, THRESHOLD] else 0.0
    return accepted / max(tried, 1.0)


@inner
def recount(space: WalkSpace, states: Int8Array, counts: IntArray) -> None:
    """How many elements of every window are counted."""
    windows, groups = space.windows, space.groups
    for g in range(len(groups)):
        for w in range(groups[g, 0], groups[g, 1]):
            counts[w] = 0
            for t in range(windows[w, BEGIN], windows[w, END]):
                counts[w] += space.counted[groups[g, 2], states[t]]


@inner
def propose(space: WalkSpace, first: int, last: int, states: Int8Array, scratch: FloatArray, new: Int8Array) -> float:
    """Draw states first..last given their neighbours; returns the log-ratio of what the proposal leaves out."""
    (base, total), S, size = space[:2], space.base.shape[1], last - first
    for i in range(size - 1, -1, -1):
        norm = 0.0
        for s in range(S):
            value = 1.0
            if i < size - 1:
                value = 0.0
                for u in range(S):
                    value += total[first + i + 1, s, u] * scratch[(i + 1) * S + u]
            elif last < len(base):
                value = total[last, s, states[last]]
            scratch[i * S + s] = value
            norm += value
        # Weights of the states to come, backwards; scaled, since a run may be long.
        for s in range(S):
            scratch[i * S + s] /= norm
    # The proposal is the chain `total`, whose own weights cancel: what is left is `base` over `total` on both paths.
    before = states[first - 1] if first > 0 else 0
    old, ratio = before, 0.0
    for i in range(size):
        t = first + i
        for s in range(S):
            scratch[i * S + s] *= total[t, before, s]
        drawn = choose(scratch, i * S, S, np.random.random())  # noqa: NPY002
        # What the proposal has and the posterior has not: the sites, whose place the windows take.
        ratio += np.log(base[t, before, drawn] / total[t, before, drawn])
        ratio -= np.log(base[t, old, states[t]] / total[t, old, states[t]])
        new[i], before, old = drawn, drawn, states[t]
    # The step out of the run changes as well, though the state behind it does not.
    if last < len(base):
        ratio += np.log(base[last, before, states[last]] / total[last, before, states[last]])
        ratio -= np.log(base[last, old, states[last]] / total[last, old, states[last]])
    return ratio


@inner
def weigh_windows(
    space: WalkSpace,
    counts: IntArray,
    states: Int8Array,
    first: int,
    last: int,
    new: Int8Array,
    scratch: FloatArray,
    keep: bool,
) -> float:
    """What the votes on windows say about the change of states first..last; or bring the counts up to date."""
    _, _, windows, groups, counted, logs = space
    size, at, ratio = last - first, len(new) * space.base.shape[1], 0.0
    # Running sums, because then every window needs two look-ups however much of the run it holds.
    for kind in range(len(counted)):
        gained = 0.0
        for i in range(size):
            scratch[at + kind * (len(new) + 1) + i] = gained
            gained += counted[kind, new[i]]
            gained -= counted[kind, states[first + i]]
        scratch[at + kind * (len(new) + 1) + size] = gained
    for g in range(len(groups)):
        row, low, high = at + groups[g, 2] * (len(new) + 1), groups[g, 0], groups[g, 1]
        stop = high
        while low < high:  # the first window that ends behind the first changed element
            middle = (low + high) // 2
            if windows[middle, END] > first:
                high = middle
            else:
                low = middle + 1
        for w in range(low, stop):
            if windows[w, BEGIN] >= last:
                break
            a, b = max(windows[w, BEGIN], first) - first, min(windows[w, END], last) - first
            gained = scratch[row + b] - scratch[row + a]
            if keep:
                counts[w] += np.int64(gained)
            else:
                was, now = counts[w] > windows[w, THRESHOLD], counts[w] + gained > windows[w, THRESHOLD]
                ratio += logs[w, 1 if now else 0] - logs[w, 1 if was else 0]
    return ratio

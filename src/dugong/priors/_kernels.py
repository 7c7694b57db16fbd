"""Compiled loops over label chains: marginals, samples, joint laws of two tasks, sums over parts of a task.

Arrays in, arrays out. Transitions come row by row without their zeros (`heads`, `targets`, `weights`: the
rows of a sparse matrix), because pattern priors have many states and few ways on. Automata come as
`following` (state, class) and `outputs` (state); state 0 is the one before any element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from dugong.types import FloatArray, IntArray

# --- kernels that are interpreted until they have had enough to do ---------------------------------------------------
# Compiling a loop over a label chain takes seconds, and the chains of most data sets are walked a few times over short
# sequences, which the interpreter does in milliseconds. So a kernel is interpreted until its work adds up to what
# compiling it is worth. Both ways take the same steps in the same order, and give the same numbers.
# Steps of the innermost loops, about a third of a second of the interpreter's time.
ENOUGH = 200_000


def interpreted_first(work: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel; `work` says from its arguments how many steps a call takes."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled, spent = njit(cache=True)(function), 0

        @wraps(function)
        def run(*arguments: Any) -> Any:
            nonlocal spent
            spent += work(*arguments)
            return function(*arguments) if spent <= ENOUGH else compiled(*arguments)

        return run

    return decorate


# --- the kernels -----------------------------------------------------------------------------------------------------
@register_jitable
def draw(law: FloatArray, uniform: float) -> int:
    """Place of one draw from a cumulative law; `uniform` in [0, 1)."""
    # Rounding may leave the last sum below one; scaling by it keeps impossible places impossible.
    level = uniform * law[len(law) - 1]
    place = 0
    while law[place] <= level:
        place += 1
    return place


@njit(cache=True)
def sample_states(
    initial: FloatArray, transition: FloatArray, labels: IntArray, offsets: IntArray, uniforms: FloatArray
) -> IntArray:
    """Class index of every element, from cumulative laws and one uniform number per element."""
    places = np.empty(len(uniforms), np.int64)
    for sequence in range(len(offsets) - 1):
        state = 0
        for place in range(offsets[sequence], offsets[sequence + 1]):
            law = initial if place == offsets[sequence] else transition[state]
            state = draw(law, uniforms[place])
            places[place] = labels[state]
    return places


@register_jitable
def spread(law: FloatArray, heads: IntArray, targets: IntArray, weights: FloatArray, out: FloatArray) -> None:
    """One step of the chain: out = law @ transition."""
    for state in range(len(out)):
        out[state] = 0.0
    for state in range(len(law)):
        if law[state] != 0.0:
            for edge in range(heads[state], heads[state + 1]):
                out[targets[edge]] += law[state] * weights[edge]


def _work_of_marginals(*arguments: Any) -> int:
    initial, _, _, weights, length, _ = arguments
    return int(length) * (len(weights) + 2 * len(initial))


@interpreted_first(_work_of_marginals)
def state_marginals(
    initial: FloatArray,
    heads: IntArray,
    targets: IntArray,
    weights: FloatArray,
    length: int,
    tolerance: float,
) -> FloatArray:
    """Law of the state by position, cut where it no longer moves by more than `tolerance`."""
    capacity = min(length, 1024)
    laws = np.empty((capacity, len(initial)))
    for state in range(len(initial)):
        laws[0, state] = initial[state]
    used = 1
    while used < length:
        if used == len(laws):
            larger = np.empty((min(length, 2 * len(laws)), len(initial)))
            for place in range(used):
                for state in range(len(initial)):
                    larger[place, state] = laws[place, state]
            laws = larger
        # Once the law stands still all later positions have it too: long sequences cost no more than mixing takes.
        spread(laws[used - 1], heads, targets, weights, laws[used])
        used += 1
        moved = 0.0
        for state in range(len(initial)):
            moved = max(moved, abs(laws[used - 1, state] - laws[used - 2, state]))
        if moved <= tolerance:
            break
    return laws[:used]


def _work_of_counts(*arguments: Any) -> int:
    initial, _, _, weights, _, n_classes, lengths = arguments
    return int(lengths.max(initial=0)) * (len(weights) + len(initial)) * (1 + int(n_classes)) ** 2


@interpreted_first(_work_of_counts)
def class_count_moments(
    initial: FloatArray,
    heads: IntArray,
    targets: IntArray,
    weights: FloatArray,
    labels: IntArray,
    n_classes: int,
    lengths: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """E[n_c] and E[n_c n_d] of the numbers of elements of each class, for every (sorted) length."""
    n_states, K = len(initial), n_classes
    first = np.zeros((len(lengths), K))
    second = np.zeros((len(lengths), K, K))
    # Column 0: the law; columns 1..K: sums of n_c; then sums of n_c n_d.
    width = 1 + K + K * K
    now = np.zeros((n_states, width))
    later = np.zeros((n_states, width))
    place = 0
    while place < len(lengths) and lengths[place] == 0:
        place += 1
    length = lengths[-1] if len(lengths) else 0
    for t in range(length):
        if t == 0:
            for state in range(n_states):
                now[state, 0] = initial[state]
        else:
            for state in range(n_states):
                for column in range(width):
                    later[state, column] = 0.0
            for state in range(n_states):
                for edge in range(heads[state], heads[state + 1]):
                    for column in range(width):
                        later[targets[edge], column] += weights[edge] * now[state, column]
            now, later = later, now
        for state in range(n_states):
            # Products of counts grow by the counts before this element, because these grow by one only after them.
            c = labels[state]
            row = now[state]
            for d in range(K):
                row[1 + K + c * K + d] += row[1 + d]
                row[1 + K + d * K + c] += row[1 + d]
            row[1 + K + c * K + c] += row[0]
            row[1 + c] += row[0]
        while place < len(lengths) and lengths[place] == t + 1:
            for state in range(n_states):
                for c in range(K):
                    first[place, c] += now[state, 1 + c]
                    for d in range(K):
                        second[place, c, d] += now[state, 1 + K + c * K + d]
            place += 1
    return first, second


@register_jitable
def _clear(array: FloatArray, n_rows: int, n_columns: int) -> None:
    # Loops, because assigning to a slice makes the compiler bring in broadcasting and its messages: seconds.
    for place in range(len(array)):
        for row in range(n_rows):
            for column in range(n_columns):
                array[place, row, column] = 0.0


@register_jitable
def _reach(following: IntArray, highest: int) -> int:
    best = 0
    for state in range(highest + 1):
        for label in range(following.shape[1]):
            best = max(best, following[state, label])
    return best


def _work_of_pairs(*arguments: Any) -> int:
    starts, _, _, weights, _, following_a, _, n_a, following_b, _, n_b, bounds = arguments
    cells = max(len(following_a), int(n_a)) * max(len(following_b), int(n_b))
    return len(starts) * int(bounds.max(initial=0)) * (len(weights) + 3 * int(starts.shape[1])) * cells


@interpreted_first(_work_of_pairs)
def pair_laws(
    starts: FloatArray,
    heads: IntArray,
    targets: IntArray,
    weights: FloatArray,
    labels: IntArray,
    following_a: IntArray,
    outputs_a: IntArray,
    n_a: int,
    following_b: IntArray,
    outputs_b: IntArray,
    n_b: int,
    bounds: IntArray,
) -> FloatArray:
    """Joint law of two pieces for many questions, shape (n_questions, n_a, n_b).

    Question n starts from the state law (or weighted sum of laws) ``starts[n]`` at element 0, and asks for the pieces
    ``[bounds[n, 0], bounds[n, 1])`` and ``[bounds[n, 2], bounds[n, 3])``. An empty second piece has output 0.
    """
    n_questions, n_states = starts.shape
    Q_a, Q_b = max(len(outputs_a), n_a), max(len(outputs_b), n_b)
    laws = np.zeros((n_questions, n_a, n_b))
    now = np.zeros((n_states, Q_a, Q_b))
    later = np.zeros((n_states, Q_a, Q_b))
    for n in range(n_questions):
        a0, a1, b0, b1 = bounds[n, 0], bounds[n, 1], bounds[n, 2], bounds[n, 3]
        high_a, high_b = 0, 0
        for state in range(n_states):
            now[state, 0, 0] = starts[n, state]
        for t in range(max(a1, b1)):
            if t > 0:
                _clear(later, high_a + 1, high_b + 1)
                for state in range(n_states):
                    for edge in range(heads[state], heads[state + 1]):
                        target, weight = targets[edge], weights[edge]
                        for i in range(high_a + 1):
                            for j in range(high_b + 1):
                                later[target, i, j] += weight * now[state, i, j]
                now, later = later, now
            # Automata move only inside their piece; outside they keep what they have read.
            in_a, in_b = a0 <= t < a1, b0 <= t < b1
            if in_a or in_b:
                next_a = _reach(following_a, high_a) if in_a else high_a
                next_b = _reach(following_b, high_b) if in_b else high_b
                _clear(later, next_a + 1, next_b + 1)
                for state in range(n_states):
                    c = labels[state]
                    for i in range(high_a + 1):
                        to_a = following_a[i, c] if in_a else i
                        for j in range(high_b + 1):
                            to_b = following_b[j, c] if in_b else j
                            later[state, to_a, to_b] += now[state, i, j]
                now, later = later, now
                high_a, high_b = next_a, next_b
            # A finished piece needs its label only: fewer states for the rest of the way.
            if t + 1 == a1 and in_a:
                _clear(later, n_a, high_b + 1)
                for state in range(n_states):
                    for i in range(high_a + 1):
                        for j in range(high_b + 1):
                            later[state, outputs_a[i], j] += now[state, i, j]
                now, later = later, now
                high_a = n_a - 1
            if t + 1 == b1 and in_b:
                _clear(later, high_a + 1, n_b)
                for state in range(n_states):
                    for i in range(high_a + 1):
                        for j in range(high_b + 1):
                            later[state, i, outputs_b[j]] += now[state, i, j]
                now, later = later, now
                high_b = n_b - 1
        for state in range(n_states):
            for i in range(high_a + 1):
                for j in range(high_b + 1):
                    laws[n, i, j] += now[state, i, j]
    return laws


def _work_of_parts(*arguments: Any) -> int:
    initial, _, _, weights, _, following_a, _, n_a, following_b, _, begins, ends, _, lengths = arguments
    length = int(lengths.max(initial=0))
    inside = int(np.maximum(np.minimum(ends, length) - begins, 0).sum())
    return (length * (1 + int(n_a)) + inside * len(following_a)) * (len(weights) + len(initial)) * len(following_b)


@interpreted_first(_work_of_parts)
def part_sums(
    initial: FloatArray,
    heads: IntArray,
    targets: IntArray,
    weights: FloatArray,
    labels: IntArray,
    following_a: IntArray,
    outputs_a: IntArray,
    n_a: int,
    following_b: IntArray,
    outputs_b: IntArray,
    begins: IntArray,
    ends: IntArray,
    births: IntArray,
    lengths: IntArray,
) -> FloatArray:
    """Sum over the parts of a whole of the joint law (part, whole), for wholes of several sorted lengths.

    The whole is elements ``[0, length)``. Part k is ``[begins[k], min(ends[k], length))``; it exists in wholes longer
    than ``births[k]``. One forward pass serves all lengths: it carries the law of (state, whole), the sums over
    finished parts, and one law of (state, part, whole) for every part that is open. Shape (n_lengths, n_a, 2).
    """
    n_states, Q_a, Q_b = len(initial), len(outputs_a), len(outputs_b)
    n_open = _most_open(begins, ends)
    # Layers of `now`: 0 the law itself; 1..n_a finished parts by output; then Q_a layers for every open slot.
    n_layers = 1 + n_a + n_open * Q_a
    now = np.zeros((n_layers, n_states, Q_b))
    later = np.zeros((n_layers, n_states, Q_b))
    owner = np.full(n_open, -1)
    sums = np.zeros((len(lengths), n_a, 2))
    high, part, place = 0, 0, 0
    while place < len(lengths) and lengths[place] == 0:
        place += 1
    length = lengths[-1] if len(lengths) else 0
    for t in range(length):
        reach = _reach(following_b, high)
        _clear(later, n_states, reach + 1)
        if t == 0:
            for state in range(n_states):
                later[0, state, following_b[0, labels[state]]] += initial[state]
        else:
            for layer in range(n_layers):
                slot = (layer - 1 - n_a) // Q_a if layer > n_a else -1
                if slot >= 0 and owner[slot] < 0:
                    continue
                for state in range(n_states):
                    for edge in range(heads[state], heads[state + 1]):
                        target, weight = targets[edge], weights[edge]
                        c = labels[target]
                        to_layer = layer
                        if slot >= 0:
                            to_layer = 1 + n_a + slot * Q_a + following_a[(layer - 1 - n_a) % Q_a, c]
                        for j in range(high + 1):
                            later[to_layer, target, following_b[j, c]] += weight * now[layer, state, j]
        now, later = later, now
        high = reach
        # A part that begins here takes over the law as it is, with its own automaton at the start.
        while part < len(begins) and begins[part] == t:
            slot = _free_slot(owner)
            owner[slot] = part
            base = 1 + n_a + slot * Q_a
            _clear(now[base : base + Q_a], n_states, high + 1)
            for state in range(n_states):
                to_layer = base + following_a[0, labels[state]]
                for j in range(high + 1):
                    now[to_layer, state, j] = now[0, state, j]
            part += 1
        for slot in range(n_open):
            if owner[slot] >= 0 and ends[owner[slot]] == t + 1:
                for q in range(Q_a):
                    for state in range(n_states):
                        for j in range(high + 1):
                            now[1 + outputs_a[q], state, j] += now[1 + n_a + slot * Q_a + q, state, j]
                # Its slot is free for the next part: memory grows with the overlap of parts, not with their number.
                owner[slot] = -1
        while place < len(lengths) and lengths[place] == t + 1:
            _add_parts(now, high, n_a, outputs_a, outputs_b, births, owner, t + 1, sums[place])
            place += 1
    return sums


@register_jitable
def _most_open(begins: IntArray, ends: IntArray) -> int:
    """How many parts are open at once at most; both bounds are sorted."""
    most, low = 0, 0
    for k in range(len(begins)):
        while ends[low] <= begins[k]:
            low += 1
        most = max(most, k - low + 1)
    return most


@register_jitable
def _free_slot(owner: IntArray) -> int:
    slot = 0
    while owner[slot] >= 0:
        slot += 1
    return slot


@register_jitable
def _add_parts(
    now: FloatArray,
    high: int,
    n_a: int,
    outputs_a: IntArray,
    outputs_b: IntArray,
    births: IntArray,
    owner: IntArray,
    length: int,
    total: FloatArray,
) -> None:
    """Add the joint law (part, whole) of all parts of a whole that ends here: finished ones, and those cut short."""
    for state in range(now.shape[1]):
        for j in range(high + 1):
            for i in range(n_a):
                total[i, outputs_b[j]] += now[1 + i, state, j]
            for slot in range(len(owner)):
                if owner[slot] >= 0 and births[owner[slot]] < length:
                    for q in range(len(outputs_a)):
                        layer = 1 + n_a + slot * len(outputs_a) + q
                        total[outputs_a[q], outputs_b[j]] += now[layer, state, j]

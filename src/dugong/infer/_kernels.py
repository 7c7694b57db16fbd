"""Compiled loops of the chain engine: forward-backward, Viterbi and sampling over product states.

In: the product as tables (`Machine`), the factors as flat look-up tables (`Laws`), and a block of sequences
with their votes (`Block`). Out: arrays. Probabilities are kept as a float and an integer power of 2 ** 512, so
nothing underflows however long a sequence is and however certain its sources are; exact zeros stay exact.
Single letters: t element, s layer, i and j states, v a value and x its exponent. All in one file, because
numba's disk cache notices changes only in the file of the kernel itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dugong.types import AnyArray, FloatArray, Int8Array, IntArray

_LOW, _HIGH = 2.0**-256, 2.0**256
_UP, _DOWN = 2.0**512, 2.0**-512
_LN2 = 0.6931471805599453

entry = njit(cache=True, nogil=True)
# Called from other kernels only, and without allocating: no wrapper for Python, which takes longer to compile than
# the loop itself, and no reference counting, which takes longer to run.
_BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
inner = njit(cache=True, nogil=True, **_BARE)  # type: ignore[call-overload]  # numba's type stubs lack these options
# Called for every element: inlined, because handing over the tables costs more than reading them.
hot = njit(cache=True, nogil=True, forceinline=True, **_BARE)  # type: ignore[call-overload]


class Machine(NamedTuple):
    """Layers (sizes, first state), what channels see in each state, and steps as sparse matrices."""

    n_coarse: int
    widest: int  # states of the largest layer
    sizes: IntArray
    firsts: IntArray
    codes: IntArray  # (n_channels, states of all layers)
    start_layer: IntArray  # by opening bits, -1 unknown
    start_first: IntArray
    start_weights: FloatArray
    kinds: IntArray  # by closing bits * 2 ** n_coarse + opening bits, -1 unknown
    steps: IntArray  # (n_layers, n_kinds), -1 unknown
    following: IntArray
    step_first: IntArray
    pointers: IntArray
    targets: IntArray
    weights: FloatArray


class Laws(NamedTuple):
    """Look-ups sorted by place (0: elements, then the coarse resolutions), and the channels they fill.

    A look-up is a factor, or a group of factors whose votes are packed into one number.
    """

    factor_first: IntArray  # (n_places + 1)
    channel_first: IntArray  # (n_places + 1) the first channel of a place is its label
    channel_code: IntArray  # (n_channels + 1) where the codes of a channel begin in a buffer
    valid: IntArray  # (n_channels) codes at and above are impossible
    channel: IntArray  # by factor
    table: FloatArray  # flat
    exponent: IntArray  # of the table's values
    first: IntArray  # by factor: where its table begins
    positions: IntArray
    stride: IntArray  # table cells between two positions
    reading_first: IntArray  # (n_factors + 1)
    slot: IntArray  # by reading: place of the packed votes, -1 never asked
    lag: IntArray
    container: IntArray  # by reading: place of the containing task, 0 for the own task
    cells: IntArray  # by reading: table cells between neighbouring values
    absent: IntArray  # by reading: table cells for "not asked"


class Block(NamedTuple):
    """Some sequences: lengths, votes, and where the tasks of every place begin."""

    lengths: IntArray
    packed: AnyArray  # uint16
    slot_first: IntArray
    task_first: IntArray  # (n_places, n_sequences + 1)
    size: IntArray  # by coarse: elements of a window; very large for the sequence; 0 for spans
    stride: IntArray
    span_first: IntArray  # by coarse: where its spans begin
    span_starts: IntArray
    span_stops: IntArray


class Path(NamedTuple):
    """Scratch: the layer, the step out of it and the closing tasks at every element of one sequence."""

    layers: IntArray
    steps: IntArray
    closing: IntArray
    cursor: IntArray  # element, layer, then spans opened so far by coarse


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


@inner
def opening_at(block: Block, sequence: int, t: int, cursor: IntArray) -> int:
    """Bits of the coarse resolutions that have a task beginning at element t."""
    bits = 0
    length = block.lengths[sequence]
    for r in range(len(block.size)):
        if block.size[r] == 0:
            p = cursor[2 + r]
            first = block.task_first[r + 1, sequence]
            more = p < block.task_first[r + 1, sequence + 1] - first
            if more and block.span_starts[block.span_first[r] + first + p] == t:
                bits |= 1 << r
        elif t % block.stride[r] == 0 and (t == 0 or t - block.stride[r] + block.size[r] < length):
            bits |= 1 << r
    return bits


@inner
def closing_at(block: Block, sequence: int, t: int, cursor: IntArray) -> int:
    """Bits of the coarse resolutions that have a task whose last element is t."""
    bits = 0
    length = block.lengths[sequence]
    for r in range(len(block.size)):
        if block.size[r] == 0:
            p = cursor[2 + r] - 1
            if p >= 0:
                first = block.span_first[r] + block.task_first[r + 1, sequence]
                if block.span_stops[first + p] == t + 1:
                    bits |= 1 << r
        elif t + 1 == length or (t + 1 >= block.size[r] and (t + 1 - block.size[r]) % block.stride[r] == 0):
            bits |= 1 << r
    return bits


@inner
def opening_first(block: Block, sequence: int, cursor: IntArray) -> int:
    """Bits of the coarse resolutions that have a task beginning at the first element; sets the cursor back."""
    for r in range(2, len(cursor)):
        cursor[r] = 0
    bits: int = opening_at(block, sequence, cursor[0] * 0, cursor)
    return bits


@inner
def note_opened(bits: int, n_coarse: int, cursor: IntArray) -> None:
    """Count the tasks that have begun."""
    for r in range(n_coarse):
        cursor[2 + r] += bits >> r & 1


@entry
def walk(machine: Machine, block: Block, sequence: int, path: Path) -> int:
    """Follow one sequence through the layers; -1 at its end, or the bits of a start or step not yet known.

    The cursor says where to go on: element (-1 before the start), layer, opened spans.
    """
    cursor = path.cursor
    length = block.lengths[sequence]
    if length == 0:
        return -1
    if cursor[0] < 0:
        bits: int = opening_first(block, sequence, cursor)
        if machine.start_layer[bits] < 0:
            return bits
        cursor[0] = 0
        cursor[1] = machine.start_layer[bits]
        note_opened(bits, machine.n_coarse, cursor)
    t, s = cursor[0], cursor[1]
    while True:
        path.layers[t] = s
        closing = closing_at(block, sequence, t, cursor)
        path.closing[t] = closing
        if t + 1 == length:
            path.steps[t] = -1
            return -1
        bits = (closing << machine.n_coarse) + opening_at(block, sequence, t + 1, cursor)
        kind = machine.kinds[bits]
        step = machine.steps[s, kind] if kind >= 0 else -1
        if step < 0:
            cursor[0] = t
            cursor[1] = s
            return bits
        note_opened(bits, machine.n_coarse, cursor)
        path.steps[t] = step
        s = machine.following[step]
        t += 1


@inner
def container_of(block: Block, sequence: int, place: int, own: int, task: int) -> int:
    """Index, inside the sequence, of the task at `place` that holds the first element of a task; -1 if none."""
    begin: int = task
    if own > 0:
        begin = task * block.stride[own - 1]
        if block.size[own - 1] == 0:
            begin = block.span_starts[block.span_first[own - 1] + block.task_first[own, sequence] + task]
    r = place - 1
    if block.size[r] != 0:
        return begin // int(block.stride[r])
    first = block.span_first[r] + block.task_first[place, sequence]
    low, high = first, block.span_first[r] + block.task_first[place, sequence + 1]
    while low < high:
        middle = (low + high) // 2
        if block.span_stops[middle] > begin:
            high = middle
        else:
            low = middle + 1
    inside = low < block.span_first[r] + block.task_first[place, sequence + 1]
    return low - first if inside and block.span_starts[low] <= begin else -1


@hot
def emit(
    laws: Laws,
    block: Block,
    sequence: int,
    place: int,
    task: int,
    rows: IntArray,
    part: FloatArray,
    power: IntArray,
) -> None:
    """Likelihood of the votes on one task by code, for all channels of its place; table cells by look-up."""
    for c in range(laws.channel_first[place], laws.channel_first[place + 1]):
        for d in range(laws.channel_code[c], laws.channel_code[c + 1]):
            part[d] = 1.0 if d - laws.channel_code[c] < laws.valid[c] else 0.0
            power[d] = 0
    for f in range(laws.factor_first[place], laws.factor_first[place + 1]):
        row = laws.first[f] + min(task, laws.positions[f] - 1) * laws.stride[f]
        for p in range(laws.reading_first[f], laws.reading_first[f + 1]):
            slot, index, where = laws.slot[p], task - laws.lag[p], place
            if laws.container[p] > 0:
                where = laws.container[p]
                index = container_of(block, sequence, where, place, task)
            if slot < 0 or index < 0:
                row += laws.absent[p]
            else:
                cell = block.slot_first[slot] + block.task_first[where, sequence] + index
                row += np.int64(block.packed[cell]) * laws.cells[p]
        rows[f] = row
        c = laws.channel[f]
        first = laws.channel_code[c]
        for d in range(laws.valid[c]):
            v = part[first + d] * laws.table[row + d]
            power[first + d] += laws.exponent[row + d]
            if v < _LOW:
                v *= _UP
                power[first + d] -= 1
            elif v > _HIGH:
                v *= _DOWN
                power[first + d] += 1
            part[first + d] = v


@hot
def scale(v: float, x: int, reference: int) -> float:
    """The value of (v, x) in units of the exponent `reference`, which it does not exceed by much."""
    if x == reference:
        return v
    if x == reference - 1:
        return v * _DOWN
    if x == reference + 1:
        return v * _UP
    return 0.0


@hot
def add_to(values: FloatArray, exponents: IntArray, j: int, v: float, x: int) -> None:
    """Add (v, x) to entry j."""
    if v < _LOW:
        v *= _UP
        x -= 1
    old = exponents[j]
    if values[j] == 0.0:
        values[j] = v
        exponents[j] = x
    elif x == old:
        values[j] += v
    elif x == old - 1:
        values[j] += v * _DOWN
    elif x > old:
        values[j] = v + (values[j] * _DOWN if x == old + 1 else 0.0)
        exponents[j] = x


@hot
def weigh(
    machine: Machine,
    laws: Laws,
    place: int,
    s: int,
    part: FloatArray,
    power: IntArray,
    values: FloatArray,
    exponents: IntArray,
    at: int,
) -> None:
    """Multiply the states of a layer, stored from `at` on, by what the votes on a task of `place` say."""
    first = machine.firsts[s]
    for c in range(laws.channel_first[place], laws.channel_first[place + 1]):
        low = laws.channel_code[c]
        for i in range(machine.sizes[s]):
            d = low + machine.codes[c, first + i]
            v = values[at + i] * part[d]
            if v != 0.0:
                x = exponents[at + i] + power[d]
                if v < _LOW:
                    v *= _UP
                    x -= 1
                elif v > _HIGH:
                    v *= _DOWN
                    x += 1
                exponents[at + i] = x
            values[at + i] = v


@inner
def forward(
    machine: Machine,
    laws: Laws,
    block: Block,
    sequence: int,
    path: Path,
    offsets: IntArray,
    alpha: FloatArray,
    power: IntArray,
    rows: IntArray,
    part: FloatArray,
    part_power: IntArray,
    done: IntArray,
) -> None:
    """P(state at t, votes up to t) for all t, from ``offsets[t]`` on; `done` counts closed tasks by place."""
    fill(done, len(done), 0)
    for t in range(block.lengths[sequence]):
        s, at = path.layers[t], offsets[t]
        for i in range(machine.sizes[s]):
            alpha[at + i] = 0.0
            power[at + i] = 0
        if t == 0:
            start = machine.start_first[opening_first(block, sequence, path.cursor)]
            for i in range(machine.sizes[s]):
                alpha[at + i] = machine.start_weights[start + i]
        else:
            push(machine, path.layers[t - 1], path.steps[t - 1], alpha, power, offsets[t - 1], at)
        for place in range(machine.n_coarse + 1):
            task = t
            if place > 0:
                if not path.closing[t] >> (place - 1) & 1:
                    continue
                task = done[place - 1]
                done[place - 1] += 1
            emit(laws, block, sequence, place, task, rows, part, part_power)
            weigh(machine, laws, place, s, part, part_power, alpha, power, at)


@hot
def push(machine: Machine, s: int, step: int, values: FloatArray, exponents: IntArray, at: int, to: int) -> None:
    """One step of the chain, from the states stored at `at` to those stored at `to`."""
    first = machine.step_first[step]
    for i in range(machine.sizes[s]):
        v = values[at + i]
        if v != 0.0:
            x = exponents[at + i]
            for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
                add_to(values, exponents, to + machine.targets[e], v * machine.weights[e], x)


@inner
def fill(array: FloatArray | IntArray, size: int, value: float) -> None:
    """Set the first entries of an array."""
    for i in range(size):
        array[i] = value


@inner
def total_of(values: FloatArray, exponents: IntArray, at: int, size: int) -> tuple[float, int]:
    """Sum of some entries as value and exponent."""
    top = exponents[at]
    for i in range(at, at + size):
        if values[i] != 0.0 and exponents[i] > top:
            top = exponents[i]
    total = 0.0
    for i in range(at, at + size):
        if values[i] != 0.0:
            total += scale(values[i], exponents[i], top)
    return total, top


@inner
def lay_out(machine: Machine, path: Path, length: int, offsets: IntArray) -> int:
    """Where the states of every element begin in the scratch of a sequence; returns their number."""
    total = 0
    for t in range(length):
        offsets[t] = total
        total += machine.sizes[path.layers[t]]
    return total


@inner
def paths_are_alike(block: Block) -> bool:
    """Whether sequences of one length take one path: true unless tasks were given as spans."""
    n_given = 0
    for r in range(len(block.size)):
        n_given += block.size[r] == 0
    return n_given == 0


@entry
def smooth(
    machine: Machine,
    laws: Laws,
    block: Block,
    path: Path,
    out: FloatArray,
    out_first: IntArray,
    likelihood: FloatArray,
    counts: FloatArray,
    initial: FloatArray,
    transitions: FloatArray,
) -> int:
    """Posterior marginals of all tasks of a block, and expected counts if `counts` is not empty.

    `out_first` (n_places): where the marginals of a place begin in `out`, -1 if they are not wanted.
    Returns -1, or the first sequence that is impossible under the model.
    """
    n_codes = laws.channel_code[-1]
    part, mass = np.empty(n_codes), np.empty(n_codes)
    part_power = np.empty(n_codes, dtype=np.int64)
    rows = np.empty(len(laws.first), dtype=np.int64)
    done = np.empty(machine.n_coarse, dtype=np.int64)
    offsets = np.empty(len(path.layers), dtype=np.int64)
    alpha, power = np.empty(0), np.empty(0, dtype=np.int64)
    widest, origin = machine.widest, len(path.layers) * 0
    beta, gamma = np.empty(widest), np.empty(widest)
    beta_power, scratch = np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.int64)
    alike, walked, needed = paths_are_alike(block), -1, 0
    for sequence in range(len(block.lengths)):
        length = block.lengths[sequence]
        likelihood[sequence] = 0.0
        if length == 0:
            continue
        if length != walked:
            path.cursor[0] = -1
            walk(machine, block, sequence, path)
            needed = lay_out(machine, path, length, offsets)
            walked = length if alike else -1
        if needed > len(alpha):
            alpha, power = np.empty(needed), np.empty(needed, dtype=np.int64)
        forward(machine, laws, block, sequence, path, offsets, alpha, power, rows, part, part_power, done)
        last = machine.sizes[path.layers[length - 1]]
        z, zx = total_of(alpha, power, offsets[length - 1], last)
        if not z > 0.0:
            return sequence
        likelihood[sequence] = np.log(z) + zx * 512.0 * _LN2
        fill(beta, last, 1.0)
        fill(beta_power, last, 0)
        for t in range(length - 1, -1, -1):
            s, at = path.layers[t], offsets[t]
            posterior_of(alpha, power, at, machine.sizes[s], beta, beta_power, zx, gamma)
            for place in range(machine.n_coarse + 1):
                task = t
                if place > 0:
                    if not path.closing[t] >> (place - 1) & 1:
                        continue
                    done[place - 1] -= 1
                    task = done[place - 1]
                collect(machine, laws, place, s, gamma, mass)
                if out_first[place] >= 0:
                    n_labels = laws.valid[laws.channel_first[place]]
                    cell = out_first[place] + (block.task_first[place, sequence] + task) * n_labels
                    low = laws.channel_code[laws.channel_first[place]]
                    for d in range(n_labels):
                        out[cell + d] = mass[low + d]
                emit(laws, block, sequence, place, task, rows, part, part_power)
                weigh(machine, laws, place, s, part, part_power, beta, beta_power, origin)
                if len(counts) > 0:
                    count(laws, place, rows, mass, counts)
            if t == 0:
                if len(counts) > 0:
                    for i in range(machine.sizes[s]):
                        initial[machine.codes[0, machine.firsts[s] + i]] += gamma[i]
                continue
            before, step = path.layers[t - 1], path.steps[t - 1]
            if len(counts) > 0:
                pair(machine, before, s, step, alpha, power, offsets[t - 1], beta, beta_power, zx, transitions)
            pull(machine, before, step, beta, beta_power, gamma, scratch)
    return -1


@hot
def posterior_of(
    alpha: FloatArray,
    power: IntArray,
    at: int,
    size: int,
    beta: FloatArray,
    beta_power: IntArray,
    reference: int,
    gamma: FloatArray,
) -> None:
    """P(state | all votes) of one layer, normalised."""
    total = 0.0
    for i in range(size):
        gamma[i] = scale(alpha[at + i] * beta[i], power[at + i] + beta_power[i], reference)
        total += gamma[i]
    for i in range(size):
        gamma[i] /= total


@hot
def collect(machine: Machine, laws: Laws, place: int, s: int, gamma: FloatArray, mass: FloatArray) -> None:
    """Sum the posterior of states by the codes that the channels of a place see."""
    first = machine.firsts[s]
    for c in range(laws.channel_first[place], laws.channel_first[place + 1]):
        low = laws.channel_code[c]
        for d in range(low, laws.channel_code[c + 1]):
            mass[d] = 0.0
        for i in range(machine.sizes[s]):
            mass[low + machine.codes[c, first + i]] += gamma[i]


@inner
def count(laws: Laws, place: int, rows: IntArray, mass: FloatArray, counts: FloatArray) -> None:
    """Add the posterior of the codes to the cells that the votes point at."""
    for f in range(laws.factor_first[place], laws.factor_first[place + 1]):
        c = laws.channel[f]
        low = laws.channel_code[c]
        for d in range(laws.valid[c]):
            counts[rows[f] + d] += mass[low + d]


@inner
def pair(
    machine: Machine,
    before: int,
    s: int,
    step: int,
    alpha: FloatArray,
    power: IntArray,
    at: int,
    beta: FloatArray,
    beta_power: IntArray,
    reference: int,
    transitions: FloatArray,
) -> None:
    """Add P(label before, label after | votes); `beta` already includes the votes at the later element."""
    first = machine.step_first[step]
    total = 0.0
    for i in range(machine.sizes[before]):
        for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
            j = machine.targets[e]
            v = alpha[at + i] * beta[j] * machine.weights[e]
            total += scale(v, power[at + i] + beta_power[j], reference)
    for i in range(machine.sizes[before]):
        a = machine.codes[0, machine.firsts[before] + i]
        for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
            j = machine.targets[e]
            v = alpha[at + i] * beta[j] * machine.weights[e]
            b = machine.codes[0, machine.firsts[s] + j]
            transitions[a, b] += scale(v, power[at + i] + beta_power[j], reference) / total


@hot
def pull(
    machine: Machine,
    before: int,
    step: int,
    beta: FloatArray,
    beta_power: IntArray,
    values: FloatArray,
    exponents: IntArray,
) -> None:
    """One step of the chain backwards, in place; the last two are scratch."""
    first = machine.step_first[step]
    size = machine.sizes[before]
    for i in range(size):
        values[i] = 0.0
        for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
            j = machine.targets[e]
            if beta[j] != 0.0:
                add_to(values, exponents, i, beta[j] * machine.weights[e], beta_power[j])
    for i in range(size):
        beta[i] = values[i]
        beta_power[i] = exponents[i]


@entry
def decode(machine: Machine, laws: Laws, block: Block, path: Path, labels: Int8Array) -> int:
    """Class indices of the most likely joint labels of every sequence (Viterbi)."""
    n_codes = laws.channel_code[-1]
    part, logs, power = np.empty(n_codes), np.empty(n_codes), np.empty(n_codes, dtype=np.int64)
    rows = np.empty(len(laws.first), dtype=np.int64)
    done = np.empty(machine.n_coarse, dtype=np.int64)
    offsets = np.empty(len(path.layers), dtype=np.int64)
    origin = np.empty(0, dtype=np.int32)
    widest = machine.widest
    score, ahead = np.empty(widest), np.empty(widest)
    alike, walked, needed = paths_are_alike(block), -1, 0
    for sequence in range(len(block.lengths)):
        length = block.lengths[sequence]
        if length == 0:
            continue
        if length != walked:
            path.cursor[0] = -1
            walk(machine, block, sequence, path)
            needed = lay_out(machine, path, length, offsets)
            walked = length if alike else -1
        if needed > len(origin):
            origin = np.empty(needed, dtype=np.int32)
        fill(done, len(done), 0)
        for t in range(length):
            s = path.layers[t]
            if t == 0:
                start = machine.start_first[opening_first(block, sequence, path.cursor)]
                for i in range(machine.sizes[s]):
                    score[i] = np.log(machine.start_weights[start + i])
            else:
                best_origins(machine, path.layers[t - 1], s, path.steps[t - 1], score, ahead, origin, offsets[t])
            for place in range(machine.n_coarse + 1):
                task = t
                if place > 0:
                    if not path.closing[t] >> (place - 1) & 1:
                        continue
                    task = done[place - 1]
                    done[place - 1] += 1
                emit(laws, block, sequence, place, task, rows, part, power)
                for c in range(laws.channel_first[place], laws.channel_first[place + 1]):
                    for d in range(laws.channel_code[c], laws.channel_code[c + 1]):
                        logs[d] = np.log(part[d]) + power[d] * 512.0 * _LN2
                    for i in range(machine.sizes[s]):
                        score[i] += logs[laws.channel_code[c] + machine.codes[c, machine.firsts[s] + i]]
        i = 0
        for j in range(machine.sizes[path.layers[length - 1]]):
            if score[j] > score[i]:
                i = j
        if score[i] == -np.inf:
            return sequence
        for t in range(length - 1, -1, -1):
            labels[block.task_first[0, sequence] + t] = machine.codes[0, machine.firsts[path.layers[t]] + i]
            i = origin[offsets[t] + i] if t > 0 else 0
    return -1


@inner
def best_origins(
    machine: Machine,
    before: int,
    s: int,
    step: int,
    score: FloatArray,
    ahead: FloatArray,
    origin: IntArray,
    at: int,
) -> None:
    """Best score of every state of the next layer, and where it comes from; ties go to the first origin."""
    first = machine.step_first[step]
    for j in range(machine.sizes[s]):
        ahead[j] = -np.inf
        origin[at + j] = 0
    for i in range(machine.sizes[before]):
        for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
            j = machine.targets[e]
            v = score[i] + np.log(machine.weights[e])
            if v > ahead[j]:
                ahead[j] = v
                origin[at + j] = i
    for j in range(machine.sizes[s]):
        score[j] = ahead[j]


@entry
def draw(machine: Machine, laws: Laws, block: Block, path: Path, uniforms: FloatArray, labels: Int8Array) -> int:
    """Class indices of labels drawn from the posterior, shape (n_draws, n_elements), one uniform each."""
    n_codes = laws.channel_code[-1]
    part = np.empty(n_codes)
    part_power = np.empty(n_codes, dtype=np.int64)
    rows = np.empty(len(laws.first), dtype=np.int64)
    done = np.empty(machine.n_coarse, dtype=np.int64)
    offsets = np.empty(len(path.layers), dtype=np.int64)
    widest = machine.widest
    value, exponent = np.empty(widest), np.empty(widest, dtype=np.int64)
    alike, walked, needed = paths_are_alike(block), -1, 0
    for sequence in range(len(block.lengths)):
        length = block.lengths[sequence]
        if length == 0:
            continue
        if length != walked:
            path.cursor[0] = -1
            walk(machine, block, sequence, path)
            needed = lay_out(machine, path, length, offsets)
            walked = length if alike else -1
        alpha, power = np.empty(needed), np.empty(needed, dtype=np.int64)
        forward(machine, laws, block, sequence, path, offsets, alpha, power, rows, part, part_power, done)
        size = machine.sizes[path.layers[length - 1]]
        if not total_of(alpha, power, offsets[length - 1], size)[0] > 0.0:
            return sequence
        for k in range(len(uniforms)):
            state = -1
            for t in range(length - 1, -1, -1):
                s, at = path.layers[t], offsets[t]
                size = machine.sizes[s]
                for i in range(size):
                    value[i] = alpha[at + i]
                    exponent[i] = power[at + i]
                if state >= 0:
                    restrict(machine, s, path.steps[t], state, value)
                element = block.task_first[0, sequence] + t
                state = pick(value, exponent, size, uniforms[k, element])
                labels[k, element] = machine.codes[0, machine.firsts[s] + state]
    return -1


@inner
def restrict(machine: Machine, s: int, step: int, target: int, value: FloatArray) -> None:
    """Weigh the states of a layer by the probability that the next state is `target`."""
    first = machine.step_first[step]
    for i in range(machine.sizes[s]):
        weight = 0.0
        for e in range(machine.pointers[first + i], machine.pointers[first + i + 1]):
            if machine.targets[e] == target:
                weight += machine.weights[e]
        value[i] *= weight


@inner
def pick(value: FloatArray, exponent: IntArray, size: int, uniform: float) -> int:
    """A state drawn in proportion to its weight."""
    total, top = total_of(value, exponent, 0, size)
    left = uniform * total
    last = 0
    for i in range(size):
        weight = scale(value[i], exponent[i], top) if value[i] != 0.0 else 0.0
        if weight > 0.0:
            last = i
            left -= weight
            if left < 0.0:
                return i
    return last

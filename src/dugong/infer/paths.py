"""The way of a block of sequences through the product, as tables for the kernels.

In: layouts of the block and the `Machine`. Out: `Paths`. Sequences that take the same way share its rows. Along it, the
votes on a task are *weighed* when its last element is reached: its own right away, then those of coarse tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.infer.crossings import different_paths
from dugong.infer.emissions import Codes
from dugong.infer.machine import Machine, cumulated
from dugong.tasks import Layout
from dugong.types import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Tables of a block; the kernels name their columns.

    Attributes
    ----------
    sequences : (n_sequences, 2 + n_channels) length; row where its path begins; where the likelihoods of its tasks
        begin, by channel
    rows : (n_rows + 1, 3) by element of a path: number of states; where the step to it begins in `Machine.pointers`;
        its first weighing (as many as up to that of the next row)
    weighings : (n_weighings, 3) where the codes of the states begin; channel; place among the sequence's likelihoods
    n_states : states of all elements of the longest path
    widest : states of the largest layer
    """

    sequences: IntArray
    rows: IntArray
    weighings: IntArray
    n_states: int
    widest: int


def find_paths(layouts: tuple[Layout, ...], machine: Machine, codes: Codes) -> Paths:
    """The paths of all sequences of a block."""
    # Sequences of one length share a path, so that tables are by path and not by sequence.
    ways, begins = different_paths(layouts)
    steps = machine.steps_along(ways)
    layers = machine.following[steps]
    counts, weighings = _weighings(ways, layers, machine, codes)
    rows = np.zeros((len(steps) + 1, 3), dtype=np.int64)
    rows[:-1, 0] = machine.sizes[layers]
    rows[:-1, 1] = machine.step_first[steps]
    rows[:, 2] = cumulated(counts)
    ends = cumulated(rows[:-1, 0])[ways[0].offsets]
    return Paths(
        sequences=np.column_stack([layouts[0].lengths, begins, *codes.begins(layouts)]).astype(np.int64),
        rows=rows,
        weighings=weighings,
        n_states=int(np.diff(ends).max(initial=0)),
        widest=int(machine.sizes.max()),
    )


def _weighings(ways: tuple[Layout, ...], layers: IntArray, machine: Machine, codes: Codes) -> tuple[IntArray, IntArray]:
    """How many tasks are weighed at every element, and the weighings, by element and channel."""
    # A task is weighed at its last element, because its label is known then.
    last = [layout.flat_bounds()[1] - 1 for layout in ways]
    counts = np.zeros(len(layers), dtype=np.int64)
    for place in codes.places:
        counts[last[place]] += 1
    free = np.cumsum(counts) - counts
    table = np.empty((int(counts.sum()), 3), dtype=np.int64)
    for channel, (place, width) in enumerate(zip(codes.places, codes.widths, strict=True)):
        at = free[last[place]]
        table[at, 0] = machine.code_first[layers[last[place]]] + channel * machine.codes.shape[1]
        table[at, 1] = channel
        table[at, 2] = ways[place].positions() * width
        free[last[place]] += 1
    return counts, table

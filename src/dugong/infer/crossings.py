"""Which tasks close and open along a sequence, as bits: all that decides its path through the product of automata.

In: layouts of the elements and of the coarse resolutions. Out: one number per element. Sequences of one length take one
path, unless tasks were given as spans.
"""

from __future__ import annotations

import numpy as np

from dugong.tasks import Layout
from dugong.types import BoolArray, IntArray


def find_crossings(layouts: tuple[Layout, ...]) -> tuple[IntArray, BoolArray]:
    """For every element, what happens before it is read, and whether it is the first of its sequence.

    Bit r of the first result says that a task of coarse resolution r opens; as many bits higher, that one has closed.
    """
    elements, n_coarse = layouts[0], len(layouts) - 1
    bits = np.zeros(elements.n_tasks + 1, dtype=np.int64)
    for r, layout in enumerate(layouts[1:]):
        opened, closed = layout.flat_bounds()
        bits[opened] |= 1 << r
        bits[closed] |= 1 << (n_coarse + r)
    starts = np.zeros(elements.n_tasks, dtype=np.bool_)
    starts[elements.offsets[:-1][elements.lengths > 0]] = True
    bits = bits[:-1]
    bits[starts] &= (1 << n_coarse) - 1  # what closes at the end of a sequence does not concern the next one
    return bits, starts


def different_paths(layouts: tuple[Layout, ...]) -> tuple[tuple[Layout, ...], IntArray]:
    """Layouts of one sequence for every path that is taken, and where each sequence's path begins in them."""
    elements = layouts[0]
    if any(layout.spans is not None for layout in layouts):
        return layouts, elements.offsets[:-1]
    if len(layouts) == 1:  # without coarse tasks, every path is the beginning of the longest one
        lengths, which = elements.lengths.max(initial=0, keepdims=True), np.zeros(len(elements.lengths), dtype=np.int64)
    else:
        lengths, which = np.unique(elements.lengths, return_inverse=True)
    paths = tuple(Layout.of(layout.resolution, lengths) for layout in layouts)
    return paths, paths[0].offsets[:-1][which]

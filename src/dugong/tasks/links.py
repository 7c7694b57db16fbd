"""How the label of a window, span or sequence follows from the labels of its elements.

In: one label per element (0 where it is unknown) and a layout. Out: -1, +1 or 0 (unknown) per task, by the
link *any*, *all* or strict *majority*. A *joint* link is tied to the elements by a prior only, so nothing
follows. (Paper, section 2.1: the tasks at the coarser resolutions.)

Read one element at a time, a link is an automaton that keeps a small integer. Inference and the exact moments of priors
both run products of these automata, so there is one definition of every link.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.exceptions import TaskError
from dugong.tasks.layout import Layout
from dugong.tasks.resolutions import Element, describe
from dugong.types import BoolArray, Int8Array, IntArray, Link


def link_labels(labels: ArrayLike, layout: Layout, positive: int = 1) -> Int8Array:
    """Labels of all tasks of a layout, from the labels of all elements.

    Parameters
    ----------
    labels : (n_elements,) class values, 0 where unknown
    layout : Layout
        Where the tasks lie.
    positive : int
        The class that counts as positive: +1 with two classes, the class of ``of=`` with more.

    Returns
    -------
    (n_tasks,) int8
        The element labels themselves for `Element`; otherwise +1, -1, or 0 where the known elements leave
        the task open.
    """
    flat = np.asarray(labels, dtype=np.int8)
    n_elements = int(layout.lengths.sum())
    if flat.shape != (n_elements,):
        raise TaskError(f"there must be one label per element, {n_elements} in all; found shape {flat.shape}.")
    if isinstance(layout.resolution, Element):
        return flat
    link = layout.resolution.link
    if link == "joint":
        raise TaskError(
            f"labels of {describe(layout.resolution)} do not follow from the elements: a joint link has its "
            "own labels.\n  Give the labels at this resolution."
        )
    starts, stops = layout.flat_bounds()
    n_positive = count_inside(flat == positive, starts, stops)
    n_negative = count_inside((flat != positive) & (flat != 0), starts, stops)
    yes, no = forced(link, n_positive, n_negative, stops - starts)
    return np.asarray(yes.astype(np.int8) - no.astype(np.int8))


def count_inside(flags: BoolArray, starts: IntArray, stops: IntArray) -> IntArray:
    """How many flags are set in each half-open span."""
    before = np.zeros(len(flags) + 1, dtype=np.int64)
    np.cumsum(flags, out=before[1:])
    return np.asarray(before[stops] - before[starts])


def forced(link: Link, n_positive: IntArray, n_negative: IntArray, size: IntArray) -> tuple[BoolArray, BoolArray]:
    """Whether so many positive elements make a task positive, and so many negative ones make it negative."""
    if link == "any":
        return n_positive > 0, n_negative == size
    if link == "all":
        return n_positive == size, n_negative > 0
    if link == "majority":
        return 2 * n_positive > size, 2 * n_negative >= size
    raise TaskError(f"the link {link!r} does not tie a task to its elements; use any, all or majority.")


def start(link: Link) -> int:
    """State before the first element."""
    if link == "joint":
        raise TaskError(
            'the link "joint" ties a task to its elements only through a priors.Joint table.\n'
            "  Give such a table as the prior."
        )
    return 1 if link == "all" else 0


def step(link: Link, state: Any, positive: Any) -> Any:
    """State after one more element: of numbers as of arrays."""
    if link == "any":
        return state | positive
    if link == "all":
        return state & positive
    return state + 2 * positive - 1


def accept(link: Link, state: Any) -> Any:  # noqa: ARG001  (every link accepts alike, a fact of these three)
    """Whether the piece read so far is positive. Majority: strictly more positive than other elements."""
    return state > 0

"""Labels of windows that overlap closely: each is counted together with the windows before and after it.

In: a chain with the sites of all groups of windows, where propagation ended. Out: probabilities of the windows. A site
knows pairs of elements only, while the count of a window varies with those of its neighbours. With both neighbours
counted beside it, and all others left to their sites, the error of a window's label is half as large.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from dugong.infer.grouped.local import MOST_SHIFT, LocalChain, WindowGroup, joined
from dugong.infer.grouped.trios import _kernels as kernels
from dugong.types import AnyArray, FloatArray, IntArray

_NEVER = 1 << 60
_MOST_STATES = 4  # the work grows with their third power


def refine(local: LocalChain, groups: list[WindowGroup], total: FloatArray, sites: list[AnyArray]) -> list[FloatArray]:
    """Probabilities that windows exceed their thresholds, by group; no numbers for a group without trios.

    `groups` are those of one resolution, in the order of their windows, and `sites` what they do to the chain `total`.
    """
    every = joined(groups)
    trios, factors = _make_trios(local, every)
    shift = int(np.diff(trios[:, :, 0], axis=1).max(initial=0))
    if shift > MOST_SHIFT or local.n_states > _MOST_STATES or not _lie_apart(trios, local, len(groups)):
        return [np.zeros(0) for _ in groups]
    S, longest = local.n_states, int((every.windows[:, 1] - every.windows[:, 0]).max(initial=0))
    rows, columns = max(shift, 1) + 1, longest + 2
    room, sizes = np.empty(2 * rows * rows * S * columns), np.array([rows, columns, 0, 0, 0])
    found = []
    for place, group in enumerate(groups):
        # Neighbouring windows are in neighbouring groups.
        near = [sites[(place + step) % len(groups)] for step in (-1, 0, 1)]
        cavity = reduce(np.divide, near, total)
        own = np.searchsorted(every.tasks, group.tasks)
        law, alpha = np.empty((len(own), 3, S, S)), np.empty((len(own) + 2, S))
        positive = np.full(len(own), np.nan)
        spans = local.spans(group.windows)
        kernels.smooth_trios(cavity, spans, trios[own], factors[own], group.counted, room, sizes, law, alpha, positive)
        found.append(positive)
    return found


def _make_trios(local: LocalChain, every: WindowGroup) -> tuple[IntArray, FloatArray]:
    """Windows before, at and after every place, (W, 3, 3), and their factors, (W, 3, 2).

    At the ends of a sequence a window that counts nothing stands for the missing one.
    """
    owners = np.searchsorted(local.offsets, every.windows[:, 0], side="right")
    same = np.diff(owners) == 0
    trios = np.repeat(every.windows[:, None], 3, axis=1)
    factors = np.ones((len(owners), 3, 2))
    trios[:, [0, 2], 2] = _NEVER
    factors[:, 1] = every.factors
    later, earlier = np.flatnonzero(same) + 1, np.flatnonzero(same)
    trios[later, 0], factors[later, 0] = every.windows[later - 1], every.factors[later - 1]
    trios[earlier, 2], factors[earlier, 2] = every.windows[earlier + 1], every.factors[earlier + 1]
    return trios, factors


def _lie_apart(trios: IntArray, local: LocalChain, period: int) -> bool:
    """Whether trios around windows so many apart share no element."""
    begin, end = trios[:, 0, 0], trios[:, 2, 1]
    owners = np.searchsorted(local.offsets, begin, side="right")
    same = owners[period:] == owners[:-period]
    return period >= 3 and bool((begin[period:] >= end[:-period])[same].all())

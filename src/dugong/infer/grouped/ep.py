"""Windows that overlap: expectation propagation between groups of windows that do not (METHOD 8).

In: a local chain and several groups of windows. Out: one chain, whose pairs of states are near those of the posterior.
Each group in turn is counted exactly while all others are replaced by what they last did to the chain (their *site*):
its posterior P(after | before) becomes the chain, and the ratio to what the chain was without the group its new site.
Costs add over groups, where those of a product of automata multiply.

Differs from the textbook in one respect: a site is P over the weights themselves, not over their conditional law. The
two differ by a factor h(before) / h'(after), which cancels along a sequence, and saves a pass per group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.infer.grouped import _kernels as kernels
from dugong.infer.grouped.local import LocalChain, WindowGroup, pool
from dugong.infer.grouped.passes import Pass
from dugong.infer.grouped.trios import refine
from dugong.types import AnyArray, BoolArray, FloatArray
from dugong.votes import Votes

MOST_SWEEPS = 12
CLOSE = 1e-2  # largest change of a probability in the last sweep; smaller ones gain nothing measurable
_LEAST = 1e-30  # a window may be all but impossible: certainty cannot be taken back by later sweeps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Propagated:
    """Where propagation ended.

    Attributes
    ----------
    steps : (n_elements, S, S) the chain with all sites
    pairs : (n_elements, S, S) its posterior of pairs of states
    positive : by group, (W,) probability that a window exceeds its threshold
    logs : (n_sequences,) estimate of the log-likelihood, by expectation propagation
    sweeps : (n_sequences,) how many each took
    change : (n_sequences,) largest change of a probability in the last of them
    """

    steps: FloatArray
    pairs: FloatArray
    positive: list[FloatArray]
    logs: FloatArray
    sweeps: FloatArray
    change: FloatArray


def propagate_all(
    local: LocalChain, groups: list[WindowGroup], votes: Votes, begin: int
) -> tuple[list[WindowGroup], Propagated]:
    """Propagate between groups, of which neighbours share what they know where they are very many.

    Returns the groups whose windows have a probability in `positive`: not all windows, if some share.
    """
    pooled = [
        pool([group for group in groups if group.place == place], local.offsets)
        for place in dict.fromkeys(group.place for group in groups)
    ]
    sharing, between = ([one for pair in pooled for one in pair[which]] for which in (0, 1))
    found = propagate(local, sharing, votes, begin)
    active, room = np.diff(local.offsets) > 0, np.empty(local.steps.shape if between else (0, 0, 0))
    read = [Pass.over(local, one).smooth(found.steps, room, active, votes, begin).positive[:, 1] for one in between]
    return [*sharing, *between], replace(found, positive=[*found.positive, *read])


def propagate(local: LocalChain, groups: list[WindowGroup], votes: Votes, begin: int) -> Propagated:
    """Sweep over the groups, forth and back, until no probability changes by more than `CLOSE`.

    Every sequence stops by itself, so that its labels do not depend on what else is in the block.
    """
    n_sequences, plain = len(local.offsets) - 1, Pass.over(local, None)
    passes = [Pass.over(local, group) for group in groups]
    for before, one in zip([plain, *passes], passes, strict=False):
        one.group = one.group._replace(factors=np.maximum(one.group.factors, _LEAST))
        one.share(before)
    total, cavity = local.steps.copy(), local.steps.copy()
    sites: list[AnyArray] = [
        np.ones(total.shape, dtype=np.float32) for _ in groups
    ]  # half the memory of the largest arrays
    pairs, inside = np.empty(total.shape), np.empty(total.shape)
    positive = [np.empty(len(group.windows)) for group in groups]
    parts = np.zeros((len(groups), n_sequences))
    active, sweeps, change = np.diff(local.offsets) > 0, np.zeros(n_sequences), np.zeros(n_sequences)
    # The labels without any window are what the first sweep's are compared with.
    plain.smooth(total, pairs, active, votes, begin)
    for sweep in range(MOST_SWEEPS):
        # Forth and back, because the last group of a sweep has seen more than the first.
        order = range(len(groups)) if sweep % 2 == 0 else range(len(groups) - 1, -1, -1)
        for place in order:
            one = passes[place]
            kernels.take_out(total, sites[place], one.spans, active, cavity)
            found = one.smooth(cavity, inside, active, votes, begin)
            parts[place, active] = found.logs[active]
            _keep(positive[place], found.positive[:, 0], one, active)
            kernels.put_in(inside, cavity, total, sites[place], sweep > 0, one.spans, active)
        np.copyto(inside, pairs)  # what the labels were before this sweep
        log_total = plain.smooth(total, pairs, active, votes, begin).logs
        kernels.changes(pairs, inside, plain.spans, active, change)
        sweeps += active
        if sweep == 0:
            whole = log_total.copy()
        whole[active] = log_total[active]
        active = active & (change > CLOSE)
        if not active.any():
            break
    _refine(local, groups, total, sites, positive)
    # Each group's own evidence over that of the chain: scales of single sites cancel in this sum.
    logs = whole + (parts - whole).sum(axis=0)
    return Propagated(steps=total, pairs=pairs, positive=positive, logs=logs, sweeps=sweeps, change=change)


def _refine(
    local: LocalChain, groups: list[WindowGroup], total: FloatArray, sites: list[AnyArray], positive: list[FloatArray]
) -> None:
    """Windows take their probability beside both neighbours, where that is counted."""
    for place in dict.fromkeys(group.place for group in groups):
        own = [which for which, group in enumerate(groups) if group.place == place]
        found = refine(local, [groups[which] for which in own], total, [sites[which] for which in own])
        for which, better in zip(own, found, strict=True):
            if len(better):
                np.copyto(positive[which], better, where=~np.isnan(better))


def _keep(kept: FloatArray, found: FloatArray, one: Pass, active: BoolArray) -> None:
    """Windows of active sequences take their new probability."""
    owner = np.searchsorted(one.spans[:, 3], np.arange(len(found)), side="right")
    kept[active[owner]] = found[active[owner]]

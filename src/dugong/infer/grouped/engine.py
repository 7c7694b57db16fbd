"""The window engine: every group of windows that lie apart is counted exactly; between groups, propagation.

In: prepared votes. Out: an engine (see `runs`). Exact for a chain alone (with sources that repeat themselves), for
windows without overlap, spans and whole sequences of one resolution, and for any resolution that is asked about and
has no votes beside those on elements. Otherwise approximate; `audit` says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dugong.infer.blocks import report_impossible
from dugong.infer.grouped import _kernels as kernels
from dugong.infer.grouped.ep import propagate_all
from dugong.infer.grouped.local import (
    LocalChain,
    WindowGroup,
    label_pairs,
    label_parts,
    make_groups,
    make_local,
    n_groups,
    spread,
    states_of,
)
from dugong.infer.grouped.passes import Pass
from dugong.infer.potentials import sum_by_sequence
from dugong.infer.prepare import Prepared, VotesBlock
from dugong.infer.runs import BlockAnswer
from dugong.tasks import Element
from dugong.types import FloatArray, Int8Array

MOST_STATES = 32
_LEAST_STEP = 1e-30  # with steps at least this likely no state stays behind by more than numbers can hold
_RANGE = 500.0  # logarithm of the range of numbers, with room to spare
_CELLS = 1 << 21  # cells of the steps of one block


@dataclass(frozen=True, eq=False)
class WindowEngine:
    """Votes as a chain of steps with groups of windows."""

    prepared: Prepared

    @cached_property
    def n_states(self) -> int:
        """States of the label chain."""
        return states_of(self.prepared.chain, self.prepared.lag)[0].n_states

    @property
    def block_size(self) -> int:
        """Elements of one block."""
        # Without tables of steps there is little memory per element, and calls cost more than the caches give.
        return 1 << 15 if self._looks_back else int(np.clip(_CELLS // self.n_states**2, 1 << 10, 1 << 13))

    @property
    def n_groups(self) -> int:
        """Groups of windows with votes."""
        layouts = dict(zip(self.prepared.resolutions, self.prepared.layouts, strict=True))
        return sum(n_groups(layouts[resolution]) for resolution in self.prepared.voted)

    @property
    def exact(self) -> bool:
        """Whether answers are exact."""
        others = set(self.prepared.resolutions[1:]) - set(self.prepared.voted)
        return self.n_groups == 0 or (self.n_groups == 1 and not others)

    def fits(self) -> bool:
        """Whether this engine can answer at all: nothing looks at the label of a coarser task or of an earlier one."""
        channels = self.prepared.codes.channels
        return (
            all(c.parent is None and (c.lag == 0 or isinstance(c.resolution, Element)) for c in channels)
            and all(one.link != "joint" for one in self.prepared.resolutions[1:] if not isinstance(one, Element))
            and self.n_states <= MOST_STATES
        )

    def is_safe(self) -> bool:
        """Whether no number can get lost that later evidence would bring back: plain numbers are then exact.

        Either the range of all evidence of a sequence can be held; or every step forgets (all are possible), and inside
        a window no vote on it is so sharp that it outweighs what was lost.
        """
        prepared = self.prepared
        elements = [one for one in prepared.lookups if isinstance(one.channel.resolution, Element)]
        coarse = [one for one in prepared.lookups if not isinstance(one.channel.resolution, Element)]
        step = _log_range(prepared.chain.transition) + _log_range(prepared.chain.initial)
        step += sum(_log_range(one.table) for one in elements) + _soft_range(prepared.potentials)
        longest = int(prepared.votes.lengths.max(initial=0))
        sharpest = sum(_log_range(one.table) for one in coarse)
        if longest * (step + sharpest) <= _RANGE:
            return True
        late = [one for one in elements if one.channel.lag]
        forgets = prepared.chain.transition.min() >= _LEAST_STEP and all(one.table.min() > 0 for one in late)
        forgets = forgets and sum(_log_range(one.table) for one in late) <= 60
        # What was lost has less than 1e-300 of the weight: votes on a window must not bring it back.
        mild = sharpest <= 300 and all(one.table.min() > 0 for one in coarse)
        return bool(forgets and (mild or self.widest * step + sharpest <= _RANGE))

    @property
    def widest(self) -> int:
        """Elements of the largest task with votes."""
        sizes = [np.subtract(*layout.bounds()[::-1]).max(initial=0) for layout in self.prepared.layouts[1:]]
        return int(max(sizes, default=0))

    # --- answers ---------------------------------------------------------------------------------------------------
    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        prepared, votes = self.prepared, self.prepared.votes
        if self._looks_back and block.emissions.powers is None:
            return self._smooth_late(block, begin, counting=counting)
        local, groups = self.model(block)
        active, chain = np.diff(local.offsets) > 0, local.steps
        if len(groups) > 1:
            groups, found = propagate_all(local, groups, votes, begin)
            pairs, positive, logs, chain = found.pairs, found.positive, found.logs, found.steps
        else:
            one = Pass.over(local, groups[0] if groups else None)
            smoothed = one.smooth(chain, np.empty(chain.shape), active, votes, begin)
            pairs, positive, logs = smoothed.pairs, [smoothed.positive[:, 0]] * len(groups), smoothed.logs
        parts = label_parts(prepared, local, pairs, counting=counting)
        # A resolution without votes changes nothing, so that its groups can be asked one by one, however they overlap.
        for resolution in prepared.resolutions[1:]:
            if resolution not in prepared.voted:
                silent = make_groups(prepared, block, resolution)
                room = np.empty(chain.shape)
                groups = [*groups, *silent]
                positive = [
                    *positive,
                    *(Pass.over(local, one).smooth(chain, room, active, votes, begin).positive[:, 1] for one in silent),
                ]
            parts.append(_window_law(block, prepared.resolutions.index(resolution), groups, positive))
        for group in groups:
            spans = local.spans(group.windows)
            logs = logs + sum_by_sequence(group.tops, np.append(spans[:, 2], len(group.tops)))
        pairs_sum = label_pairs(local, pairs, prepared.n_classes) if counting else np.zeros((len(local.logs), 0, 0))
        return BlockAnswer(parts=parts, transitions=pairs_sum, log_likelihood=logs + local.logs)

    @cached_property
    def _looks_back(self) -> bool:
        """Whether there are two labels, sources that look one element back, and nothing else."""
        lags = [channel.lag for channel in self.prepared.codes.channels]
        return lags == [0, 1] and self.n_states == 2 and np.array_equal(self.prepared.chain.labels, [0, 1])

    def _smooth_late(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """The same in one kernel, without tables of steps: a third of the time."""
        chain, offsets = self.prepared.chain, block.layouts[0].offsets
        own, late = self.prepared.codes.pieces(block.emissions.values, block.layouts)
        n_sequences = len(offsets) - 1
        labels, pairs = np.empty(own.shape), np.empty(late.shape if counting else (0, 4))
        totals, logs = np.zeros((n_sequences, 2, 2)), np.zeros(n_sequences)
        laws = np.ascontiguousarray(chain.initial), np.ascontiguousarray(chain.transition)
        failed = kernels.smooth_late(*laws, own, late, offsets, labels, pairs, totals, logs)
        if failed >= 0:
            report_impossible(self.prepared.votes, begin + failed)
        return BlockAnswer(parts=[labels, pairs], transitions=totals, log_likelihood=logs)

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior; of the most likely ones without a generator.

        Where that is approximate, from the chain with all sites.
        """
        votes, shape = self.prepared.votes, (n_draws, block.layouts[0].n_tasks)
        uniforms = np.full(shape, -1.0) if rng is None else rng.random(shape)
        local, groups = self.model(block)
        steps, group = local.steps, groups[0] if groups else None
        if len(groups) > 1:
            steps, group = propagate_all(local, groups, votes, begin)[1].steps, None
        states = Pass.over(local, group).trace(steps, uniforms, votes, begin)
        return np.asarray(local.labels[states], dtype=np.int8)

    def model(self, block: VotesBlock) -> tuple[LocalChain, list[WindowGroup]]:
        """The chain of a block and all its groups of windows with votes."""
        groups = [group for one in self.prepared.voted for group in make_groups(self.prepared, block, one)]
        return make_local(self.prepared, block), groups


def _window_law(block: VotesBlock, place: int, groups: list[WindowGroup], positive: list[FloatArray]) -> FloatArray:
    """P(negative), P(positive) of all tasks of a coarse resolution."""
    own = [(group, found) for group, found in zip(groups, positive, strict=True) if group.place == place]
    tasks = np.concatenate([group.tasks for group, _ in own])
    chances = np.concatenate([1 - found if group.negated else found for group, found in own])
    law = spread(tasks, chances, block.layouts[place].owners())
    return np.column_stack([1 - law, law])


def _log_range(table: FloatArray) -> float:
    """Logarithm of the largest over the smallest number that is not zero."""
    some = table[table > 0]
    return float(np.log(some.max()) - np.log(some.min())) if len(some) else 0.0


def _soft_range(potentials: FloatArray | None) -> float:
    if potentials is None or not len(potentials):
        return 0.0
    some = np.where(np.isfinite(potentials), potentials, np.nan)
    return float(np.nanmax(np.nanmax(some, axis=1) - np.nanmin(some, axis=1)))

"""One pass over a block with one group of windows: the kernels with their scratch arrays.

In: a local chain and a group of windows that lie apart. Out: posterior of pairs of states and of the windows, or paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer.blocks import report_impossible
from dugong.infer.grouped import _kernels as kernels
from dugong.infer.grouped.local import LocalChain, WindowGroup
from dugong.types import BoolArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes

# Numbers of all layers that are kept at a time: of a block, if they fit, else of one window; beyond, checkpoints.
_ROOM = 1 << 21
_MOST_BYTES = 1 << 30

NO_WINDOWS = np.zeros((0, 3), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smoothed:
    """What one pass finds: pairs of states (n_elements, S, S), windows (W, 2) with and without their factor, logs."""

    pairs: FloatArray
    positive: FloatArray
    logs: FloatArray


@dataclass(slots=True, kw_only=True, eq=False)
class Pass:
    """A group of windows over a block, with all that the kernels write to; used again and again."""

    local: LocalChain
    spans: IntArray
    group: kernels.Apart
    scratch: kernels.Scratch

    @classmethod
    def over(cls, local: LocalChain, group: WindowGroup | None) -> Pass:
        """Lay out the scratch arrays for a group; for none, a plain pass along the chain."""
        windows = NO_WINDOWS if group is None else group.windows
        n_states = local.n_states
        rows = int(windows[:, 2].max(initial=0)) + 2
        longest = int((windows[:, 1] - windows[:, 0]).max(initial=1))
        # Rows 0 to the threshold, and one for all counts above it.
        layer, n_all = n_states * rows, len(local.steps) + len(windows) + 1
        room, n_kept, n_layers = _room(longest, n_all, layer)
        return cls(
            local=local,
            spans=local.spans(windows),
            group=kernels.Apart(
                windows=windows,
                counted=np.zeros(n_states, dtype=np.bool_) if group is None else group.counted,
                factors=np.zeros((0, 2)) if group is None else group.factors,
            ),
            scratch=kernels.Scratch(
                R=rows,
                room=room,
                alpha=np.empty((len(local.steps), n_states)),
                F=np.empty(n_layers * layer),
                kept=np.empty(n_kept * layer),
                back=np.empty(2 * layer + n_states),
                bounds=np.empty((max(n_layers, longest + 1), 2), dtype=np.int64),
            ),
        )

    def share(self, other: Pass) -> None:
        """Write to the arrays of another pass wherever they are larger: passes run one after the other."""
        pairs = {name: (getattr(self.scratch, name), getattr(other.scratch, name)) for name in self.scratch._fields[2:]}
        self.scratch = self.scratch._replace(**{name: max(pair, key=len) for name, pair in pairs.items()})

    def smooth(self, steps: FloatArray, pairs: FloatArray, active: BoolArray, votes: Votes, begin: int) -> Smoothed:
        """Forward and backward over the active sequences; pairs are written in place."""
        positive, logs = np.empty((len(self.group.windows), 2)), np.zeros(len(self.spans))
        if not len(positive) and self.local.n_states == 2:
            failed = kernels.smooth_two(steps, self.spans, active, self.scratch.alpha, pairs, logs)
        else:
            failed = kernels.smooth(steps, self.spans, active, self.group, self.scratch, pairs, positive, logs)
        if failed >= 0:
            report_impossible(votes, begin + failed)
        return Smoothed(pairs=pairs, positive=positive, logs=logs)

    def trace(self, steps: FloatArray, uniforms: FloatArray, votes: Votes, begin: int) -> Int8Array:
        """Paths of states, (n_draws, n_elements): drawn, or the best one where all numbers are negative."""
        states = np.zeros(uniforms.shape, dtype=np.int8)
        if states.size == 0:
            return states
        now = np.zeros((len(uniforms), 2), dtype=np.int64)
        failed = kernels.trace(steps, self.spans, self.group, self.scratch, uniforms, now, states)
        if failed >= 0:
            report_impossible(votes, begin + failed)
        return states


def _room(longest: int, n_all: int, layer: int) -> tuple[int, int, int]:
    """Elements whose layers are kept at a time (0: all of the block), checkpoints, and layers that need a place."""
    if n_all * layer <= _ROOM:
        return 0, 0, n_all
    room = longest if (longest + 1) * layer <= _ROOM else isqrt(longest) + 1
    n_kept = -(-longest // room) if longest > room else 0
    _check_memory((room + 1 + n_kept) * layer * 8, longest)
    return room, n_kept, room + 1


def _check_memory(n_bytes: int, longest: int) -> None:
    if n_bytes > _MOST_BYTES:
        raise TaskError(
            f"counting inside a task of {longest} elements would take {n_bytes / 2**30:.1f} GB; at most "
            f"{_MOST_BYTES / 2**30:.0f} GB are used.\n  Cut the sequences, use windows in place of whole sequences, or "
            'the link "any" or "all" in place of "majority".'
        )

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
from dugong.types import AnyArray, BoolArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes

# Layers of one window that may be kept at a time, in numbers of eight bytes; beyond, checkpoints are.
_ROOM = 1 << 20
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
    windows: IntArray
    counted: BoolArray
    factors: FloatArray
    scratch: tuple[AnyArray, ...]
    rows: int
    room: int

    @classmethod
    def over(cls, local: LocalChain, group: WindowGroup | None) -> Pass:
        """Lay out the scratch arrays for a group; for none, a plain pass along the chain."""
        windows = NO_WINDOWS if group is None else group.windows
        n_states = local.n_states
        rows = int(windows[:, 2].max(initial=0)) + 2
        longest = int((windows[:, 1] - windows[:, 0]).max(initial=1))
        room = longest if (longest + 1) * n_states * rows <= _ROOM else isqrt(longest) + 1
        n_kept = -(-longest // room) if longest > room else 0
        _check_memory((room + 1 + n_kept) * n_states * rows * 8, longest)
        layer = n_states * rows
        return cls(
            local=local,
            spans=local.spans(windows),
            windows=windows,
            counted=np.zeros(n_states, dtype=np.bool_) if group is None else group.counted,
            factors=np.zeros((0, 2)) if group is None else group.factors,
            scratch=(
                np.empty((len(local.steps), n_states)),
                np.zeros((room + 1) * layer),
                np.empty(n_kept * layer),
                np.empty(2 * layer + n_states),
                np.empty((longest + 1, 2), dtype=np.int64),
            ),
            rows=rows,
            room=room,
        )

    def smooth(self, steps: FloatArray, pairs: FloatArray, active: BoolArray, votes: Votes, begin: int) -> Smoothed:
        """Forward and backward over the active sequences; pairs are written in place."""
        positive, logs = np.empty((len(self.windows), 2)), np.zeros(len(self.spans))
        tables = self.windows, self.counted, self.factors
        failed = kernels.smooth(
            steps, self.spans, active, *tables, *self.scratch, self.rows, self.room, pairs, positive, logs
        )
        if failed >= 0:
            report_impossible(votes, begin + failed)
        return Smoothed(pairs=pairs, positive=positive, logs=logs)

    def trace(self, steps: FloatArray, uniforms: FloatArray, votes: Votes, begin: int) -> Int8Array:
        """Paths of states, (n_draws, n_elements): drawn, or the best one where all numbers are negative."""
        states = np.zeros(uniforms.shape, dtype=np.int8)
        if states.size == 0:
            return states
        now, tables = np.zeros((len(uniforms), 2), dtype=np.int64), (self.windows, self.counted, self.factors)
        failed = kernels.trace(steps, self.spans, *tables, *self.scratch, self.rows, self.room, uniforms, now, states)
        if failed >= 0:
            report_impossible(votes, begin + failed)
        return states


def _check_memory(n_bytes: int, longest: int) -> None:
    if n_bytes > _MOST_BYTES:
        raise TaskError(
            f"counting inside a task of {longest} elements would take {n_bytes / 2**30:.1f} GB; at most "
            f"{_MOST_BYTES / 2**30:.0f} GB are used.\n  Cut the sequences, use windows in place of whole sequences, or "
            'the link "any" or "all" in place of "majority".'
        )

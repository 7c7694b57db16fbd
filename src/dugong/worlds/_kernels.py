"""Compiled draws: table cells given rows, and votes that depend on earlier votes of the same source."""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.priors._kernels import draw
from dugong.types import FloatArray, IntArray


@njit(cache=True)
def draw_cells(cumulative: FloatArray, rows: IntArray, uniforms: FloatArray) -> IntArray:
    """Cell of every draw: ``cumulative[rows[i]]`` is a cumulative law, ``uniforms[i]`` in [0, 1)."""
    cells = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        cells[i] = draw(cumulative[rows[i]], uniforms[i])
    return cells


@njit(cache=True)
def draw_temporal(
    first: FloatArray,
    step: FloatArray,
    labels: IntArray,
    offsets: IntArray,
    lag: int,
    uniforms: FloatArray,
) -> IntArray:
    """Votes of a source that depends on its own vote `lag` tasks earlier; both tables cumulative over votes."""
    votes = np.empty(len(labels), np.int64)
    for sequence in range(len(offsets) - 1):
        for task in range(offsets[sequence], offsets[sequence + 1]):
            if task - lag < offsets[sequence]:
                law = first[labels[task]]
            else:
                law = step[labels[task - lag], labels[task], votes[task - lag]]
            votes[task] = draw(law, uniforms[task])
    return votes

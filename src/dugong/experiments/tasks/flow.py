"""Optical flow between successive frames, by least squares on blocks (Lucas and Kanade 1981), in plain numpy."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from dugong.types import FloatArray

N_BLOCKS = 4  # along each side
DAMPING = 3e-4  # blocks without texture do not move
SPEEDS = np.array([0.2, 0.6, 1.5])
"""Edges of the bins of speed, pixels per frame."""


def block_flow(grey: FloatArray) -> FloatArray:
    """Motion of every block from one frame to the next, pixels.

    Parameters
    ----------
    grey : (n_frames, height, width), 0 to 1

    Returns
    -------
    (n_frames - 1, 4, 4, 2), down and right: the shift (dy, dx) that best explains how brightness changes
    """
    even = grey / np.maximum(grey.mean(axis=(1, 2), keepdims=True), 1e-3) / 2  # a flash is no motion
    grey = gaussian_filter(even, (0, 1, 1))  # grain has gradients, but no motion
    middle = (grey[1:] + grey[:-1]) / 2
    down, right, change = np.gradient(middle, axis=1), np.gradient(middle, axis=2), np.diff(grey, axis=0)
    dd, rr, dr = _sums(down * down) + DAMPING, _sums(right * right) + DAMPING, _sums(down * right)
    dc, rc = _sums(down * change), _sums(right * change)
    determinant = dd * rr - dr * dr
    return np.stack([(dr * rc - rr * dc) / determinant, (dr * dc - dd * rc) / determinant], axis=3)


def flow_histograms(grey: FloatArray) -> FloatArray:
    """Shares of the blocks by speed, (n_frames - 1, 4)."""
    speed = np.hypot(*np.moveaxis(block_flow(grey), 3, 0)).reshape(len(grey) - 1, -1)
    bins = np.searchsorted(SPEEDS, speed)
    return np.asarray((bins[..., np.newaxis] == np.arange(len(SPEEDS) + 1)).mean(axis=1))


def _sums(values: FloatArray) -> FloatArray:
    """Means over blocks, (n, 4, 4); rows and columns that do not fill one are left out."""
    number, height, width = values.shape
    high, wide = height // N_BLOCKS, width // N_BLOCKS
    cut = values[:, : high * N_BLOCKS, : wide * N_BLOCKS].reshape(number, N_BLOCKS, high, N_BLOCKS, wide)
    return np.asarray(cut.mean(axis=(2, 4)))

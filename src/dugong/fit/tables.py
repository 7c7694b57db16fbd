"""Valid tables: projection to the probability simplex, and conditionals from joint tables."""

from __future__ import annotations

import numpy as np

from dugong.types import FloatArray


def project(table: FloatArray, axes: int = 1) -> tuple[FloatArray, float]:
    """Nearest table (least squares) whose last `axes` axes hold a distribution, and the largest move of an entry."""
    shape = table.shape
    flat = table.reshape(-1, int(np.prod(shape[len(shape) - axes :])))
    ordered = -np.sort(-flat, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1
    ranks = np.arange(1, flat.shape[1] + 1)
    kept = np.count_nonzero(ordered - excess / ranks > 0, axis=1)
    shift = excess[np.arange(len(flat)), kept - 1] / kept
    valid = np.maximum(flat - shift[:, np.newaxis], 0)
    valid /= valid.sum(axis=1, keepdims=True)  # huge entries (a label that hardly occurs) lose digits in the shift
    inside = (flat >= 0).all(axis=1) & (np.abs(flat.sum(axis=1) - 1) < 1e-12)
    valid = np.where(inside[:, np.newaxis], flat, valid)
    return valid.reshape(shape), float(np.abs(valid - flat).max(initial=0.0))


def conditional(joint: FloatArray, fallback: FloatArray) -> FloatArray:
    """P(last axis | the others) from a joint table; `fallback` where a condition never occurs."""
    total = joint.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0, total, 1.0)
    return np.where(total > 0, joint / safe, np.broadcast_to(fallback, joint.shape))


def products_to_joints(products: FloatArray, n_labels: int) -> FloatArray:
    """From ``E[F * product of y over V]`` for all subsets V to ``P(F, Y = W)`` for all label patterns W.

    The inverse Walsh-Hadamard transform along the first `n_labels` axes, each of size 2: index 1 on the way in means
    "task in V", on the way out "label +1" (Lemma 1 of the paper, for centred sums).
    """
    joint = np.asarray(products, dtype=np.float64)
    for axis in range(n_labels):
        without, within = np.take(joint, 0, axis=axis), np.take(joint, 1, axis=axis)
        joint = np.stack([(without - within) / 2, (without + within) / 2], axis=axis)
    return joint

"""Valid tables: projection to the probability simplex, conditionals, joint tables from products (paper, Lemma 1)."""

from __future__ import annotations

from math import prod

import numpy as np

from dugong.types import FloatArray

# Moves of a table below this are rounding, not repairs.
ROUNDING = 1e-10
# Most of what a table is mixed with so that votes that were seen stay possible.
MOST_SOFTENED = 0.01


def project(table: FloatArray, axes: int = 1) -> tuple[FloatArray, float]:
    """Nearest table (least squares) whose last `axes` axes hold a distribution, and the largest move of an entry."""
    shape = table.shape
    flat = table.reshape(-1, prod(shape[len(shape) - axes :]))
    inside = (flat >= 0).all(axis=1) & (np.abs(flat.sum(axis=1) - 1) < 1e-12)
    if inside.all():
        return table, 0.0
    ordered = -np.sort(-flat, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1
    ranks = np.arange(1, flat.shape[1] + 1)
    kept = np.count_nonzero(ordered - excess / ranks > 0, axis=1)
    shift = excess[np.arange(len(flat)), kept - 1] / kept
    valid = np.maximum(flat - shift[:, np.newaxis], 0)
    valid /= valid.sum(axis=1, keepdims=True)  # huge entries (a label that hardly occurs) lose digits in the shift
    valid = np.where(inside[:, np.newaxis], flat, valid)
    return valid.reshape(shape), float(np.abs(valid - flat).max(initial=0.0))


def make_valid(table: FloatArray, votes: FloatArray, axes: int, lead: int) -> tuple[FloatArray, FloatArray]:
    """Nearest valid tables with the votes that were seen possible; and how far each table moved.

    Noise can push entries below zero or above one, and inference must see probabilities. A projected table has zeros
    that only noise made: one such vote would decide a label for good.

    Parameters
    ----------
    votes : as in `soften`
    lead : axes in front over tables of their own
    """
    valid, most = project(table, axes)
    if most <= ROUNDING:
        return valid, np.zeros(table.shape[:lead])
    moved = np.abs(valid - table).max(axis=tuple(range(lead, table.ndim)), keepdims=True, initial=0.0)
    share = np.where(moved > ROUNDING, np.minimum(moved, MOST_SOFTENED), 0.0)
    return soften(valid, votes, axes, share), moved.reshape(table.shape[:lead])


def conditional(joint: FloatArray, fallback: FloatArray) -> FloatArray:
    """P(last axis | the others) from a joint table; `fallback` where a condition never occurs."""
    total = joint.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0, total, 1.0)
    return np.where(total > 0, joint / safe, np.broadcast_to(fallback, joint.shape))


def soften(table: FloatArray, votes: FloatArray, axes: int, share: float | FloatArray) -> FloatArray:
    """Mix a table with one in which votes say nothing about labels, so that votes that were seen stay possible.

    Projection leaves zeros, which noise alone may have made. Votes that never occur stay impossible.

    Parameters
    ----------
    table : a law over its last `axes` axes
    votes : P(votes) as it was observed, with axes of size one for labels
    """
    over = tuple(range(table.ndim - axes, table.ndim))
    seen = np.maximum(votes, 0)
    seen = seen / np.maximum(seen.sum(axis=over, keepdims=True), 1e-300)
    labels = tuple(axis for axis in over if votes.shape[axis] == 1 and table.shape[axis] > 1)
    rest = tuple(axis for axis in over if axis not in labels)
    return np.asarray((1 - share) * table + share * table.sum(axis=rest, keepdims=True) * seen)


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


def joint_from_products(product_probs: FloatArray) -> FloatArray:
    """Solve the products-to-joints system of the paper, B e = r, by a fast Walsh-Hadamard transform.

    ``r(U) = P(product of the variables in U is +1)`` for variables that are -1 or +1; e is their joint law.
    B_t = (H_t + 11^T) / 2 is 2^t x 2^t and is never built. (Paper, Lemma 1.)

    Parameters
    ----------
    product_probs : (2, ..., 2) array
        One axis per variable: index 1 if the variable is in U. The entry of the empty set is 1.

    Returns
    -------
    array of the same shape
        One axis per variable: index 0 for -1, index 1 for +1.
    """
    # 2 B e - (sum of e) = H e, and the first entry of r is the sum of e.
    r = np.asarray(product_probs, dtype=np.float64)
    return products_to_joints(2 * r - r.flat[0], r.ndim)

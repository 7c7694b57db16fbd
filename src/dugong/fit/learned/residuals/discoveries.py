"""Which of many residuals are more than chance: tests with a bound on false discoveries.

In: sums of products with jackknife errors. Out: two-sided p-values by Student's t, and which of them the procedure of
Benjamini and Yekutieli calls discoveries. Among these at most the given share is false on average, whatever the tests
have to do with each other. Few blocks with rare joint errors may carry a sum, so the degrees of freedom are those of
the blocks that matter.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from dugong.types import BoolArray, FloatArray


def p_values(total: FloatArray, square: FloatArray, fourth: FloatArray) -> FloatArray:
    """Two-sided p-values of sums that are zero on average, from powers of the sums of their blocks.

    The number of blocks that matter is ``3 * square ** 2 / fourth``: all of them if their sums are normal, few if a few
    are much larger than the others.
    """
    some = fourth > 0
    # Three, because the fourth power of a normal variable is three times its squared variance on average.
    blocks = 3 * square**2 / np.where(some, fourth, 1.0)
    error = np.sqrt(np.where(some, square, 1.0))
    found = 2 * stdtr(np.maximum(blocks - 1, 1e-3), -np.abs(total) / error)
    return np.asarray(np.where(some & (blocks > 1), found, 1.0))


def discoveries(p: FloatArray, level: float) -> BoolArray:
    """Which p-values are discoveries if at most `level` of them may be false on average."""
    order = np.sort(p)
    n = len(order)
    if n == 0:
        return np.zeros(0, dtype=np.bool_)
    ranks = np.arange(1, n + 1)
    # The sum of 1 / rank is the price for tests that depend on each other in ways that nobody knows.
    below = order <= ranks * level / (n * (1 / ranks).sum())
    return np.asarray(p <= order[below].max(initial=-1.0))

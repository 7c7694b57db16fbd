"""How far the class balance of a sample strays from the prior's.

A sample of sequences has its own share of each class; with few long sequences it differs from the prior's
by more than its size suggests (METHOD section 3.3, "balance of the sample"). One forward pass over the
chain that carries the first and second moments of the class counts serves all lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import PriorError
from dugong.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dugong.priors.base import Prior


def sample_balance_covariance(
    prior: Prior, lengths: IntArray, counts: IntArray | FloatArray | None = None
) -> FloatArray:
    """Covariance under the prior of the share of each class among all elements of a sample, shape (K, K).

    Parameters
    ----------
    prior : Prior
    lengths, counts : (n,) arrays
        Elements of the sequences, and how many (independent) sequences have each length; one by default.
    """
    lengths = np.atleast_1d(np.asarray(lengths, dtype=np.int64))
    weights = np.ones(len(lengths)) if counts is None else np.asarray(counts, dtype=np.float64)
    total = float(lengths @ weights)
    if total == 0:
        raise PriorError("the balance of a sample needs at least one element; found none.")
    distinct, inverse = np.unique(lengths, return_inverse=True)
    first, second = prior.count_moments(distinct)
    spread = second - first[:, :, None] * first[:, None, :]
    numbers = np.bincount(inverse, weights=weights, minlength=len(distinct))
    return np.asarray(np.tensordot(numbers, spread, axes=1) / total**2)


def sample_balance_variance(
    prior: Prior, lengths: IntArray, counts: IntArray | FloatArray | None = None, *, positive: int = 1
) -> float:
    """Variance under the prior of the mean of y over all elements; y is +1 at class `positive`, else -1."""
    return 4.0 * float(sample_balance_covariance(prior, lengths, counts)[positive, positive])

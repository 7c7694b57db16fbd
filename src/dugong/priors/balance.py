"""How far the class balance of a sample strays from the prior's.

A sample of sequences has its own share of each class; with few long sequences it differs from the prior's
by more than its size suggests (METHOD section 3.3, "balance of the sample"). One forward pass over the
chain that carries the first and second moments of the class counts serves all lengths.
"""

from __future__ import annotations

import numpy as np

from dugong.exceptions import PriorError
from dugong.priors._kernels import class_count_moments
from dugong.priors.base import Prior
from dugong.priors.joint import Joint
from dugong.priors.law import Edges
from dugong.types import FloatArray, IntArray


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
    first, second = _count_moments(prior, distinct)
    spread = second - first[:, :, None] * first[:, None, :]
    numbers = np.bincount(inverse, weights=weights, minlength=len(distinct))
    return np.asarray(np.tensordot(numbers, spread, axes=1) / total**2)


def sample_balance_variance(
    prior: Prior, lengths: IntArray, counts: IntArray | FloatArray | None = None, *, positive: int = 1
) -> float:
    """Variance under the prior of the mean of y over all elements; y is +1 at class `positive`, else -1."""
    return 4.0 * float(sample_balance_covariance(prior, lengths, counts)[positive, positive])


def _count_moments(prior: Prior, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
    if isinstance(prior, Joint):
        return _joint_moments(prior, lengths)
    chain = prior.chain()
    edges = Edges.of(chain)
    first, second = class_count_moments(
        chain.initial.copy(),
        edges.heads,
        edges.targets,
        edges.weights,
        edges.labels,
        prior.n_classes,
        lengths,
    )
    return first, second


def _joint_moments(prior: Joint, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
    for length in lengths:
        prior.check_length(int(length))
    law = prior.joint_law([("element", i) for i in range(prior.n_elements)], prior.n_elements)
    labels = np.indices(law.shape).reshape(prior.n_elements, -1)
    numbers = np.stack([(labels == c).sum(axis=0) for c in range(prior.n_classes)], axis=1).astype(np.float64)
    first = law.reshape(-1) @ numbers
    second = numbers.T @ (law.reshape(-1)[:, None] * numbers)
    return first[None], second[None]

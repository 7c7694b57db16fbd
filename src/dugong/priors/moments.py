"""Exact prior moments of tasks: E[y] and Cov(y, y') for any two tasks of a sequence of any length.

In: a prior and tasks, each a resolution and an index. Out: numbers that equal enumeration over all label
patterns, but cost no more than the elements between the two tasks. A task with two classes has the value
y = +1 if it is positive and -1 otherwise (METHOD section 3.3). An element with K > 2 classes needs the
class that counts as a third entry: ``("element", 3, 2)`` is +1 where element 3 has class 2.

`sample_balance_covariance` says how far the class balance of a sample strays from the prior's. A sample of
sequences has its own share of each class; with few long sequences it differs from the prior's by more than
its size suggests (METHOD section 3.3, "balance of the sample"). One forward pass over the chain that carries
the first and second moments of the class counts serves all lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import PriorError
from dugong.priors.labels import class_index
from dugong.priors.pieces import GivenSpans, Task
from dugong.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dugong.priors.base import Prior


def expectation(prior: Prior, task: Task, length: int, spans: GivenSpans | None = None) -> float:
    """E[y] of one task in a sequence of `length` elements."""
    return float(prior.joint_law([task], length, spans) @ _values(prior, task))


def covariance(prior: Prior, task_a: Task, task_b: Task, length: int, spans: GivenSpans | None = None) -> float:
    """Cov(y, y') of two tasks, at the same or different resolutions, in a sequence of `length` elements."""
    law = prior.joint_law([task_a, task_b], length, spans)
    table = law - np.outer(law.sum(axis=1), law.sum(axis=0))
    return float(_values(prior, task_a) @ table @ _values(prior, task_b))


def _values(prior: Prior, task: Task) -> FloatArray:
    """Value y of each class of a task."""
    if len(task) == 3:
        classes = prior.n_classes
        counted = class_index(task[2], classes, "a task")
    else:
        classes = prior.n_classes if getattr(task[0], "kind", task[0]) == "element" else 2
        counted = 1
        if classes > 2:
            raise PriorError(
                f"the value of an element with {classes} classes needs the class that counts; "
                f"found {task!r}.\n  Give it as a third entry: ('element', {task[1]}, class)."
            )
    values = np.full(classes, -1.0)
    values[counted] = 1.0
    return values


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

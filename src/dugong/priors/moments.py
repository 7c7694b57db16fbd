"""Exact prior moments of tasks: E[y] and Cov(y, y') for any two tasks of a sequence of any length.

In: a prior and tasks, each a resolution and an index. Out: numbers that equal enumeration over all label
patterns, but cost no more than the elements between the two tasks. A task with two classes has the value
y = +1 if it is positive and -1 otherwise (METHOD section 3.3). An element with K > 2 classes needs the
class that counts as a third entry: ``("element", 3, 2)`` is +1 where element 3 has class 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import PriorError
from dugong.priors.balance import sample_balance_covariance, sample_balance_variance
from dugong.priors.labels import class_index
from dugong.priors.pieces import GivenSpans, Task
from dugong.types import FloatArray

if TYPE_CHECKING:
    from dugong.priors.base import Prior

__all__ = [
    "class_covariance",
    "class_probabilities",
    "covariance",
    "expectation",
    "sample_balance_covariance",
    "sample_balance_variance",
]


def expectation(prior: Prior, task: Task, length: int, spans: GivenSpans | None = None) -> float:
    """E[y] of one task in a sequence of `length` elements."""
    return float(class_probabilities(prior, task, length, spans) @ _values(prior, task))


def covariance(prior: Prior, task_a: Task, task_b: Task, length: int, spans: GivenSpans | None = None) -> float:
    """Cov(y, y') of two tasks, at the same or different resolutions, in a sequence of `length` elements."""
    table = class_covariance(prior, task_a, task_b, length, spans)
    return float(_values(prior, task_a) @ table @ _values(prior, task_b))


def class_probabilities(prior: Prior, task: Task, length: int, spans: GivenSpans | None = None) -> FloatArray:
    """P(class) of one task, shape (n_classes of the task,)."""
    return prior.joint_law([task], length, spans)


def class_covariance(
    prior: Prior, task_a: Task, task_b: Task, length: int, spans: GivenSpans | None = None
) -> FloatArray:
    """Covariance of the class indicators of two tasks, shape (classes of a, classes of b)."""
    law = prior.joint_law([task_a, task_b], length, spans)
    return np.asarray(law - np.outer(law.sum(axis=1), law.sum(axis=0)))


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

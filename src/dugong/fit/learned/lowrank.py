"""The source graph by a low-rank-plus-sparse decomposition of the inverse covariance of the votes.

In: a covariance matrix of votes. Out: its inverse as S - L: a sparse part S, whose entries are dependencies between
votes given the labels, and a low-rank part L, which is what the labels that nobody sees do to all votes at once. The
convex problem of Chandrasekaran, Parrilo and Willsky (2012), which the paper reaches through Varma et al. (2019):

    minimise  -log det(S - L) + tr((S - L) C) + sparse * |S|_1 + low * tr(L)   over S - L > 0, L >= 0,

by alternating directions, each step in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dugong.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decomposition:
    """The inverse covariance as `sparse` - `low`, and how many steps that took."""

    sparse: FloatArray
    low: FloatArray
    n_steps: int


def decompose(
    covariance: FloatArray,
    sparse: float,
    low: float,
    *,
    free: BoolArray | None = None,
    max_steps: int = 400,
    tolerance: float = 1e-4,
    progress: Callable[[int, int], object] | None = None,
) -> Decomposition:
    """Split the inverse of a covariance (p, p) with these penalties; entries of S that are `free` have none.

    Free entries are the diagonal unless given.
    """
    p, step = len(covariance), 1.0
    unpenalised = np.eye(p, dtype=np.bool_) if free is None else free
    threshold = np.where(unpenalised, 0.0, sparse * step)
    s, hidden, dual = np.eye(p), np.zeros((p, p)), np.zeros((p, p))
    n_steps = 0
    while n_steps < max_steps:
        n_steps += 1
        if progress is not None:
            progress(n_steps, max_steps)
        # The minimum over the inverse itself has the same eigenvectors, and one quadratic equation per eigenvalue.
        values, vectors = np.linalg.eigh(step * covariance - (s - hidden + step * dual))
        inverse = (vectors * ((np.sqrt(values**2 + 4 * step) - values) / 2)) @ vectors.T
        target = inverse + hidden - step * dual
        before = s
        # Shrinking by the penalty is the exact minimum of a squared distance plus an absolute value.
        s = np.sign(target) * np.maximum(np.abs(target) - threshold, 0.0)
        values, vectors = np.linalg.eigh(s - inverse + step * dual)
        # The trace penalises every eigenvalue alike: small ones vanish, and with them the rank.
        hidden = (vectors * np.maximum(values - low * step, 0.0)) @ vectors.T
        gap = inverse - s + hidden
        dual -= gap / step
        if max(np.abs(gap).max(initial=0.0), np.abs(s - before).max(initial=0.0)) < tolerance:
            break
    return Decomposition(sparse=s, low=hidden, n_steps=n_steps)

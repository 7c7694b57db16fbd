"""Prior laws of pairs of tasks, averaged over all sequences: what the estimators divide by.

In: a prior, two resolutions, how their tasks are paired, and the lengths of the sequences. Out: the mean
over all pairs of P(class of the first task, class of the second), a (K_a, K_b) table; by position of the
anchor if asked. From it follow the means of E[y_i], E[y_i'] and E[y_i y_i'] of METHOD section 3.3 ("every
mean over the same pairs").
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict, Unpack

import numpy as np

from dugong.exceptions import PriorError, TaskError
from dugong.priors.base import Prior
from dugong.priors.geometry import Pairs
from dugong.priors.joint import Joint
from dugong.priors.pooling import (
    Kind,
    PairSums,
    Question,
    SpanTables,
    by_position,
    elements_inside,
    inside_sequences,
    looked_up,
    pooled,
)
from dugong.tasks import Element, Resolution, Sequence, describe
from dugong.types import FloatArray, IntArray


class PairOptions(TypedDict, total=False):
    """What may be said about pairs beside their resolutions and lengths."""

    lag: int
    spans: SpanTables | None
    class_names: tuple[str, ...] | None


class PairMoments(NamedTuple):
    """Means over pairs of two-class tasks, y = +1 or -1: E[y_i], E[y_i'] and E[y_i y_i']."""

    first: float
    second: float
    product: float

    @property
    def covariance(self) -> float:
        """Mean of products minus product of means: what divides a pooled covariance of votes."""
        return self.product - self.first * self.second


def pair_law(
    prior: Prior,
    kind: Kind,
    resolution_a: Resolution,
    resolution_b: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    **options: Unpack[PairOptions],
) -> FloatArray:
    """Mean over all pairs of the joint law of two tasks, shape (K_a, K_b).

    Parameters
    ----------
    prior : Prior
    kind : {"same", "inside"}
        "same": tasks i and i + `lag` of one resolution. "inside": a task of the finer `resolution_a` that
        starts inside a task of the coarser `resolution_b`.
    resolution_a, resolution_b : Resolution
    lengths, counts : (n,) arrays
        Elements of the sequences, and how many sequences have each length (one by default).
    lag : int
        Of kind "same": how many tasks later the second task is.
    spans : mapping of name to SpanTable, optional
        Given pieces, one list per entry of `lengths`.
    class_names : tuple of str, optional
        Needed where a resolution names its class.

    Raises
    ------
    TaskError
        If there is no pair.
    """
    sums = pair_sums(
        prior,
        kind,
        resolution_a,
        resolution_b,
        lengths,
        counts,
        **options,
    )
    if sums.n_pairs == 0:
        raise TaskError(
            f"the sequences hold no {kind} pair of {describe(resolution_a)} and {describe(resolution_b)} "
            f"at lag {options.get('lag', 0)}."
        )
    return sums.means()


def pair_sums(
    prior: Prior,
    kind: Kind,
    resolution_a: Resolution,
    resolution_b: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    **options: Unpack[PairOptions],
) -> PairSums:
    """Sum over all pairs of the joint law of two tasks, and the number of pairs; see `pair_law`."""
    question = _ask(prior, kind, (resolution_a, resolution_b), lengths, counts, options)
    if isinstance(prior, Joint):
        return looked_up(question, prior).total()
    if kind == "inside" and isinstance(resolution_b, Sequence) and not isinstance(resolution_a, Sequence):
        return inside_sequences(question)
    if kind == "inside" and isinstance(resolution_a, Element) and not isinstance(resolution_b, Element):
        return elements_inside(question)
    return pooled(question, question.pairs())


def pair_laws_by_position(
    prior: Prior,
    kind: Kind,
    resolution_a: Resolution,
    resolution_b: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    **options: Unpack[PairOptions],
) -> PairSums:
    """As `pair_sums`, apart by position of the anchor (the first task; the finer one of "inside").

    Returns
    -------
    PairSums
        `table` (n_positions, K_a, K_b) and `n_pairs` (n_positions,); ``.means()`` gives the laws. There
        are as many positions as the sequence with most tasks of `resolution_a` has tasks.
    """
    question = _ask(prior, kind, (resolution_a, resolution_b), lengths, counts, options)
    return looked_up(question, prior) if isinstance(prior, Joint) else by_position(question)


def row_moments(
    prior: Prior,
    kind: Kind,
    resolution_a: Resolution,
    resolution_b: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    **options: Unpack[PairOptions],
) -> PairMoments:
    """Means over all pairs of E[y_i], E[y_i'] and E[y_i y_i'], for tasks with two classes; see `pair_law`."""
    law = pair_law(
        prior,
        kind,
        resolution_a,
        resolution_b,
        lengths,
        counts,
        **options,
    )
    if law.shape != (2, 2):
        raise PriorError(f"y is +1 or -1 for tasks with two classes; found {law.shape}.\n  Use pair_law.")
    signs = np.array([-1.0, 1.0])
    return PairMoments(
        first=float(law.sum(axis=1) @ signs),
        second=float(law.sum(axis=0) @ signs),
        product=float(signs @ law @ signs),
    )


def law_of_pairs(
    prior: Prior,
    resolution_a: Resolution,
    resolution_b: Resolution,
    bounds: IntArray,
    weights: FloatArray | None = None,
    class_names: tuple[str, ...] | None = None,
) -> FloatArray:
    """Weighted mean joint law of explicitly given pairs of tasks, shape (K_a, K_b).

    Parameters
    ----------
    bounds : (n_pairs, 4)
        Start and stop of the first and of the second task, in elements of their sequence.
    weights : (n_pairs,), optional
        One by default.
    """
    bounds = np.asarray(bounds, dtype=np.int64)
    weights = np.ones(len(bounds)) if weights is None else np.asarray(weights, dtype=np.float64)
    block = Pairs(bounds=bounds, weights=weights, positions=np.zeros(len(bounds), dtype=np.int64))
    question = Question(
        prior=prior,
        kind="inside",
        first=resolution_a,
        second=resolution_b,
        lengths=np.zeros(0, dtype=np.int64),
        weights=np.zeros(0),
        class_names=class_names,
    )
    sums = pooled(question, [block])
    if sums.n_pairs == 0:
        raise TaskError("the mean over pairs of tasks needs at least one pair; found none.")
    return sums.means()


def _ask(
    prior: Prior,
    kind: Kind,
    resolutions: tuple[Resolution, Resolution],
    lengths: IntArray,
    counts: IntArray | FloatArray | None,
    options: PairOptions,
) -> Question:
    """Check and summarise: distinct lengths and their numbers; with spans every sequence stays on its own."""
    lengths = np.atleast_1d(np.asarray(lengths, dtype=np.int64))
    weights = np.ones(len(lengths)) if counts is None else np.asarray(counts, dtype=np.float64)
    if not options.get("spans"):
        lengths, inverse = np.unique(lengths, return_inverse=True)
        weights = np.bincount(inverse, weights=weights, minlength=len(lengths)).astype(np.float64)
    return Question(
        prior=prior,
        kind=kind,
        first=resolutions[0],
        second=resolutions[1],
        lengths=lengths,
        weights=weights,
        lag=options.get("lag", 0),
        spans=options.get("spans") or {},
        class_names=options.get("class_names"),
    )

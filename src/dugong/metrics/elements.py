"""Scores of single elements: accuracy, precision, recall, F1, Brier score and log loss.

In: a `Scored`. Out, in two steps: sums by group, which add, and scores, which are functions of sums. The same
function scores the total and every total without one group, so intervals (see `intervals`) need no second
pass over the data.

Brier score: sum over classes of (p - 1[gold])^2, averaged over elements; between 0 and 2. Log loss: the
mean of -log p(gold), p no smaller than `LOG_LOSS_CLIP`, so that one certain mistake costs 13.8 and not
infinity.
"""

from __future__ import annotations

import numpy as np

from dugong.metrics.inputs import Scored
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray

__all__ = ["LOG_LOSS_CLIP", "Sums", "element_scores", "element_sums", "f_scores", "ratio", "sum_by"]

LOG_LOSS_CLIP = 1e-6
"""Smallest probability of the gold class that log loss takes at its word."""

Sums = dict[str, FloatArray]
"""Named sums with the groups as their first axis; they add over groups."""


def element_sums(case: Scored) -> Sums:
    """Count, per group: known elements, hits, gold and labels by class, squared errors and log losses."""
    where = np.flatnonzero(case.known)
    group = case.layout.by_group(where)
    gold, chosen = case.gold[where], case.chosen[where]
    n_groups, n_classes = case.layout.n_groups, len(case.coding.names)
    hit, spoke = gold == chosen, chosen >= 0
    sums = {
        "known": sum_by(group, n_groups),
        "gold": _by_class(group, gold, n_groups, n_classes),
        "labelled": _by_class(group[spoke], chosen[spoke], n_groups, n_classes),
        "hits": _by_class(group[hit], gold[hit], n_groups, n_classes),
    }
    if case.probabilities is not None:
        errors, rows = case.probabilities[where], np.arange(len(where))
        loss = -np.log(np.clip(errors[rows, gold], LOG_LOSS_CLIP, 1.0))
        errors[rows, gold] -= 1.0
        squared = np.einsum("ij,ij->i", errors, errors)
        sums["brier"] = sum_by(group, n_groups, squared)
        sums["log_loss"] = sum_by(group, n_groups, loss)
    return sums


def element_scores(sums: Sums, foreground: BoolArray, *, macro: bool) -> Sums:
    """Turn sums into scores; any leading axes are kept.

    Precision, recall and F1 pool the foreground classes (micro average: one class when there are two). The
    macro average is over the foreground classes that occur in gold or labels, 0/0 in it counting as 0.
    """
    hits, labelled, gold = (sums[name][..., foreground] for name in ("hits", "labelled", "gold"))
    pooled = f_scores(hits.sum(axis=-1), labelled.sum(axis=-1), gold.sum(axis=-1))
    scores = {"accuracy": ratio(sums["hits"].sum(axis=-1), sums["known"])}
    scores |= dict(zip(("precision", "recall", "f1"), pooled, strict=True))
    if macro:
        occurs = (labelled + gold) > 0
        for name, by_class in zip(("precision", "recall", "f1"), f_scores(hits, labelled, gold), strict=True):
            total = np.where(occurs, np.nan_to_num(by_class), 0.0).sum(axis=-1)
            scores[f"macro_{name}"] = ratio(total, occurs.sum(axis=-1).astype(np.float64))
    for name in ("brier", "log_loss"):
        if name in sums:
            scores[name] = ratio(sums[name], sums["known"])
    return scores


def f_scores(hits: FloatArray, labelled: FloatArray, gold: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precision, recall and F1 = 2 hits / (labelled + gold); 0/0 is NaN."""
    return ratio(hits, labelled), ratio(hits, gold), ratio(2.0 * hits, labelled + gold)


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; where the denominator is zero the result is NaN."""
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    result = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result


def sum_by(index: IntArray, size: int, weights: AnyArray | None = None) -> FloatArray:
    """Add up the weights (1 by default) of equal indices below `size`."""
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64)


def _by_class(group: IntArray, column: IntArray, n_groups: int, n_classes: int) -> FloatArray:
    return sum_by(group * n_classes + column, n_groups * n_classes).reshape(n_groups, n_classes)

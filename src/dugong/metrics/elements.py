"""Scores of single elements: accuracy, precision, recall, F1, Brier score, log loss, calibration.

In: a `Scored`. Out, in two steps: sums by group, which add, and scores, which are functions of sums. The same function
scores the total and every total without one group, so intervals (see `scores`) need no second pass over the data.

Brier score: sum over classes of (p - 1[gold])^2, averaged over elements; between 0 and 2. Log loss: the mean of -log
p(gold), p no smaller than `LOG_LOSS_CLIP`, so that one certain mistake costs 13.8 and not infinity.

The reliability curve has bins of equal width, [a, b), the last one [a, 1]. With a positive class (always, when there
are two classes) it is about P(positive) and how often the class is positive; otherwise about the probability of the
chosen class and how often that class is right. ECE = sum over bins of (share of elements) * |mean probability -
frequency|: between 0 and 1, biased upwards in small samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.codec import to_plain
from dugong.metrics.inputs import Scored
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray, read_only

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """The reliability curve: how often things happen that are given a certain probability.

    Attributes
    ----------
    of : what the probability is of: "P(name of the positive class)" or "P(chosen class)"
    edges : (n_bins + 1,) limits of the bins
    counts : (n_bins,) elements per bin
    mean_probability, frequency : (n_bins,) what was promised and what happened, per bin; NaN in an empty bin
    ece, largest_gap : weighted mean and maximum over bins of |mean_probability - frequency|
    """

    of: str
    edges: FloatArray
    counts: IntArray
    mean_probability: FloatArray
    frequency: FloatArray
    ece: float
    largest_gap: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, None for an empty bin."""
        return dict(to_plain(self))


def calibration_curve(case: Scored, n_bins: int) -> Calibration:
    """Return the reliability curve over all known elements."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    probability, happened = _promised_and_happened(case)
    which = _bins(probability, edges)
    counts = sum_by(which, n_bins)
    promised = ratio(sum_by(which, n_bins, probability), counts)
    frequency = ratio(sum_by(which, n_bins, happened), counts)
    gaps = np.abs(promised - frequency)
    positive = case.coding.positive
    return Calibration(
        of="P(chosen class)" if positive is None else f"P({case.coding.names[positive]})",
        edges=read_only(edges),
        counts=read_only(counts.astype(np.int64)),
        mean_probability=read_only(promised),
        frequency=read_only(frequency),
        ece=float(np.nansum(gaps * counts) / counts.sum()),
        largest_gap=float(np.nanmax(gaps)),
    )


def calibration_sums(case: Scored, n_bins: int) -> Sums:
    """Sum, per group and bin, probability minus what happened."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    probability, happened = _promised_and_happened(case)
    group = case.layout.by_group(np.flatnonzero(case.known))
    flat = sum_by(group * n_bins + _bins(probability, edges), case.layout.n_groups * n_bins, probability - happened)
    return {"gaps": flat.reshape(case.layout.n_groups, n_bins)}


def calibration_scores(sums: Sums) -> Sums:
    """Return the ECE of sums; any leading axes are kept."""
    return {"ece": ratio(np.abs(sums["gaps"]).sum(axis=-1), sums["known"])}


def _promised_and_happened(case: Scored) -> tuple[FloatArray, FloatArray]:
    assert case.probabilities is not None, "callers check that there are probabilities"
    known, positive = case.probabilities[case.known], case.coding.positive
    gold = case.gold[case.known]
    if positive is not None:
        return known[:, positive], (gold == positive).astype(np.float64)
    return known.max(axis=1), (gold == case.chosen[case.known]).astype(np.float64)


def _bins(probability: FloatArray, edges: FloatArray) -> IntArray:
    return np.searchsorted(edges[1:-1], probability, side="right")

"""Are the probabilities honest? The reliability curve and the expected calibration error (ECE).

In: a `Scored` with probabilities. Out: a `Calibration`. Bins have equal width, [a, b), the last one [a, 1].
With a positive class (always, when there are two classes) the curve is about P(positive) and how often the
class is positive; otherwise it is about the probability of the chosen class and how often that class is
right. In both, ECE = sum over bins of (share of elements) * |mean probability - frequency|: between 0 and
1, biased upwards in small samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.metrics.elements import Sums, ratio, sum_by
from dugong.metrics.inputs import Scored
from dugong.types import FloatArray, IntArray, read_only

__all__ = ["Calibration", "calibration_curve", "calibration_scores", "calibration_sums"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """The reliability curve: how often things happen that are given a certain probability.

    Attributes
    ----------
    of : str
        What the probability is of: "P(name of the positive class)" or "P(chosen class)".
    edges : FloatArray, shape (n_bins + 1,)
        Limits of the bins.
    counts : IntArray, shape (n_bins,)
        Elements per bin.
    mean_probability, frequency : FloatArray, shape (n_bins,)
        What was promised and what happened, per bin; NaN in an empty bin.
    ece, largest_gap : float
        Weighted mean and maximum over bins of |mean_probability - frequency|.
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
        curve = {
            name: [None if np.isnan(value) else float(value) for value in getattr(self, name)]
            for name in ("mean_probability", "frequency")
        }
        return {
            "of": self.of, "edges": self.edges.tolist(), "counts": self.counts.tolist(), **curve,
            "ece": self.ece, "largest_gap": self.largest_gap,
        }  # fmt: skip


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

"""From a case to sums by group, and from sums to all scores: the one list of what is measured.

In: a `Scored`. Out: named sums with the groups on the first axis, and the scores of any sums (the total, or
every total without one group). `Score` is one score with its interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.metrics.calibration import calibration_scores, calibration_sums
from dugong.metrics.coding import LabelCoding
from dugong.metrics.elements import Sums, element_scores, element_sums
from dugong.metrics.events import event_scores, event_sums
from dugong.metrics.inputs import Scored
from dugong.metrics.intervals import Interval, Scale

__all__ = ["LOSSES", "Score", "scale_of", "scores_of", "sums_of", "total", "without_each"]

LOSSES = frozenset({"brier", "ece", "log_loss", "offset_error", "onset_error"})
"""Scores of which less is better; the others lie between 0 and 1, and more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One score: its name, its value (NaN for 0/0) and, where there is one, its confidence interval."""

    name: str
    value: float
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Return value, low and high; None for what is undefined."""
        low, high = self.interval or (None, None)
        return {"value": number(self.value), "low": low, "high": high}


def number(value: float) -> float | None:
    """Return a plain float, None for NaN: what JSON can hold."""
    return None if np.isnan(value) else float(value)


def scale_of(name: str) -> Scale:
    """Return the scale on which a score's interval is made."""
    return "loss" if name in LOSSES else "unit"


def sums_of(case: Scored, *, iou: float, n_bins: int) -> Sums:
    """Sum all that the scores need, per group; groups without known gold are left out."""
    sums = element_sums(case)
    if case.probabilities is not None:
        sums |= calibration_sums(case, n_bins)
    if case.layout.offsets is not None:
        sums |= event_sums(case, iou)
    informed = sums["known"] > 0
    return {name: values[informed] for name, values in sums.items()}


def scores_of(sums: Sums, coding: LabelCoding) -> Sums:
    """Return every score that the sums allow; any leading axes are kept."""
    macro = len(coding.names) > 2 and coding.positive is None
    scores = element_scores(sums, coding.foreground, macro=macro)
    if "gaps" in sums:
        scores |= calibration_scores(sums)
    if "gold_events" in sums:
        scores |= event_scores(sums)
    return scores


def total(sums: Sums) -> Sums:
    """Add up all groups."""
    return {name: values.sum(axis=0) for name, values in sums.items()}


def without_each(sums: Sums) -> Sums:
    """Return the totals without each group in turn, on the first axis."""
    return {name: values.sum(axis=0) - values for name, values in sums.items()}

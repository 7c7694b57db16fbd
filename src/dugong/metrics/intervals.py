"""How sure are the scores? Confidence intervals from the spread between sequences.

In: a score of everything, and the same score with each group left out in turn. Out: an interval. Elements
of one sequence resemble each other, so what counts is the number of sequences (or of patients, videos: the
caller's groups), never the number of elements. The delete-one-group jackknife with a t quantile (G - 1
degrees of freedom) needs no random numbers and does not depend on the order of the groups. Scores between 0
and 1 are treated on the logit scale and losses on the log scale, which keeps the limits inside the range;
where some value lies on the border, on the plain scale, cut at the border.

Simulated coverage at a nominal 95 % (sequences that differ in accuracy and prevalence; accuracy, F1 and log
loss; 800 repetitions, 300 with 100 groups): .94/.93/.92 with 5 groups, .95/.93/.94 with 10, .94/.95/.94 with
25, .94/.92/.93 with 100. A percentile bootstrap over groups: .79/.81/.78, .88/.88/.88, .91/.93/.93 and
.94/.91/.93.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import expit, logit, stdtrit

from dugong.types import FloatArray

__all__ = ["Interval", "Scale", "figure", "jackknife", "range_of", "signed", "why_no_interval"]

Interval = tuple[float, float]
Scale = Literal["unit", "loss", "plain"]

ROUNDING = 1e-12


"""Spread between groups that is taken for rounding."""

_TO: dict[Scale, Callable[[FloatArray], FloatArray]] = {"unit": logit, "loss": np.log}
_FROM: dict[Scale, Callable[[FloatArray], FloatArray]] = {"unit": expit, "loss": np.exp}
_RANGE: dict[Scale, Interval] = {"unit": (0.0, 1.0), "loss": (0.0, np.inf), "plain": (-np.inf, np.inf)}


def why_no_interval(value: float, without: FloatArray) -> str | None:
    """Return what keeps a score from having an interval, or None if nothing does."""
    if np.isnan(value):
        return "the score is undefined"
    if len(without) < 2:
        return "there is only one group with known gold"
    if np.isnan(without).any():
        return "the score is undefined when one of the groups is left out"
    if np.ptp(without) <= ROUNDING * max(1.0, abs(value)):
        return "all groups agree exactly, which leaves no spread to measure"
    return None


def jackknife(value: float, without: FloatArray, *, confidence: float, scale: Scale) -> Interval:
    """Return the delete-one-group jackknife interval of a score.

    Parameters
    ----------
    value : float
        The score of all groups together.
    without : FloatArray, shape (n_groups,)
        The score with each group left out; see `why_no_interval` for what must hold.
    confidence : float
        Nominal coverage, such as 0.95.
    scale : "unit", "loss" or "plain"
        Score between 0 and 1, score from 0 upwards, or any number (a difference).
    """
    low, high = _RANGE[scale]
    inside = low < min(value, without.min()) and max(value, without.max()) < high
    if scale == "plain" or not inside:
        radius = _radius(without, confidence)
        return max(low, value - radius), min(high, value + radius)
    radius = _radius(_TO[scale](without), confidence)
    limits = _FROM[scale](_TO[scale](np.array([value, value])) + np.array([-radius, radius]))
    return float(limits[0]), float(limits[1])


def _radius(without: FloatArray, confidence: float) -> float:
    n_groups = len(without)
    error = np.sqrt((n_groups - 1) / n_groups * np.sum((without - without.mean()) ** 2))
    return float(stdtrit(n_groups - 1, 0.5 + confidence / 2) * error)


def figure(value: float | None) -> str:
    """Write a score with four decimals, a dash when it is undefined or absent."""
    return "-" if value is None or np.isnan(value) else f"{value:.4f}"


def signed(value: float | None) -> str:
    """Write a difference with its sign."""
    return "-" if value is None or np.isnan(value) else f"{value:+.4f}"


def range_of(interval: Interval | None, *, with_sign: bool = False) -> str:
    """Write an interval as "low to high", a dash when there is none."""
    if interval is None:
        return "-"
    write = signed if with_sign else figure
    return f"{write(interval[0])} to {write(interval[1])}"

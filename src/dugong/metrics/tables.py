"""Scores and intervals in words."""

from __future__ import annotations

import numpy as np

from dugong.metrics.intervals import Interval

__all__ = ["figure", "range_of", "signed"]


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

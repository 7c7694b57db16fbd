"""Plain-text tables: numbers in, aligned lines out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dugong.metrics.intervals import Interval

__all__ = ["columns", "figure", "range_of", "signed"]


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align rows under their heads: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


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

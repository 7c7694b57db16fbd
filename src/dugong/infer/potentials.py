"""Soft evidence: log-potentials of elements by class, added to what the votes say about them.

In: (n_elements, K) numbers, any of which may be added to a row without consequence; a class may be ruled out by minus
infinity. Out: likelihoods for the kernels.
"""

from __future__ import annotations

import numpy as np

from dugong.exceptions import LabelError
from dugong.types import FloatArray, IntArray

_NOTHING = np.zeros((0, 0)), np.zeros(0)


def check_potentials(potentials: FloatArray | None, n_elements: int, n_classes: int) -> FloatArray | None:
    """The potentials as float64, or an error that says what is wrong with them."""
    if potentials is None:
        return None
    found = np.ascontiguousarray(potentials, dtype=np.float64)
    if found.shape != (n_elements, n_classes):
        raise LabelError(
            f"potentials must be one number per element and class, shape {(n_elements, n_classes)}; "
            f"found shape {found.shape}."
        )
    # The largest of a row is finite exactly if no entry is NaN or plus infinity, and not all rule their class out.
    bad = ~np.isfinite(_largest(found))
    if bad.any():
        raise LabelError(
            f"potentials must be finite numbers (minus infinity rules a class out, but not all of a row); found "
            f"{int(bad.sum())} rows that are not, the first at element {int(np.argmax(bad))}: {found[np.argmax(bad)]}."
        )
    return found


def _largest(potentials: FloatArray) -> FloatArray:
    """Largest of every row: by columns, which is many times faster than along short rows."""
    largest = potentials[:, 0]
    for column in potentials.T[1:]:
        largest = np.maximum(largest, column)
    return largest


def soften(potentials: FloatArray | None, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Likelihoods of elements first..last, at most one, and the logarithms of what they were divided by."""
    if potentials is None:
        return _NOTHING
    own = potentials[first:last]
    tops = _largest(own)
    soft = np.subtract(own, tops[:, None])
    return np.exp(soft, out=soft), tops


def sum_by_sequence(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sums of the values of every sequence; `offsets` say where those of each begin, and where the last end."""
    sums = np.zeros(len(offsets) - 1)
    filled = offsets[1:] > offsets[:-1]
    # One empty piece would make reduceat return a single value in place of nothing.
    sums[filled] = np.add.reduceat(values, offsets[:-1][filled]) if filled.any() else 0.0
    return sums

"""Soft evidence: log-potentials of elements by class, added to what the votes say about them.

In: (n_elements, K) numbers, any of which may be added to a row without consequence; a class may be ruled out by minus
infinity. Out: likelihoods for the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dugong.exceptions import LabelError
from dugong.law import Grading, cells_of
from dugong.law.parameters import Conditional, Factor, Parameters
from dugong.types import MISSING, FloatArray, IntArray
from dugong.votes import SourceInfo, Votes, replace_unchecked

NOTHING = np.zeros((0, 0)), np.zeros(0)  # known about the elements beside their votes


def check_potentials(potentials: FloatArray, n_elements: int, n_classes: int) -> FloatArray:
    """The potentials as float64, or an error that says what is wrong with them."""
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


def soften(potentials: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Likelihoods of elements first..last, at most one, and the logarithms of what they were divided by."""
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


# --- Scores as evidence: one more factor beside that of the vote, P(how sure | label, vote). --------------------------
# In: votes with scores, parameters, and gradings. Out: votes with one more column for every soft source, and parameters
# with one more factor. Every engine then reads scores as it reads votes: windows, paths and samples need nothing more.


def with_scores(votes: Votes, parameters: Parameters, soft: Iterable[Grading]) -> tuple[Votes, Parameters]:
    """The same with scores as further sources, whose parents are the votes that they belong to."""
    found = [one for one in soft if one.source in votes.scores]
    if not found:
        return votes, parameters
    infos, columns, factors, last = [], [], [], 0
    for one in found:
        # Codes above the classes and abstain, which every table has: places that no grade uses cost nothing.
        shift, name = len(one.cuts) + 1, f"{one.source} (how sure)"
        cells = cells_of(votes.scores[one.source], votes.column(one.source), one.cuts)
        infos.append(SourceInfo(name=name, resolution=one.resolution))
        columns.append(np.where(cells < 0, MISSING, cells + shift).astype(np.int8))
        table = _wide(one.table, parameters[one.source].n_columns, shift)
        factors.append(Conditional(source=name, resolution=one.resolution, table=table, parents=(one.source,)))
        last = max(last, table.shape[-1])
    # The codebook says that there are codes beyond the classes; its members are asked of nobody.
    graded = replace_unchecked(
        votes,
        sources=(*votes.sources, *infos),
        columns=(*votes.columns, *columns),
        partial={**votes.partial, last: votes.classes[:1]},
        scores={},
    )
    return graded, replace(parameters, factors=(*parameters.factors, *factors))


def silenced(parameters: Parameters) -> Parameters:
    """Parameters under which votes say nothing, and only their scores are left."""
    factors: list[Factor] = [
        Conditional(
            source=one.source,
            resolution=one.resolution,
            table=np.full((one.n_classes, one.n_columns), 1 / one.n_columns),
            weight=0.0,
        )
        for one in parameters.factors
    ]
    return replace(parameters, factors=tuple(factors))


def _wide(table: FloatArray, n_columns: int, shift: int) -> FloatArray:
    """P(code | label, vote) for every vote of the parent: what is no vote for a class has no grade."""
    n_classes, _, cells = table.shape
    wide = np.zeros((n_classes, n_columns, shift + cells))
    wide[:, :, shift:] = 1 / cells
    wide[:, :n_classes, shift:] = table
    return wide

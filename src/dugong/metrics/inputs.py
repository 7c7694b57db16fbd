"""Check what was given once, and bring it into one form.

In: labels or probabilities, gold, lengths and groups as the caller has them. Out: a `Scored`, columns instead of class
values, with the group of every element. Everything after this file takes correct arrays for granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.exceptions import LabelError
from dugong.metrics.coding import LabelCoding
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray

SUM_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extent:
    """How the elements lie in sequences and groups.

    Attributes
    ----------
    n_elements : length of the flat arrays
    offsets : (n_sequences + 1,) where each sequence starts, and the end of the last; None when no lengths were given
    group : (n_elements,) group number of every element; None when there is nothing to group by
    n_groups : how many groups there are (1 without groups)
    """

    n_elements: int
    offsets: IntArray | None
    group: IntArray | None
    n_groups: int

    def by_group(self, elements: IntArray) -> IntArray:
        """Return the group number of each of the given elements."""
        return np.zeros(len(elements), dtype=np.int64) if self.group is None else self.group[elements]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """One method's labels beside the gold.

    Attributes
    ----------
    coding : what the columns mean
    layout : how the elements lie in sequences and groups
    gold, chosen : (n_elements,) column numbers; -1 for unknown gold and for a label that abstains
    known : (n_elements,) where gold is known
    probabilities : (n_elements, K) None when hard labels were given
    n_tied : known elements at which two classes share the largest probability
    """

    coding: LabelCoding
    layout: Extent
    gold: IntArray
    chosen: IntArray
    known: BoolArray
    probabilities: FloatArray | None
    n_tied: int


def read_gold(gold: ArrayLike) -> IntArray:
    """Return gold as integers, or say what is wrong with it."""
    array = _flat(_array(gold, "gold"), "gold")
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array) | (array != np.round(array))
        if wrong.any():
            first = int(np.argmax(wrong))
            raise LabelError(
                f"gold must be whole class values; found {int(wrong.sum())} others, the first at element "
                f"{first} (value {array[first]}).\n  Mark unknown gold with 0, not with NaN."
            )
    _whole_numbers(array, "gold", floats=True)
    return array.astype(np.int64)


def read_labels(labels: ArrayLike, name: str = "labels") -> AnyArray:
    """Return hard labels as integers (n,), or probabilities as floats (n, K)."""
    array = _array(labels, name)
    if array.ndim == 2:
        return _probabilities(array, name)
    if array.ndim == 1 and array.dtype.kind == "f" and array.size:
        raise LabelError(
            f"one-dimensional {name} must be whole class values; found {array.dtype}, which may be labels or "
            "P(+1).\n  For labels give labels.astype(int); for probabilities give one column per class, "
            "for two classes np.column_stack([1 - p, p])."
        )
    _flat(array, name)
    _whole_numbers(array, name, floats=not array.size)
    return array.astype(np.int64)


def make_layout(n_elements: int, lengths: ArrayLike | None, groups: ArrayLike | None) -> Extent:
    """Return where the sequences start and which group each element belongs to."""
    offsets = None if lengths is None else _offsets(lengths, n_elements)
    per_element = None
    if groups is not None:
        per_element = _element_groups(_array(groups, "groups"), offsets, n_elements)
    elif offsets is not None:
        per_element = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    n_groups = 1 if per_element is None else int(per_element.max(initial=-1)) + 1
    return Extent(n_elements=n_elements, offsets=offsets, group=per_element, n_groups=n_groups)


def make_case(labels: AnyArray, gold: IntArray, coding: LabelCoding, layout: Extent, name: str = "labels") -> Scored:
    """Put checked labels and checked gold side by side."""
    if len(labels) != len(gold):
        raise LabelError(f"{name} and gold must have one entry per element each; found {len(labels)} and {len(gold)}.")
    _in_classes(gold, coding, "gold")
    known = gold != 0
    if not known.any():
        raise LabelError(
            f"gold must be known somewhere; found {len(gold)} elements, all of them 0 (unknown).\n"
            "  Two classes are coded -1 and +1, more are coded 1..K."
        )
    hard = labels.ndim == 1
    if hard:
        _in_classes(labels, coding, name)
    chosen = coding.columns(labels) if hard else labels.argmax(axis=1)
    return Scored(
        coding=coding,
        layout=layout,
        gold=coding.columns(gold),
        chosen=chosen,
        known=known,
        probabilities=None if hard else labels,
        n_tied=0 if hard else int(((labels == labels.max(axis=1, keepdims=True)).sum(axis=1) > 1)[known].sum()),
    )


def _array(values: ArrayLike, name: str) -> AnyArray:
    try:
        array: AnyArray = np.asarray(values)
    except ValueError as error:
        raise LabelError(
            f"{name} must be one flat array over all sequences; found a ragged list.\n"
            "  Give np.concatenate(list_of_sequences) and lengths=[len(s) for s in list_of_sequences]."
        ) from error
    return array


def _flat(array: AnyArray, name: str) -> AnyArray:
    if array.ndim != 1:
        raise LabelError(
            f"{name} must be one flat array over all sequences; found shape {array.shape}.\n"
            "  Give array.ravel() and lengths=..., sequence after sequence."
        )
    return array


def _whole_numbers(array: AnyArray, name: str, *, floats: bool) -> None:
    if array.dtype.kind not in ("iuf" if floats else "iu"):
        raise LabelError(
            f"{name} must hold class values (-1 and +1, or 1..K, and 0 for unknown); found {array.dtype}.\n"
            "  For booleans give np.where(values, 1, -1)."
        )


def _probabilities(array: AnyArray, name: str) -> FloatArray:
    if array.dtype.kind not in "iuf":
        raise LabelError(f"probabilities must be numbers; found {array.dtype} values in {name}.")
    probabilities = array.astype(np.float64, copy=False)
    totals = probabilities.sum(axis=1)
    bad = ~(np.abs(totals - 1.0) <= SUM_TOLERANCE) | ~(probabilities >= 0.0).all(axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        nan = int(np.isnan(totals).sum())
        raise LabelError(
            f"each row of {name} must be probabilities that sum to one; found {int(bad.sum())} rows that are not "
            f"({nan} with NaN), the first at element {first} ({np.round(probabilities[first], 6).tolist()}).\n"
            "  Give one column per class, each row divided by its sum."
        )
    return probabilities


def _offsets(lengths: ArrayLike, n_elements: int) -> IntArray:
    array = _flat(_array(lengths, "lengths"), "lengths")
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0):
        raise LabelError(f"lengths must be whole numbers, none negative; found {array[:5].tolist()}.")
    offsets = np.concatenate([[0], np.cumsum(array.astype(np.int64))])
    if offsets[-1] != n_elements:
        raise LabelError(
            f"lengths must add up to the number of elements; found a sum of {offsets[-1]} over {array.size} "
            f"sequences, and {n_elements} elements."
        )
    return offsets


def _element_groups(groups: AnyArray, offsets: IntArray | None, n_elements: int) -> IntArray:
    """Return group numbers 0..G-1 by element, from one name per sequence or per element."""
    n_sequences = None if offsets is None else len(offsets) - 1
    if groups.ndim != 1 or len(groups) not in (n_sequences, n_elements):
        per_sequence = "" if n_sequences is None else f"per sequence ({n_sequences}) or "
        raise LabelError(f"groups must be given {per_sequence}per element ({n_elements}); found shape {groups.shape}.")
    numbers: Any = np.unique(groups, return_inverse=True)[1]
    if offsets is not None and len(groups) == n_sequences:
        numbers = np.repeat(numbers, np.diff(offsets))
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64)


def _in_classes(values: IntArray, coding: LabelCoding, name: str) -> None:
    wrong = ~np.isin(values, np.append(coding.values, 0))
    if wrong.any():
        first = int(np.argmax(wrong))
        two = len(coding.names) == 2
        raise LabelError(
            f"{name} must be one of the classes {coding.values.tolist()}, or 0 for unknown; found "
            f"{int(wrong.sum())} other values, the first at element {first} (value {values[first]}).\n"
            + ("  Two classes are coded -1 and +1." if two else "  If classes are coded 0..K-1 and -1, add 1.")
        )

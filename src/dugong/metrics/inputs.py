"""Check what was given once, and bring it into one form.

In: labels or probabilities, gold, lengths and groups as the caller has them. Out: a `Scored`, columns instead of class
values, with the group of every element. Everything after this file takes correct arrays for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import fits
from dugong.exceptions import LabelError
from dugong.tasks.bio import BioScheme, bio_scheme
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray, class_values, read_only

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


def make_cases(
    methods: Mapping[str, ArrayLike],
    gold: ArrayLike,
    *,
    lengths: ArrayLike | None,
    groups: ArrayLike | None,
    classes: Classes | None,
    positive: int | str | None,
    background: int | str | None,
) -> dict[str, Scored]:
    """What was given, checked and in one form, by method; see `evaluate` for what everything is."""
    read = [read_labels(labels, name) for name, labels in methods.items()]
    own, truth, classes = from_indices(read, read_gold(gold), classes)
    layout = make_layout(len(truth), lengths, groups)
    coding = make_coding(own, truth, classes=classes, positive=positive, background=background)
    return {name: make_case(one, truth, coding, layout, name) for name, one in zip(methods, own, strict=True)}


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
    if hard := labels.ndim == 1:
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


# --- What the classes are called and which of them matter: the first step of every score ------------------------------
# In: arrays of labels and gold in our own coding (-1/+1 when there are two classes, 1..K when there are more, 0 for
# abstain or unknown), and what the caller says about the classes. Out: a `LabelCoding`, which turns class values into
# column numbers and says which columns are in the foreground (the positive class, or all but the background). Two
# codings of other tools look like ours (0/1, and 0..K-1 with -1 for unknown): where they cannot be told apart from
# ours, this raises instead of guessing.
Classes = Sequence[str] | Sequence[int] | Mapping[int, str] | AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelCoding:
    """The classes in column order, and the part each of them plays.

    Attributes
    ----------
    names : one name per column
    values : (K,) the class values: [-1, 1], or 1..K
    positive, background : column numbers
    foreground : (K,) the classes that precision, recall, F1 and events are about
    bio : how names such as B-Disease and I-Disease make spans
    notes : what was inferred rather than given
    """

    names: tuple[str, ...]
    values: IntArray
    positive: int | None
    background: int | None
    foreground: BoolArray
    bio: BioScheme | None
    notes: tuple[str, ...]

    def columns(self, values: IntArray) -> IntArray:
        """Turn class values into column numbers; 0 (unknown, abstain) becomes -1."""
        if len(self.names) > 2:
            return values - 1
        return np.where(values == 0, -1, (values + 1) // 2)


def make_coding(
    labels: Sequence[AnyArray],
    gold: IntArray,
    *,
    classes: Classes | None,
    positive: int | str | None,
    background: int | str | None,
) -> LabelCoding:
    """Find out the classes from what was said, else from the number of columns, else from the values."""
    said, stated = _said(classes)
    notes: list[str] = []
    n_classes = _count(labels, gold, said, notes)
    names = said or _default_names(n_classes)
    values = np.array(class_values(n_classes))
    if n_classes == 2 and not stated:
        _refuse_zero_one([gold, *(array for array in labels if array.ndim == 1)])
    bio = bio_scheme(names)
    positive_column, background_column = _parts(names, values, positive, background, bio, notes)
    return LabelCoding(
        names=names,
        values=read_only(values),
        positive=positive_column,
        background=background_column,
        foreground=read_only(_foreground(n_classes, positive_column, background_column)),
        bio=bio,
        notes=tuple(notes),
    )


def from_indices(
    labels: Sequence[AnyArray], gold: IntArray, classes: Classes | None
) -> tuple[list[AnyArray], IntArray, Classes | None]:
    """Labels and gold in our own coding, where `classes` says that they are indices 0..K-1 and -1 is none (Snorkel)."""
    indices = list(classes) if classes is not None and fits(classes, Iterable[Any]) else []
    if len(indices) < 2 or any(isinstance(one, str) for one in indices) or indices != list(range(len(indices))):
        return list(labels), gold, classes
    values = np.append(class_values(len(indices)), 0)  # index -1 is the last: unknown

    def recoded(array: IntArray) -> IntArray:
        wrong = (array < -1) | (array >= len(indices))
        if wrong.any():
            raise LabelError(f"with classes={indices}, labels are among these, or -1; found {array[wrong][0]}.")
        if len(indices) == 2 and (array == -1).any() and (array == 1).any() and not (array == 0).any():
            raise LabelError("with classes=[0, 1], -1 is unknown; found -1 and +1 and no 0: leave classes= out.")
        return np.asarray(values[array])

    names = [str(classes[one]) for one in indices] if isinstance(classes, Mapping) else list(map(str, indices))
    own = dict(zip(values.tolist(), names, strict=False))
    return [one if one.ndim == 2 else recoded(one) for one in labels], recoded(gold), own


def _default_names(n_classes: int) -> tuple[str, ...]:
    return ("-1", "+1") if n_classes == 2 else tuple(str(value) for value in range(1, n_classes + 1))


def _said(classes: Classes | None) -> tuple[tuple[str, ...] | None, bool]:
    """Return the names, and whether the caller stated the coding by giving the class values themselves."""
    if classes is None:
        return None, False
    given = list(classes) if fits(classes, Iterable[Any]) else []
    if len(given) < 2:
        raise LabelError(f"classes must name at least two classes; found {given!r}.")
    if all(isinstance(item, Integral) for item in given):
        expected = list(class_values(len(given)))
        if sorted(int(item) for item in given) != expected or (
            not isinstance(classes, Mapping) and [int(item) for item in given] != expected
        ):
            raise LabelError(
                f"{len(given)} classes have the values {expected}, in this order; found {given!r}.\n"
                "  Give names in the order of the columns, or recode the labels."
            )
        if isinstance(classes, Mapping):
            return _distinct([str(classes[value]) for value in expected]), True
        return _default_names(len(given)), True
    if isinstance(classes, Mapping) or not all(isinstance(item, str) for item in given):
        raise LabelError(f"classes must be all names, all values, or a mapping of value to name; found {given!r}.")
    return _distinct([str(item) for item in given]), False


def _distinct(names: list[str]) -> tuple[str, ...]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise LabelError(f"class names must differ; found {repeated} more than once.")
    return tuple(names)


def _count(labels: Sequence[AnyArray], gold: IntArray, said: tuple[str, ...] | None, notes: list[str]) -> int:
    """Return K, and check that all that is known about it agrees."""
    widths = {array.shape[1] for array in labels if array.ndim == 2}
    if said is not None:
        widths.add(len(said))
    if len(widths) > 1:
        raise LabelError(
            f"the columns of the probabilities and the classes must agree; found {sorted(widths)} of them.\n"
            "  Give one column per class, in the order of classes."
        )
    if not widths:
        widths.add(_count_from_values([gold, *labels]))
        notes.append(f"{min(widths)} classes, taken from the values; classes=... says it for certain")
    n_classes = int(widths.pop())
    if n_classes < 2:
        raise LabelError(
            "probabilities need one column per class and at least two columns; found 1.\n"
            "  For P(+1) give np.column_stack([1 - p, p])."
        )
    return n_classes


def _count_from_values(arrays: Sequence[AnyArray]) -> int:
    lowest = min((int(array.min()) for array in arrays if array.size), default=0)
    highest = max((int(array.max()) for array in arrays if array.size), default=0)
    if lowest < 0 and highest <= 1:
        return 2
    if lowest >= 0 and highest >= 3:
        return highest
    raise LabelError(
        f"cannot tell how many classes there are from values between {lowest} and {highest}.\n"
        "  Two classes are coded -1 and +1, more are coded 1..K, and 0 is unknown: give classes=[-1, 1] or [0, 1], "
        "or the names."
    )


def _refuse_zero_one(arrays: Sequence[AnyArray]) -> None:
    for name, array in zip(("gold", *["labels"] * len(arrays)), arrays, strict=False):
        zeros, negatives = int(np.count_nonzero(array == 0)), np.any(array == -1)
        if zeros and not negatives and np.any(array == 1):
            raise LabelError(
                f"{name} must hold -1 and +1, and 0 for unknown; found {zeros} zeros, some +1 and no -1, "
                "which looks like 0/1 coding.\n"
                "  If 0 is the negative class, say so with classes=[0, 1]; if 0 does mean unknown, with "
                "classes=[-1, 1] or classes={-1: ..., 1: ...}."
            )


def _parts(
    names: tuple[str, ...],
    values: IntArray,
    positive: int | str | None,
    background: int | str | None,
    bio: BioScheme | None,
    notes: list[str],
) -> tuple[int | None, int | None]:
    """Return the columns of the positive class and of the background."""
    up = None if positive is None else _column(positive, "positive", names, values)
    down = None if background is None else _column(background, "background", names, values)
    if up is not None and up == down:
        raise LabelError(f"positive and background must be different classes; both are {names[up]!r}.")
    if len(names) == 2:
        if up is None:
            up = 1 if down is None else 1 - down
        return up, 1 - up
    if bio is not None:
        if down is not None and down != bio.outside:
            raise LabelError(f"with BIO tags the background is 'O'; found background={names[down]!r}.")
        if down is None:
            notes.append("background 'O' and spans, from the BIO names of the classes")
        down = bio.outside
    return up, down


def _column(which: int | str, role: str, names: tuple[str, ...], values: IntArray) -> int:
    if isinstance(which, str) and which in names:
        return names.index(which)
    if isinstance(which, Integral) and which in values:
        return int(np.flatnonzero(values == which)[0])
    raise LabelError(
        f"{role} must be one of the class values {values.tolist()} or names {list(names)}; found {which!r}."
    )


def _foreground(n_classes: int, positive: int | None, background: int | None) -> BoolArray:
    if positive is not None:
        return np.asarray(np.arange(n_classes) == positive)
    return np.asarray(np.arange(n_classes) != (-1 if background is None else background))

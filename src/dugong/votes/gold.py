"""Known labels beside the votes: read once, at any resolution.

In: gold labels of elements in our own coding (0 where unknown), flat, per sequence, or by resolution. Out:
labels of the tasks of one resolution, given or derived by the link; and where a source is right or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import LabelError
from dugong.tasks import Element, Resolution, describe, find_resolution, link_labels
from dugong.types import ABSTAIN, MISSING, AnyArray, ClassCount, FloatArray, Int8Array, IntArray
from dugong.votes.codes import positive_class
from dugong.votes.container import Votes


@typed(LabelError)
def labels_from_classes(labels: ArrayLike, n_classes: ClassCount, unknown: int | None = -1) -> Int8Array:
    """Labels given as class indices 0..K-1, in our own coding: -1/+1 or 1..K, and 0 where unknown."""
    array = np.asarray(labels)
    known = np.ones(array.shape, dtype=np.bool_) if unknown is None else array != unknown
    bad = known & ~np.isin(array, np.arange(n_classes))
    if bad.any():
        raise LabelError(
            f"labels must be class indices from 0 to {n_classes - 1}, or {unknown} where unknown; found "
            f"{int(bad.sum())} other values, the first {array[bad].flat[0]} at {int(np.argmax(bad))}."
        )
    ours = 2 * array - 1 if n_classes == 2 else array + 1
    return np.where(known, ours, 0).astype(np.int8)


Coding = Literal["own", "given"]


def as_given(votes: Votes, labels: Int8Array, coding: Coding) -> AnyArray:
    """Labels of our own coding, or written as the votes were given."""
    if coding == "own" or votes.given is None:
        return labels
    if votes.n_classes > 2 and np.isin(labels, (-1,)).any():
        return labels  # windows of many classes: whether they hold one of them, which is +1 or -1 everywhere
    places = (labels > 0).astype(np.int64) if votes.n_classes == 2 else labels.astype(np.int64) - 1
    return np.asarray(votes.given)[places]


def likeliest(probabilities: FloatArray, classes: AnyArray, threshold: float) -> Int8Array:
    """The likelier class of every task; with two classes +1 where P(+1) exceeds the threshold."""
    if probabilities.shape[1] == 2:
        return np.where(probabilities[:, 1] > threshold, 1, -1).astype(np.int8)
    return np.asarray(classes[probabilities.argmax(axis=1)], dtype=np.int8)


def accuracy_on(predicted: AnyArray, gold: AnyArray) -> float:
    """Share of right labels among those that are known (not 0)."""
    known = np.asarray(gold) != 0
    if not known.any():
        raise LabelError("score needs at least one known gold label; found none (0 means unknown).")
    return float((np.asarray(predicted)[known] == np.asarray(gold)[known]).mean())


@typed(LabelError)
def from_given(votes: Votes, gold: Any, coding: Coding) -> Any:
    """Known labels in our own coding, from that or from the coding in which the votes came."""
    return gold if coding == "own" or votes.given is None else labels_from_classes(gold, votes.n_classes)


@typed(LabelError)
def gold_at(votes: Votes, gold: Any, resolution: Resolution) -> Int8Array:
    """Labels of all tasks of a resolution, 0 where unknown.

    Parameters
    ----------
    votes : Votes
    gold : (n_elements,) array, a list of one array per sequence, or a mapping of resolution to either
        A mapping may name resolutions, or hold the objects; those that it leaves out follow from ``"element"``.
    resolution : Resolution
    """
    if isinstance(gold, Mapping):
        named = {find_resolution(key, votes.resolutions): labels for key, labels in gold.items()}
        if resolution in named:
            return _read(votes, named[resolution], resolution)
        if Element() not in named:
            raise LabelError(
                f"labels of {describe(resolution)} must be given, or follow from labels of the elements; "
                f"found {', '.join(map(describe, named))}."
            )
        gold = named[Element()]
    labels = _read(votes, gold, Element())
    return link_labels(labels, votes.layout(resolution), positive_class(votes, resolution))


def _read(votes: Votes, labels: Any, resolution: Resolution) -> Int8Array:
    n_tasks = votes.layout(resolution).n_tasks
    flat = _flatten(labels)
    if flat.shape != (n_tasks,):
        raise LabelError(
            f"there must be one label per task of {describe(resolution)}, {n_tasks} in all; found {flat.shape}."
        )
    classes = votes.classes if isinstance(resolution, Element) else (-1, 1)
    bad = ~np.isin(flat, (0, *classes))
    if bad.any():
        raise LabelError(
            f"labels must be one of {classes}, or 0 where unknown; found {int(bad.sum())} other values, the first "
            f"{flat[bad][0]} at {int(np.argmax(bad))}.\n"
            "  For class indices 0..K-1, use dugong.votes.labels_from_classes(labels, n_classes)."
        )
    # Our readers give int8, in which 0 is unknown: somebody may well have marked positives alone.
    ours = flat.dtype == np.int8
    if not ours and classes == (-1, 1) and flat.any() and not (flat == -1).any() and (flat == 0).any():
        raise LabelError(
            "the coding of these labels is ambiguous: they hold only 0 and 1, and 0 may mean unknown or a class.\n"
            '  If 0 and 1 are two classes, pass coding="given" where there is that option, or use\n'
            "  dugong.votes.labels_from_classes(labels, n_classes=2)."
        )
    return flat.astype(np.int8)


def _flatten(labels: Any) -> AnyArray:
    if isinstance(labels, list | tuple) and labels and all(np.ndim(piece) == 1 for piece in labels):
        return np.concatenate([np.asarray(piece) for piece in labels])
    try:
        return np.asarray(labels)
    except ValueError:
        raise LabelError("labels must be one flat list, or one list per sequence; found rows of other forms.") from None


def find_buckets(votes: Votes, source: str, gold: Any) -> dict[tuple[int, int], IntArray]:
    """See `Votes.buckets`."""
    info, column = votes.sources[votes.index(source)], votes.column(source)
    labels = gold_at(votes, gold, info.resolution)
    codes = [code for code in np.unique(column).tolist() if code != MISSING]
    buckets = {}
    for label in (value for value in np.unique(labels).tolist() if value != ABSTAIN):
        for code in codes:
            tasks = np.flatnonzero((labels == label) & (column == code))
            if len(tasks):
                buckets[label, code] = tasks
    return buckets

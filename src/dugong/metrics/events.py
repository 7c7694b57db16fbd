"""Scores of whole events: were they found, and where do they start and end.

In: a `Scored` with lengths. Out: sums by group (matched, gold and labelled events, onset and offset errors), and
scores. An event is a longest run of one foreground class inside a sequence, or a span when the classes are BIO tags.
Elements of unknown gold end an event, in gold and in labels alike; a label that abstains is in no event. An event
counts for the group of its first element, a matched pair for the group of the gold event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import LabelError
from dugong.metrics.elements import Sums, f_scores, ratio, sum_by
from dugong.metrics.inputs import Scored, make_layout
from dugong.tasks.bio import BioScheme, bio_scheme
from dugong.types import BoolArray, FloatArray, IntArray, read_only

Pairs = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Events:
    """Events in order of time, none overlapping another.

    Attributes
    ----------
    start, end : (n_events,) half-open, in elements of the flat array over all sequences
    kind : (n_events,) column of the class, or number of the span type for BIO tags
    """

    start: IntArray
    end: IntArray
    kind: IntArray

    def __len__(self) -> int:
        return len(self.start)


@typed(LabelError)
def runs(kinds: IntArray, offsets: IntArray, breaks: BoolArray | None = None) -> Events:
    """Find the longest runs of equal kinds.

    Parameters
    ----------
    kinds : IntArray, shape (n_elements,)
        -1 where there is no event.
    offsets : IntArray, shape (n_sequences + 1,)
        Sequence borders; no run crosses one.
    breaks : BoolArray, shape (n_elements,), optional
        Elements at which a new run starts even if the kind stays the same.
    """
    kinds, offsets = np.asarray(kinds), np.asarray(offsets)
    n_elements = len(kinds)
    breaks = None if breaks is None else np.asarray(breaks, dtype=np.bool_)
    whole = kinds.ndim == offsets.ndim == 1 and kinds.dtype.kind in "iu" and offsets.dtype.kind in "iu"
    if not whole or offsets.min(initial=0) < 0 or (breaks is not None and np.shape(breaks) != kinds.shape):
        raise LabelError("runs need one whole number per element, offsets of at least 0, and one break per element.")
    opens = np.zeros(n_elements, dtype=np.bool_) if breaks is None else breaks.copy()
    opens[1:] |= kinds[1:] != kinds[:-1]
    opens[offsets[offsets < n_elements]] = True
    start = np.flatnonzero(opens)
    end = np.append(start[1:], n_elements)[: len(start)]
    keep = kinds[start] >= 0
    start, end = start[keep], end[keep]
    return Events(start=read_only(start), end=read_only(end), kind=read_only(kinds[start]))


@typed(LabelError)
def spans_from_bio(tags: ArrayLike, classes: Sequence[str], lengths: ArrayLike) -> Events:
    """Find the spans that BIO tags mark.

    Parameters
    ----------
    tags : array of int, shape (n_elements,)
        Number of each element's tag in `classes`, from 0; -1 for none.
    classes : sequence of str
        Tag names: O, and B-x / I-x for every type x. An I- tag that continues nothing opens a span.
    lengths : array of int
        Elements per sequence.

    Returns
    -------
    Events
        `kind` is the number of the type, in the order in which the types first appear in `classes`.
    """
    scheme = bio_scheme(classes)
    if scheme is None:
        raise LabelError(f"BIO tags must be named O, B-x and I-x; found {list(classes)}.")
    columns = np.asarray(tags)
    if columns.dtype.kind not in "iu" or columns.ndim != 1 or np.any((columns < -1) | (columns >= len(classes))):
        raise LabelError(f"tags must be one flat array of numbers from -1 to {len(classes) - 1}.")
    offsets = make_layout(len(columns), lengths, None).offsets
    assert offsets is not None
    return _spans(columns, scheme, np.arange(len(scheme.types)), offsets)


def event_sums(case: Scored, iou: float) -> Sums:
    """Count events in gold and labels, those matched at `iou` and exactly, and how far off they are."""
    gold, labelled = _events(case, case.gold), _events(case, case.chosen)
    pairs = overlaps(gold.start, gold.end, gold.kind, labelled.start, labelled.end, labelled.kind)
    first, second = match(*pairs, iou)
    exact, _ = match(*pairs, 1.0)
    onset = np.abs(labelled.start[second] - gold.start[first])
    offset = np.abs(labelled.end[second] - gold.end[first])

    def count(elements: IntArray, weights: IntArray | None = None) -> FloatArray:
        return sum_by(case.layout.by_group(elements), case.layout.n_groups, weights)

    return {
        "gold_events": count(gold.start),
        "labelled_events": count(labelled.start),
        "matched_events": count(gold.start[first]),
        "exact_events": count(gold.start[exact]),
        "onset_errors": count(gold.start[first], onset),
        "offset_errors": count(gold.start[first], offset),
    }


def event_scores(sums: Sums) -> Sums:
    """Turn event sums into scores; any leading axes are kept."""
    scores: Sums = {}
    for name, matched in (("event", "matched_events"), ("span", "exact_events")):
        values = f_scores(sums[matched], sums["labelled_events"], sums["gold_events"])
        scores |= dict(zip((f"{name}_precision", f"{name}_recall", f"{name}_f1"), values, strict=True))
    scores["onset_error"] = ratio(sums["onset_errors"], sums["matched_events"])
    scores["offset_error"] = ratio(sums["offset_errors"], sums["matched_events"])
    return scores


def _events(case: Scored, columns: IntArray) -> Events:
    offsets, coding = case.layout.offsets, case.coding
    assert offsets is not None, "callers check that there are lengths"
    visible = np.where(case.known, columns, -1)
    if coding.bio is not None:
        return _spans(visible, coding.bio, np.unique(coding.bio.type_of[coding.foreground]), offsets)
    return runs(np.where(np.append(coding.foreground, False)[visible], visible, -1), offsets)


def _spans(columns: IntArray, scheme: BioScheme, types: IntArray, offsets: IntArray) -> Events:
    """Find spans of the given types; column -1 is outside every span."""
    type_of = np.append(np.where(np.isin(scheme.type_of, types), scheme.type_of, -1), -1)
    return runs(type_of[columns], offsets, np.append(scheme.begins, False)[columns])


def overlaps(
    start: IntArray, end: IntArray, kind: IntArray,
    other_start: IntArray, other_end: IntArray, other_kind: IntArray,
) -> Pairs:  # fmt: skip
    """Return all overlapping pairs of the same kind: indices on both sides, and their IoU."""
    first = np.searchsorted(other_end, start, side="right")
    n_candidates = np.searchsorted(other_start, end, side="left") - first
    left = np.repeat(np.arange(len(start)), n_candidates)
    rank = np.arange(len(left)) - np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
    right = first[left] + rank
    same = kind[left] == other_kind[right]
    left, right = left[same], right[same]
    shared = np.minimum(end[left], other_end[right]) - np.maximum(start[left], other_start[right])
    union = (end - start)[left] + (other_end - other_start)[right] - shared
    return left, right, shared / union


def match(left: IntArray, right: IntArray, iou: FloatArray, threshold: float) -> tuple[IntArray, IntArray]:
    """Choose pairs with at least the given IoU, no event in two of them; sorted by the left index."""
    enough = iou >= threshold
    left, right, iou = left[enough], right[enough], iou[enough]
    single = _occurs_once(left) & _occurs_once(right)
    chosen = single.copy()
    contested = np.flatnonzero(~single)
    best_first = contested[np.lexsort((right[contested], left[contested], -iou[contested]))]
    chosen[_greedy(left, right, best_first)] = True
    return left[chosen], right[chosen]


def _occurs_once(indices: IntArray) -> BoolArray:
    return np.asarray(np.bincount(indices, minlength=1)[indices] == 1)


def _greedy(left: IntArray, right: IntArray, best_first: IntArray) -> IntArray:
    """Go through contested pairs in order and keep those both of whose events are still free."""
    used_left: set[int] = set()
    used_right: set[int] = set()
    kept: list[int] = []
    triples = zip(best_first.tolist(), left[best_first].tolist(), right[best_first].tolist(), strict=True)
    for pair, one, other in triples:
        if one not in used_left and other not in used_right:
            used_left.add(one)
            used_right.add(other)
            kept.append(pair)
    return np.array(kept, dtype=np.int64)

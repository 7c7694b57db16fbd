"""Scores of single elements: accuracy, precision, recall, F1, Brier score, log loss, calibration.

In: a `Scored`. Out, in two steps: sums by group, which add, and scores, which are functions of sums. The same function
scores the total and every total without one group, so intervals (see `scores`) need no second pass over the data.

Brier score: sum over classes of (p - 1[gold])^2, averaged over elements; between 0 and 2. Log loss: the mean of -log
p(gold), p no smaller than `LOG_LOSS_CLIP`, so that one certain mistake costs 13.8 and not infinity.

The reliability curve has bins of equal width, [a, b), the last one [a, 1]. With a positive class (always, when there
are two classes) it is about P(positive) and how often the class is positive; otherwise about the probability of the
chosen class and how often that class is right. ECE = sum over bins of (share of elements) * |mean probability -
frequency|: between 0 and 1, biased upwards in small samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.codec import to_plain
from dugong.contract import typed
from dugong.exceptions import LabelError
from dugong.metrics.inputs import Scored, make_layout
from dugong.tasks.bio import BioScheme, bio_scheme
from dugong.tasks.layout import stretches
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray, read_only

LOG_LOSS_CLIP = 1e-6
"""Smallest probability of the gold class that log loss takes at its word."""

Sums = dict[str, FloatArray]
"""Named sums with the groups as their first axis; they add over groups."""


def element_sums(case: Scored) -> Sums:
    """Count, per group: known elements, hits, gold and labels by class, squared errors and log losses."""
    where = np.flatnonzero(case.known)
    group = case.layout.by_group(where)
    gold, chosen = case.gold[where], case.chosen[where]
    n_groups, n_classes = case.layout.n_groups, len(case.coding.names)
    hit, spoke = gold == chosen, chosen >= 0
    sums = {
        "known": sum_by(group, n_groups),
        "gold": _by_class(group, gold, n_groups, n_classes),
        "labelled": _by_class(group[spoke], chosen[spoke], n_groups, n_classes),
        "hits": _by_class(group[hit], gold[hit], n_groups, n_classes),
    }
    if case.probabilities is not None:
        errors, rows = case.probabilities[where], np.arange(len(where))
        loss = -np.log(np.clip(errors[rows, gold], LOG_LOSS_CLIP, 1.0))
        errors[rows, gold] -= 1.0
        squared = np.einsum("ij,ij->i", errors, errors)
        sums["brier"] = sum_by(group, n_groups, squared)
        sums["log_loss"] = sum_by(group, n_groups, loss)
    return sums


def element_scores(sums: Sums, foreground: BoolArray, *, macro: bool) -> Sums:
    """Turn sums into scores; any leading axes are kept.

    Precision, recall and F1 pool the foreground classes (micro average: one class when there are two). The
    macro average is over the foreground classes that occur in gold or labels, 0/0 in it counting as 0.
    """
    hits, labelled, gold = (sums[name][..., foreground] for name in ("hits", "labelled", "gold"))
    pooled = f_scores(hits.sum(axis=-1), labelled.sum(axis=-1), gold.sum(axis=-1))
    scores = {"accuracy": ratio(sums["hits"].sum(axis=-1), sums["known"])}
    scores |= dict(zip(("precision", "recall", "f1"), pooled, strict=True))
    if macro:
        occurs = (labelled + gold) > 0
        for name, by_class in zip(("precision", "recall", "f1"), f_scores(hits, labelled, gold), strict=True):
            total = np.where(occurs, np.nan_to_num(by_class), 0.0).sum(axis=-1)
            scores[f"macro_{name}"] = ratio(total, occurs.sum(axis=-1).astype(np.float64))
    for name in ("brier", "log_loss"):
        if name in sums:
            scores[name] = ratio(sums[name], sums["known"])
    return scores


def f_scores(hits: FloatArray, labelled: FloatArray, gold: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precision, recall and F1 = 2 hits / (labelled + gold); 0/0 is NaN."""
    return ratio(hits, labelled), ratio(hits, gold), ratio(2.0 * hits, labelled + gold)


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; where the denominator is zero the result is NaN."""
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    result = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result


def sum_by(index: IntArray, size: int, weights: AnyArray | None = None) -> FloatArray:
    """Add up the weights (1 by default) of equal indices below `size`."""
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64)


def _by_class(group: IntArray, column: IntArray, n_groups: int, n_classes: int) -> FloatArray:
    return sum_by(group * n_classes + column, n_groups * n_classes).reshape(n_groups, n_classes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """The reliability curve: how often things happen that are given a certain probability.

    Attributes
    ----------
    of : what the probability is of: "P(name of the positive class)" or "P(chosen class)"
    edges : (n_bins + 1,) limits of the bins
    counts : (n_bins,) elements per bin
    mean_probability, frequency : (n_bins,) what was promised and what happened, per bin; NaN in an empty bin
    ece, largest_gap : weighted mean and maximum over bins of |mean_probability - frequency|
    """

    of: str
    edges: FloatArray
    counts: IntArray
    mean_probability: FloatArray
    frequency: FloatArray
    ece: float
    largest_gap: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, None for an empty bin."""
        return dict(to_plain(self))


def calibration_curve(case: Scored, n_bins: int) -> Calibration:
    """Return the reliability curve over all known elements."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    probability, happened = _promised_and_happened(case)
    which = _bins(probability, edges)
    counts = sum_by(which, n_bins)
    promised = ratio(sum_by(which, n_bins, probability), counts)
    frequency = ratio(sum_by(which, n_bins, happened), counts)
    gaps = np.abs(promised - frequency)
    positive = case.coding.positive
    return Calibration(
        of="P(chosen class)" if positive is None else f"P({case.coding.names[positive]})",
        edges=read_only(edges),
        counts=read_only(counts.astype(np.int64)),
        mean_probability=read_only(promised),
        frequency=read_only(frequency),
        ece=float(np.nansum(gaps * counts) / counts.sum()),
        largest_gap=float(np.nanmax(gaps)),
    )


def calibration_sums(case: Scored, n_bins: int) -> Sums:
    """Sum, per group and bin, probability minus what happened."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    probability, happened = _promised_and_happened(case)
    group = case.layout.by_group(np.flatnonzero(case.known))
    flat = sum_by(group * n_bins + _bins(probability, edges), case.layout.n_groups * n_bins, probability - happened)
    return {"gaps": flat.reshape(case.layout.n_groups, n_bins)}


def _promised_and_happened(case: Scored) -> tuple[FloatArray, FloatArray]:
    assert case.probabilities is not None, "callers check that there are probabilities"
    known, positive = case.probabilities[case.known], case.coding.positive
    gold = case.gold[case.known]
    if positive is not None:
        return known[:, positive], (gold == positive).astype(np.float64)
    return known.max(axis=1), (gold == case.chosen[case.known]).astype(np.float64)


def _bins(probability: FloatArray, edges: FloatArray) -> IntArray:
    return np.searchsorted(edges[1:-1], probability, side="right")


# --- whole events: were they found, and where do they start and end ---------------------------------------------------
# In: a `Scored` with lengths. Out: sums by group (matched, gold and labelled events, onset and offset errors), and
# scores. An event is a longest run of one foreground class inside a sequence, or a span when the classes are BIO tags.
# Elements of unknown gold end an event, in gold and in labels alike; a label that abstains is in no event. An event
# counts for the group of its first element, a matched pair for the group of the gold event.
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
    breaks = None if breaks is None else np.asarray(breaks, dtype=np.bool_)
    whole = kinds.ndim == offsets.ndim == 1 and kinds.dtype.kind in "iu" and offsets.dtype.kind in "iu"
    if not whole or offsets.min(initial=0) < 0 or (breaks is not None and np.shape(breaks) != kinds.shape):
        raise LabelError("runs need one whole number per element, offsets of at least 0, and one break per element.")
    start, end = stretches(kinds, offsets, breaks)
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

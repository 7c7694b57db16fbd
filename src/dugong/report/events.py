"""Events: how many runs of each class there are, how long they last, and how that compares with gold."""

from __future__ import annotations

import numpy as np

from dugong.metrics import Comparison, runs
from dugong.report.material import Material
from dugong.report.overview import seconds_per_element
from dugong.report.scoring import MAJORITY, MODEL
from dugong.report.values import EventRow, Events
from dugong.types import IntArray
from dugong.votes import implied_background

_SCORES = ("event_precision", "event_recall", "event_f1", "span_f1", "onset_error", "offset_error")


def make_events(material: Material, comparison: Comparison | None) -> Events:
    """Count the runs of all classes but the background (with two classes: of the positive one)."""
    votes = material.votes
    offsets = votes.layout("element").offsets
    gold = material.gold_places()
    rows = [_row(material, place, offsets, gold) for place in range(votes.n_classes) if place != _background(material)]
    scores = {}
    for name in _SCORES if comparison is not None else ():
        assert comparison is not None
        pair = (comparison[MAJORITY].value(name), comparison[MODEL].value(name))
        if pair != (None, None):
            scores[name] = pair
    return Events(how=material.how_decoded, rows=tuple(rows), scores=scores, seconds=seconds_per_element(votes))


def _background(material: Material) -> int | None:
    votes = material.votes
    if votes.n_classes == 2:
        return 0
    background = implied_background(votes)
    return None if background is None else votes.classes.index(background)


def _row(material: Material, place: int, offsets: IntArray, gold: IntArray | None) -> EventRow:
    decoded = np.where(material.decoded == place, 0, -1)
    found = runs(decoded, offsets)
    lengths = found.end - found.start
    owners = np.searchsorted(offsets, found.start, side="right")
    known = None if gold is None else _lengths(np.where(gold == place, 0, -1), offsets)
    there = None if gold is None else _lengths(np.where(gold >= 0, decoded, -1), offsets)
    return EventRow(
        name=material.names[place],
        n_events=len(lengths),
        share=float((decoded == 0).mean()) if len(decoded) else 0.0,
        n_sequences=len(np.unique(owners)),
        mean=_mean(lengths),
        median=float(np.median(lengths)) if len(lengths) else None,
        longest=int(lengths.max()) if len(lengths) else None,
        gold_events=None if known is None else len(known),
        gold_mean=None if known is None else _mean(known),
        known_events=None if there is None else len(there),
        known_mean=None if there is None else _mean(there),
    )


def _lengths(kinds: IntArray, offsets: IntArray) -> IntArray:
    found = runs(kinds, offsets)
    return np.asarray(found.end - found.start)


def _mean(lengths: IntArray) -> float | None:
    return float(lengths.mean()) if len(lengths) else None

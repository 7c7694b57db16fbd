"""The numbers of a report: what was labelled, the prior, how sure the model is, events, and beside majority vote.

In: `Material`. Out: values that the renderers show. The prior is shown as people can judge it: how common each label
is, what follows what, how long runs last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dugong.metrics import Comparison, compare, runs
from dugong.priors import Joint
from dugong.report.material import Material, label_names
from dugong.report.values import EventRow, EventSummary, Overview, PriorRow, ResolutionRow, ScoreRow, Scores, Versus
from dugong.summary import label_steps
from dugong.tasks import Element, Resolution, describe
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes, implied_background
from dugong.votes.codes import spoken
from dugong.votes.summary import Tally

_BINS = 20


def make_overview(material: Material, tally: Tally) -> Overview:
    """Count what the report is about."""
    votes = material.votes
    lengths = votes.lengths
    counts, edges = np.histogram(lengths, bins=min(_BINS, len(np.unique(lengths))))
    return Overview(
        n_sequences=votes.n_sequences,
        n_elements=votes.n_elements,
        n_sources=votes.n_sources,
        n_votes=sum(sum(spoken(codes).values()) for codes in tally.codes.values()),
        lengths=(float(lengths.min()), float(np.median(lengths)), float(lengths.mean()), float(lengths.max())),
        histogram_counts=tuple(counts.tolist()),
        histogram_edges=tuple(edges.tolist()),
        classes=material.names,
        resolutions=tuple(_row(material, resolution) for resolution in material.probabilities),
        n_silent=tally.met.n_silent,
        n_known=None if material.gold is None else int(np.count_nonzero(material.gold)),
        clock=_clock(votes),
    )


def seconds_per_element(votes: Votes) -> float | None:
    """Seconds per element, if all sequences share one rate."""
    rate = None if votes.time is None or votes.time.rate is None else votes.time.common_rate
    return None if rate is None else 1 / rate


def _row(material: Material, resolution: Resolution) -> ResolutionRow:
    votes, probabilities = material.votes, material.probabilities[resolution]
    shares = probabilities.mean(axis=0) if len(probabilities) else np.zeros(probabilities.shape[1])
    return ResolutionRow(
        name=resolution.name,
        words="every single element" if isinstance(resolution, Element) else describe(resolution),
        n_tasks=len(probabilities),
        n_sources=sum(source.resolution == resolution for source in votes.sources),
        labels=label_names(votes, resolution),
        shares=tuple(shares.tolist()),
    )


def _clock(votes: Votes) -> str | None:
    if votes.time is None:
        return None
    if votes.time.rate is None:
        return "every element has a timestamp"
    rates = np.unique(votes.time.rate)
    span = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
    return f"{span} elements per second"


def make_prior(material: Material) -> PriorRow:
    """Shares, transitions and mean runs of a sequence of median length."""
    model, lengths = material.model, material.votes.lengths
    prior = model.prior_
    length = int(np.median(lengths)) if len(lengths) else 2
    share, transition = _from_table(prior) if isinstance(prior, Joint) else label_steps(prior, max(length, 2))
    stays = [] if transition is None else np.diagonal(transition).tolist()
    return PriorRow(
        words=repr(prior),
        learned=isinstance(model.prior, str),
        classes=material.names,
        share=tuple(share.tolist()),
        transition=transition,
        bouts=tuple(1 / (1 - stay) if stay < 1 - 1e-12 else None for stay in stays),
    )


def _from_table(prior: Joint) -> tuple[FloatArray, None]:
    """A table over few tasks has no steps; the mean law of its elements is all there is."""
    expected, _ = prior.count_moments(np.array([prior.n_elements]))
    return expected[0] / prior.n_elements, None


# --- how sure the model is, and the same labels beside majority vote --------------------------------------------------
# In: `Material`. Out: the score distribution with the reliability curve, and the comparison with majority vote.
N_BINS = 20
DOUBTFUL = 0.75
MAJORITY, MODEL = "majority vote", "the label model"
_SHOWN = ("accuracy", "f1", "macro_f1", "precision", "recall", "brier", "log_loss", "ece")
_SCORES = ("event_precision", "event_recall", "event_f1", "span_f1", "onset_error", "offset_error")


def compare_on_gold(material: Material) -> Comparison | None:
    """Majority vote and the model on the known labels, with intervals by sequence; None if no label is known."""
    votes, gold = material.votes, material.gold
    if gold is None or not gold.any():
        return None
    methods = {MAJORITY: material.shares, MODEL: material.elements}
    return compare(
        methods,
        gold,
        lengths=votes.lengths,
        classes=dict(zip(votes.classes, material.names, strict=True)),
        background=implied_background(votes) if votes.n_classes > 2 else None,
    )


def make_scores(material: Material, comparison: Comparison | None) -> Scores:
    """The distribution of the probabilities, and their reliability."""
    elements = material.elements
    best = elements.max(axis=1)
    binary = elements.shape[1] == 2
    counts, edges = np.histogram(elements[:, 1] if binary else best, bins=N_BINS, range=(0.0, 1.0))
    curve = None if comparison is None else comparison[MODEL].calibration
    return Scores(
        of=f"P({material.names[1]})" if binary else "P(chosen class)",
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        expected_accuracy=float(best.mean()),
        doubtful=float((best < DOUBTFUL).mean()),
        mean_probability=None if curve is None else curve.mean_probability,
        frequency=None if curve is None else curve.frequency,
        bin_counts=None if curve is None else curve.counts,
        ece=None if curve is None else curve.ece,
    )


def make_versus(material: Material, comparison: Comparison | None) -> Versus:
    """The label model beside majority vote, in numbers and in one sentence."""
    n_classes = material.elements.shape[1]
    flat = np.bincount(material.majority * n_classes + material.chosen, minlength=n_classes**2)
    differ = float((material.majority != material.chosen).mean())
    return Versus(
        sentence=_sentence(comparison, differ),
        better=None if comparison is None else comparison.better,
        differ=differ,
        classes=material.names,
        confusion=flat.reshape(n_classes, n_classes).astype(np.float64),
        scores=() if comparison is None else tuple(_score_rows(comparison)),
    )


def _sentence(comparison: Comparison | None, differ: float) -> str:
    if comparison is None:
        return (
            f"The label model and majority vote label {differ:.1%} of the elements differently. Which of them is right "
            "cannot be told without known labels."
        )
    return comparison.verdict[0].upper() + comparison.verdict[1:]


def _score_rows(comparison: Comparison) -> Iterator[ScoreRow]:
    for name in _SHOWN:
        if name in comparison[MAJORITY] and name in comparison[MODEL]:
            one = comparison.difference(name)
            scores = {"majority": one.first, "model": one.last, "difference": one.value}
            yield ScoreRow(name=name, **scores, interval=one.interval, finding=one.finding)


def make_events(material: Material, comparison: Comparison | None) -> EventSummary:
    """Count the runs of all classes but the background (with two classes: of the positive one)."""
    votes = material.votes
    offsets = votes.layout("element").offsets
    gold = material.gold_places()
    rows = [
        _event_row(material, place, offsets, gold) for place in range(votes.n_classes) if place != _background(material)
    ]
    scores = {}
    for name in _SCORES if comparison is not None else ():
        assert comparison is not None
        pair = (comparison[MAJORITY].value(name), comparison[MODEL].value(name))
        if pair != (None, None):
            scores[name] = pair
    return EventSummary(how=material.how_decoded, rows=tuple(rows), scores=scores, seconds=seconds_per_element(votes))


def _background(material: Material) -> int | None:
    votes = material.votes
    if votes.n_classes == 2:
        return 0
    background = implied_background(votes)
    return None if background is None else votes.classes.index(background)


def _event_row(material: Material, place: int, offsets: IntArray, gold: IntArray | None) -> EventRow:
    decoded = np.where(material.decoded == place, 0, -1)
    found = runs(decoded, offsets)
    lengths = found.end - found.start
    owners = np.searchsorted(offsets, found.start, side="right")
    known = None if gold is None else _lengths(np.where(gold == place, 0, -1), offsets)
    there = None if gold is None else _lengths(np.where(gold >= 0, decoded, -1), offsets)
    return EventRow(
        name=material.names[place],
        n_events=len(lengths),
        share=float((decoded == 0).mean()),
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

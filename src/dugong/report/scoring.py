"""How sure the model is, and, on gold, whether it is right to be; and the same labels beside majority vote.

In: `Material`. Out: the score distribution with the reliability curve, and the comparison with majority vote.
"""

from __future__ import annotations

import numpy as np

from dugong.metrics import Comparison, compare
from dugong.report.material import Material
from dugong.report.values import ScoreRow, Scores, Versus
from dugong.types import FloatArray
from dugong.votes import implied_background

N_BINS = 20
DOUBTFUL = 0.75
MAJORITY, MODEL = "majority vote", "the label model"
_SHOWN = ("accuracy", "f1", "macro_f1", "precision", "recall", "brier", "log_loss", "ece")


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
    best = elements.max(axis=1) if len(elements) else np.zeros(0)
    binary = elements.shape[1] == 2
    counts, edges = np.histogram(elements[:, 1] if binary else best, bins=N_BINS, range=(0.0, 1.0))
    curve = None if comparison is None else comparison[MODEL].calibration
    return Scores(
        of=f"P({material.names[1]})" if binary else "P(chosen class)",
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        expected_accuracy=float(best.mean()) if len(best) else float("nan"),
        doubtful=float((best < DOUBTFUL).mean()) if len(best) else 0.0,
        mean_probability=None if curve is None else _figures(curve.mean_probability),
        frequency=None if curve is None else _figures(curve.frequency),
        bin_counts=None if curve is None else tuple(curve.counts.tolist()),
        ece=None if curve is None else curve.ece,
    )


def make_versus(material: Material, comparison: Comparison | None) -> Versus:
    """The label model beside majority vote, in numbers and in one sentence."""
    n_classes = material.elements.shape[1]
    flat = np.bincount(material.majority * n_classes + material.chosen, minlength=n_classes**2)
    differ = float((material.majority != material.chosen).mean()) if len(material.chosen) else 0.0
    return Versus(
        sentence=_sentence(comparison, differ),
        better=None if comparison is None else comparison.better,
        differ=differ,
        classes=material.names,
        confusion=flat.reshape(n_classes, n_classes).astype(np.float64),
        scores=() if comparison is None else tuple(_score_rows(comparison)),
    )


def _figures(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)


def _sentence(comparison: Comparison | None, differ: float) -> str:
    if comparison is None:
        return (
            f"The label model and majority vote label {differ:.1%} of the elements differently. Which of them is right "
            "cannot be told without known labels."
        )
    return comparison.verdict[0].upper() + comparison.verdict[1:]


def _score_rows(comparison: Comparison) -> list[ScoreRow]:
    rows = []
    for name in _SHOWN:
        if name in comparison[MAJORITY] and name in comparison[MODEL]:
            one = comparison.difference(name)
            rows.append(
                ScoreRow(
                    name=name,
                    majority=one.first,
                    model=one.last,
                    difference=one.value,
                    interval=one.interval,
                    finding=one.finding,
                )
            )
    return rows

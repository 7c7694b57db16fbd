"""Compare labels with gold: the public door of the metrics.

In: labels or probabilities of elements, sequence after sequence, and gold in the same order. Out: an
`Evaluation`. The steps: check (`inputs`), sum by group (`elements`), score the
total, and spread over groups (`scores`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.codec import to_plain
from dugong.contract import typed
from dugong.exceptions import LabelError
from dugong.metrics.elements import Calibration, Sums, calibration_curve, f_scores
from dugong.metrics.inputs import Classes, LabelCoding, Scored, make_cases
from dugong.metrics.scores import (
    LOSSES,
    Interval,
    Scale,
    Score,
    figure,
    jackknife,
    range_of,
    scores_of,
    sums_of,
    total,
    why_no_interval,
    without_each,
)
from dugong.texts import text_table


# --- the value that `evaluate` returns -------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScores:
    """Precision, recall and F1 of one class against all others; NaN for 0/0."""

    name: str
    n_gold: int
    n_labelled: int
    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, None for what is undefined."""
        return dict(to_plain(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """How good labels are, measured on gold.

    A score is None when it was not measured (the notes say what it needs) and NaN when it is 0/0.

    Attributes
    ----------
    scores : all scores, in the order of the table; `evaluation["f1"]` finds one by name
    classes : one entry per class, in column order
    calibration : the reliability curve; None for hard labels
    average : what precision, recall, F1 and events are about, in words
    n_known, n_unknown, n_abstained : int
        Elements that were scored, elements left out because gold is 0, and scored elements whose label is 0.
    n_sequences : None when no lengths were given
    n_groups : sequences (or groups) with known gold, over which the intervals are made; None when there are none
    confidence, iou : as given
    notes : what was left out, inferred or undefined, and why
    """

    scores: tuple[Score, ...]
    classes: tuple[ClassScores, ...]
    calibration: Calibration | None
    average: str
    n_known: int
    n_unknown: int
    n_abstained: int
    n_sequences: int | None
    n_groups: int | None
    confidence: float
    iou: float
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"{name!r} was not measured; measured: {', '.join(score.name for score in self.scores)}")

    def __contains__(self, name: object) -> bool:
        return any(score.name == name for score in self.scores)

    def value(self, name: str) -> float | None:
        """Return the value of a score, None if it was not measured."""
        return self[name].value if name in self else None

    def interval(self, name: str) -> Interval | None:
        """Return the confidence interval of a score, None if there is none."""
        return self[name].interval if name in self else None

    @property
    def accuracy(self) -> float:
        """Share of known elements with the right label; an abstaining label is wrong."""
        return self["accuracy"].value

    @property
    def precision(self) -> float:
        """Share of foreground labels that are right."""
        return self["precision"].value

    @property
    def recall(self) -> float:
        """Share of foreground gold that is labelled so."""
        return self["recall"].value

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return self["f1"].value

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 over the foreground classes; None with a positive class."""
        return self.value("macro_f1")

    @property
    def brier(self) -> float | None:
        """Mean over elements of the squared error summed over classes (0 to 2)."""
        return self.value("brier")

    @property
    def log_loss(self) -> float | None:
        """Mean of -log P(gold class), P no smaller than 1e-6."""
        return self.value("log_loss")

    @property
    def ece(self) -> float | None:
        """Expected calibration error, see `calibration`."""
        return self.value("ece")

    @property
    def event_precision(self) -> float | None:
        """Share of labelled events that match a gold event at the IoU."""
        return self.value("event_precision")

    @property
    def event_recall(self) -> float | None:
        """Share of gold events that match a labelled event at the IoU."""
        return self.value("event_recall")

    @property
    def event_f1(self) -> float | None:
        """F1 of events matched at the IoU."""
        return self.value("event_f1")

    @property
    def span_f1(self) -> float | None:
        """F1 of events whose start, end and class are all exactly right."""
        return self.value("span_f1")

    @property
    def onset_error(self) -> float | None:
        """Mean distance of the starts of matched events, in elements."""
        return self.value("onset_error")

    @property
    def offset_error(self) -> float | None:
        """Mean distance of the ends of matched events, in elements."""
        return self.value("offset_error")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {**to_plain(self), "scores": {score.name: score.to_dict() for score in self.scores}}

    def __str__(self) -> str:
        where = "" if self.n_sequences is None else f" in {self.n_sequences:,} sequences"
        head = f"{self.n_known:,} elements with known gold{where}; {self.n_unknown:,} unknown, left out"
        rows = [(score.name, figure(score.value), range_of(score.interval)) for score in self.scores]
        by_class = [
            (
                one.name,
                f"{one.n_gold:,}",
                f"{one.n_labelled:,}",
                *map(figure, (one.precision, one.recall, one.f1)),
            )
            for one in self.classes
        ]
        return "\n".join([
            head,
            f"precision, recall, F1 and events: {self.average}",
            "",
            text_table(("score", "value", f"{self.confidence:.0%} interval"), rows),
            "",
            text_table(("class", "gold", "labelled", "precision", "recall", "f1"), by_class),
            *(f"note: {note}" for note in self.notes),
        ])  # fmt: skip

    __repr__ = __str__


def evaluate(
    labels: ArrayLike,
    gold: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    classes: Classes | None = None,
    positive: int | str | None = None,
    background: int | str | None = None,
    iou: float = 0.5,
    n_bins: int = 10,
    confidence: float = 0.95,
) -> Evaluation:
    """Measure how good labels are: accuracy, precision, recall, F1, Brier score, log loss, ECE, events.

    Parameters
    ----------
    labels : array, shape (n,) of int or (n, K) of float
        Class values (0 = abstain, which is never right), or probabilities with one column per class. Of
        equally probable classes the first is chosen.
    gold : array of int, shape (n,)
        Class values: -1 and +1 when there are two classes, 1..K when there are more. 0 is unknown and left out.
    lengths : array of int, optional
        Elements per sequence. Without them there are no event scores, and no intervals unless `groups` are given.
    groups : array, optional
        One name per sequence or per element (patient, video): what varies independently. Default: the sequences.
    classes : sequence of str, of int, or mapping of int to str, optional
        Names in column order, the class values, or both as ``{-1: "no rally", 1: "rally"}``. Default: the
        values. ``[0, 1]`` or ``range(K)`` say that labels and gold are indices, with -1 for unknown (Snorkel).
    positive : int or str, optional
        The class that precision, recall, F1, the reliability curve and events are about. Default: +1 when
        there are two classes, none when there are more.
    background : int or str, optional
        The class that micro and macro averages and events leave out. Default: the other one when there are
        two classes, O when the names are BIO tags, else none.
    iou : float
        Smallest intersection over union at which a labelled event matches a gold event, in (0, 1].
    n_bins : int
        Bins of equal width of the reliability curve.
    confidence : float
        Nominal coverage of the intervals (delete-one-group jackknife).

    Returns
    -------
    Evaluation
        Prints as a table; `.to_dict()` is plain data.

    Examples
    --------
    >>> result = evaluate([1, 1, -1, -1, 1, -1], [1, 1, -1, 1, -1, 0], lengths=[3, 3])
    >>> result.accuracy, round(result.f1, 3), result.n_unknown
    (0.6, 0.667, 1)
    """
    check_options(iou=iou, n_bins=n_bins, confidence=confidence)
    given = {"labels": labels}
    (case,) = make_cases(
        given, gold, lengths=lengths, groups=groups, classes=classes, positive=positive, background=background
    ).values()
    return evaluate_case(case, sums_of(case, iou=iou, n_bins=n_bins), iou=iou, n_bins=n_bins, confidence=confidence)


@typed(LabelError)
def check_options(*, iou: float, n_bins: int, confidence: float) -> None:
    """Refuse options outside their range."""
    if not 0.0 < iou <= 1.0:
        raise LabelError(f"iou must be above 0 and at most 1; found {iou}.")
    if n_bins < 1:
        raise LabelError(f"n_bins must be at least 1; found {n_bins}.")
    if not 0.0 < confidence < 1.0:
        raise LabelError(f"confidence must lie between 0 and 1, such as 0.95; found {confidence}.")


def evaluate_case(case: Scored, sums: Sums, *, iou: float, n_bins: int, confidence: float) -> Evaluation:
    """Score checked input whose sums are known."""
    layout, totals = case.layout, total(sums)
    scores, notes = _with_intervals(case, sums, confidence)
    return Evaluation(
        scores=scores,
        classes=_by_class(totals, case.coding),
        calibration=None if case.probabilities is None else calibration_curve(case, n_bins),
        average=_average(case.coding),
        n_known=int(totals["known"]),
        n_unknown=layout.n_elements - int(totals["known"]),
        n_abstained=int(totals["known"] - totals["labelled"].sum()),
        n_sequences=None if layout.offsets is None else len(layout.offsets) - 1,
        n_groups=None if layout.group is None else len(sums["known"]),
        confidence=confidence,
        iou=iou,
        notes=(*case.coding.notes, *_about_labels(case, totals), *notes),
    )


def _with_intervals(case: Scored, sums: Sums, confidence: float) -> tuple[tuple[Score, ...], list[str]]:
    """Return all scores, and per reason the names of those that have no interval."""
    values = scores_of(total(sums), case.coding)
    without = {} if case.layout.group is None else scores_of(without_each(sums), case.coding)
    scores, missing = [], dict[str, list[str]]()
    for name, value in values.items():
        plain, interval = float(value), None
        if without:
            reason = why_no_interval(plain, without[name])
            if reason is None:
                scale: Scale = "loss" if name in LOSSES else "unit"
                interval = jackknife(plain, without[name], confidence=confidence, scale=scale)
            else:
                missing.setdefault(reason, []).append(name)
        scores.append(Score(name=name, value=plain, interval=interval))
    if not without:
        return tuple(scores), ["no intervals: give lengths=... (or groups=...), elements alone are not independent"]
    return tuple(scores), [
        f"no interval: {reason} ({'all scores' if len(names) == len(values) else ', '.join(names)})"
        for reason, names in missing.items()
    ]


def _by_class(totals: Sums, coding: LabelCoding) -> tuple[ClassScores, ...]:
    precision, recall, f1 = f_scores(totals["hits"], totals["labelled"], totals["gold"])
    return tuple(
        ClassScores(
            name=name,
            n_gold=int(totals["gold"][k]),
            n_labelled=int(totals["labelled"][k]),
            precision=float(precision[k]),
            recall=float(recall[k]),
            f1=float(f1[k]),
        )
        for k, name in enumerate(coding.names)
    )


def _average(coding: LabelCoding) -> str:
    if coding.positive is not None:
        return f"class {coding.names[coding.positive]}"
    if coding.background is not None:
        return f"all classes but {coding.names[coding.background]}, pooled (micro average)"
    return "all classes, pooled (micro average)"


def _about_labels(case: Scored, totals: Sums) -> list[str]:
    notes = []
    n_abstained = int(totals["known"] - totals["labelled"].sum())
    if n_abstained:
        notes.append(f"{n_abstained:,} labels abstain (0) where gold is known: counted as wrong, and as no label")
    if case.n_tied:
        notes.append(f"{case.n_tied:,} elements have equally probable classes: the first of them is chosen")
    if len(case.coding.names) > 2 and totals["gold"][-1] == 0 and not np.all(case.known):
        notes.append(
            f"gold is never {case.coding.names[-1]} and sometimes 0, which is taken as unknown; "
            "if gold runs from 0 to K - 1, add 1"
        )
    if case.probabilities is None:
        notes.append("no Brier score, log loss or calibration: they need probabilities, one column per class")
    if case.layout.offsets is None:
        notes.append("no event scores: they need lengths=..., the number of elements per sequence")
    return notes

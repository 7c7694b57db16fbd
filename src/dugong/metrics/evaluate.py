"""Compare labels with gold: the public door of the metrics.

In: labels or probabilities of elements, sequence after sequence, and gold in the same order. Out: an
`Evaluation`. The steps: check (`inputs`, `coding`), sum by group (`elements`, `calibration`, `events`),
score the total, and spread over groups (`intervals`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import LabelError
from dugong.metrics.coding import Classes, LabelCoding, from_indices, make_coding
from dugong.metrics.elements import Sums, calibration_curve, f_scores
from dugong.metrics.inputs import Scored, make_case, make_layout, read_gold, read_labels
from dugong.metrics.result import ClassScores, Evaluation
from dugong.metrics.scores import Score, jackknife, scale_of, scores_of, sums_of, total, why_no_interval, without_each


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
        Class values: -1 and +1 when there are two classes, 1..K when there are more. 0 is unknown and left
        out.
    lengths : array of int, optional
        Elements per sequence. Without them there are no event scores, and no intervals unless `groups` are
        given.
    groups : array, optional
        One name per sequence or per element (patient, video): what varies independently. Default: the
        sequences.
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
    (given,), truth, classes = from_indices([read_labels(labels)], read_gold(gold), classes)
    layout = make_layout(len(truth), lengths, groups)
    coding = make_coding([given], truth, classes=classes, positive=positive, background=background)
    case = make_case(given, truth, coding, layout)
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
                interval = jackknife(plain, without[name], confidence=confidence, scale=scale_of(name))
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

"""Is one method better than another on the same elements? Paired differences, by sequence.

In: labels or probabilities of several methods and one gold. Out: a `Comparison`, with an `Evaluation` per
method and, for the last method against the first, differences with intervals. The jackknife leaves the same
group out of both methods, so what both find easy or hard cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from dugong.codec import to_plain
from dugong.exceptions import LabelError
from dugong.metrics.elements import Sums
from dugong.metrics.evaluate import Evaluation, check_options, evaluate_case
from dugong.metrics.inputs import Classes, Scored, make_cases
from dugong.metrics.scores import (
    LOSSES,
    Interval,
    figure,
    jackknife,
    range_of,
    scores_of,
    signed,
    sums_of,
    total,
    why_no_interval,
    without_each,
)
from dugong.texts import text_table
from dugong.types import FloatArray

DECISIVE = ("accuracy", "f1", "brier", "log_loss")
"""The scores that the verdict is about."""

_WORDS = {"accuracy": "accuracy", "f1": "F1", "brier": "Brier score", "log_loss": "log loss"}

Finding = Literal["better", "worse", "level", "equal", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The last method minus the first, in one score.

    Attributes
    ----------
    name : of the score
    first, last, value : both scores, and last - first
    interval : (float, float) or None
        Of the difference; None when it cannot be had.
    finding : str
        "better" or "worse" (the interval excludes 0), "level" (it does not), "equal" (no group differs), or
        "unknown" (there is no interval).
    reason : why there is no interval
    """

    name: str
    first: float
    last: float
    value: float
    interval: Interval | None
    finding: Finding
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, None for what is undefined."""
        plain = to_plain(self)
        low, high = plain.pop("interval") or (None, None)
        return {**plain, "low": low, "high": high}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Several methods on the same gold.

    Attributes
    ----------
    names : the methods, in the order given
    evaluations : one per method
    differences : the last method against the first, one entry per score that both have
    verdict : one plain sentence about accuracy, F1, Brier score and log loss
    better : True if the last method is better in one of these and worse in none, None if that cannot be told
    """

    names: tuple[str, ...]
    evaluations: tuple[Evaluation, ...]
    differences: tuple[Difference, ...]
    verdict: str
    better: bool | None

    def __getitem__(self, name: str) -> Evaluation:
        if name not in self.names:
            raise KeyError(f"{name!r} is not one of the methods {list(self.names)}")
        return self.evaluations[self.names.index(name)]

    def difference(self, score: str) -> Difference:
        """Return the difference in one score."""
        for one in self.differences:
            if one.name == score:
                return one
        raise KeyError(f"{score!r} is not in both methods; compared: {[one.name for one in self.differences]}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "methods": {name: one.to_dict() for name, one in zip(self.names, self.evaluations, strict=True)},
            "first": self.names[0],
            "last": self.names[-1],
            "differences": [one.to_dict() for one in self.differences],
            "verdict": self.verdict,
            "better": self.better,
        }

    def _repr_html_(self) -> str:
        from dugong.report.notebook import comparison_html

        return comparison_html(self)

    def __str__(self) -> str:
        shown = [name for name in _SHOWN if any(name in one for one in self.evaluations)]
        rows = [
            (name, *(figure(one.value(score)) for score in shown))
            for name, one in zip(self.names, self.evaluations, strict=True)
        ]
        paired = [
            (one.name, signed(one.value), range_of(one.interval, with_sign=True), one.finding)
            for one in self.differences
            if one.name in shown
        ]
        head = (
            f"{self.names[-1]} - {self.names[0]}",
            "difference",
            f"{self.evaluations[0].confidence:.0%} interval",
            "",
        )
        notes = dict.fromkeys(note for one in self.evaluations for note in one.notes)
        less = [name for name in shown if name in LOSSES]
        better = [f"Less is better of {', '.join(less)}; more of the others."] if less else []
        return "\n".join([
            text_table(("method", *shown), rows), *better, "", text_table(head, paired), "", self.verdict,
            *(f"note: {note}" for note in notes),
        ])  # fmt: skip

    __repr__ = __str__


_SHOWN = (*DECISIVE, "ece", "event_f1", "span_f1", "onset_error")


def compare(
    methods: Mapping[str, ArrayLike],
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
) -> Comparison:
    """Evaluate several methods on the same gold, and say whether the last is better than the first.

    Parameters
    ----------
    methods : mapping of str to array
        Name to labels or probabilities as in `evaluate`, at least two.
    gold, lengths, groups, classes, positive, background, iou, n_bins, confidence
        As in `evaluate`.

    Returns
    -------
    Comparison
        Prints as a table with a verdict; `.to_dict()` is plain data.
    """
    check_options(iou=iou, n_bins=n_bins, confidence=confidence)
    if len(methods) < 2:
        raise LabelError(f"a comparison needs at least two methods; found {list(methods)}.")
    cases = make_cases(
        methods, gold, lengths=lengths, groups=groups, classes=classes, positive=positive, background=background
    )
    sums = [sums_of(case, iou=iou, n_bins=n_bins) for case in cases.values()]
    names = tuple(cases)
    differences = _differences(cases[names[0]], sums[0], sums[-1], confidence)
    verdict, better = _verdict(names[0], names[-1], differences)
    return Comparison(
        names=names,
        evaluations=tuple(
            evaluate_case(case, one, iou=iou, n_bins=n_bins, confidence=confidence)
            for case, one in zip(cases.values(), sums, strict=True)
        ),
        differences=differences,
        verdict=verdict,
        better=better,
    )


def _differences(case: Scored, first: Sums, last: Sums, confidence: float) -> tuple[Difference, ...]:
    coding, grouped = case.coding, case.layout.group is not None
    one, other = scores_of(total(first), coding), scores_of(total(last), coding)
    one_without, other_without = scores_of(without_each(first), coding), scores_of(without_each(last), coding)
    found = []
    for name in (name for name in one if name in other):
        value = float(other[name] - one[name])
        without = other_without[name] - one_without[name]
        reason = why_no_interval(value, without) if grouped else "neither lengths nor groups were given"
        interval = None if reason else _of_difference(name, value, without, confidence)
        same = value == 0.0 and not without.any()
        found.append(
            Difference(
                name=name,
                first=float(one[name]),
                last=float(other[name]),
                value=value,
                interval=interval,
                finding="equal" if same else _finding(name, interval),
                reason=reason,
            )
        )
    return tuple(found)


def _of_difference(name: str, value: float, without: FloatArray, confidence: float) -> Interval:
    """An interval of a difference; two shares differ by 1 at most, and few sequences must not claim more."""
    low, high = jackknife(value, without, confidence=confidence, scale="plain")
    return (low, high) if name in LOSSES else (max(-1.0, low), min(1.0, high))


def _finding(name: str, interval: Interval | None) -> Finding:
    if interval is None:
        return "unknown"
    low, high = interval
    if low <= 0.0 <= high:
        return "level"
    return "better" if (high < 0.0) == (name in LOSSES) else "worse"


def _verdict(first: str, last: str, differences: tuple[Difference, ...]) -> tuple[str, bool | None]:
    """Return one sentence on the decisive scores, and whether the last method is better."""
    decisive = [one for one in differences if one.name in DECISIVE]
    found = {finding: [one for one in decisive if one.finding == finding] for finding in ("better", "worse", "unknown")}
    rest = [one for one in decisive if one.finding != "better"]
    if found["better"] and found["worse"]:
        others = [one for one in rest if one.finding != "worse"]
        return (
            f"{last} is better than {first} on these labels in some respects and worse in others: "
            f"better in {_list(found['better'])}; worse in {_list(found['worse'])}{_tail(others)}.",
            False,
        )
    if found["better"]:
        return f"{last} is better than {first} on these labels: {_list(found['better'])}{_tail(rest)}.", True
    if len(found["unknown"]) == len(decisive):
        reasons = "; ".join(dict.fromkeys(one.reason for one in decisive if one.reason))
        return (
            f"it cannot be told whether {last} is better than {first}, because {reasons}: {_list(decisive)}.",
            None,
        )
    word = "worse" if found["worse"] else "not better"
    return f"{last} is {word} than {first} on these labels: {_list(decisive)}.", False


def _tail(rest: list[Difference]) -> str:
    return f"; no clear difference in {_list(rest)}" if rest else ""


def _list(differences: list[Difference]) -> str:
    return ", ".join(
        f"{_WORDS[one.name]} {signed(one.value)}"
        + (f" ({range_of(one.interval, with_sign=True)})" if one.interval else "")
        for one in differences
    )

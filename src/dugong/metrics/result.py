"""The value that `evaluate` returns.

`Evaluation` holds scores with intervals, scores by class, the reliability curve and notes on all that was
left out, inferred or undefined. It prints as a table (see `tables`) and turns into plain data with
`to_dict`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dugong.metrics.elements import Calibration
from dugong.metrics.scores import Interval, Score, figure, number, range_of
from dugong.texts import text_table


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
        rates = {name: number(getattr(self, name)) for name in ("precision", "recall", "f1")}
        return {"name": self.name, "n_gold": self.n_gold, "n_labelled": self.n_labelled, **rates}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """How good labels are, measured on gold.

    A score is None when it was not measured (the notes say what it needs) and NaN when it is 0/0.

    Attributes
    ----------
    scores : tuple of Score
        All scores, in the order of the table; `evaluation["f1"]` finds one by name.
    classes : tuple of ClassScores
        One entry per class, in column order.
    calibration : Calibration or None
        The reliability curve; None for hard labels.
    average : str
        What precision, recall, F1 and events are about, in words.
    n_known, n_unknown, n_abstained : int
        Elements that were scored, elements left out because gold is 0, and scored elements whose label is 0.
    n_sequences : int or None
        None when no lengths were given.
    n_groups : int or None
        Sequences (or groups) with known gold, over which the intervals are made; None when there are none.
    confidence, iou : float
        As given.
    notes : tuple of str
        What was left out, inferred or undefined, and why.
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
        plain = (
            "average",
            "n_known",
            "n_unknown",
            "n_abstained",
            "n_sequences",
            "n_groups",
            "confidence",
            "iou",
        )
        return {
            "scores": {score.name: score.to_dict() for score in self.scores},
            "classes": [one.to_dict() for one in self.classes],
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            **{name: getattr(self, name) for name in plain},
            "notes": list(self.notes),
        }

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

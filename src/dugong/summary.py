"""A fitted model at a glance: a value first, then its text.

In: the tables, errors and diagnostics of a fitted label model, what it was fitted on, and, if there are any, votes with
known labels. Out: a `ModelSummary`, one row per source, which prints as a table and turns into plain data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import shorten
from typing import Any

import numpy as np

from dugong.codec import Restorable
from dugong.fit.passes import Contents
from dugong.fit.result import Diagnostics
from dugong.priors import Markov, Prior
from dugong.sums import Laws
from dugong.tasks import Element, Resolution
from dugong.texts import counted, text_table
from dugong.types import ABSTAIN, MISSING, AnyArray, FloatArray, read_only
from dugong.votes import SourceInfo, Votes, gold_at

Interval = tuple[float, float]
_WIDE = 4
_NORMAL = 1.96  # 97.5 % of a normal law
# Kinds of notes about the way to an estimate; they stand in the diagnostics.
_FOR_EXPERTS = ("possible", "step", "sgd")
_LONGEST = 200  # characters of a prior that has no words
_STEPS = 1000  # elements over which the shares of labels are averaged


# --- what a model was fitted on ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen(Restorable):
    """What a model was fitted on, in numbers.

    Attributes
    ----------
    coverage : share of the tasks on which each source voted
    balance : probability of each class at the resolution of each source, by the prior
    asked : tasks that each source was asked about; empty in old files
    """

    n_sequences: int
    n_elements: int
    coverage: Mapping[str, float]
    balance: Mapping[str, FloatArray]
    asked: Mapping[str, int] = field(default_factory=dict)


def fitted_on(
    contents: Contents, sources: Sequence[SourceInfo], prior: Prior, class_names: tuple[str, ...] | None = None
) -> Seen:
    """What a model with this prior was fitted on."""
    shapes, laws = contents.shapes, Laws(prior, contents.shapes, class_names)
    balance = {
        resolution: read_only(laws.joint("same", resolution, resolution).sum(axis=1))
        for resolution in dict.fromkeys(info.resolution for info in sources)
    }
    return Seen(
        n_sequences=int(shapes.counts.sum()),
        n_elements=int((shapes.lengths * shapes.counts).sum()),
        coverage={info.name: contents.coverage(info.name) for info in sources},
        balance={info.name: balance[info.resolution] for info in sources},
        asked={info.name: contents.n_asked(info.name) for info in sources},
    )


# --- the summary ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAccuracy:
    """How a source treats the tasks of one class.

    Attributes
    ----------
    right : estimated P(vote for this class | label is this class)
    abstains : estimated P(abstain | label is this class)
    interval : 95 % confidence interval of `right`, if there is one: how it varies between sequences, and not less than
        so many tasks leave open
    empirical : the same share measured on known labels, if there are any
    """

    label: str
    right: float
    abstains: float
    interval: Interval | None = None
    empirical: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAccuracy:
    """One source of a fitted model.

    Attributes
    ----------
    coverage : share of its tasks on which it votes
    accuracy : estimated P(vote is right | it votes); None if its table is over whole patterns
    empirical : the same share measured on known labels, if there are any
    projection : how far its table moved to become a valid one
    notes : what the estimator remarked about it
    """

    name: str
    resolution: str
    coverage: float
    accuracy: float | None
    empirical: float | None
    classes: tuple[ClassAccuracy, ...]
    projection: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSummary:
    """A fitted label model: sources, prior, remarks; prints as a table."""

    sources: tuple[SourceAccuracy, ...]
    prior: str
    dependencies: tuple[tuple[str, str], ...]
    n_sequences: int
    n_elements: int
    notes: tuple[str, ...]
    has_gold: bool
    belief: str = ""

    def __getitem__(self, name: str) -> SourceAccuracy:
        for one in self.sources:
            if one.name == name:
                return one
        raise KeyError(f"{name!r} is none of the sources {[one.name for one in self.sources]}")

    @property
    def accuracies(self) -> dict[str, float]:
        """Estimated P(right | it votes) by source, where it is known."""
        return {one.name: one.accuracy for one in self.sources if one.accuracy is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def _repr_html_(self) -> str:
        from dugong.report.notebook import summary_html

        return summary_html(self)

    def __str__(self) -> str:
        head = (
            f"Label model of {counted(len(self.sources), 'source')}, fitted on {counted(self.n_sequences, 'sequence')}"
        )
        edges = ", ".join(f"{a} repeats itself" if a == b else f"{a} + {b}" for a, b in self.dependencies)
        lines = [
            f"{head} ({counted(self.n_elements, 'element')})",
            f"prior         {self.belief or self.prior}",
            f"dependencies  {edges or 'none'}",
            "",
            _table(self),
            *_legend(self),
        ]
        notes = [(one.name, note) for one in self.sources for note in one.notes]
        remarks = [note if repr(name) in note else f"{name}: {note}" for name, note in notes] + list(self.notes)
        return "\n".join([*lines, *(f"- {remark}" for remark in dict.fromkeys(remarks))])

    __repr__ = __str__


def summarize_model(
    *,
    sources: Sequence[SourceInfo],
    accuracies: Mapping[str, FloatArray],
    intervals: Mapping[str, tuple[FloatArray, FloatArray]],
    diagnostics: Diagnostics,
    seen: Seen,
    prior: Prior,
    edges: Sequence[tuple[str, str]],
    class_names: tuple[str, ...] | None,
    known: Collection[str] = (),
    votes: Votes | None = None,
    gold: Any = None,
) -> ModelSummary:
    """Put everything that is known about the sources of a fitted model into one value.

    Parameters
    ----------
    intervals : lower and upper limits by source, in the shape of its table; may be empty
    edges : pairs of dependent sources; the same name twice for one that depends on its own earlier votes
    known : sources whose tables were given, and are exact
    votes, gold : votes with known labels as in `Votes.summary`, optional
    """
    rows = []
    for info in sources:
        table = plain_table(accuracies[info.name], seen.balance[info.name])
        limits = [plain_table(one, seen.balance[info.name]) for one in intervals.get(info.name, ())]
        n_tasks = None if info.name in known else seen.asked.get(info.name)
        expected = None if n_tasks is None else n_tasks * seen.balance[info.name]
        measured = None if votes is None or gold is None else _measure(votes, info, gold)
        notes = tuple(note.text for note in diagnostics.notes if note.where == info.name)
        rows.append(
            SourceAccuracy(
                name=info.name,
                resolution=info.resolution.name,
                coverage=seen.coverage[info.name],
                accuracy=_accuracy(table, seen.balance[info.name]),
                empirical=None if measured is None else _ratio(np.trace(measured), measured[:, :-1].sum()),
                classes=_classes(
                    table, limits, expected, measured, _labels(info.resolution, seen, info.name, class_names)
                ),
                projection=diagnostics.projections.get(info.name, 0.0),
                notes=notes,
            )
        )
    names = {info.name for info in sources}
    return ModelSummary(
        sources=tuple(rows),
        prior=repr(prior),
        dependencies=tuple(edges),
        n_sequences=seen.n_sequences,
        n_elements=seen.n_elements,
        notes=tuple(
            note.text for note in diagnostics.notes if note.where not in names and note.kind not in _FOR_EXPERTS
        ),
        has_gold=gold is not None,
        belief=_in_words(prior, seen, class_names),
    )


def _in_words(prior: Prior, seen: Seen, class_names: tuple[str, ...] | None = None) -> str:
    """What is believed of labels before any vote, as people say it: how common each is, and how long it lasts."""
    if not isinstance(prior, Markov) or prior.n_classes > _WIDE:
        return shorten(repr(prior), _LONGEST, placeholder=" ...")
    length = max(2, round(seen.n_elements / max(seen.n_sequences, 1)))
    shares, steps = label_steps(prior, length)
    names = class_names or (("-1", "+1") if prior.n_classes == 2 else tuple(map(str, range(1, prior.n_classes + 1))))
    runs = [1 / max(1 - stay, 1e-12) for stay in np.diagonal(steps).tolist()]
    lasting = [f"about {run:.0f} in a row" if run < length else "often a whole sequence" for run in runs]
    parts = [f"{name} on {share:.1%}, {how}" for name, share, how in zip(names, shares.tolist(), lasting, strict=True)]
    return f"of the elements {'; '.join(parts)}"


def label_steps(prior: Prior, length: int) -> tuple[FloatArray, FloatArray]:
    """Mean law of a label, and of the next label given it, over a sequence of `length` elements."""
    chain = prior.chain()
    states = np.zeros((chain.n_states, chain.n_classes))
    states[np.arange(chain.n_states), chain.labels] = 1.0
    onward = chain.transition @ states
    law, share = chain.initial, np.zeros(chain.n_classes)
    pairs = np.zeros((chain.n_classes, chain.n_classes))
    n_steps = min(length, _STEPS)
    for _ in range(n_steps):
        share += law @ states
        pairs += (states * law[:, None]).T @ onward
        law = law @ chain.transition
    total = pairs.sum(axis=1, keepdims=True)
    return share / n_steps, np.divide(pairs, total, out=np.full_like(pairs, np.nan), where=total > 0)


def plain_table(table: AnyArray, balance: FloatArray) -> FloatArray | None:
    """P(vote | label) as (K, C): the mean over positions; None if the table is over whole patterns."""
    mean = np.asarray(table, dtype=np.float64)
    mean = mean.mean(axis=0) if mean.ndim == 3 else mean
    return mean if mean.shape[0] == len(balance) else None


def _accuracy(table: FloatArray | None, balance: FloatArray) -> float | None:
    if table is None:
        return None
    n_classes = len(balance)
    return _ratio(balance @ np.diagonal(table), balance @ (1 - table[:, n_classes]))


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole > 0 else None


def _classes(
    table: FloatArray | None,
    limits: Sequence[FloatArray | None],
    expected: FloatArray | None,
    measured: FloatArray | None,
    labels: Sequence[str],
) -> tuple[ClassAccuracy, ...]:
    if table is None:
        return ()
    found = []
    for place, label in enumerate(labels):
        ends = [float(one[place, place]) for one in limits if one is not None]
        if len(ends) == 2 and expected is not None:
            least = _binomial(float(table[place, place]), float(expected[place]))
            ends = [min(ends[0], least[0]), max(ends[1], least[1])]
        known = None if measured is None else float(measured[place].sum())
        found.append(
            ClassAccuracy(
                label=label,
                right=float(table[place, place]),
                abstains=float(table[place, len(labels)]),
                interval=(ends[0], ends[1]) if len(ends) == 2 else None,
                empirical=float(measured[place, place]) / known if measured is not None and known else None,
            )
        )
    return tuple(found)


def _binomial(share: float, n_tasks: float) -> Interval:
    """Limits of a share that was seen in so many tasks (Wilson 1927); they hold the share, and are never equal.

    How an estimate varies between sequences says nothing where these agree by chance, or where it was moved away from
    something impossible: no estimate is surer than the same number of known labels would make it.
    """
    if n_tasks < 1e-6:  # of which nothing was seen, as far as numbers tell
        return 0.0, 1.0
    weight = _NORMAL**2 / n_tasks
    middle = (share + weight / 2) / (1 + weight)
    reach = np.sqrt(weight * share * (1 - share) + weight**2 / 4) / (1 + weight)
    return max(0.0, min(share, float(middle - reach))), min(1.0, max(share, float(middle + reach)))


def _labels(resolution: Resolution, seen: Seen, name: str, class_names: tuple[str, ...] | None) -> list[str]:
    n_classes = len(seen.balance[name])
    if isinstance(resolution, Element) and class_names is not None:
        return list(class_names)
    return ["-1", "+1"] if n_classes == 2 else [str(value) for value in range(1, n_classes + 1)]


def _measure(votes: Votes, info: SourceInfo, gold: Any) -> FloatArray | None:
    """Counts of votes by known label, (K, K + 1): classes, then abstain and everything else."""
    if info.name not in votes.source_names:
        return None
    labels, column = gold_at(votes, gold, info.resolution), votes.column(info.name)
    classes = votes.classes if isinstance(info.resolution, Element) else (-1, 1)
    known = (labels != ABSTAIN) & (column != MISSING)
    counts = np.zeros((len(classes), len(classes) + 1))
    for row, label in enumerate(classes):
        mine = column[known & (labels == label)]
        for place, vote in enumerate(classes):
            counts[row, place] = np.count_nonzero(mine == vote)
        counts[row, -1] = len(mine) - counts[row, :-1].sum()
    return counts


# --- text ----------------------------------------------------------------------------------------------------------
def _table(summary: ModelSummary) -> str:
    labels = list(dict.fromkeys(one.label for row in summary.sources for one in row.classes))
    apart = len(labels) <= _WIDE
    head = ["source", "resolution", "coverage", "accuracy"]
    head += ["measured"] if summary.has_gold else []
    for label in labels if apart else []:
        head += [f"P({label} | {label}), 95 %", *(["measured"] if summary.has_gold else [])]
    head += [] if apart else ["P(right | class) / measured" if summary.has_gold else "P(right | class)"]
    rows = [_row(one, labels if apart else None, gold=summary.has_gold) for one in summary.sources]
    left = (0, 1) if apart else (0, 1, len(head) - 1)
    return text_table(head, rows, left=left, rule=True)


def _legend(summary: ModelSummary) -> list[str]:
    """What the columns mean."""
    label = next((part.label for one in summary.sources for part in one.classes[-1:]), None)
    if label is None:
        return []
    each = f"P({label} | {label}) how often it says {label} where that is true"
    known = ", measured the same on known labels" if summary.has_gold else ""
    return [
        f"accuracy is how often a source is right when it votes, {each} (to abstain counts as not saying it){known}.",
        "",
    ]


def _row(one: SourceAccuracy, labels: list[str] | None, *, gold: bool) -> list[str]:
    cells = [one.name, one.resolution, f"{one.coverage:.3f}", _figure(one.accuracy)]
    cells += [_figure(one.empirical)] if gold else []
    if labels is None:
        return [*cells, ", ".join(_in_short(part, gold=gold) for part in one.classes)]
    found = {part.label: part for part in one.classes}
    for label in labels:
        part = found.get(label)
        ends = "" if part is None or part.interval is None else " ({:.2f} to {:.2f})".format(*part.interval)
        cells += ["-" if part is None else f"{part.right:.3f}{ends}"]
        cells += [_figure(None if part is None else part.empirical)] if gold else []
    return cells


def _in_short(part: ClassAccuracy, *, gold: bool) -> str:
    measured = "-" if part.empirical is None else f"{part.empirical:.2f}"
    return f"{part.label} {part.right:.2f}" + (f"/{measured}" if gold else "")


def _figure(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"

"""Votes at a glance: one line per source, with the column names that users of Snorkel know.

In: votes and, if there are any, gold labels. Out: a `Summary`, which prints as a table. Every number is a
fraction of the source's own tasks. Differs from Snorkel: sources may have different resolutions (see
`overlaps`), tasks without a known label are left out of Correct and Incorrect, and an accuracy without a
single known label is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING
from dugong.votes.classes import allowed_classes, code_name
from dugong.votes.codes import count_codes, n_spoken
from dugong.votes.container import SourceInfo, Votes
from dugong.votes.gold import gold_at
from dugong.votes.overlaps import count_overlaps
from dugong.votes.problems import Problem, find_problems

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SourceSummary", "Summary", "summarize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSummary:
    """One source: what it votes, how often, and how often with or against others.

    Attributes
    ----------
    name, j : its name and place
    resolution : name of its resolution
    n_tasks, n_asked : tasks at its resolution, and those it was asked about
    polarity, words : the codes it votes, as numbers and in words
    coverage, overlaps, conflicts : fractions of its tasks
    correct, incorrect : votes on tasks with a known label, None without gold
    """

    name: str
    j: int
    resolution: str
    n_tasks: int
    n_asked: int
    polarity: tuple[int, ...]
    words: tuple[str, ...]
    coverage: float
    overlaps: float
    conflicts: float
    correct: int | None = None
    incorrect: int | None = None

    @property
    def accuracy(self) -> float | None:
        """Share of correct votes among those with a known label; None if there are none."""
        known = (self.correct or 0) + (self.incorrect or 0)
        return (self.correct or 0) / known if known else None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summary:
    """All sources of some votes, and remarks about them; prints as a table."""

    sources: tuple[SourceSummary, ...]
    problems: tuple[Problem, ...]
    has_gold: bool

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, ready for a data frame."""
        rows = self.sources
        columns: dict[str, list[Any]] = {
            "source": [row.name for row in rows],
            "j": [row.j for row in rows],
            "Resolution": [row.resolution for row in rows],
            "Polarity": [list(row.polarity) for row in rows],
            "Coverage": [row.coverage for row in rows],
            "Overlaps": [row.overlaps for row in rows],
            "Conflicts": [row.conflicts for row in rows],
        }
        if any(row.n_asked < row.n_tasks for row in rows):
            columns["Asked"] = [row.n_asked / row.n_tasks if row.n_tasks else 0.0 for row in rows]
        if self.has_gold:
            columns["Correct"] = [row.correct for row in rows]
            columns["Incorrect"] = [row.incorrect for row in rows]
            columns["Emp. Acc."] = [row.accuracy for row in rows]
        return columns

    def to_arrow(self) -> pa.Table:
        """The same columns as an arrow table."""
        import pyarrow as pa

        return pa.table(self.to_dict())

    def __str__(self) -> str:
        columns = self.to_dict()
        columns["Polarity"] = [", ".join(row.words) for row in self.sources]
        lines = _table(columns)
        return "\n".join([*lines, *(f"- {problem}" for problem in self.problems)])

    __repr__ = __str__


def summarize(votes: Votes, gold: Any = None) -> Summary:
    """See `Votes.summary`."""
    met = count_overlaps(votes)
    rows = []
    for place, source in enumerate(votes.sources):
        shares = (int(met.overlaps[place]), int(met.conflicts[place]))
        rows.append(_summarize_source(votes, place, source, shares, gold))
    problems = find_problems(votes, n_silent=met.n_silent)
    return Summary(sources=tuple(rows), problems=problems, has_gold=gold is not None)


def _summarize_source(votes: Votes, place: int, source: SourceInfo, met: tuple[int, int], gold: Any) -> SourceSummary:
    counts = count_codes(votes.columns[place])
    n_tasks = len(votes.columns[place])
    codes = tuple(code for code in counts if code not in (ABSTAIN, MISSING))
    correct, incorrect = (None, None) if gold is None else _grade(votes, place, source, gold)
    return SourceSummary(
        name=source.name,
        j=place,
        resolution=source.resolution.name,
        n_tasks=n_tasks,
        n_asked=n_tasks - counts.get(MISSING, 0),
        polarity=codes,
        words=tuple(code_name(votes, code, source.resolution) for code in codes),
        coverage=n_spoken(counts) / max(n_tasks, 1),
        overlaps=met[0] / max(n_tasks, 1),
        conflicts=met[1] / max(n_tasks, 1),
        correct=correct,
        incorrect=incorrect,
    )


def _grade(votes: Votes, place: int, source: SourceInfo, gold: Any) -> tuple[int, int]:
    column, labels = votes.columns[place], gold_at(votes, gold, source.resolution)
    graded = (labels != ABSTAIN) & (column != ABSTAIN) & (column != MISSING)
    right = column == labels
    if isinstance(source.resolution, Element):
        for code in votes.partial:
            right |= (column == code) & np.isin(labels, list(allowed_classes(votes, code)))
    correct = int(np.count_nonzero(graded & right))
    return correct, int(np.count_nonzero(graded)) - correct


def _table(columns: dict[str, list[Any]]) -> list[str]:
    texts = {name: [name if name != "source" else "", *map(_cell, values)] for name, values in columns.items()}
    lines = []
    for row in range(len(next(iter(texts.values())))):
        cells = []
        for name, column in texts.items():
            width = max(map(len, column))
            left = name in ("source", "Resolution", "Polarity")
            cells.append(column[row].ljust(width) if left else column[row].rjust(width))
        lines.append("  ".join(cells).rstrip())
    return lines


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

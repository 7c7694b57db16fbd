"""Votes at a glance: a few lines, one line per source, and what deserves a look before anything is learned.

In: votes and, if there are any, gold labels. Out: the text of ``repr(votes)``; a `Summary`, which prints as a table
with the column names that users of Snorkel know; and remarks, none of which stops anything (a source that never
votes, two that are copies of each other, elements about which nobody speaks). Every number of a summary is a fraction
of the source's own tasks. Differs from Snorkel: sources may have different resolutions (see `overlaps`), tasks
without a known label are left out of Correct and Incorrect, and an accuracy without a single known label is None.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.tasks import Element, describe
from dugong.texts import counted, text_table
from dugong.types import ABSTAIN, MISSING, Additive
from dugong.votes.codes import (
    SourceInfo,
    allowed_classes,
    code_name,
    count_codes,
    count_faults,
    implied_background,
    spoken,
)
from dugong.votes.container import Votes
from dugong.votes.gold import gold_at
from dugong.votes.overlaps import Overlaps, count_overlaps

if TYPE_CHECKING:
    import pyarrow as pa

_MANY = 8


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
    soft : whether it gives probabilities with its votes
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
    soft: bool = False

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
        if any(row.soft for row in rows):
            columns["Soft"] = [row.soft for row in rows]
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
        head = ["" if name == "source" else name for name in columns]
        left = [place for place, name in enumerate(columns) if name in ("source", "Resolution", "Polarity")]
        rows = [[_cell(value) for value in row] for row in zip(*columns.values(), strict=True)]
        return "\n".join([text_table(head, rows, left=left), *(f"- {problem}" for problem in self.problems)])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally(Additive):
    """What a summary counts: sums that merge with ``+``, so that votes in many files have one, too.

    Attributes
    ----------
    codes : by source, how often each code was voted
    met : overlaps and conflicts of the sources
    faults : by source
    n_elements, n_empty : elements, and sequences without any
    """

    codes: Mapping[str, Counter[int]]
    met: Overlaps
    faults: Mapping[str, int]
    n_elements: int
    n_empty: int

    @classmethod
    def of(cls, votes: Votes) -> Tally:
        """The sums of votes that are in memory."""
        return cls(
            codes={name: Counter(count_codes(votes.column(name))) for name in votes.source_names},
            met=count_overlaps(votes),
            faults=count_faults(votes.faults),
            n_elements=votes.n_elements,
            n_empty=int(np.count_nonzero(votes.lengths == 0)),
        )


def summary_of(tally: Tally, votes: Votes, gold: Any = None) -> Summary:
    """The summary of all that was counted; `votes` are the same, or some of them that whole columns are compared in."""
    rows = tuple(_summarize_source(tally, votes, place, source, gold) for place, source in enumerate(votes.sources))
    return Summary(sources=rows, problems=_problems(tally, votes), has_gold=gold is not None)


def _summarize_source(tally: Tally, votes: Votes, place: int, source: SourceInfo, gold: Any) -> SourceSummary:
    codes = tally.codes[source.name]
    said = spoken(codes)
    n_tasks = codes.total()
    correct, incorrect = (None, None) if gold is None else _grade(votes, place, source, gold)
    return SourceSummary(
        name=source.name,
        j=place,
        resolution=source.resolution.name,
        n_tasks=n_tasks,
        n_asked=n_tasks - codes[MISSING],
        polarity=tuple(said),
        words=tuple(code_name(votes, code, source.resolution) for code in said),
        coverage=sum(said.values()) / max(n_tasks, 1),
        overlaps=int(tally.met.overlaps[place]) / max(n_tasks, 1),
        conflicts=int(tally.met.conflicts[place]) / max(n_tasks, 1),
        correct=correct,
        incorrect=incorrect,
        soft=source.name in votes.scores,
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


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class Problem:
    """One remark: its kind (a fixed word), the source that it is about if any, and a sentence."""

    kind: str
    source: str | None
    text: str

    def __str__(self) -> str:
        return self.text


def find_problems(votes: Votes) -> tuple[Problem, ...]:
    """All remarks about votes."""
    return _problems(Tally.of(votes), votes)


def _problems(tally: Tally, votes: Votes) -> tuple[Problem, ...]:
    return (*_about_sources(tally, votes), *_about_copies(votes), *_about_sequences(tally, votes))


def _about_sources(tally: Tally, votes: Votes) -> Iterator[Problem]:
    for source in votes.sources:
        name, codes = source.name, tally.codes[source.name]
        said = spoken(codes)
        if not said:
            asked = "was never asked" if codes[MISSING] == codes.total() else "never votes"
            yield Problem("never-votes", name, f"source {name!r} {asked}; it has no influence and may be left out.")
        elif len(said) == 1 and sum(said.values()) == codes.total() and name not in votes.scores:
            word = code_name(votes, next(iter(said)), source.resolution)
            yield Problem("always-same", name, f"source {name!r} always votes {word}; it tells no two tasks apart.")
        if name in tally.faults:
            yield Problem("faults", name, f"source {name!r} raised {tally.faults[name]:,} times and abstained instead.")


def _about_copies(votes: Votes) -> Iterator[Problem]:
    first: dict[tuple[object, int], int] = {}
    for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
        other = first.setdefault((source.resolution, zlib.crc32(column.data)), place)
        if other != place and np.array_equal(votes.columns[other], column) and spoken(count_codes(column)):
            text = f"source {source.name!r} votes exactly as {votes.source_names[other]!r}; count it once."
            yield Problem("copy", source.name, text)


def _about_sequences(tally: Tally, votes: Votes) -> Iterator[Problem]:
    if tally.n_empty:
        yield Problem("empty", None, f"{tally.n_empty:,} sequences have no elements.")
    if tally.met.n_silent:
        share = tally.met.n_silent / tally.n_elements
        text = f"no source speaks about {tally.met.n_silent:,} of {tally.n_elements:,} elements ({share:.1%})"
        background = implied_background(votes, tally.codes)
        if background is not None:
            text += f"; they count as background, {code_name(votes, background, Element())}"
            text += "" if votes.background is not None else ", the only class that is never voted for"
        yield Problem("silent", None, f"{text}.")


def describe_votes(votes: Votes) -> str:
    """The text of ``repr(votes)``."""
    lengths = " to ".join(f"{length:,}" for length in sorted({int(votes.lengths.min()), int(votes.lengths.max())}))
    lines = [
        f"Votes: {counted(votes.n_sources, 'source')}, {counted(votes.n_sequences, 'sequence')}, "
        f"{counted(votes.n_elements, 'element')} ({lengths} each)",
        f"  classes     {_listing([_class(votes, code) for code in votes.classes])}",
    ]
    for resolution in dict.fromkeys(source.resolution for source in votes.sources):
        names = [source.name for source in votes.sources if source.resolution == resolution]
        lines.append(f"  {counted(len(names), 'source')} on {describe(resolution)}: {_listing(names)}")
    if votes.partial:
        kinds = [code_name(votes, code, votes.resolutions[0]) for code in votes.partial]
        lines.append(f"  partial     {_listing(kinds)}")
    if votes.time is not None:
        lines.append(f"  time        {votes.time}")
    if votes.faults:
        lines.append(f"  faults      {len(votes.faults):,}, the first: {votes.faults[0]}")
    return "\n".join(lines)


def _class(votes: Votes, code: int) -> str:
    number = f"{code:+d}" if votes.n_classes == 2 else str(code)
    name = f" {code_name(votes, code, votes.resolutions[0])}" if votes.class_names is not None else ""
    return f"{number}{name}{' (background)' if code == votes.background else ''}"


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown}, ... {len(names) - _MANY} more"

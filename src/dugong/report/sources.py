"""The sources: what they cover, whom they meet, how good the model thinks they are, and how good gold says they are."""

from __future__ import annotations

from math import isfinite

from dugong.report.material import Material
from dugong.report.values import ClassRow, SourceRow
from dugong.summary import ClassAccuracy, ModelSummary, SourceAccuracy
from dugong.votes.summary import SourceSummary, Summary


def make_sources(material: Material, seen: Summary, learned: ModelSummary) -> tuple[SourceRow, ...]:
    """One row per source of the votes: what was observed beside what was learned."""
    return tuple(_row(material, one, learned[one.name]) for one in seen.sources)


def _row(material: Material, seen: SourceSummary, learned: SourceAccuracy) -> SourceRow:
    return SourceRow(
        name=seen.name,
        resolution=seen.resolution,
        n_tasks=seen.n_tasks,
        asked=seen.n_asked / seen.n_tasks if seen.n_tasks else 0.0,
        coverage=seen.coverage,
        overlaps=seen.overlaps,
        conflicts=seen.conflicts,
        accuracy=learned.accuracy,
        empirical=seen.accuracy,
        weight=float(material.model.parameters_[seen.name].weight),
        classes=tuple(_class(part) for part in learned.classes),
        notes=learned.notes,
    )


def _class(part: ClassAccuracy) -> ClassRow:
    votes = 1 - part.abstains
    return ClassRow(
        label=part.label,
        right=part.right,
        abstains=part.abstains,
        right_if_votes=part.right / votes if votes > 1e-9 else None,
        interval=_known(part.interval),
        empirical=part.empirical,
    )


def _known(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """None for an interval that says nothing: with fewer than two groups it is all of [0, 1]."""
    if interval is None or not all(map(isfinite, interval)) or interval == (0.0, 1.0):
        return None
    return interval

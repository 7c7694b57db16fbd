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
        weight=float(material.model.law_.parameters[seen.name].weight),
        classes=tuple(_class(part, grouped=material.model.standard_errors_.n_groups > 1) for part in learned.classes),
        notes=learned.notes,
    )


def _class(part: ClassAccuracy, *, grouped: bool) -> ClassRow:
    """Without at least two groups of sequences there is no spread, and no interval."""
    votes = 1 - part.abstains
    return ClassRow(
        label=part.label,
        right=part.right,
        abstains=part.abstains,
        right_if_votes=part.right / votes if votes > 1e-9 else None,
        interval=_known(part.interval) if grouped else None,
        empirical=part.empirical,
    )


def _known(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval if interval is not None and all(map(isfinite, interval)) else None

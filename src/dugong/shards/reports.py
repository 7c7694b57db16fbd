"""Reports of shards as one report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dugong.sources.collecting import ApplyReport, SourceReport


def add_reports(first: ApplyReport, second: ApplyReport | None, *, seconds: float | None = None) -> ApplyReport:
    """The report of both together; `seconds` replaces the time on the clock."""
    if second is not None:
        pairs = zip(first.sources, second.sources, strict=True)
        first = replace(
            first,
            sources=tuple(_add(one, two) for one, two in pairs),
            pre_seconds=dict(Counter(first.pre_seconds) + Counter(second.pre_seconds)),
            n_sequences=first.n_sequences + second.n_sequences,
            n_elements=first.n_elements + second.n_elements,
            n_faults=first.n_faults + second.n_faults,
            seconds=first.seconds + second.seconds,
        )
    return first if seconds is None else replace(first, seconds=seconds)


def _add(one: SourceReport, two: SourceReport) -> SourceReport:
    return replace(
        one,
        tasks=one.tasks + two.tasks,
        votes=one.votes + two.votes,
        faults=one.faults + two.faults,
        seconds=one.seconds + two.seconds,
        usage=dict(Counter(one.usage) + Counter(two.usage)),
    )

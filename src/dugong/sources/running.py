"""What every way of applying sources starts with: all that can be read and checked before the first sequence.

In: what the caller gave. Out: a `Run`: the sources, what their votes mean, and the stream of sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any, TypedDict

from dugong.engines import Engine, local_engine
from dugong.sources.checking import (
    Meaning,
    check_rate,
    check_run,
    check_size,
    check_timeout,
    in_elements_of,
    read_meaning,
    read_sources,
)
from dugong.sources.decorator import Source
from dugong.sources.inputs import pairs_of, rate_of
from dugong.sources.items import Item, SequenceId, items_of, split_spans
from dugong.sources.progress import Progress
from dugong.sources.voting import Job, OnFault


class RunOptions(TypedDict, total=False):
    """Options of every way of applying sources; `apply` explains them."""

    n_jobs: int
    on_fault: OnFault
    n_classes: int | None
    classes: Iterable[str] | None
    background: str | int | None
    spans: Mapping[str, Any] | None
    limit: int | None
    only: str | Iterable[str] | None
    rate: float | None
    timeout: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Sources, sequences and what is the same for all of them.

    Attributes
    ----------
    every : all sources, in order
    chosen : those that run
    meaning : Meaning
    on_fault : "raise" or "abstain"
    spans, makers : all spans that were given, and the functions among them
    items : the sequences, read lazily
    total : how many there are, if that is known
    engine : where it runs
    rate : elements per second of all sequences, if that is known
    timeout : seconds that a source may take on one sequence
    begin : on the clock
    """

    every: tuple[Source, ...]
    chosen: tuple[Source, ...]
    meaning: Meaning
    on_fault: OnFault
    spans: Mapping[str, Any]
    makers: Mapping[str, Any]
    items: Iterator[Item]
    total: int | None
    engine: Engine
    rate: float | None = None
    timeout: float | None = None
    begin: float = field(default_factory=perf_counter)

    def job(self, sources: tuple[Source, ...]) -> Job:
        """What workers need to know to let some sources vote."""
        codings = self.meaning.codings(sources)
        return Job(
            sources=sources,
            codings=codings,
            on_fault=self.on_fault,
            span_makers=self.makers,
            rate=self.rate,
            timeout=self.timeout,
        )

    @property
    def seconds(self) -> float:
        """Since the start."""
        return perf_counter() - self.begin

    def progress(self, *, done: int, sequence: SequenceId, elements: int, faults: int, kept: int = 0) -> Progress:
        """How far it is."""
        return Progress(
            done=done,
            total=self.total,
            sequence=sequence,
            elements=elements,
            faults=faults,
            seconds=self.seconds,
            kept=kept,
        )


def prepare_run(  # noqa: PLR0913 (the options of `apply`)
    sources: Any,
    sequences: Any,
    *,
    n_jobs: int = 1,
    on_fault: OnFault = "raise",
    n_classes: int | None = None,
    classes: Iterable[str] | None = None,
    background: str | int | None = None,
    spans: Mapping[str, Any] | None = None,
    limit: int | None = None,
    only: str | Iterable[str] | None = None,
    rate: float | None = None,
    timeout: float | None = None,
    engine: Engine | None = None,
) -> Run:
    """Read what was given, and refuse what cannot work; see `apply` for what everything is."""
    begin = perf_counter()
    every, chosen = read_sources(sources, None), read_sources(sources, only)
    if rate is None:
        rate = rate_of(sequences, look_inside=any(getattr(one.resolution, "seconds", None) for one in every))
    rate = check_rate(rate)
    every, chosen = (tuple(in_elements_of(one, rate) for one in some) for some in (every, chosen))
    meaning = read_meaning(n_classes, classes, background)
    makers, given = split_spans(spans)
    check_run(chosen, meaning, spans or {}, on_fault)
    check_size(n_jobs, limit)
    check_timeout(timeout)
    pairs, total = pairs_of(sequences)
    return Run(
        every=every,
        chosen=chosen,
        meaning=meaning,
        on_fault=on_fault,
        makers=makers,
        spans=spans or {},
        items=items_of(islice(pairs, limit), given),
        total=total if total is None or limit is None else min(total, limit),
        engine=engine or local_engine(n_jobs),
        rate=rate,
        timeout=timeout,
        begin=begin,
    )

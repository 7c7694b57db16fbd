"""Everything that can be wrong before the first sequence is read, found before the first sequence is read.

In: what the caller of `apply` gave. Out: the sources that run, and what their votes mean. A run of hours
must not end with a complaint about a name.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any, get_args

import numpy as np

from dugong.codec import show
from dugong.contract import fits
from dugong.exceptions import SourceError
from dugong.sources.coding import ScoreCoding, VoteCoding
from dugong.sources.decorator import Source
from dugong.sources.voting import OnFault
from dugong.tasks import Element, Spans, SpanTable, describe, in_elements
from dugong.votes import Votes

_SHORTEST = 0.001  # seconds: a limit that rings before the source has begun tells nothing
_LONGEST = 10**8  # seconds, three years: what timers of every system can count


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the votes of a run stand for."""

    n_classes: int = 2
    class_names: tuple[str, ...] | None = None
    background: int | None = None

    def codings(self, sources: Iterable[Source]) -> tuple[VoteCoding | ScoreCoding, ...]:
        """What each source may return."""
        return tuple(map(self._coding, sources))

    def _coding(self, source: Source) -> VoteCoding | ScoreCoding:
        if source.soft:
            return ScoreCoding(n_classes=self.n_classes if isinstance(source.resolution, Element) else 2)
        return VoteCoding.of(source.resolution, self.n_classes, self.class_names)


def sources_in(module: ModuleType) -> tuple[Source, ...]:
    """All sources that a module holds, in the order in which they are defined; each once."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, Source)}
    return tuple(found.values())


def read_sources(sources: Any) -> tuple[Source, ...]:
    """All sources, in the order given."""
    if not isinstance(sources, Source) and not fits(sources, Iterable[Any]):
        raise SourceError(f"sources must be a list of functions decorated with @source; found {show(sources)}.")
    every = (sources,) if isinstance(sources, Source) else tuple(sources)
    for place, one in enumerate(every):
        if not isinstance(one, Source):
            raise SourceError(
                f"sources must be functions decorated with @source; found {one!r} at place {place}.\n"
                "  Decorate it, or wrap it on the spot: source(function)."
            )
    if not every:
        raise SourceError("there are no sources to apply; give at least one function decorated with @source.")
    return every


def choose(sources: tuple[Source, ...], only: str | Iterable[str] | None) -> tuple[Source, ...]:
    """The sources that run."""
    if only is None:
        return sources
    names = (only,) if isinstance(only, str) else tuple(only)
    known = {source.name for source in sources}
    unknown = [name for name in names if name not in known]
    if unknown:
        listing = ", ".join(repr(source.name) for source in sources)
        raise SourceError(f"only= names the source {unknown[0]!r}, which is not there; known are {listing}.")
    return tuple(source for source in sources if source.name in names)


def read_meaning(n_classes: int | None, classes: Iterable[str] | None, background: str | int | None) -> Meaning:
    """Number and names of the classes, and the code of the background class."""
    names = None if classes is None else tuple(map(str, classes))
    if names and len(set(names)) < len(names):
        raise SourceError(f"classes= must be different names; found {', '.join(map(repr, names))}.")
    count = n_classes if n_classes is not None else len(names) if names else 2
    codes: Mapping[Any, int] = VoteCoding.of(Element(), count, names).codes
    if background is not None and codes.get(background, 0) == 0:
        raise SourceError(f"background= must be one of the classes; found {background!r}.")
    code = None if background is None else codes[background]
    return Meaning(n_classes=count, class_names=names, background=code)


def check_rate(rate: Any) -> float | None:
    """Elements per second as a number, or None where nothing is known."""
    if rate is None:
        return None
    if not isinstance(rate, numbers.Real) or isinstance(rate, bool) or not 0 < float(rate) < math.inf:
        raise SourceError(f"rate= must be a positive number of elements per second; found {rate!r}.")
    return float(rate)


def check_timeout(timeout: Any) -> None:
    """Raise unless the time limit makes sense."""
    real = isinstance(timeout, numbers.Real) and not isinstance(timeout, bool)
    if timeout is not None and not (real and _SHORTEST <= float(timeout) <= _LONGEST):
        raise SourceError(
            f"timeout= must be a positive number of seconds, {_SHORTEST} to {_LONGEST:,}, or None; found {timeout!r}."
        )


def in_elements_of(source: Source, rate: float | None) -> Source:
    """A source whose windows count elements, whatever they were written in."""
    resolution = in_elements(source.resolution, rate)
    return source if resolution is source.resolution else replace(source, resolution=resolution)


def check_size(n_jobs: int, limit: int | None) -> None:
    """Raise unless the numbers of processes and sequences make sense."""
    if not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise SourceError(f"n_jobs= must be at least 1, or -1 for all cores; found {n_jobs!r}.")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise SourceError(f"limit= must be at least 1 sequence; found {limit!r}.")


def check_run(sources: tuple[Source, ...], meaning: Meaning, spans: Iterable[str], on_fault: str) -> None:
    """Raise unless names, classes, spans and options fit together."""
    if on_fault not in get_args(OnFault):
        raise SourceError(f"on_fault= must be 'raise' or 'abstain'; found {on_fault!r}.")
    for source in sources:
        _check_spans(source, tuple(spans))
    # Votes on one sequence without elements obey all the rules that the real votes will have to obey.
    empty = SpanTable.from_lists([[]])
    Votes(
        sources=tuple(source.info for source in sources),
        columns=tuple(np.zeros(0, dtype=np.int8) for _ in sources),
        lengths=np.zeros(1, dtype=np.int64),
        spans=dict.fromkeys(spans, empty),
        **asdict(meaning),
    )


def _check_spans(source: Source, given: tuple[str, ...]) -> None:
    resolution = source.resolution
    if isinstance(resolution, Spans) and resolution.name not in given:
        raise SourceError(
            f"source {source.name!r} votes on {describe(resolution)}, whose pieces are not given.\n"
            f"  Pass spans={{{resolution.name!r}: ...}}: a mapping of sequence id to (start, stop) pairs, "
            "one list per sequence, or a function of a sequence."
        )

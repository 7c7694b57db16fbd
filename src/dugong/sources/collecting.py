"""From votes sequence by sequence to one `Votes`, with the time and the faults of every source.

In: a stream of `SequenceVotes`. Out: `Applied`. Columns grow in place, one byte per vote, so that a stream
of any number of short sequences costs no more memory than the votes themselves.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dugong.exceptions import SourceError
from dugong.sources.checking import Meaning
from dugong.sources.inputs import SequenceId
from dugong.sources.voting import SequenceVotes
from dugong.tasks import SpanTable, describe
from dugong.tasks.time import TimeAxis
from dugong.types import ABSTAIN, MISSING, Additive, AnyArray
from dugong.votes import Fault, SourceInfo, Votes
from dugong.votes.flat import ScoreArray
from dugong.votes.pieces import check_words


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport(Additive):
    """What one source did: tasks it was asked, votes it gave, faults, seconds without preprocessing.

    `usage` holds what it says that it used beside time: calls, cached answers and tokens of a judge.
    """

    name: str
    resolution: str
    tasks: int
    votes: int
    faults: int
    seconds: float
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReport(Additive):
    """What a run did.

    Attributes
    ----------
    pre_seconds : summed over all processes, as are the seconds of the sources
    seconds : from start to end on the clock
    """

    sources: tuple[SourceReport, ...]
    pre_seconds: Mapping[str, float]
    n_sequences: int
    n_elements: int
    n_faults: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Applied:
    """The votes of a run and its report."""

    votes: Votes
    report: ApplyReport


@dataclass(slots=True, kw_only=True)
class Collector:
    """Takes in one sequence after the other."""

    sources: tuple[SourceInfo, ...]
    n_elements: int = 0
    faults: list[Fault] = field(default_factory=list)
    _columns: list[bytearray] = field(default_factory=list)
    _seconds: list[float] = field(default_factory=list)
    _usage: list[Counter[str]] = field(default_factory=list)
    _pre_seconds: Counter[str] = field(default_factory=Counter)
    _ids: list[SequenceId] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)
    _spans: dict[str, list[SpanTable]] = field(default_factory=dict)
    _clocks: list[tuple[float, float] | None] = field(default_factory=list)
    _scores: dict[str, bytearray] = field(default_factory=dict)
    _widths: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._columns = [bytearray() for _ in self.sources]
        self._seconds = [0.0 for _ in self.sources]
        self._usage = [Counter() for _ in self.sources]

    def add(self, result: SequenceVotes) -> None:
        """Append the votes on one sequence."""
        for place, votes in enumerate(result.votes):
            self._add_scores(place, len(votes), result.scores.get(self.sources[place].name))
            self._columns[place] += votes.tobytes()
            self._seconds[place] += result.seconds[place]
        for used, more in zip(self._usage, result.usage, strict=False):  # kept votes of an earlier run used nothing
            used.update(more)
        for name, seconds in result.pre_seconds.items():
            self._pre_seconds[name] += seconds  # type: ignore[assignment]
        for name, table in result.spans.items():
            self._spans.setdefault(name, []).append(table)
        # A source that fails on every element leaves one traceback in memory, not a million equal ones.
        same = sys.intern
        self.faults += [replace(one, error=same(one.error), traceback=same(one.traceback)) for one in result.faults]
        self._ids.append(result.id)
        self._lengths.append(result.length)
        self._clocks.append(result.clock)
        self.n_elements += result.length

    def _add_scores(self, place: int, n_tasks: int, rows: ScoreArray | None) -> None:
        """Append scores; a source that was not asked on some sequences has none there."""
        name = self.sources[place].name
        if rows is not None and name not in self._scores:
            self._widths[name] = rows.shape[1]
            self._scores[name] = bytearray(_no_scores(len(self._columns[place]), rows.shape[1]).tobytes())
        if name in self._scores:
            found = _no_scores(n_tasks, self._widths[name]) if rows is None else np.ascontiguousarray(rows)
            self._scores[name] += found.tobytes()

    @property
    def n_sequences(self) -> int:
        """Sequences so far."""
        return len(self._ids)

    def votes(self, meaning: Meaning) -> Votes:
        """All votes so far; `meaning` is what the codes stand for."""
        if not self._ids:
            raise SourceError("there are no sequences to apply the sources to; check the loader, or limit=.")
        return Votes(
            sources=self.sources,
            columns=tuple(np.frombuffer(column, dtype=np.int8) for column in self._columns),
            lengths=np.array(self._lengths, dtype=np.int64),
            ids=_id_array(self._ids),
            spans={name: SpanTable.concat(tables) for name, tables in self._spans.items()},
            time=_time_axis(self._clocks),
            scores={
                name: np.frombuffer(rows, dtype=np.float32).reshape(-1, self._widths[name])
                for name, rows in self._scores.items()
            },
            faults=tuple(self.faults),
            **asdict(meaning),
        )

    def report(self, seconds: float) -> ApplyReport:
        """What was done so far."""
        faults = Counter(fault.source for fault in self.faults)
        lines = zip(self.sources, self._columns, self._seconds, self._usage, strict=True)
        return ApplyReport(
            sources=tuple(
                SourceReport(
                    name=source.name,
                    resolution=describe(source.resolution),
                    tasks=len(column),
                    votes=len(column) - column.count(ABSTAIN) - column.count(MISSING % 256),
                    faults=faults[source.name],
                    seconds=spent,
                    usage=dict(used),
                )
                for source, column, spent, used in lines
            ),
            pre_seconds=dict(self._pre_seconds),
            n_sequences=self.n_sequences,
            n_elements=self.n_elements,
            n_faults=len(self.faults),
            seconds=seconds,
        )


def _no_scores(n_tasks: int, width: int) -> ScoreArray:
    return np.full((n_tasks, width), np.nan, dtype=np.float32)


def _time_axis(clocks: list[tuple[float, float] | None]) -> TimeAxis | None:
    """The clocks of all sequences, if all have one."""
    known = np.array([clock for clock in clocks if clock is not None], dtype=np.float64)
    if len(known) < len(clocks):
        return None
    return TimeAxis(start=known[:, 0], rate=known[:, 1])


def _id_array(ids: list[SequenceId]) -> AnyArray:
    check_words((one for one in ids if isinstance(one, str)), "a sequence id", without="\0")
    return np.array(ids, dtype=np.int64) if isinstance(ids[0], int) else np.array(ids)

"""What an earlier run left of one shard: votes that need not be made again.

In: the file of a shard. Out: for every sequence and source, the stored votes if the code of the source is still the
same. A file without a stamp, with one of other bytes, or with other settings is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.contract import fits
from dugong.exceptions import SourceError
from dugong.paths import Place
from dugong.shards.folder import State, read_state
from dugong.sources.inputs import SequenceId
from dugong.sources.voting import SequenceVotes
from dugong.tasks import Layout
from dugong.types import MISSING, Int8Array, IntArray
from dugong.votes import Fault, SourceInfo, Votes
from dugong.votes.flat import ScoreArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredShard:
    """The votes of an earlier run, by sequence id."""

    votes: Votes
    state: State
    places: Mapping[SequenceId, int]
    offsets: Mapping[str, IntArray]
    faults: Mapping[SequenceId, tuple[Fault, ...]]

    @classmethod
    def read(cls, path: Place, settings: str) -> StoredShard | None:
        """Read a shard that was finished under the same settings."""
        state = read_state(path)
        if state is None or state.get("settings") != settings or not fits(state.get("sources"), dict[str, str | None]):
            return None
        votes = Votes.read(path)
        faults: dict[SequenceId, tuple[Fault, ...]] = {}
        for fault in votes.faults:
            faults[fault.sequence] = (*faults.get(fault.sequence, ()), fault)
        return cls(
            votes=votes,
            state=state,
            places={one: place for place, one in enumerate(votes.sequence_ids.tolist())},
            offsets={info.name: votes.layout(info.resolution).offsets for info in votes.sources},
            faults=faults,
        )

    def keeps(self, state: State, sources: tuple[str, ...]) -> bool:
        """Whether the file is what would be written now."""
        return self.state == state and self.votes.source_names == sources

    def digest(self, source: str, sequence: SequenceId) -> str | None:
        """The code that made these votes; None if there are none."""
        found: str | None = self.state["sources"].get(source) if sequence in self.places else None
        return found

    def column(self, source: str, sequence: SequenceId) -> Int8Array:
        """The votes of a source on a sequence."""
        place, offsets = self.places[sequence], self.offsets[source]
        return self.votes.column(source)[int(offsets[place]) : int(offsets[place + 1])]

    def scores(self, source: str, sequence: SequenceId) -> dict[str, ScoreArray]:
        """The scores of a source on a sequence by its name; none if it is not soft."""
        place, offsets = self.places[sequence], self.offsets[source]
        rows = self.votes.scores.get(source)
        return {} if rows is None else {source: rows[int(offsets[place]) : int(offsets[place + 1])]}

    def sequence(self, sequence: SequenceId) -> SequenceVotes:
        """A sequence without any votes: its length, spans and clock."""
        place, time = self.places[sequence], self.votes.time
        clock = None
        if time is not None and time.start is not None and time.rate is not None:
            clock = float(time.start[place]), float(time.rate[place])
        return SequenceVotes(
            id=sequence,
            length=int(self.votes.lengths[place]),
            votes=(),
            spans={name: table.select(np.array([place])) for name, table in self.votes.spans.items()},
            clock=clock,
            faults=(),
            seconds=(),
            pre_seconds={},
        )


def merge(
    every: tuple[SourceInfo, ...],
    ran: tuple[str, ...],
    fresh: SequenceVotes | None,
    stored: StoredShard | None,
    sequence: SequenceId,
) -> SequenceVotes:
    """The votes of all sources on one sequence: those that just ran, then stored ones, else "was not asked"."""
    base = fresh
    if base is None:
        assert stored is not None
        base = stored.sequence(sequence)
    elif stored is not None and sequence in stored.places:
        _check_length(base, stored.sequence(sequence).length)
    columns, seconds = [], []
    scores: dict[str, ScoreArray] = {}
    usage: list[Mapping[str, float]] = []
    for info in every:
        if fresh is not None and info.name in ran:
            place = ran.index(info.name)
            columns.append(fresh.votes[place])
            scores |= {name: rows for name, rows in fresh.scores.items() if name == info.name}
            seconds.append(fresh.seconds[place])
            usage.append(fresh.usage[place] if fresh.usage else {})
            continue
        seconds.append(0.0)
        usage.append({})
        if stored is not None and stored.digest(info.name, sequence) is not None:
            columns.append(stored.column(info.name, sequence))
            scores |= stored.scores(info.name, sequence)
        else:
            layout = Layout.of(info.resolution, np.array([base.length]), base.spans)
            columns.append(np.full(layout.n_tasks, MISSING, dtype=np.int8))
    old = stored.faults.get(sequence, ()) if stored is not None else ()
    names = {info.name for info in every}
    return replace(
        base,
        votes=tuple(columns),
        faults=(*base.faults, *(fault for fault in old if fault.source not in ran and fault.source in names)),
        seconds=tuple(seconds),
        usage=tuple(usage),
        scores=scores,
    )


def _check_length(now: SequenceVotes, before: int) -> None:
    if now.length != before:
        raise SourceError(
            f"sequence {now.id!r} must be what it was in an earlier run; it has {now.length:,} elements now, and had "
            f"{before:,}.\n  The data have changed under the same id: start anew with --restart (restart=True)."
        )

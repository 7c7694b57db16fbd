"""Sources meet sequences, shard by shard: what is finished stays finished, whatever happens.

In: sources, sequences, a folder. Out: the folder of votes. Every `shard_size` sequences are one shard, written when
all of them are done. The stamp of a shard holds a digest of the code of every source, so that the same call continues
after a crash, runs a source again whose code has changed, and runs only the new one when a source is added. It holds a
stamp of every file, too: a sequence whose file has changed is voted on anew.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dugong.contract import fits
from dugong.engines import Engine
from dugong.exceptions import SourceError
from dugong.paths import Place, place_of
from dugong.shards.code import Stamp, digest_code, digest_source, same_data, stamp_data
from dugong.shards.folder import (
    State,
    VoteShards,
    digest_of,
    drop_others,
    file_name,
    read_state,
    refuse_votes,
    settle,
    unfinished,
    write_shard,
)
from dugong.sources.applying import ProgressCallback, Run, RunOptions, prepare_run, progress_callback, vote
from dugong.sources.checking import check_run
from dugong.sources.collecting import ApplyReport, Collector
from dugong.sources.decorator import Source
from dugong.sources.inputs import Deferred, Item, SequenceId
from dugong.sources.voting import SequenceVotes
from dugong.tasks import Layout
from dugong.types import MISSING, Int8Array
from dugong.votes import Fault, SourceInfo, Votes
from dugong.votes.flat import ScoreArray

SHARD_SIZE = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AppliedShards:
    """Votes in a folder, and what the run did.

    Attributes
    ----------
    report : tasks, votes and faults of all shards; seconds of this run alone
    ran : mapping of source name to the number of sequences that it ran on now
    n_elements : elements of the sequences that some source ran on now
    n_written, n_kept : shards that were written now, and that were there already
    """

    shards: VoteShards
    report: ApplyReport
    ran: Mapping[str, int]
    n_elements: int
    n_written: int
    n_kept: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Todo:
    """One sequence: where it belongs, what is stored, which sources must run."""

    shard: int
    item: Item
    stored: StoredShard | None
    needed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Work:
    """What is the same for all shards."""

    run: Run
    folder: Place
    digests: Mapping[str, str]
    settings: str
    shard_size: int
    restart: bool

    # --- what there is to do ----------------------------------------------------------------------------------------
    def todos(self) -> Iterator[_Todo]:
        stored = None
        for place, item in enumerate(self.run.items):
            if place % self.shard_size == 0 and not self.restart:
                stored = StoredShard.read(self.folder / file_name(place // self.shard_size), self.settings)
            known = stored if stored is not None and stored.is_of(item) else None
            needed = tuple(one.name for one in self.run.chosen if self._stale(one, item, known))
            yield _Todo(shard=place // self.shard_size, item=item, stored=known, needed=needed)

    def _stale(self, source: Source, item: Item, stored: StoredShard | None) -> bool:
        if stored is None or stored.digest(source.name, item.id) != self.digests[source.name]:
            return True
        faulty = any(fault.source == source.name for fault in stored.faults.get(item.id, ()))
        return faulty and self.run.whole.on_fault == "raise"

    # --- doing it ---------------------------------------------------------------------------------------------------
    def votes(self) -> Generator[tuple[_Todo, SequenceVotes]]:
        """All sequences in order, with the votes of all sources."""
        infos = tuple(source.info for source in self.run.every)
        for needed, group in groupby(self.todos(), key=lambda todo: todo.needed):
            for todo, fresh in self._vote(needed, group):
                yield todo, merge(infos, needed, fresh, todo.stored, todo.item.id)

    def _vote(self, needed: tuple[str, ...], group: Iterable[_Todo]) -> Iterator[tuple[_Todo, SequenceVotes | None]]:
        if not needed:
            yield from ((todo, None) for todo in group)
            return
        job = self.run.job(tuple(source for source in self.run.every if source.name in needed))
        waiting: deque[_Todo] = deque()  # the engine reads ahead of its results
        # Closed explicitly: an exception between two results must not leave workers to the garbage collector.
        with closing(vote(job, _noted(group, waiting), self.run.engine)) as results:
            for fresh in results:
                yield waiting.popleft(), fresh

    def finish(self, number: int, collector: Collector, todos: list[_Todo]) -> bool:
        """Write a shard if something about it is new; returns whether it was written."""
        path, stored = self.folder / file_name(number), todos[0].stored
        state: State = {
            "settings": self.settings,
            "data": digest_of([todo.item.id for todo in todos]),
            "sources": {source.name: self._digest(source.name, todos) for source in self.run.every},
            "files": dict(_stamps(todos)),
        }
        names = tuple(source.name for source in self.run.every)
        same = stored is not None and stored.state == state and stored.votes.source_names == names
        if same and not any(todo.needed for todo in todos):
            settle(path, state)
            return False
        write_shard(path, collector.votes(self.run.meaning), state)
        return True

    def _digest(self, source: str, todos: list[_Todo]) -> str | None:
        """The code that made all votes of a source in a shard; None if it was not the same code for all."""
        old = [todo for todo in todos if source not in todo.needed]
        found = {None if todo.stored is None else todo.stored.digest(source, todo.item.id) for todo in old}
        found |= {self.digests[source]} if len(old) < len(todos) else set()
        return found.pop() if len(found) == 1 else None


def _noted(group: Iterable[_Todo], waiting: deque[_Todo]) -> Iterator[Item]:
    for todo in group:
        waiting.append(todo)
        yield todo.item


def _stamps(todos: list[_Todo]) -> Iterator[tuple[str, list[Any]]]:
    """The stamps of the files behind sequences, by id, as JSON holds them; of a file that is unchanged, the old one."""
    for todo in todos:
        behind, old = _behind(todo.item), {} if todo.stored is None else todo.stored.stamps
        if behind is not None and (stamp := old.get(str(todo.item.id)) or stamp_data(behind)) is not None:
            yield str(todo.item.id), [*stamp]


def _behind(item: Item) -> Path | str | None:
    """The file or the text that a sequence is read from, if that can be told."""
    first = item.sequence.args[:1] if isinstance(item.sequence, Deferred) else ()
    return next((one for one in first if isinstance(one, Path | str)), None)


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Cuts the stream of sequences into shards."""

    work: _Work
    show: ProgressCallback
    report: ApplyReport | None = None
    ran: Counter[str] = field(default_factory=Counter)
    n_written: int = 0
    n_sequences: int = 0
    n_resting: int = 0
    n_elements: int = 0
    n_faults: int = 0
    files: list[str] = field(default_factory=list)

    def write(self, number: int, sequences: Iterable[tuple[_Todo, SequenceVotes]]) -> None:
        collector, todos = Collector(sources=tuple(source.info for source in self.work.run.every)), []
        for todo, votes in sequences:
            collector.add(votes)
            todos.append(todo)
            self._count(todo, votes)
        self.n_written += self.work.finish(number, collector, todos)
        self.files.append(file_name(number))
        done = collector.report(0.0)
        self.report = done if self.report is None else self.report + done

    def _count(self, todo: _Todo, votes: SequenceVotes) -> None:
        self.ran.update(todo.needed)
        self.n_sequences += 1
        self.n_resting += not todo.needed
        self.n_elements += votes.length if todo.needed else 0
        self.n_faults += len(votes.faults)
        progress = self.work.run.progress(
            done=self.n_sequences,
            sequence=todo.item.id,
            elements=self.n_elements,
            faults=self.n_faults,
            kept=self.n_resting,
        )
        self.show(progress)


def apply_shards(
    sources: Any,
    sequences: Any,
    folder: str | PathLike[str],
    *,
    shard_size: int = SHARD_SIZE,
    restart: bool = False,
    made_by: Any = None,
    progress: bool | ProgressCallback = True,
    engine: Engine | None = None,
    **options: Unpack[RunOptions],
) -> AppliedShards:
    """Let every source vote on every sequence, and keep what is done in a folder.

    Parameters
    ----------
    folder : where the votes go; a path, or a URL that fsspec knows
    shard_size : int
        Sequences per file. A crash costs at most the shards that were under way, and memory holds one of them.
    only : str or list of str, optional
        Run these sources alone; votes of the others stay as they are stored, and where there are none, they were not
        asked.
    restart : bool
        Run everything anew. Needed when data change under the same id that are neither files nor text.
    made_by : function or plain data, optional
        What makes the sequences. Where its code or the settings of a loader have changed, earlier votes are not kept.
    sources, sequences, progress, engine : as in `apply`
    **options : n_jobs, on_fault, n_classes, classes, background, spans, limit
        As in `apply`.
    """
    run = prepare_run(sources, sequences, engine=engine, **options)
    check_run(run.every, run.meaning, run.spans, run.whole.on_fault)
    if shard_size < 1:
        raise SourceError(f"shard_size= must be at least 1 sequence; found {shard_size!r}.")
    about = [run.meaning.n_classes, run.meaning.class_names, run.meaning.background, shard_size, run.spans]
    about += [one for one in (made_by, getattr(sequences, "settings", None)) if one is not None]
    work = _Work(
        run=run,
        folder=place_of(folder),
        digests={source.name: digest_source(source) for source in run.every},
        settings=digest_code(about),
        shard_size=shard_size,
        restart=restart,
    )
    with unfinished(work.folder), progress_callback(progress) as show, closing(work.votes()) as stream:
        refuse_votes(work.folder)
        writer = _Writer(work=work, show=show)
        for number, group in groupby(stream, key=lambda one: one[0].shard):
            writer.write(number, group)
        if writer.report is None:
            raise SourceError("there are no sequences to apply the sources to; check the loader, or limit=.")
        drop_others(work.folder, set(writer.files))
    return AppliedShards(
        shards=VoteShards.open(work.folder),
        report=replace(writer.report, seconds=run.seconds),
        ran={source.name: writer.ran[source.name] for source in run.every},
        n_elements=writer.n_elements,
        n_written=writer.n_written,
        n_kept=len(writer.files) - writer.n_written,
    )


# --- What an earlier run left of one shard: votes that need not be made again -----------------------------------------
# In: the file of a shard. Out: for every sequence and source, the stored votes if the code of the source is still the
# same. A file without a stamp, with one of other bytes, or with other settings is as good as none.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredShard:
    """The votes of an earlier run, by sequence id."""

    votes: Votes
    state: State
    places: Mapping[SequenceId, int]
    faults: Mapping[SequenceId, list[Fault]]
    stamps: Mapping[str, Stamp]

    @classmethod
    def read(cls, path: Place, settings: str) -> StoredShard | None:
        """Read a shard that was finished under the same settings."""
        state = read_state(path)
        if state is None or state.get("settings") != settings or not fits(state.get("sources"), dict[str, str | None]):
            return None
        votes = Votes.read(path)
        faults: dict[SequenceId, list[Fault]] = {}
        for fault in votes.faults:
            faults.setdefault(fault.sequence, []).append(fault)
        places = {one: place for place, one in enumerate(votes.sequence_ids.tolist())}
        files: Any = state.get("files")  # none in a shard of an earlier version
        known = files if fits(files, dict[str, tuple[int, int, str]]) else {}
        stamps = {name: Stamp(*one) for name, one in known.items()}
        return cls(votes=votes, state=state, places=places, faults=faults, stamps=stamps)

    def is_of(self, item: Item) -> bool:
        """Whether what is stored was voted on the file that a sequence has now, as far as that is known."""
        before, behind = self.stamps.get(str(item.id)), _behind(item)
        return before is None or behind is None or same_data(behind, before)

    def digest(self, source: str, sequence: SequenceId) -> str | None:
        """The code that made these votes; None if there are none."""
        found: str | None = self.state["sources"].get(source) if sequence in self.places else None
        return found

    def columns(self, sequence: SequenceId) -> dict[str, Int8Array]:
        """The votes on a sequence by source, of those whose code is known."""
        return {
            info.name: column[self._rows(info, sequence)]
            for info, column in zip(self.votes.sources, self.votes.columns, strict=True)
            if self.digest(info.name, sequence) is not None
        }

    def _rows(self, source: SourceInfo, sequence: SequenceId) -> slice:
        return self.votes.layout(source.resolution).rows(self.places[sequence])

    def sequence(self, sequence: SequenceId) -> SequenceVotes:
        """A sequence without any votes: its length, spans and clock, and what sources said beside their votes."""
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
            faults=tuple(self.faults.get(sequence, ())),
            seconds=(),
            pre_seconds={},
            scores={
                info.name: self.votes.scores[info.name][self._rows(info, sequence)]
                for info in self.votes.sources
                if info.name in self.votes.scores
            },
        )


def merge(
    every: tuple[SourceInfo, ...],
    ran: tuple[str, ...],
    fresh: SequenceVotes | None,
    stored: StoredShard | None,
    sequence: SequenceId,
) -> SequenceVotes:
    """The votes of all sources on one sequence: those that just ran, then stored ones, else "was not asked"."""
    old = None if stored is None or sequence not in stored.places else stored.sequence(sequence)
    base = old if fresh is None else fresh
    assert base is not None
    columns: dict[str, Int8Array] = {}
    scores: dict[str, ScoreArray] = {}
    faults: tuple[Fault, ...] = ()
    if stored is not None and old is not None:
        _check_length(base, old.length)
        resting = {info.name for info in every} - set(ran)
        columns = stored.columns(sequence)
        scores = {name: rows for name, rows in old.scores.items() if name in resting & columns.keys()}
        faults = tuple(fault for fault in old.faults if fault.source in resting)
    seconds: dict[str, float] = {}
    usage: dict[str, Mapping[str, float]] = {}
    if fresh is not None:
        columns |= dict(zip(ran, fresh.votes, strict=True))
        scores |= fresh.scores
        faults = (*fresh.faults, *faults)
        seconds = dict(zip(ran, fresh.seconds, strict=True))
        usage = dict(zip(ran, fresh.usage, strict=False))  # there is none where no source says what it used
    return replace(
        base,
        votes=tuple(columns[info.name] if info.name in columns else _not_asked(info, base) for info in every),
        faults=faults,
        seconds=tuple(seconds.get(info.name, 0.0) for info in every),
        usage=tuple(usage.get(info.name, {}) for info in every),
        scores=scores,
    )


def _not_asked(source: SourceInfo, sequence: SequenceVotes) -> Int8Array:
    layout = Layout.of(source.resolution, np.array([sequence.length]), sequence.spans)
    return np.full(layout.n_tasks, MISSING, dtype=np.int8)


def _check_length(now: SequenceVotes, before: int) -> None:
    if now.length != before:
        raise SourceError(
            f"sequence {now.id!r} must be what it was in an earlier run; it has {now.length:,} elements now, and had "
            f"{before:,}.\n  The data have changed under the same id: start anew with --restart (restart=True)."
        )

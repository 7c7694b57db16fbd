"""Sources meet sequences: `apply` runs all of them everywhere and returns the votes.

In: sources and sequences. Out: `Votes`, with faults as part of the result. The steps are small: check
everything that can be checked before the first sequence, stream the sequences through an engine, collect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, TypedDict, Unpack

from dugong.contract import typed
from dugong.engines import Engine, ShippingError, WorkerLostError, local_engine, ship
from dugong.exceptions import SourceError
from dugong.progress import Shown
from dugong.progress import progress_callback as callback_for
from dugong.sources.checking import (
    Meaning,
    check_rate,
    check_run,
    check_size,
    check_timeout,
    choose,
    in_elements_of,
    read_meaning,
    read_sources,
)
from dugong.sources.collecting import Applied, Collector
from dugong.sources.decorator import Source
from dugong.sources.inputs import Item, check_clock, items_of, last_words, pairs_of, rate_of
from dugong.sources.voting import Job, OnFault, SequenceVotes, vote_on_sequence
from dugong.types import ClassCount
from dugong.votes import Votes


# --- what every way of applying sources starts with: all that can be read and checked before the first sequence ------
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
    meaning : what their votes stand for
    whole : the job of those that run
    spans : all that were given
    items : the sequences, read lazily
    total : how many there are, if that is known
    engine : where it runs
    begin : on the clock
    """

    every: tuple[Source, ...]
    chosen: tuple[Source, ...]
    meaning: Meaning
    whole: Job
    spans: Mapping[str, Any]
    items: Iterator[Item]
    total: int | None
    engine: Engine
    begin: float

    def job(self, sources: tuple[Source, ...]) -> Job:
        """What workers need to know to let some sources vote."""
        return replace(self.whole, sources=sources, codings=self.meaning.codings(sources))

    @property
    def seconds(self) -> float:
        """Since the start."""
        return perf_counter() - self.begin

    def progress(self, **facts: Any) -> Progress:
        """How far it is: the total and the time, beside what the caller knows."""
        return Progress(total=self.total, seconds=self.seconds, **facts)


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
    every = read_sources(sources)
    chosen = choose(every, only)
    if rate is None:
        rate = rate_of(sequences, look_inside=any(getattr(one.resolution, "seconds", None) for one in every))
    rate = check_rate(rate)
    every, chosen = (tuple(in_elements_of(one, rate) for one in some) for some in (every, chosen))
    meaning = read_meaning(n_classes, classes, background)
    makers = {name: one for name, one in (spans or {}).items() if callable(one)}
    given = {name: one for name, one in (spans or {}).items() if name not in makers}
    check_run(chosen, meaning, spans or {}, on_fault)
    check_size(n_jobs, limit)
    check_timeout(timeout)
    pairs, total = pairs_of(sequences)
    codings = meaning.codings(chosen)
    job = Job(sources=chosen, codings=codings, on_fault=on_fault, span_makers=makers, rate=rate, timeout=timeout)
    return Run(
        every=every,
        chosen=chosen,
        meaning=meaning,
        whole=job,
        spans=spans or {},
        items=items_of(islice(pairs, limit), given),
        total=total if total is None or limit is None else min(total, limit),
        engine=engine or local_engine(n_jobs),
        begin=begin,
    )


# --- how far a run is: the values that callbacks get after every sequence --------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is done so far.

    Attributes
    ----------
    done, total : sequences; the total is None if it is not known
    sequence : the one that was finished last
    elements : elements of all sequences that were voted on now
    faults : faults so far
    seconds : since the start
    kept : finished sequences that were not voted on now, because an earlier run did it
    """

    done: int
    total: int | None
    sequence: str | int
    elements: int
    faults: int
    seconds: float
    kept: int = 0

    @property
    def rate(self) -> float:
        """Elements per second."""
        return self.elements / max(self.seconds, 1e-9)


ProgressCallback = Callable[[Progress], None]


def progress_callback(progress: bool | ProgressCallback) -> AbstractContextManager[ProgressCallback]:  # noqa: FBT001
    """The function to call after every sequence: the given one, a bar, or one that does nothing."""

    def show(now: Progress) -> Shown:
        return Shown(done=now.done, total=now.total, words=f"{now.faults} faults  " if now.faults else "")

    return callback_for(progress, "Applying sources", "sequences", show)


@typed(SourceError)
def apply(  # noqa: PLR0913 (a run has many sides, each named by the caller)
    sources: Any,
    sequences: Any,
    *,
    n_jobs: int = 1,
    progress: bool | ProgressCallback = True,
    on_fault: OnFault = "raise",
    n_classes: ClassCount | None = None,
    classes: Iterable[str] | None = None,
    background: str | int | None = None,
    spans: Mapping[str, Any] | None = None,
    limit: int | None = None,
    only: str | Iterable[str] | None = None,
    rate: float | None = None,
    timeout: float | None = None,
    engine: Engine | None = None,
) -> Votes:
    """Let every source vote on every sequence.

    Parameters
    ----------
    sources : list of Source
        Functions decorated with `source`.
    sequences : mapping, iterable of (id, sequence), or a loader
        Read lazily, one after the other; ids are words or whole numbers. A sequence has len() and integer and
        slice indexing. ``(id, Deferred(function, ...))`` is loaded where it is needed.
    n_jobs : int
        Processes; -1 for one per core. Functions of notebooks and closures work too.
    progress : bool or function
        A bar on the standard error if that is a terminal, or a function that gets `Progress` values.
    on_fault : {"raise", "abstain"}
        What happens when a source raises: stop with a `SourceError`, or abstain and keep a `Fault`. A source
        that returns something that is no vote always stops the run.
    n_classes : int, optional
        Number of classes; the number of `classes`, or 2, by default.
    classes : list of str, optional
        Names of the classes, which sources may then return.
    background : str or int, optional
        The class of elements about which no source speaks.
    spans : mapping, optional
        The pieces of every `Spans` resolution by its name: a mapping of sequence id to (start, stop) pairs,
        one list of pairs per sequence, or a function that finds them in a sequence.
    limit : int, optional
        Only the first so many sequences.
    only : str or list of str, optional
        Only the sources with these names.
    rate : float, optional
        Elements per second of every sequence: for windows in seconds, and for times beside the labels. Loaders that
        know it say so themselves; a sequence with another rate is an error.
    timeout : float, optional
        Seconds that a source may take on one sequence; longer is a fault of the source, which then abstains on all of
        the sequence or stops the run.
    engine : Engine, optional
        Where it runs, in place of `n_jobs` processes on this machine.

    Returns
    -------
    Votes
        Sequences and sources in the order in which they were given.

    Raises
    ------
    SourceError
        With the source, the sequence, the task and the original traceback.

    Examples
    --------
    >>> from dugong.sources import apply, source
    >>> @source
    ... def loud(sample):
    ...     return 1 if abs(sample) > 0.5 else 0
    >>> apply([loud], {"a": [0.1, 0.9], "b": [0.7]}).column("loud").tolist()
    [0, 1, 1]
    """
    return apply_with_report(**locals()).votes  # all arguments as they are


@typed(SourceError)
def apply_with_report(
    sources: Any,
    sequences: Any,
    *,
    progress: bool | ProgressCallback = True,
    engine: Engine | None = None,
    **options: Unpack[RunOptions],
) -> Applied:
    """Do what `apply` does, and report the time and the faults of every source beside the votes."""
    run = prepare_run(sources, sequences, engine=engine, **options)
    collector = Collector(sources=tuple(source.info for source in run.chosen))
    stream = vote(run.whole, run.items, run.engine)
    # Closed explicitly: an exception between two results must not leave workers to the garbage collector.
    with last_words(), progress_callback(progress) as report, closing(stream):
        for result in stream:
            collector.add(result)
            report(
                run.progress(
                    done=collector.n_sequences,
                    sequence=result.id,
                    elements=collector.n_elements,
                    faults=len(collector.faults),
                )
            )
    return Applied(votes=collector.votes(run.meaning), report=collector.report(run.seconds))


def vote(job: Job, items: Iterable[Item], engine: Engine) -> Generator[SequenceVotes]:
    """Stream the votes, one sequence at a time, in order."""
    rate = job.rate
    try:
        for result in engine.map(partial(vote_on_sequence, job), items, describe=str):
            if result.clock is not None:
                rate = rate or result.clock[1]
                check_clock(result.clock, rate, result.id)
            yield result
    except ShippingError as error:
        raise _not_shippable(job, error) from error
    except WorkerLostError as lost:
        raise SourceError(
            f"a worker process ended with {lost.ending} while it worked on {lost.item}"
            f"{f' ({lost.step})' if lost.step else ''}.\n"
            "  A source that ends the interpreter does this, as do a crash in native code and a lack of "
            "memory. Run it alone on that sequence, with only= and n_jobs=1, or use fewer processes."
        ) from lost


def _not_shippable(job: Job, error: ShippingError) -> SourceError:
    """Name the source that cannot travel, if it is one."""
    what = str(error)
    for source in job.sources:
        try:
            ship(source)
        except ShippingError as reason:
            what = f"source {source.name!r} cannot be sent to another process: {reason}"
            break
    return SourceError(
        f"{what}\n  Open files, connections and models inside of the function or in pre=, or use n_jobs=1."
    )

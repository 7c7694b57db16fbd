"""The votes of all sources on one sequence: the unit of work that engines pass around.

In: a `Job` (what is the same for all sequences) and an `Item` (one sequence). Out: `SequenceVotes`. Python per task is
one call of the source and nothing else: the loops below run inside `map`, and a vectorised source is called once.
"""

from __future__ import annotations

import re
import textwrap
import traceback
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from dugong.engines import mark
from dugong.exceptions import DugongError, SourceError
from dugong.sources.coding import ScoreCoding, VoteCoding, WrongVote, hint_for, read_soft, short
from dugong.sources.decorator import Source
from dugong.sources.inputs import (
    Item,
    SequenceId,
    SpanPairs,
    TaskBounds,
    WindowView,
    by_position,
    clock_of,
    guarded,
    is_interrupt,
    length_of,
    loaded,
    padded,
    sequence_spans,
)
from dugong.sources.loaders.arrow import Rows
from dugong.tasks import Element, Layout, Resolution, Sequence, SpanTable, Window
from dugong.types import MISSING, AnyArray, Int8Array
from dugong.votes import Fault
from dugong.votes.flat import ScoreArray

OnFault = Literal["raise", "abstain"]
_HOME = Path(__file__).parent
_OWN_FILES = {str(path) for path in _HOME.glob("*.py")}
_NUMBER_AS_ROWS = re.compile(r"'(float|int)' (object (has no attribute|is not (iterable|subscriptable))|has no len)")
_KEEP_ROWS = (
    "  A cell of an element is one number. A rule about many rows wants a window, or elements that keep their rows:\n"
    '  reduce="none" in a project.toml, reduce=None in dg.loaders.csv_folder.\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is the same for all sequences.

    Attributes
    ----------
    codings : tuple of VoteCoding or ScoreCoding, one per source
    span_makers : functions that find the spans of a sequence
    rate : elements per second of all sequences, where that is known
    timeout : seconds that a source may take on one sequence
    """

    sources: tuple[Source, ...]
    codings: tuple[VoteCoding | ScoreCoding, ...]
    on_fault: OnFault = "raise"
    span_makers: Mapping[str, Callable[[Any], SpanPairs]] = field(default_factory=dict)
    rate: float | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceVotes:
    """All votes on one sequence.

    Attributes
    ----------
    id : str or int
    votes : tuple of int8 arrays, one per source
    spans : mapping of name to SpanTable of this one sequence
    clock : (start in seconds, elements per second) or None
        Of sequences that a loader has put on a time grid.
    seconds : time in each source, without its preprocessing
    pre_seconds : mapping of step name to seconds
    usage : what a source says that it used: calls, cached answers and tokens of a judge
    scores : mapping of source name to (n_tasks, K) float32, of soft sources
    """

    id: SequenceId
    length: int
    votes: tuple[Int8Array, ...]
    spans: Mapping[str, SpanTable]
    clock: tuple[float, float] | None
    faults: tuple[Fault, ...]
    seconds: tuple[float, ...]
    pre_seconds: Mapping[str, float]
    usage: tuple[Mapping[str, float], ...] = ()
    scores: Mapping[str, ScoreArray] = field(default_factory=dict)


def vote_on_sequence(job: Job, item: Item) -> SequenceVotes:
    """Run every source on one sequence."""
    mark("loading")
    sequence = loaded(item.sequence, item.id)
    length = length_of(sequence, item.id)
    mark("finding spans")
    spans = sequence_spans(job.span_makers, item.spans, sequence, length, item.id)
    desk = _Desk(item.id, length, spans, Preprocessed(sequence), job.on_fault)
    votes, seconds, scores = [], [], {}
    for source, coding in zip(job.sources, job.codings, strict=True):
        begin, before = perf_counter(), sum(desk.prepared.seconds.values())
        found = _Turn(desk, source, coding, desk.bounds(source.resolution)).vote(job.timeout)
        if isinstance(coding, ScoreCoding):
            scores[source.name], found = read_soft(found, coding)
        votes.append(found)
        preparing = sum(desk.prepared.seconds.values()) - before
        seconds.append(perf_counter() - begin - preparing)
    return SequenceVotes(
        id=item.id,
        length=length,
        votes=tuple(votes),
        spans=spans,
        clock=clock_of(sequence, item.id, job.rate),
        faults=tuple(desk.faults),
        seconds=tuple(seconds),
        pre_seconds=desk.prepared.seconds,
        usage=tuple(_usage(source) for source in job.sources),
        scores=scores,
    )


def _usage(source: Source) -> Mapping[str, float]:
    take: Callable[[], Mapping[str, float]] | None = getattr(source.function, "take_usage", None)
    return {} if take is None else take()


@dataclass(slots=True)
class _Desk:
    """What the sources share while one sequence is on the desk."""

    id: SequenceId
    length: int
    spans: Mapping[str, SpanTable]
    prepared: Preprocessed
    on_fault: OnFault
    faults: list[Fault] = field(default_factory=list)
    _bounds: dict[Resolution, TaskBounds] = field(default_factory=dict)

    def bounds(self, resolution: Resolution) -> TaskBounds:
        if resolution not in self._bounds:
            starts, stops = Layout.of(resolution, np.array([self.length]), self.spans).bounds()
            full = stops - starts >= (resolution.size if isinstance(resolution, Window) else 0)
            self._bounds[resolution] = TaskBounds(starts=starts, stops=stops, full=full)
        return self._bounds[resolution]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One source at the desk, what it may return, and the tasks that it is asked about."""

    desk: _Desk
    source: Source
    coding: VoteCoding | ScoreCoding
    bounds: TaskBounds

    def vote(self, timeout: float | None) -> AnyArray:
        """Votes, or scores of a soft source; abstentions where it failed as a whole."""
        try:
            with guarded(timeout):
                return self._vote() if len(self.bounds) else np.zeros(0, dtype=np.int8)
        except WrongVote as wrong:
            raise self._wrong_vote(wrong) from None
        except BaseException as error:
            if isinstance(error, DugongError) or is_interrupt(error):
                raise
            # What broke out of the loop over tasks (the time was up, or no `Exception`, such as CancelledError).
            return self._abstain(error)

    def _vote(self) -> AnyArray:
        try:
            sequence = self.desk.prepared.get(self.source.pre)
        except (Exception, SystemExit) as error:  # becomes a fault or a SourceError
            return self._abstain(error)
        mark(f"source {self.source.name!r}")
        votes = self._at_once(sequence) if self.source.vectorized else self.coding.encode(self._by_task(sequence))
        if self.source.short != "skip" or self.bounds.full.all():
            return votes
        n_full = int(self.bounds.full.sum())  # a short window, which is always the last task, was not asked about
        unasked = np.full((len(self.bounds) - n_full, *votes.shape[1:]), MISSING, dtype=votes.dtype)
        return np.concatenate([votes[:n_full], unasked])

    def _task_getter(self, sequence: Any) -> Callable[[int], Any]:
        """The function from the place of a task to what the source reads."""
        resolution = self.source.resolution
        if isinstance(resolution, Sequence):
            return lambda _: sequence
        self._check_prepared(sequence)
        positions = by_position(sequence)
        if isinstance(resolution, Element):
            getter: Callable[[int], Any] = positions.row if isinstance(positions, Rows) else positions.__getitem__
            return getter
        starts, stops, full = (one.tolist() for one in (self.bounds.starts, self.bounds.stops, self.bounds.full))
        length = self.desk.length

        def window(task: int) -> WindowView:
            return WindowView(positions, starts[task], stops[task], task, length, full=full[task])

        if self.source.short != "pad" or all(full):
            return window
        size = resolution.size  # type: ignore[union-attr]  # only windows can be short
        return lambda task: window(task) if full[task] else padded(window(task), size)

    def _check_prepared(self, sequence: Any) -> None:
        if not self.source.pre:
            return
        step, length = step_name(self.source.pre[-1]), self.desk.length
        found = length_of(sequence, self.desk.id, what=f"what pre=[..., {step}] returns")
        if found != length:
            raise SourceError(
                f"preprocessing must keep the number of elements: sequence {self.desk.id!r} has {length}, "
                f"and {step!r} (pre= of source {self.source.name!r}) returned {found}."
            )

    def _by_task(self, sequence: Any) -> list[Any]:
        """Call the source on its tasks, one after the other.

        What `extend` has taken before an exception stays, so the place of the fault is known.
        """
        function, get = self.source.function, self._task_getter(sequence)
        n_tasks = int(self.bounds.full.sum()) if self.source.short == "skip" else len(self.bounds)
        values: list[Any] = []
        while len(values) < n_tasks:
            try:
                values.extend(map(function, map(get, range(len(values), n_tasks))))
                if len(values) < n_tasks:  # the source let a StopIteration out, which looks like the end
                    values.append(function(get(len(values))))
            except (Exception, SystemExit) as error:  # becomes a fault or a SourceError
                self._fault(len(values), error)
                values.append(None)
        return values

    def _at_once(self, sequence: Any) -> AnyArray:
        function, bounds = self.source.function, self.bounds
        try:
            returned = function(sequence, tasks=bounds) if self.source.wants_tasks else function(sequence)
        except (Exception, SystemExit) as error:  # becomes a fault or a SourceError
            return self._abstain(error)
        if isinstance(returned, np.ma.MaskedArray):
            returned = returned.filled(0)
        # Lists stay lists: an array of mixed values would turn numbers into words and None into an object.
        shape = (len(returned),) if isinstance(returned, list | tuple) else np.shape(returned)
        if shape[:1] != (len(bounds),) or (len(shape) > 1 and not self.source.soft):
            raise self._wrong_number(shape)
        if isinstance(returned, list | tuple):
            return self.coding.encode(list(returned))
        return self.coding.encode_array(np.asarray(returned))

    # --- what went wrong -----------------------------------------------------------------------------------------
    def _abstain(self, error: BaseException) -> Int8Array:
        """Abstain on the whole sequence, or stop the run."""
        self._fault(None, error)
        return np.zeros(len(self.bounds), dtype=np.int8)

    def _fault(self, task: int | None, error: BaseException) -> None:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in _OWN_FILES:
            frames = frames.tb_next  # from the first frame on that is not ours
        text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
        last = "".join(traceback.format_exception_only(error)).strip()
        if self.desk.on_fault == "raise":
            one_number = isinstance(self.source.resolution, Element) and _NUMBER_AS_ROWS.search(last)
            raise SourceError(
                f"source {self.source.name!r} raised {last} on {self._place(task)}.\n"
                '  Correct it, or let it abstain there: on_fault="abstain", in a project.toml on_fault = "abstain".\n'
                f"{_KEEP_ROWS if one_number else ''}{textwrap.indent(text, '  ')}"
            ) from error
        fault = Fault(source=self.source.name, sequence=self.desk.id, task=task, error=last, traceback=text)
        self.desk.faults.append(fault)

    def _place(self, task: int | None) -> str:
        """Where something happened, in words: ``element 17 of sequence 'v3'``."""
        resolution, where = self.source.resolution, f"sequence {self.desk.id!r}"
        if task is None or isinstance(resolution, Sequence):
            return where
        if isinstance(resolution, Element):
            return f"element {task} of {where}"
        start, stop = int(self.bounds.starts[task]), int(self.bounds.stops[task])
        return f"{resolution.name} {task} (elements {start} to {stop - 1}) of {where}"

    def _wrong_vote(self, wrong: WrongVote) -> SourceError:
        """The error for a returned value that is no vote."""
        hint = hint_for(wrong.value, vectorized=self.source.vectorized)
        if self.source.soft:
            hint = "Squash unbounded scores first: 1 / (1 + exp(-score)); any increasing function of them will do."
        others = f" and {wrong.count - 1} more such values" if wrong.count > 1 else ""
        return SourceError(
            f"source {self.source.name!r} must return {self.coding.allowed}; found {short(wrong.value)} on "
            f"{self._place(wrong.task)}{others}.\n  {hint}"
        )

    def _wrong_number(self, shape: tuple[int, ...]) -> SourceError:
        """The error for a vectorised source that did not return one vote per task."""
        found = f"{shape[0]} votes" if len(shape) == 1 else f"something of shape {shape}"
        resolution = self.source.resolution
        kind = "elements" if isinstance(resolution, Element) else f"tasks ({resolution.name})"
        return SourceError(
            f"source {self.source.name!r} is vectorised and must return one vote for each of the {len(self.bounds)} "
            f"{kind} of sequence {self.desk.id!r}; found {found}."
        )


# --- Shared preprocessing: every step of every ``pre=[...]`` runs once per sequence. ----------------------------------
# In: one sequence. Out: what each chain of functions makes of it. Chains that begin alike share their beginning, so a
# detector that ten sources read runs once. Nothing is kept from one sequence to the next.

Step = Callable[[Any], Any]


class Preprocessed:
    """The results of preprocessing one sequence, made when first asked for.

    Attributes
    ----------
    seconds : dict of step name to seconds
    """

    def __init__(self, sequence: Any) -> None:
        self._outcomes: dict[tuple[Hashable, ...], tuple[Any, BaseException | None]] = {(): (sequence, None)}
        self.seconds: dict[str, float] = {}

    def get(self, chain: tuple[Step, ...]) -> Any:
        """What the steps make of the sequence, from left to right; raises again what a step has raised."""
        key = tuple(map(_identity, chain))
        if key not in self._outcomes:
            before = self.get(chain[:-1])
            self._outcomes[key] = self._run(chain[-1], before)
        made, error = self._outcomes[key]
        if error is not None:
            raise error
        return made

    def _run(self, step: Step, value: Any) -> tuple[Any, BaseException | None]:
        name = step_name(step)
        mark(f"preprocessing {name}")
        begin = perf_counter()
        try:
            return step(value), None
        except (Exception, SystemExit) as error:  # kept: every source that needs it has a fault
            return None, error
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin


def _identity(step: Step) -> Hashable:
    """Functions and bound methods stand for themselves; what has no hash stands for its identity."""
    try:
        hash(step)
    except TypeError:
        return ("object", id(step))
    return step


def step_name(step: Step) -> str:
    """How a preprocessing function is called in messages and reports."""
    return str(getattr(step, "__name__", type(step).__name__))

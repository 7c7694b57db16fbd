"""What comes in: sequences by id, in any form, the spans that belong to them, and what a source sees of them.

In: a mapping, an iterable of (id, sequence), or a loader. Out: a lazy stream of pairs. A `Deferred` sequence
is loaded where it is needed, in the worker, so that large files never pass through the main process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from dugong.engines import in_worker
from dugong.exceptions import DugongError, SourceError, TaskError
from dugong.tasks import SpanTable
from dugong.types import BoolArray, IntArray

SpanPairs = Iterable[tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """A sequence that is loaded when it is needed: ``Deferred(read_video, "match1.mp4")``."""

    function: Callable[..., Any]
    args: tuple[Any, ...]

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "args", args)

    def load(self) -> Any:
        """Load the sequence."""
        return self.function(*self.args)

    def __reduce__(self) -> tuple[Any, ...]:
        return Deferred, (self.function, *self.args)


def pairs_of(sequences: Any) -> tuple[Iterator[tuple[Any, Any]], int | None]:
    """A lazy stream of (id, sequence), and how many there are if that is known."""
    if hasattr(sequences, "iloc") or isinstance(sequences, str | bytes | np.ndarray):
        raise SourceError(
            "sequences must be a mapping of id to sequence, or (id, sequence) pairs; "
            f"found {type(sequences).__name__}.\n"
            "  If it is one single sequence, pass {'my id': sequence}."
        )
    pairs = hasattr(sequences, "deferred") or hasattr(sequences, "items")
    if isinstance(sequences, type) or (not pairs and not isinstance(sequences, Iterable)):
        raise SourceError(
            f"sequences must be a mapping of id to sequence, or (id, sequence) pairs; found {sequences!r}."
        )
    total = len(sequences) if hasattr(sequences, "__len__") else None
    if hasattr(sequences, "deferred"):
        return iter(sequences.deferred()), total
    if hasattr(sequences, "items"):
        return iter(sequences.items()), total
    return _checked_pairs(sequences), total


def _checked_pairs(sequences: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for place, pair in enumerate(sequences):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise SourceError(
                f"sequences must be (id, sequence) pairs; found {type(pair).__name__} at place {place}.\n"
                "  For a list without ids, pass enumerate(sequences)."
            )
        yield pair


def loaded(sequence: Any, sequence_id: Any) -> Any:
    """The sequence itself; a deferred one is loaded now."""
    if not isinstance(sequence, Deferred):
        return sequence
    try:
        return sequence.load()
    except BaseException as error:
        if isinstance(error, DugongError) or is_interrupt(error):
            raise
        raise SourceError(
            f"sequence {sequence_id!r} cannot be loaded: {type(error).__name__}: {error}\n"
            "  Correct it, or leave it out: there are no votes on a sequence of unknown length."
        ) from error


def length_of(sequence: Any, sequence_id: Any, what: str = "a sequence") -> int:
    """Number of elements, or an error that says what a sequence is."""
    if hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__") and not isinstance(sequence, Mapping):
        try:
            return len(sequence)
        except TypeError:  # a numpy scalar array has a len() that raises
            pass
    raise SourceError(
        f"{what} must have len() and integer and slice indexing; sequence {sequence_id!r} is "
        f"{type(sequence).__name__}.\n  Turn it into a list or an array, or give a Deferred that loads one."
    )


Clock = tuple[float, float]


def clock_of(sequence: Any, sequence_id: Any, rate: float | None = None) -> Clock | None:
    """Start in seconds and elements per second of a sequence that has a `clock`; `rate` is what all must have."""
    clock = getattr(sequence, "clock", None)
    if not isinstance(clock, tuple) or len(clock) != 2:
        return None if rate is None else (0.0, rate)
    if rate is not None:
        check_clock(clock, rate, sequence_id)
    return float(clock[0]), float(clock[1])


def check_clock(clock: Clock, rate: float, sequence_id: Any) -> None:
    """Refuse a sequence whose rate is not that of the others."""
    if abs(clock[1] - rate) > 1e-6 * rate:
        raise SourceError(
            f"all sequences must have one rate, because windows count elements; the others have {rate:g} elements per "
            f"second, and sequence {sequence_id!r} has {clock[1]:g}.\n"
            '  Let the loader resample them, as in csv_folder(..., time="t", every="1s").'
        )


def rate_of(sequences: Any, *, look_inside: bool) -> float | None:
    """Elements per second, if the loader says so, or (where that is worth loading one) the first sequence."""
    if hasattr(sequences, "rate"):
        return None if sequences.rate is None else float(sequences.rate)
    if not look_inside or not isinstance(sequences, Mapping) or not sequences:
        return None
    first = next(iter(sequences))
    clock = clock_of(loaded(sequences[first], first), first)
    return None if clock is None else clock[1]


def sequence_spans(
    makers: Mapping[str, Callable[[Any], SpanPairs]],
    given: Mapping[str, SpanPairs],
    sequence: Any,
    length: int,
    sequence_id: Any,
) -> dict[str, SpanTable]:
    """The spans of one sequence, found or given, and checked."""
    pieces = dict(given)
    for name, maker in makers.items():
        try:
            pieces[name] = maker(sequence)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise SourceError(
                f"the function that finds the spans {name!r} raised {type(error).__name__}: {error} "
                f"on sequence {sequence_id!r}."
            ) from error
    tables = {}
    for name, pairs in pieces.items():
        try:
            tables[name] = SpanTable.from_lists([[(int(start), int(stop)) for start, stop in pairs]])
            tables[name].check(np.array([length]), name)
        except (TypeError, ValueError) as error:
            raise TaskError(
                f"the spans {name!r} of sequence {sequence_id!r} must be (start, stop) pairs of elements.\n  {error}"
            ) from error
    return tables


# --- one sequence as an item of work: a checked id, the sequence or how to load it, and its spans --------------------
SequenceId = str | int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """One sequence (or how to load it), its id, and the spans that are given for it."""

    id: SequenceId
    sequence: Any
    spans: Mapping[str, SpanPairs] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"sequence {self.id!r}"


def items_of(pairs: Iterable[tuple[Any, Any]], spans: Mapping[str, Any]) -> Iterator[Item]:
    """Check ids and add the spans that are given, one item at a time."""
    seen: set[SequenceId] = set()
    kind: type | None = None
    for place, (given, sequence) in enumerate(pairs):
        one = _plain_id(given, place)
        if one in seen:
            raise SourceError(f"sequence ids must be unique; found {one!r} a second time at place {place}.")
        kind = kind or type(one)
        if type(one) is not kind:
            raise SourceError(
                f"sequence ids must be all words or all whole numbers; found {one!r} at place {place} after "
                f"others that are {kind.__name__}."
            )
        seen.add(one)
        yield Item(id=one, sequence=sequence, spans={name: _of(spans[name], name, one, place) for name in spans})


def _plain_id(given: Any, place: int) -> SequenceId:
    if isinstance(given, str):
        return str(given)
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and -(2**63) <= given < 2**63:
        return int(given)
    raise SourceError(
        f"a sequence id must be a word or a whole number; found {given!r} at place {place}.\n  Use str(...) of it."
    )


def _of(spans: Any, name: str, sequence_id: SequenceId, place: int) -> SpanPairs:
    """The spans of one sequence: by id from a mapping, by place from a table or list."""
    try:
        if isinstance(spans, Mapping):
            return list(spans[sequence_id])
        if isinstance(spans, SpanTable):
            rows = slice(int(spans.offsets[place]), int(spans.offsets[place + 1]))
            return list(zip(spans.starts[rows].tolist(), spans.stops[rows].tolist(), strict=True))
        return list(spans[place])
    except (LookupError, TypeError):
        raise TaskError(
            f"spans {name!r} must be given for every sequence; found none for {sequence_id!r}, at place {place}.\n"
            "  Give a mapping of id to (start, stop) pairs, one list per sequence, or a function."
        ) from None


# --- what a source sees of a sequence: a window with its place, or the bounds of all tasks ---------------------------
class WindowView:
    """The piece of a sequence that one window or span covers.

    Attributes
    ----------
    elements : ``sequence[start:stop]``
        Made when first asked for.
    start, stop : its first element and the one after its last, counted in the sequence
    index : its place among the windows or spans of the sequence
    length : elements of the whole sequence
    full : whether it has all its elements; the last window of a sequence may be short
    """

    __slots__ = ("_elements", "_sequence", "full", "index", "length", "start", "stop")

    def __init__(self, sequence: Any, start: int, stop: int, index: int, length: int, *, full: bool = True) -> None:
        self._sequence = sequence
        self._elements: Any = None
        self.start = start
        self.stop = stop
        self.index = index
        self.length = length
        self.full = full

    @property
    def elements(self) -> Any:
        """The elements themselves, in the type that slicing the sequence gives."""
        if self._elements is None:
            self._elements = self._sequence[self.start : self.stop]
        return self._elements

    def __getattr__(self, name: str) -> Any:
        """A named column where the sequence has such: ``window.force`` is ``window["force"]``."""
        if name == "elements":  # slicing raised an AttributeError, which would be hidden by one about the window
            return self._sequence[self.start : self.stop]
        if not name.startswith("_"):  # else a copy or a pickle asks, before anything is set
            columns = getattr(getattr(self.elements, "rows", self.elements), "columns", ())
            if isinstance(columns, Iterable) and name in columns:
                return self.elements[name]
        raise AttributeError(f"a window has no {name!r}")

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Any]:
        return map(by_position(self.elements).__getitem__, range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """An element, a slice of them, or a named column where the sequence has such."""
        return self.elements[key]

    def __repr__(self) -> str:
        return f"WindowView({self.index}: elements {self.start} to {self.stop} of {self.length})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskBounds:
    """First and one-past-last element of every task of one sequence, and whether it has all its elements."""

    starts: IntArray
    stops: IntArray
    full: BoolArray

    def __len__(self) -> int:
        return len(self.starts)


def padded(window: WindowView, size: int) -> WindowView:
    """A short window with its last element repeated until it has `size` elements."""
    found, short = window.elements, len(window)
    places = [*range(short), *([short - 1] * (size - short))]
    if hasattr(found, "take_rows"):
        elements = found.take_rows(places)
    elif hasattr(found, "iloc") or isinstance(found, np.ndarray):
        elements = by_position(found)[places]
    else:
        elements = [found[place] for place in places]
    return WindowView(_Only(elements), window.start, window.start + size, window.index, window.length, full=False)


class _Only:
    """Elements that are the answer to any slice: those of a padded window."""

    def __init__(self, elements: Any) -> None:
        self._all = elements

    def __getitem__(self, _: slice) -> Any:
        return self._all


def by_position(sequence: Any) -> Any:
    """The object that is indexed by position: pandas keeps it at `iloc`, everything else is it."""
    return getattr(sequence, "iloc", sequence)


# --- What keeps a run alive beside a source that misbehaves: it may raise, exit, fork, or never come back -------------
# A source is the user's own code, so this is no sandbox: it turns accidents into faults that name the source.
GRACE = 5.0  # seconds beyond its limit after which a source that did not notice it is ended with its worker


class TooSlow(BaseException):
    """A source took longer on a sequence than it may; no `Exception`, so that the source's own handlers let it pass."""


def is_interrupt(error: BaseException) -> bool:
    """Whether it is a Ctrl-C of the user; whatever else may be raised is a fault of the source.

    Workers ignore the signal of Ctrl-C, so there a KeyboardInterrupt is the source's own.
    """
    return isinstance(error, KeyboardInterrupt) and not in_worker()


@contextlib.contextmanager
def guarded(timeout: float | None = None) -> Iterator[None]:
    """Run a source's code: a fork ends here, time is limited, and ``os._exit`` becomes SystemExit.

    The latter only where nobody else would notice the end of the process: that of a worker is reported by its parent.
    The limit needs the signals of a main thread (not on Windows, not in threads of a cluster's worker). Native code
    notices no signals: a worker is ended then, but a process that is the only one waits.
    """
    home, leave = os.getpid(), os._exit

    def exit_here(status: int) -> NoReturn:
        if os.getpid() == home:
            raise SystemExit(f"os._exit({status})")
        leave(status)

    if not in_worker():
        os._exit = exit_here
    try:
        with _limited(timeout):
            yield
    finally:
        os._exit = leave
        if os.getpid() != home:
            leave(0)  # a copy of this process that the source forked: the job must not run twice


@contextlib.contextmanager
def _limited(timeout: float | None) -> Iterator[None]:
    if timeout is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_signal: int, frame: FrameType | None) -> None:
        # Never inside of the guard itself, where the alarm is set and put off: it would go on ringing elsewhere.
        if frame is None or frame.f_code.co_filename not in (__file__, contextlib.__file__):
            raise TooSlow(f"it took longer than {timeout:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        # Rings again every second: a handler of the source itself may have caught the first one.
        signal.setitimer(signal.ITIMER_REAL, timeout, 1.0)
        if in_worker():  # a loop of native code is out of reach of signals; the parent says where it was
            faulthandler.dump_traceback_later(timeout + GRACE, exit=True)
        yield
    finally:
        if in_worker():
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def last_words() -> Iterator[None]:
    """Say where native code crashed (a segmentation fault), if nobody else does."""
    already = faulthandler.is_enabled()
    if not already:
        with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):  # a standard error that is no file
            faulthandler.enable(sys.stderr)
    try:
        yield
    finally:
        if not already:
            faulthandler.disable()

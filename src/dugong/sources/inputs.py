"""What comes in: sequences by id, in any form, and the spans that belong to them.

In: a mapping, an iterable of (id, sequence), or a loader. Out: a lazy stream of pairs. A `Deferred` sequence
is loaded where it is needed, in the worker, so that large files never pass through the main process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import DugongError, SourceError, TaskError
from dugong.sources.guarding import is_interrupt
from dugong.tasks import SpanTable

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
    if isinstance(sequences, Mapping) or hasattr(sequences, "items"):
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

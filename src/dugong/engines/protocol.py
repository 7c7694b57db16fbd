"""Where work runs, as one small promise: results come back in the order of the items.

In: a function and an iterable of items. Out: an iterator of results. An engine reads its items lazily, keeps
only a few of them under way, and never loses an exception: what the function raised is raised again at its
own place. `reduce_sums` adds results up on the workers, in one fixed order, so that every engine gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import Generic, Protocol, TypeVar

from dugong.engines.marks import mark
from dugong.exceptions import DugongError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
FAN_IN = 4


class Engine(Protocol):
    """Anything that maps a function over items and keeps their order."""

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order; `describe` names an item in errors."""
        ...


class ShippingError(DugongError, TypeError):
    """Something cannot be sent to another process."""


class WorkerLostError(DugongError, RuntimeError):
    """A worker process ended before it answered.

    Attributes
    ----------
    item : str
        What it was working on, in the words of `describe`.
    step : str
        The last `mark` that it left; empty if there was none.
    ending : str
        How the process ended, such as ``"exit code 1"`` or ``"signal SIGKILL"``.
    """

    def __init__(self, *, item: str, step: str, ending: str) -> None:
        doing = f" ({step})" if step else ""
        super().__init__(f"a worker process ended with {ending} while it worked on {item}{doing}.")
        self.item = item
        self.step = step
        self.ending = ending


@dataclass(frozen=True, slots=True)
class _SumOfRun(Generic[ItemT, ResultT]):
    """Adds up one run of items, in order; holds one result beside the sum."""

    function: Callable[[ItemT], ResultT]
    describe: Callable[[ItemT], str]

    def __call__(self, run: tuple[ItemT, ...]) -> ResultT:
        return _add_up(map(self._one, run))

    def _one(self, item: ItemT) -> ResultT:
        mark(self.describe(item))  # if the worker dies, this says which one of the run it was
        return self.function(item)


def reduce_sums(
    engine: Engine,
    function: Callable[[ItemT], ResultT],
    items: Iterable[ItemT],
    *,
    describe: Callable[[ItemT], str] = repr,
    progress: Callable[[int], None] | None = None,
) -> ResultT:
    """The sum of ``function(item)`` over all items; there must be at least one.

    `describe` names an item in errors; `progress` is told how many runs of `FAN_IN` items are done.
    """

    def describe_run(run: tuple[ItemT, ...]) -> str:
        return " or ".join(map(describe, run))

    sums = engine.map(_SumOfRun(function, describe), _runs(items), describe=describe_run)
    return _add_up(sums if progress is None else _told(sums, progress))


def _told(sums: Iterable[ResultT], progress: Callable[[int], None]) -> Iterator[ResultT]:
    for number, one in enumerate(sums, start=1):
        yield one
        progress(number)


def _runs(items: Iterable[ItemT]) -> Iterator[tuple[ItemT, ...]]:
    stream = iter(items)
    while run := tuple(islice(stream, FAN_IN)):
        yield run


def _add_up(values: Iterable[ResultT]) -> ResultT:
    return reduce(add, values)

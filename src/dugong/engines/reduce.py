"""Sums over many items: a tree of fixed shape, so that every engine gives the same bits.

In: an engine, a function from an item to something with ``+``, and items. Out: the sum. Items are taken in runs of
`FAN_IN`; a worker adds up its run, and only the sums of runs come back. The shape of the tree depends on the items
alone, never on the engine or on who is quicker, so that sums of floating-point numbers are identical everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import Generic

from dugong.engines.marks import mark
from dugong.engines.protocol import Engine, ItemT, ResultT

FAN_IN = 4


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

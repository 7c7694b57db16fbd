"""Where work runs, as one small promise: results come back in the order of the items.

In: a function and an iterable of items. Out: an iterator of results. An engine reads its items lazily, keeps
only a few of them under way, and never loses an exception: what the function raised is raised again at its
own place. `reduce_sums` adds results up on the workers, in one fixed order, so that every engine gives the same bits.
"""

from __future__ import annotations

import mmap
import pickle
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from itertools import islice
from operator import add
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from dugong.exceptions import DugongError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Work = Callable[[ItemT], ResultT]
Naming = Callable[[ItemT], str]  # an item in words
FAN_IN = 4


class Engine(Protocol):
    """Anything that maps a function over items and keeps their order."""

    def map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], *, describe: Naming[ItemT] = repr
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order; `describe` names an item in errors."""
        ...


class ShippingError(DugongError, TypeError):
    """Something cannot be sent to another process."""


class WorkerLostError(DugongError, RuntimeError):
    """A worker process ended before it answered.

    Attributes
    ----------
    item : what it was working on, in the words of `describe`
    step : the last `mark` that it left; empty if there was none
    ending : how the process ended, such as ``"exit code 1"`` or ``"signal SIGKILL"``
    """

    def __init__(self, *, item: str, step: str, ending: str) -> None:
        doing = f" ({step})" if step else ""
        super().__init__(f"a worker process ended with {ending} while it worked on {item}{doing}.")
        self.item = item
        self.step = step
        self.ending = ending


def _sum_of_run(function: Work[ItemT, ResultT], describe: Naming[ItemT], run: tuple[ItemT, ...]) -> ResultT:
    """The sum over one run of items, in order; holds one result beside it."""

    def marked(item: ItemT) -> ResultT:
        mark(describe(item))  # if the worker dies, this says which one of the run it was
        return function(item)

    return reduce(add, map(marked, run))


def reduce_sums(
    engine: Engine,
    function: Work[ItemT, ResultT],
    items: Iterable[ItemT],
    *,
    describe: Naming[ItemT] = repr,
    progress: Callable[[int], None] | None = None,
) -> ResultT:
    """The sum of ``function(item)`` over all items; there must be at least one.

    `describe` names an item in errors; `progress` is told how many runs of `FAN_IN` items are done.
    """
    step = partial(_sum_of_run, function, describe)
    sums = engine.map(step, _runs(items), describe=lambda run: " or ".join(map(describe, run)))
    return reduce(add, sums if progress is None else _told(sums, progress))


def _told(sums: Iterable[ResultT], progress: Callable[[int], None]) -> Iterator[ResultT]:
    for number, one in enumerate(sums, start=1):
        yield one
        progress(number)


def _runs(items: Iterable[ItemT]) -> Iterator[tuple[ItemT, ...]]:
    stream = iter(items)
    while run := tuple(islice(stream, FAN_IN)):
        yield run


def importable(name: str | None) -> bool:
    """Whether a fresh interpreter with the same `sys.path` would import the module that is loaded here."""
    module = sys.modules.get(name or "")
    if name is None or module is None or name in ("__main__", "__mp_main__"):
        return False
    top = name.partition(".")[0]
    spec = _find_top(top)
    if spec is None:
        return False
    file, found = getattr(module, "__file__", None), spec.origin
    if name != top or file is None or found is None or not (Path(file).exists() and Path(found).exists()):
        return True  # built in, frozen, or a part of a package that is there
    return Path(found).samefile(file)


def _find_top(name: str) -> Any:
    """Search for a module afresh; `sys.modules` knows only that it was loaded somehow."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec
    return None


def ship(value: Any) -> bytes:
    """Serialise a value, unless something inside cannot be, such as an open file or a lock."""
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise ShippingError(f"{type(error).__name__}: {error}") from error


def open_outcome(answer: bytes) -> Any:
    """The result of a call that came back as (good, result), or the error that it raised."""
    good, result = pickle.loads(answer)
    if not good:
        raise result
    return result


def ship_item(item: Any, name: str) -> bytes:
    """An item as bytes, or an error that names it."""
    try:
        return ship(item)
    except ShippingError as error:
        raise ShippingError(f"{name} cannot be sent to another process: {error}") from error


@contextmanager
def strangers_by_value() -> Iterator[None]:
    """Until the end of the block, ship code of modules that lie off `sys.path` by value."""
    import cloudpickle

    known = set(cloudpickle.list_registry_pickle_by_value())
    strangers = [module for module in _strangers() if module.__name__ not in known]
    for module in strangers:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in strangers:
            cloudpickle.unregister_pickle_by_value(module)


def _strangers() -> list[ModuleType]:
    written = [
        (name, module)
        for name, module in sys.modules.copy().items()
        if name != "__main__"
        and str(getattr(module, "__file__", None)).endswith(".py")
        and getattr(module, "__name__", None) == name
    ]
    tops = {name.partition(".")[0] for name, _ in written}
    lost = {top for top in tops if _find_top(top) is None}
    return [
        module
        for name, module in written
        if name.partition(".")[0] in lost or ("." not in name and not importable(name))
    ]


class ShippedEngine(ABC):
    """An engine that sends functions and items to other processes."""

    __slots__ = ()

    def map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], *, describe: Naming[ItemT] = repr
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        with strangers_by_value():
            yield from self._map(function, items, describe)

    @abstractmethod
    def _map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], describe: Naming[ItemT]
    ) -> Iterator[ResultT]:
        """The same, while code that workers cannot import travels by value."""


# --- what a worker is doing right now, readable even after it has died -----------------------------------------------
# A worker writes a line into a small memory-mapped file; no system call, so it may be done often. If the interpreter
# ends without a word (``os._exit``, a crash in native code, the out-of-memory killer), the file still holds the line.
SIZE = 512


class _Slots(threading.local):
    """Of this thread: none outside a worker, one inside."""

    def __init__(self) -> None:
        self.open: list[mmap.mmap] = []


_slots = _Slots()


def mark(step: str) -> None:
    """Leave word of the current step; outside a worker this does nothing."""
    for slot in _slots.open:
        slot[:] = step.encode("utf-8", errors="replace")[:SIZE].ljust(SIZE, b"\0")


def in_worker() -> bool:
    """Whether this is a worker: its end is seen by another process, and Ctrl-C does not reach it."""
    return bool(_slots.open)


@contextmanager
def leaving_word(name: str) -> Iterator[None]:
    """Let `mark` write into a slot of that name, which outlives the block only if the process dies in it."""
    path = _path(name)
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        _slots.open[:] = [mmap.mmap(file.fileno(), SIZE)]
    try:
        yield
    finally:
        while _slots.open:
            _slots.open.pop().close()
        path.unlink(missing_ok=True)


def last_word(name: str) -> str:
    """The last step of a worker of this machine that died, which is forgotten then; empty if there is none."""
    try:
        step = _path(name).read_bytes().rstrip(b"\0").decode("utf-8", errors="ignore")
    except FileNotFoundError:
        return ""
    _path(name).unlink(missing_ok=True)
    return step


def _path(name: str) -> Path:
    """Among the temporary files of this machine, unless the name is a whole path."""
    return Path(tempfile.gettempdir(), name)

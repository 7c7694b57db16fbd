"""One machine as an engine: in this process, or in several.

`Serial` is the plain loop. `Processes` reads items only a little ahead of its workers, gives results back
in order, and leaves no worker behind, whatever ends it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from dugong.engines.pool import Pool
from dugong.engines.protocol import Engine, ItemT, ResultT
from dugong.engines.shipping import ship, strangers_by_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial:
    """One item after the other, in this process."""

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,  # noqa: ARG002 (errors need no place here: they show it)
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        return map(function, items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Several worker processes on this machine.

    Parameters
    ----------
    n_jobs : int
        How many workers.
    ahead : int
        Items per worker that are read before they are needed; bounds the memory.
    """

    n_jobs: int = 2
    ahead: int = 2

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        with strangers_by_value():
            yield from self._map(function, items, describe)

    def _map(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[ResultT]:
        pool = Pool(ship(function), n_jobs=self.n_jobs)
        threads = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="dugong-worker")
        pending: deque[Future[ResultT]] = deque()
        try:
            for item in items:
                pending.append(threads.submit(pool.call, item, describe(item)))
                while len(pending) >= self.n_jobs * (1 + self.ahead) or (pending and pending[0].done()):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
            pool.stop()
            threads.shutdown()
            pool.close()


def local_engine(n_jobs: int) -> Engine:
    """The engine for a number of processes: 1 is this one, -1 as many as there are cores for us."""
    if n_jobs == -1:
        n_jobs = usable_cores()
    return Serial() if n_jobs == 1 else Processes(n_jobs=n_jobs)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

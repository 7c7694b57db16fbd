"""Clusters as engines: Dask, Ray and Spark, and what they share.

A function and its items travel as bytes of our own, and come back as (good, result): an exception of
the user's code is a result for the cluster, so nothing is retried that would fail again, and it is raised here at its
place. Every call has a name of its own, under which its worker leaves word of what it does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from typing import Any

from dugong.engines.local import portable
from dugong.engines.protocol import (
    ItemT,
    Naming,
    ResultT,
    ShippedEngine,
    Work,
    WorkerLostError,
    last_word,
    leaving_word,
    open_outcome,
    ship,
    ship_item,
)
from dugong.exceptions import import_extra


@lru_cache(maxsize=4)
def _load(function: bytes) -> Callable[[Any], Any]:
    loaded: Callable[[Any], Any] = pickle.loads(function)
    return loaded


def call(function: bytes, item: bytes, name: str) -> bytes:
    """Run a shipped function on a shipped item; runs in a worker, which leaves word under a name."""
    try:
        with leaving_word(name):
            return ship((True, _load(function)(pickle.loads(item))))
    except (Exception, SystemExit) as error:
        return ship((False, portable(error)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A call under way: what stands for it in the cluster, its item in words, and the name of the call."""

    future: Any
    item: str
    name: str


def lost(item: str, kind: str, reason: str, step: str) -> WorkerLostError:
    """The error of a call whose worker has died."""
    return WorkerLostError(item=item, step=step, ending=f"the death of its {kind} worker ({reason})")


def call_names() -> Iterator[str]:
    """Names for calls that nobody else uses."""
    token = f"dugong-word-{secrets.token_hex(8)}"
    return (f"{token}-{number}" for number in count())


def windowed(
    submit: Callable[[bytes, str], Any],
    wait: Callable[[Ticket], bytes],
    cancel: Callable[[Any], object],
    items: Iterable[ItemT],
    describe: Naming[ItemT],
    size: int,
) -> Iterator[Any]:
    """Keep at most `size` calls under way and give their results back in order; cancel the rest if that ends early."""
    pending: deque[Ticket] = deque()
    try:
        for item, name in zip(items, call_names(), strict=False):
            words = describe(item)
            pending.append(Ticket(future=submit(ship_item(item, words), name), item=words, name=name))
            while len(pending) >= size:
                yield open_outcome(wait(pending.popleft()))
        while pending:
            yield open_outcome(wait(pending.popleft()))
    finally:
        for ticket in pending:
            cancel(ticket.future)
            last_word(ticket.name)  # of a worker that was ended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster(ShippedEngine):
    """Workers that somebody else keeps, or that are started here and stopped in the end.

    Parameters
    ----------
    address : of the cluster, as its own client takes it; by default one is started here
    n_jobs : workers that are started here; -1 for one per core
    ahead : calls under way per worker
    retries : how often a call is tried again elsewhere when its worker dies
    """

    address: str | None = None
    n_jobs: int = 1
    ahead: int = 3
    retries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dask(_Cluster):
    """Workers of a Dask cluster; the address is of the scheduler, such as ``"tcp://head:8786"``."""

    def _map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], describe: Naming[ItemT]
    ) -> Iterator[ResultT]:
        distributed = import_extra("distributed", "dask", "the engine Dask")
        import dask

        settings = {"distributed.scheduler.allowed-failures": self.retries}
        with dask.config.set(settings), self._client(distributed) as client:
            # Not scattered: what a dead worker held is then made again, not lost with all that needs it.
            remote = client.submit(bytes, ship(function), pure=False)

            def wait(ticket: Ticket, *, again: bool = True) -> bytes:
                try:
                    answer: bytes = ticket.future.result()
                except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
                    step = _last_word(client, ticket.name)
                    # Dask blames every call that stood in line at a dead worker; one that left no word had not begun.
                    if again and not step and isinstance(error, distributed.KilledWorker):
                        ticket.future.retry()
                        return wait(ticket, again=False)
                    raise lost(ticket.item, "Dask", type(error).__name__, step) from error
                return answer

            def submit(item: bytes, name: str) -> Any:
                return client.submit(call, remote, item, name, pure=False)

            n_workers = max(1, len(client.scheduler_info()["workers"]))
            yield from windowed(submit, wait, lambda future: future.cancel(), items, describe, self.ahead * n_workers)

    def _client(self, distributed: Any) -> Any:
        if self.address is not None:
            return distributed.Client(self.address, set_as_default=False)
        options = {} if self.n_jobs == -1 else {"n_workers": self.n_jobs}
        return distributed.Client(
            **options, threads_per_worker=1, processes=True, dashboard_address=None, set_as_default=False
        )


def _last_word(client: Any, name: str) -> str:
    """What a call did last: from this machine, or from whichever machine of the cluster knows."""
    with contextlib.suppress(Exception):  # the cluster may be gone altogether
        return last_word(name) or next(filter(None, client.run(last_word, name).values()), "")
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ray(_Cluster):
    """Workers of a Ray cluster: by address (``"auto"``, ``"ray://head:10001"``), or the one that is connected."""

    def _map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], describe: Naming[ItemT]
    ) -> Iterator[ResultT]:
        ray = import_extra("ray", "ray", "the engine Ray")
        ours = not ray.is_initialized()
        if ours:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, **self._local())
        try:
            size = self.ahead * max(1, int(ray.cluster_resources().get("CPU", 1)))
            yield from windowed(*self._calls(ray, function), items, describe, size)
        finally:
            if ours:
                ray.shutdown()

    def _local(self) -> dict[str, Any]:
        if self.address is not None:
            return {}
        cores = {} if self.n_jobs == -1 else {"num_cpus": self.n_jobs}
        return {**cores, "include_dashboard": False}

    def _calls(self, ray: Any, function: Work[ItemT, ResultT]) -> tuple[Any, Callable[[Ticket], bytes], Any]:
        """How a call is submitted, waited for and cancelled."""
        remote = ray.remote(max_retries=self.retries)(call)
        shipped, word = ray.put(ship(function)), ray.remote(last_word)

        def wait(ticket: Ticket) -> bytes:
            try:
                answer: bytes = ray.get(ticket.future)
            except ray.exceptions.RayError as error:
                step = last_word(ticket.name) or ray.get(word.remote(ticket.name))
                raise lost(ticket.item, "Ray", type(error).__name__, step) from error
            return answer

        return (
            lambda item, name: remote.remote(shipped, item, name),
            wait,
            lambda reference: ray.cancel(reference, force=True),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark(ShippedEngine):
    """Executors of a Spark cluster.

    Parameters
    ----------
    address : str, optional
        Such as ``"spark://head:7077"``; by default the session that is active, else local mode, stopped in the end.
    n_jobs : int
        Cores of local mode; -1 for all.
    ahead : int
        Calls per core in one job.
    """

    address: str | None = None
    n_jobs: int = 1
    ahead: int = 4

    def _map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], describe: Naming[ItemT]
    ) -> Iterator[ResultT]:
        sessions = import_extra("pyspark.sql", "spark", "the engine Spark").SparkSession
        active = sessions.getActiveSession()
        session = active or self._start(sessions.builder)
        try:
            yield from self._jobs(session.sparkContext, ship(function), items, describe)
        finally:
            if active is None:
                session.stop()

    def _start(self, builder: Any) -> Any:
        cores = "*" if self.n_jobs == -1 else str(self.n_jobs)
        builder = builder.master(self.address or f"local[{cores}]").appName("dugong")
        quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
        for key, value in quiet.items():
            builder = builder.config(key, value)
        if self.address is None:  # local workers must be this interpreter, not whatever `python3` is
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return builder.getOrCreate()

    def _jobs(self, context: Any, function: bytes, items: Iterable[ItemT], describe: Naming[ItemT]) -> Iterator[Any]:
        shipped, stream, names = context.broadcast(function), iter(items), call_names()
        size = self.ahead * max(1, context.defaultParallelism)
        while job := list(islice(stream, size)):
            calls = [(ship_item(item, describe(item)), name) for item, name in zip(job, names, strict=False)]
            try:
                answers = context.parallelize(calls, len(calls)).map(lambda one: call(shipped.value, *one)).collect()
            except Exception as error:  # errors of user code come back as answers; this is Spark itself
                text = str(getattr(error, "java_exception", error))
                failed = _failed(text, len(job))
                steps = [last_word(name) for _, name in calls]  # of the others too, which Spark has ended
                step = steps[failed[0]] if len(failed) == 1 else ""
                words = " or ".join(describe(job[place]) for place in failed)
                raise lost(words, "Spark", text.splitlines()[0][:200], step) from error
            yield from map(open_outcome, answers)


def _failed(text: str, n_calls: int) -> list[int]:
    """The call that ended a job, as Spark says it (every call is a task of its own); all if it does not."""
    found = re.search(r"Task (\d+) in stage", text)
    return [int(found[1])] if found and int(found[1]) < n_calls else list(range(n_calls))

"""Spark as an engine: a master by address, the session that is there already, or local mode.

Spark has no single calls, so items run in jobs of a few per core; results come back in order.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dugong.engines.marks import last_word
from dugong.engines.protocol import ItemT, ResultT
from dugong.engines.remote import call, call_names, lost, open_outcome, ship_item
from dugong.engines.shipping import ShippedEngine, ship
from dugong.exceptions import MissingExtraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark(ShippedEngine):
    """Executors of a Spark cluster.

    Parameters
    ----------
    master : str, optional
        Such as ``"spark://head:7077"``; by default the session that is active, else local mode, stopped in the end.
    n_jobs : int
        Cores of local mode; -1 for all.
    ahead : int
        Calls per core in one job.
    """

    master: str | None = None
    n_jobs: int = 1
    ahead: int = 4

    def _map(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[ResultT]:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtraError("pyspark", "spark", "the engine Spark") from None
        active = SparkSession.getActiveSession()
        session = active or self._start(SparkSession.builder)
        try:
            yield from self._jobs(session.sparkContext, ship(function), items, describe)
        finally:
            if active is None:
                session.stop()

    def _start(self, builder: Any) -> Any:
        cores = "*" if self.n_jobs == -1 else str(self.n_jobs)
        builder = builder.master(self.master or f"local[{cores}]").appName("dugong")
        quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
        for key, value in quiet.items():
            builder = builder.config(key, value)
        if self.master is None:  # local workers must be this interpreter, not whatever `python3` is
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return builder.getOrCreate()

    def _jobs(
        self, context: Any, function: bytes, items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[Any]:
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

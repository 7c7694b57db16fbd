"""Dask as an engine: a cluster by address, or worker processes on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dugong.engines.marks import last_word
from dugong.engines.protocol import ItemT, ResultT
from dugong.engines.remote import Ticket, call, lost, windowed
from dugong.engines.shipping import ShippedEngine, ship
from dugong.exceptions import MissingExtraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Dask(ShippedEngine):
    """Workers of a Dask cluster.

    Parameters
    ----------
    address : str, optional
        The scheduler, such as ``"tcp://head:8786"``; by default a cluster is started here and stopped in the end.
    n_jobs : int
        Workers of the cluster that is started here; -1 for one per core.
    ahead : int
        Calls under way per worker.
    retries : int
        How often a call is tried again elsewhere when its worker dies.
    """

    address: str | None = None
    n_jobs: int = 1
    ahead: int = 3
    retries: int = 1

    def _map(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[ResultT]:
        try:
            import dask
            import distributed
        except ImportError:
            raise MissingExtraError("distributed", "dask", "the engine Dask") from None
        settings = {"distributed.scheduler.allowed-failures": self.retries}
        with dask.config.set(settings), self._client(distributed) as client:
            # Not scattered: what a dead worker held is then made again, not lost with all that needs it.
            remote = client.submit(bytes, ship(function), pure=False)

            def wait(ticket: Ticket) -> bytes:
                try:
                    answer: bytes = ticket.future.result()
                except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
                    raise lost(ticket.item, "Dask", type(error).__name__, _last_word(client, ticket.name)) from error
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

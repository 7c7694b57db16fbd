"""Dask as an engine: a cluster by address, or worker processes on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dugong.engines.protocol import ItemT, ResultT, WorkerLostError
from dugong.engines.remote import call, windowed
from dugong.engines.shipping import ship, strangers_by_value
from dugong.exceptions import MissingExtraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Dask:
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

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        try:
            import dask
            import distributed
        except ImportError:
            raise MissingExtraError("distributed", "dask", "the engine Dask") from None
        settings = {"distributed.scheduler.allowed-failures": self.retries}
        with dask.config.set(settings), strangers_by_value(), self._client(distributed) as client:
            # Not scattered: what a dead worker held is then made again, not lost with all that needs it.
            remote = client.submit(bytes, ship(function), pure=False)

            def wait(future: Any, name: str) -> bytes:
                try:
                    answer: bytes = future.result()
                except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
                    ending = f"the death of its Dask worker ({type(error).__name__})"
                    raise WorkerLostError(item=name, step="", ending=ending) from error
                return answer

            def submit(item: bytes) -> Any:
                return client.submit(call, remote, item, pure=False)

            n_workers = max(1, len(client.scheduler_info()["workers"]))
            yield from windowed(submit, wait, lambda future: future.cancel(), items, describe, self.ahead * n_workers)

    def _client(self, distributed: Any) -> Any:
        if self.address is not None:
            return distributed.Client(self.address, set_as_default=False)
        options = {} if self.n_jobs == -1 else {"n_workers": self.n_jobs}
        return distributed.Client(
            **options, threads_per_worker=1, processes=True, dashboard_address=None, set_as_default=False
        )

"""Ray as an engine: a cluster by address, the one that is connected already, or workers on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dugong.engines.marks import last_word
from dugong.engines.protocol import ItemT, ResultT
from dugong.engines.remote import Ticket, call, lost, windowed
from dugong.engines.shipping import ShippedEngine, ship
from dugong.exceptions import MissingExtraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ray(ShippedEngine):
    """Workers of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Such as ``"auto"`` or ``"ray://head:10001"``; by default workers are started here and stopped in the end.
    n_jobs : int
        Workers that are started here; -1 for one per core.
    ahead : int
        Calls under way per worker.
    retries : int
        How often a call is tried again when its worker dies.
    """

    address: str | None = None
    n_jobs: int = 1
    ahead: int = 3
    retries: int = 1

    def _map(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[ResultT]:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray", "the engine Ray") from None
        ours = not ray.is_initialized()
        if ours:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, **self._local())
        try:
            yield from windowed(*self._calls(ray, function), items, describe, self._window(ray))
        finally:
            if ours:
                ray.shutdown()

    def _local(self) -> dict[str, Any]:
        if self.address is not None:
            return {}
        cores = {} if self.n_jobs == -1 else {"num_cpus": self.n_jobs}
        return {**cores, "include_dashboard": False}

    def _window(self, ray: Any) -> int:
        return self.ahead * max(1, int(ray.cluster_resources().get("CPU", 1)))

    def _calls(self, ray: Any, function: Callable[[ItemT], ResultT]) -> tuple[Any, Callable[[Ticket], bytes], Any]:
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

"""What the cluster engines share: one call that never loses an error, and a window of calls under way.

A function and its items travel as bytes of our own (see `shipping`), and come back as (good, result): an exception of
the user's code is a result for the cluster, so nothing is retried that would fail again, and it is raised here at its
place.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from dugong.engines.protocol import ItemT, ShippingError
from dugong.engines.shipping import ship
from dugong.engines.worker import portable

Outcome = tuple[bool, Any]


@lru_cache(maxsize=4)
def _load(function: bytes) -> Callable[[Any], Any]:
    loaded: Callable[[Any], Any] = pickle.loads(function)
    return loaded


def call(function: bytes, item: bytes) -> bytes:
    """Run a shipped function on a shipped item; runs in a worker."""
    try:
        return ship((True, _load(function)(pickle.loads(item))))
    except (Exception, SystemExit) as error:
        return ship((False, portable(error)))


def open_outcome(answer: bytes) -> Any:
    """The result of a call, or the error that it raised."""
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


def windowed(
    submit: Callable[[bytes], Any],
    wait: Callable[[Any, str], bytes],
    cancel: Callable[[Any], object],
    items: Iterable[ItemT],
    describe: Callable[[ItemT], str],
    size: int,
) -> Iterator[Any]:
    """Keep at most `size` calls under way and give their results back in order; cancel the rest if that ends early."""
    pending: deque[tuple[Any, str]] = deque()
    try:
        for item in items:
            name = describe(item)
            pending.append((submit(ship_item(item, name)), name))
            while len(pending) >= size:
                yield open_outcome(wait(*pending.popleft()))
        while pending:
            yield open_outcome(wait(*pending.popleft()))
    finally:
        for ticket, _ in pending:
            cancel(ticket)

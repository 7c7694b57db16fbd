"""What the cluster engines share: one call that never loses an error, and a window of calls under way.

A function and its items travel as bytes of our own (see `shipping`), and come back as (good, result): an exception of
the user's code is a result for the cluster, so nothing is retried that would fail again, and it is raised here at its
place. Every call has a name of its own, under which its worker leaves word of what it does (see `marks`).
"""

from __future__ import annotations

import pickle
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from dugong.engines.marks import last_word, leaving_word
from dugong.engines.protocol import ItemT, ShippingError, WorkerLostError
from dugong.engines.shipping import ship
from dugong.engines.worker import portable

Outcome = tuple[bool, Any]


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
    token = secrets.token_hex(8)
    return (f"{token}-{number}" for number in count())


def windowed(
    submit: Callable[[bytes, str], Any],
    wait: Callable[[Ticket], bytes],
    cancel: Callable[[Any], object],
    items: Iterable[ItemT],
    describe: Callable[[ItemT], str],
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

"""Where work runs, as one small promise: results come back in the order of the items.

In: a function and an iterable of items. Out: an iterator of results. An engine reads its items lazily, keeps
only a few of them under way, and never loses an exception: what the function raised is raised again at its
own place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from dugong.exceptions import DugongError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Engine(Protocol):
    """Anything that maps a function over items and keeps their order."""

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order; `describe` names an item in errors."""
        ...


class ShippingError(DugongError, TypeError):
    """Something cannot be sent to another process."""


class WorkerLostError(DugongError, RuntimeError):
    """A worker process ended before it answered.

    Attributes
    ----------
    item : str
        What it was working on, in the words of `describe`.
    step : str
        The last `mark` that it left; empty if there was none.
    ending : str
        How the process ended, such as ``"exit code 1"`` or ``"signal SIGKILL"``.
    """

    def __init__(self, *, item: str, step: str, ending: str) -> None:
        doing = f" ({step})" if step else ""
        super().__init__(f"a worker process ended with {ending} while it worked on {item}{doing}.")
        self.item = item
        self.step = step
        self.ending = ending

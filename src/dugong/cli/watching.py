"""How a long run is going: a bar on a terminal, now and then a line elsewhere, or one JSON value per line for machines.

``--log-json`` turns everything that a verb says on the standard error into JSON lines with an ``event``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.cli.output import count, plain, say, seconds

if TYPE_CHECKING:
    from dugong.sources import Progress

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_EVERY = 10.0
_EVERY_JSON = 1.0


def log_option(function: FunctionT) -> FunctionT:
    """Add ``--log-json`` to a verb."""
    option = click.option("--log-json", is_flag=True, help="Say how it goes as JSON lines on the standard error.")
    return option(function)


class Watch:
    """Tells how a run goes; gets `Progress` values while sources are applied."""

    def __init__(self, *, log_json: bool) -> None:
        self.log_json = log_json
        self.steps: dict[str, float] = {}
        self._begin = self._said = perf_counter()

    @property
    def progress(self) -> bool | Callable[[Progress], None]:
        """What `apply` takes as its progress: a bar where somebody watches, else this."""
        return True if sys.stderr.isatty() and not self.log_json else self.show

    def show(self, now: Progress) -> None:
        """Say how far it is, from time to time."""
        clock = perf_counter()
        if clock - self._said < (_EVERY_JSON if self.log_json else _EVERY):
            return
        self._said = clock
        rate, left = now.elements / max(now.seconds, 1e-9), time_left(now)
        if self.log_json:
            self.event(
                "progress",
                done=now.done,
                total=now.total,
                faults=now.faults,
                elements_per_second=rate,
                seconds_left=left,
            )
            return
        of = "" if now.total is None else f" of {now.total:,}"
        rest = "" if left is None else f", {seconds(left)} left"
        say(f"apply     {now.done:,}{of} sequences, {rate:,.0f} elements/s, {count(now.faults, 'fault')}{rest}")

    def done(self, step: str, what: str) -> None:
        """Note that a step has ended."""
        now = perf_counter()
        self.steps[step] = now - self._begin
        self._begin = now
        if self.log_json:
            self.event("done", step=step, seconds=self.steps[step], what=what)
        else:
            say(f"{step:<9} {seconds(self.steps[step]):>8}  {what}")

    def remark(self, text: str) -> None:
        """Say something in words."""
        if self.log_json:
            self.event("remark", text=text)
        else:
            say(text)

    def event(self, name: str, **values: Any) -> None:
        """One JSON line."""
        say(json.dumps(plain({"event": name, **values}), ensure_ascii=False))


def time_left(now: Progress) -> float | None:
    """Seconds to go if it goes on like this; None if nobody knows how much there is."""
    if now.total is None or not now.done:
        return None
    return now.seconds * (now.total - now.done) / now.done

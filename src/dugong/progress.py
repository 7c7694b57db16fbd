"""How long work tells how far it is: a function that is called with values, and a bar for people who watch.

The library only ever calls a function; the bar is one such function. It writes to the standard error, and only to a
terminal (or a notebook, or where ``FORCE_COLOR`` asks for it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a bar shows of one value: how much is done, of how much if that is known, and a few words."""

    done: int
    total: int | None
    words: str = ""


@contextmanager
def progress_callback(
    progress: bool | Callable[[Value], None],  # noqa: FBT001  (what users pass)
    title: str,
    unit: str,
    show: Callable[[Value], Shown],
) -> Iterator[Callable[[Value], None]]:
    """The function to call whenever something is done: the given one, a bar, or one that does nothing."""
    if callable(progress):
        yield progress
    elif progress:
        with _bar(title, unit, show) as callback:
            yield callback
    else:
        yield _ignore


def _ignore(_: object) -> None:
    return None


@contextmanager
def _bar(title: str, unit: str, show: Callable[[Value], Shown]) -> Iterator[Callable[[Value], None]]:
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _ignore
        return
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn(unit + "  {task.fields[words]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, words="")

        def update(value: Value) -> None:
            shown = show(value)
            bar.update(task, completed=shown.done, total=shown.total, words=shown.words)

        yield update

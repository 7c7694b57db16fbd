"""How far a run is: a value for callbacks, and a bar for people who watch.

The library only ever calls a function with `Progress` values; the bar is one such function. It writes to the
standard error, and only to a terminal (or a notebook, or where ``FORCE_COLOR`` asks for it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is done so far.

    Attributes
    ----------
    done, total : int
        Sequences; the total is None if it is not known.
    sequence : str or int
        The one that was finished last.
    elements : int
        Elements of all finished sequences.
    faults : int
        Faults so far.
    seconds : float
        Since the start.
    """

    done: int
    total: int | None
    sequence: str | int
    elements: int
    faults: int
    seconds: float


ProgressCallback = Callable[[Progress], None]


@contextmanager
def progress_callback(progress: bool | ProgressCallback) -> Iterator[ProgressCallback]:  # noqa: FBT001
    """The function to call after every sequence: the given one, a bar, or one that does nothing."""
    if callable(progress):
        yield progress
    elif progress:
        with _bar() as callback:
            yield callback
    else:
        yield _ignore


def _ignore(_: Progress) -> None:
    return None


@contextmanager
def _bar() -> Iterator[ProgressCallback]:
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
        bars.TextColumn("sequences  {task.fields[faults]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("Applying sources", total=None, faults="")

        def show(now: Progress) -> None:
            faults = f"{now.faults} faults  " if now.faults else ""
            bar.update(task, completed=now.done, total=now.total, faults=faults)

        yield show

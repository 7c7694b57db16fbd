"""How long work tells how far it is: a function that is called with values, and a bar for people who watch.

The library only ever calls a function; the bar is one such function. It writes to the standard error, and only to a
terminal (or a notebook, or where ``FORCE_COLOR`` asks for it).

A fit tells its steps as (what, done, in all): "learn", "em", "shards", and "compile" where kernels are compiled, which
happens once per installation; in all is 0 where nobody knows.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

Value = TypeVar("Value")
FitProgress = Callable[[str, int, int], None]
# Most fits take less than a second, and a bar that flashes up tells nobody anything.
_PATIENCE = 1.0
_BLINK = 0.1  # seconds
_STEPS = {
    "compile": "compiling; later fits start at once",
    "learn": "learning what depends on what",
    "em": "raising the likelihood",
    "low-rank": "splitting the inverse covariance",
    "sgd": "descending",
}


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
    after: float | None = None,
) -> Iterator[Callable[[Value], None]]:
    """The function to call whenever something is done: the given one, a bar, or one that does nothing.

    With `after`, the bar appears when so many seconds have passed, and goes when all is done.
    """
    if callable(progress):
        yield progress
        return
    # A terminal, a notebook, or the wish for a bar: asked before anything is imported for it.
    if not progress or not (sys.stderr.isatty() or "IPython" in sys.modules or "FORCE_COLOR" in os.environ):
        yield lambda _: None
        return
    bar = Bar(title, unit, transient=after is not None)
    timer = threading.Timer(after or 0.0, bar.start)
    timer.daemon = True
    timer.start() if after else bar.start()
    try:
        yield lambda value: bar.update(show(value))
    finally:
        timer.cancel()
        if after:
            timer.join()
        bar.stop()


@contextmanager
def fit_progress(progress: bool | FitProgress | None) -> Iterator[FitProgress]:  # noqa: FBT001  (what users pass)
    """What a fit calls with its steps: the given function; a bar if it takes long and somebody watches; or nothing."""
    if progress is False:
        yield lambda *_: None
    elif callable(progress):
        with _compilations(progress):
            yield progress
    else:
        with progress_callback(True, "fit", "", lambda shown: shown, after=_PATIENCE) as callback:

            def tell(what: str, done: int, total: int) -> None:
                callback(Shown(done=done, total=total or None, words=_STEPS.get(what, what)))

            with _compilations(tell):
                yield tell


@contextmanager
def _compilations(tell: FitProgress) -> Iterator[None]:
    """Tell about every kernel that is compiled meanwhile; those that a cache on disk holds are not."""
    from numba.core import event

    class Compilations(event.Listener):
        n_begun = 0

        def on_start(self, _: object) -> None:
            self.n_begun += 1
            tell("compile", self.n_begun, 0)

        def on_end(self, _: object) -> None:
            return None

    with event.install_listener("numba:compile", Compilations()):
        yield


class Bar:
    """A bar on the standard error; what it is told before it starts is what it begins with."""

    def __init__(self, title: str, unit: str, *, transient: bool) -> None:
        self._title, self._unit, self._transient = title, unit, transient
        self._bar: Any = None
        self._cell: CellBar | None = None
        self._shown = Shown(done=0, total=None)

    def start(self) -> None:
        """Show the bar, if this is a terminal or a notebook after all."""
        from rich import progress as bars
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_jupyter:
            self._cell = CellBar(self._title, self._unit)
            return
        if not console.is_terminal:
            return
        columns = (
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn(self._unit + "  {task.fields[words]}"),
            bars.TimeRemainingColumn(),
        )
        bar = bars.Progress(*columns, console=console, transient=self._transient)
        bar.add_task(self._title, total=None, words="")
        bar.start()
        self._bar = bar
        self.update(self._shown)

    def update(self, shown: Shown) -> None:
        """Say how far it is."""
        self._shown = shown
        if self._cell is not None:
            self._cell.update(shown)
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=shown.done, total=shown.total, words=shown.words)

    def stop(self) -> None:
        """Leave the bar as it is, or take it away."""
        if self._cell is not None:
            self._cell.stop(self._shown, leave=not self._transient)
        if self._bar is not None:
            self._bar.stop()


class CellBar:
    """A bar below a cell of a notebook: plain output, which needs no widgets and stays in the file and its exports."""

    def __init__(self, title: str, unit: str) -> None:
        from IPython.display import display

        self._title, self._unit = title, unit
        self._shown_at = time.monotonic()
        show: Any = display
        self._place = show(self._content(Shown(done=0, total=None)), raw=True, display_id=True)

    def update(self, shown: Shown) -> None:
        """Say how far it is, not more often than people can see."""
        if time.monotonic() - self._shown_at > _BLINK:
            self._shown_at = time.monotonic()
            self._place.update(self._content(shown), raw=True)

    def stop(self, shown: Shown, *, leave: bool) -> None:
        """Leave the end of it in the cell, or nothing."""
        self._place.update(self._content(shown) if leave else {"text/plain": "", "text/html": ""}, raw=True)

    def _content(self, shown: Shown) -> dict[str, str]:
        total = "" if shown.total is None else f"/{shown.total}"
        line = " ".join(filter(None, [self._title, f"{shown.done}{total}", self._unit, shown.words]))
        full = "" if shown.total is None else f' value="{shown.done}" max="{shown.total}"'
        return {"text/plain": line, "text/html": f"<div><progress{full}></progress> {escape(line)}</div>"}

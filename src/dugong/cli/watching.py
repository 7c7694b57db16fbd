"""How a long run is going: a bar on a terminal, now and then a line elsewhere, or one JSON value per line for machines.

``--log-json`` turns everything that a verb says on the standard error into JSON lines with an ``event``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.cli.output import fit_width, say, seconds, terminal_width
from dugong.codec import to_plain
from dugong.exceptions import DugongError
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.progress import FitProgress
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

    def __init__(self, *, log_json: bool = False) -> None:
        self.log_json = log_json
        self.steps: dict[str, float] = {}
        self._begin = self._said = perf_counter()
        self._stage, self._since, self._last = "", self._begin, self._begin

    @property
    def progress(self) -> bool | Callable[[Progress], None]:
        """What `apply` takes as its progress: a bar where somebody watches, else this."""
        return True if sys.stderr.isatty() and not self.log_json else self.show

    def show(self, now: Progress) -> None:
        """Say how far it is, from time to time."""
        if not self._due():
            return
        rate, left = now.rate, time_left(now)
        of = "" if now.total is None else f" of {now.total:,}"
        rest = "" if left is None else f", {seconds(left)} left"
        words = f"apply     {now.done:,}{of} sequences, {rate:,.0f} elements/s, {counted(now.faults, 'fault')}{rest}"
        known = {"done": now.done, "total": now.total, "faults": now.faults}
        self._say("progress", words, **known, elements_per_second=rate, seconds_left=left)

    @property
    def fitting(self) -> FitProgress | None:
        """What `fit` takes as its progress: None where somebody watches, who gets a bar; else this."""
        return None if sys.stderr.isatty() and not self.log_json else self.steps_done

    def steps_done(self, step: str, done: int, total: int) -> None:
        """Say how many steps of a fit, or shards, are done, from time to time."""
        if step != self._stage:
            self._stage, self._since = step, max(self._begin, self._last)
        self._last = perf_counter()
        if not self._due():
            return
        left = (self._last - self._since) * (total - done) / max(done, 1)
        what = "compiling; later fits start at once" if step == "compile" else ""
        noun = "step" if step in ("learn", "em") else "shard"
        words = f"{step:<9} {what or f'{done:,} of {counted(total, noun)}, {seconds(left)} left'}"
        self._say("progress", words, step=step, done=done, total=total, seconds_left=left)

    def _due(self) -> bool:
        clock = perf_counter()
        if clock - self._said < (_EVERY_JSON if self.log_json else _EVERY):
            return False
        self._said = clock
        return True

    def done(self, step: str, what: str) -> None:
        """Note that a step has ended."""
        now = perf_counter()
        self.steps[step] = now - self._begin
        self._begin = now
        line, width = f"{step:<9} {seconds(self.steps[step]):>8}  {what}", terminal_width()
        words = line if len(line) <= width else f"{line[: width - 1]}…"
        self._say("done", words, step=step, seconds=self.steps[step], what=what)

    def remark(self, text: str) -> None:
        """Say something in words."""
        self._say("remark", fit_width(text), text=text)

    def _say(self, event: str, words: str, **values: Any) -> None:
        """Words for people, or the same as values for machines."""
        if self.log_json:
            self.event(event, **values)
        else:
            say(words)

    def event(self, name: str, **values: Any) -> None:
        """One JSON line."""
        say(json.dumps(to_plain({"event": name, **values}), ensure_ascii=False))


def time_left(now: Progress) -> float | None:
    """Seconds to go if it goes on like this; None if nobody knows how much there is, or nothing has run yet."""
    ran = now.done - now.kept
    if now.total is None or not ran:
        return None
    return now.seconds * (now.total - now.done) / ran


def repeat(project: Path, job: Callable[[], None], *, pause: float = 0.3) -> None:
    """Run a job, and again whenever a file of the project is saved, until Ctrl-C."""
    folder = (project if project.is_dir() else project.parent).resolve()
    while True:
        seen = saved(folder)
        forget_modules(folder)
        try:
            job()
        except DugongError as error:
            say(f"error: {error}")
        say("waiting for a change (Ctrl-C ends) ...")
        try:
            while saved(folder) == seen:
                time.sleep(pause)
        except KeyboardInterrupt:
            return


def forget_modules(folder: Path) -> None:
    """Let the code of a project be read again."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve().parent == folder:
            del sys.modules[name]


def saved(folder: Path) -> dict[str, float]:
    """When the code, the settings and the known labels of a project were saved."""
    kinds = (".py", ".toml", ".csv", ".json")
    files = [file for file in folder.iterdir() if file.suffix in kinds and file.is_file()]
    return {file.name: file.stat().st_mtime for file in files}

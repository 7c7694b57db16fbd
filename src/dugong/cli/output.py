"""What a verb says: results on the standard output, as text or as JSON; everything else on the standard error.

A verb builds one plain value and one text of the same content; ``--json`` decides which of them is printed.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.codec import to_plain
from dugong.exceptions import DugongError
from dugong.paths import place_of
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.progress import FitProgress
    from dugong.sources import Progress


# What stands before a sentence: a mark of a list, or the name of a line of a summary.
_LISTED = re.compile(r"- |note: |(prior|dependencies) +| +")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Outcome = tuple[Mapping[str, Any], str]
"""What a verb returns: a plain value, and a text of the same content."""


# What options take: files and folders of this machine (`PLACE` also takes URLs), and numbers from 1.
PATH = click.Path(path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
SOME = click.IntRange(min=1)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def together(*options: Callable[[FunctionT], FunctionT]) -> Callable[[FunctionT], FunctionT]:
    """Several options as one."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def verb(name: str, *examples: str) -> Callable[[Callable[..., Outcome | tuple[*Outcome, int]]], click.Command]:
    """Make a verb of a function that returns a plain value and a text of the same content.

    ``--json`` decides which of them is printed; a third item, if there is one, is the exit code.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        @json_option
        def run(*, as_json: bool, **given: Any) -> int | None:
            result, text, *code = function(**given)
            emit(result, text, as_json=as_json)
            return code[0] if code else None

        run.__doc__ = function.__doc__
        vars(run)["__click_params__"].extend(vars(function).get("__click_params__", ()))
        return click.command(name, epilog=example(*examples))(run)

    return made


def example(*commands: str) -> str:
    """The lines at the end of a verb's help."""
    return "\n".join(["\b", "Example:" if len(commands) == 1 else "Examples:", *(f"  $ {one}" for one in commands)])


def emit(result: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result on the standard output: its text, or its plain value as JSON."""
    click.echo(json.dumps(to_plain(result), indent=2, ensure_ascii=False, allow_nan=False) if as_json else text)


def terminal_width() -> int:
    """Columns of the terminal, and 100 where there is none."""
    return max(40, shutil.get_terminal_size((100, 24)).columns)


def fit_width(text: str) -> str:
    """Break sentences at the width of the terminal, and tables into parts below each other that begin alike."""
    width = terminal_width()
    parts = [(is_table, list(lines)) for is_table, lines in groupby(text.split("\n"), key=_is_row)]
    fitted = [
        _folded(lines, width) if is_table else [_broken(one, width) for one in lines] for is_table, lines in parts
    ]
    return "\n".join(line for lines in fitted for line in lines)


def _is_row(line: str) -> bool:
    """Whether a line belongs to a table: its columns are two spaces apart."""
    head = _LISTED.match(line)
    return "  " in line[len(head[0]) if head else 0 :].rstrip()


def _folded(lines: list[str], width: int) -> list[str]:
    """A table whose lines fit: as many columns as there is room for, then the first one again with the next of them."""
    if max(map(len, lines)) <= width:
        return lines
    first, *others = _columns(lines)
    first = [_shortened(cell, width // 3) for cell in first]
    parts = [[first]]
    for column in others:
        if len(parts[-1]) > 1 and sum(len(one[0]) + 2 for one in [*parts[-1], column]) - 2 > width:
            parts.append([first])
        parts[-1].append(column)
    indent = " " * (len(first[0]) + 2)
    rows = [["  ".join(row).rstrip() for row in zip(*part, strict=True)] for part in parts]
    return [line for part in rows for line in ["", *(_hanging(row, indent, width) for row in part)]][1:]


def _hanging(row: str, indent: str, width: int) -> str:
    """A row whose last cell goes on below its beginning; a rule is cut."""
    if len(row) <= width or not row.strip("- "):
        return row[:width]
    head, text = row[: len(indent)], row[len(indent) :]
    return textwrap.fill(text.strip(), width, initial_indent=head, subsequent_indent=indent)


def _columns(lines: list[str]) -> list[list[str]]:
    """The cells of a table by column, padded: columns are parted where two spaces stand in all lines."""
    longest = max(map(len, lines))
    padded = [line.ljust(longest) for line in lines]
    blank = "".join(" " if all(line[place] == " " for line in padded) else "x" for place in range(longest))
    pieces = [found.span() for found in re.finditer(r"x+(?: x+)*", blank)]
    return [[line[start:end] for line in padded] for start, end in pieces]


def _shortened(cell: str, width: int) -> str:
    """A cell of at most so many signs: the middle of a long text is left out."""
    text = cell.strip()
    if len(text) > width:
        text = text[:width] if set(text) == {"-"} else f"{text[: (width - 1) // 2]}…{text[-(width // 2) :]}"
    return text.ljust(width) if len(cell) > width else cell


def _broken(line: str, width: int) -> str:
    head = _LISTED.match(line)
    indent = len(head[0]) if head else 0
    if len(line) <= width:
        return line
    return textwrap.fill(
        line[indent:],
        width,
        initial_indent=line[:indent],
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def listing(head: str, lines: Iterable[str]) -> str:
    """Sentences below a heading; nothing without any."""
    listed = [f"- {one}" for one in lines]
    return "\n".join([head, *listed]) if listed else ""


def say(text: str) -> None:
    """Tell people how it goes, on the standard error."""
    click.echo(text, err=True)


@contextlib.contextmanager
def user_code() -> Iterator[None]:
    """Send what the user's functions print to the standard error, so that our own output stays readable."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def seconds(duration: float) -> str:
    """A duration, short: ``0.03 s``, ``12 s``, ``3 min 20 s``."""
    if duration < 10:
        return f"{duration:.2f} s"
    if duration < 120:
        return f"{duration:.0f} s"
    return f"{int(duration // 60)} min {int(duration % 60)} s"


class PlaceType(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    """A path or URL."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The place that a word names."""
        return place_of(value)


PLACE = PlaceType()


# --- how a long run is going ------------------------------------------------------------------------------------------
# A bar on a terminal, now and then a line elsewhere, or, with --log-json, one JSON value with an event per line.
_EVERY = 10.0
_EVERY_JSON = 1.0


log_option = click.option("--log-json", is_flag=True, help="Say how it goes as JSON lines on the standard error.")


class Watch:
    """Tells how a run goes; gets `Progress` values while sources are applied."""

    def __init__(self, *, log_json: bool = False, tell: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.log_json = log_json
        self._tell = tell or (lambda event: say(json.dumps(event, ensure_ascii=False)))
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
            self._tell(to_plain({"event": event, **values}))
        else:
            say(words)


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

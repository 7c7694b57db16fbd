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
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

from dugong.codec import to_plain

# What stands before a sentence: a mark of a list, or the name of a line of a summary.
_LISTED = re.compile(r"- |note: |(prior|dependencies) +| +")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def json_option(function: FunctionT) -> FunctionT:
    """Add ``--json`` to a verb."""
    option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    return option(function)


def example(*commands: str) -> str:
    """The lines at the end of a verb's help."""
    return "\n".join(["\b", "Example:" if len(commands) == 1 else "Examples:", *(f"  $ {one}" for one in commands)])


def emit(result: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a result on the standard output: its text, or its plain value as JSON."""
    click.echo(json.dumps(to_plain(result), indent=2, ensure_ascii=False, allow_nan=False) if as_json else text)


def fit_width(text: str) -> str:
    """Break sentences at the width of the terminal; tables, whose columns two spaces part, stay as wide as they are."""
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    return "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    head = _LISTED.match(line)
    indent = len(head[0]) if head else 0
    if len(line) <= width or "  " in line[indent:]:
        return line
    return textwrap.fill(
        line[indent:],
        width,
        initial_indent=line[:indent],
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


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

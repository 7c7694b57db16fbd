"""Plain text that several stages print: aligned tables, numbers with their nouns, a word where it takes long.

In: words and numbers. Out: lines without signs that a terminal would obey.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence

__all__ = ["announced", "counted", "on_one_line", "text_table"]


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), rule: bool = False
) -> str:
    """Align rows under their heads: the columns in `left` to the left, all others, as numbers, to the right.

    With `rule`, a line of dashes stands below the head.
    """
    cells = [[on_one_line(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    if rule:
        cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def on_one_line(text: str) -> str:
    """Text without line breaks and other signs that cannot be printed."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: ``1 source``, ``2,000 sources``; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


@contextlib.contextmanager
def announced(text: str, *, after: float) -> Iterator[None]:
    """Say `text` on the standard error, if that is a terminal, when what is done inside takes longer than `after` s."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(after, lambda: sys.stderr.write(f"{text}\n"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

"""Plain text that several stages print: aligned tables, numbers with their nouns.

In: words and numbers. Out: lines without signs that a terminal would obey.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dugong.exceptions import VoteError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def read_size(size: str | int, what: str = "memory") -> int:
    """A number of bytes: 2000000000, ``"2GB"``, ``"500 MB"``."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)i?b?\s*", str(size), flags=re.IGNORECASE)
    if found is None:
        raise VoteError(f"{what} must be a size such as 2GB or 500MB; found {size!r}.")
    return int(float(found[1]) * _UNITS[found[2].lower()])


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

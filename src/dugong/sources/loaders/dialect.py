"""How a table is written as text: what parts its cells, the sign of decimals, the encoding, lines before the names.

In: the beginning of a file, and what the user said. Out: a `Dialect`. A spreadsheet in Europe writes semicolons and
decimal commas, an instrument writes tabs and a few lines of remarks; all of them call it CSV.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from dugong.sources.loaders.errors import LoaderError

_BEGINNING = 1 << 16  # bytes
_LINES = 100
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = r'\s*"?[-+]?[0-9]+{}[0-9]+(?:[eE][-+]?[0-9]+)?"?\s*'


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a file of a table is written in; None is to be found out from the file.

    Attributes
    ----------
    delimiter : str or None
        What parts cells. Found: the semicolon or tab that stands equally often in all of the first lines, else what
        stands most often in the first one, else a comma.
    decimal : str or None
        The sign of decimals. Found: a comma where numbers are written with it and cells are not parted by it.
    encoding : str or None
        Found: UTF-16 by its mark, else UTF-8.
    skip : int
        Lines before the names of the columns, beside those that begin with ``#``.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    skip: int = 0

    def of(self, path: Path) -> Found:
        """Find out what was not said."""
        with path.open("rb") as file:
            start = file.read(_BEGINNING)
        encoding = self.encoding or ("utf-16" if start.startswith(_UTF16) else "utf-8")
        text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start).removeprefix("\ufeff")
        lines = text.splitlines()[self.skip :]
        if len(start) == _BEGINNING:
            lines = lines[:-1]  # which is cut
        remarks = next((place for place, line in enumerate(lines) if not line.startswith("#")), 0)
        lines = [line for line in lines[remarks : remarks + _LINES] if line.strip()]
        delimiter = self.delimiter or _delimiter(lines)
        decimal = self.decimal or _decimal(lines, delimiter)
        return Found(delimiter=delimiter, decimal=decimal, encoding=encoding, skip=self.skip + remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a file is written in."""

    delimiter: str
    decimal: str
    encoding: str
    skip: int


def check_encoding(name: str) -> None:
    """Raise unless Python knows an encoding."""
    try:
        codecs.lookup(name)
    except LookupError:
        raise LoaderError(f'encoding= must be one that Python knows, such as "cp1252"; found {name!r}.') from None


def is_table(path: Path) -> bool:
    """Whether a text is a table: all of its first lines, at least three, are parted alike by tabs or semicolons."""
    with path.open("rb") as file:
        lines = file.read(_BEGINNING).decode(errors="replace").splitlines()[: _LINES - 1]
    return len(lines) > 2 and any(_parts_alike(lines, sign) for sign in ";\t")


def _parts_alike(lines: list[str], sign: str) -> bool:
    if sign not in lines[0]:
        return False
    counts = {_QUOTED.sub("", line).count(sign) for line in lines}
    return len(counts) == 1 and counts != {0}


def _delimiter(lines: list[str]) -> str:
    if not lines:
        return ","
    alike = [sign for sign in ";\t" if _parts_alike(lines, sign)]
    head = _QUOTED.sub("", lines[0])
    return alike[0] if alike else max(",;\t", key=head.count)


def _decimal(lines: list[str], delimiter: str) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for line in lines for cell in line.split(delimiter)]
    kinds = [re.compile(_NUMBER.format(sign)) for sign in (",", "[.]")]
    commas, points = (sum(kind.fullmatch(one) is not None for one in cells) for kind in kinds)
    return "," if commas > points else "."

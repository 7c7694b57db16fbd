"""CSV and Parquet files as numpy columns, with what is absent kept absent.

In: a file. Out: arrays by column name. Empty cells of numbers become NaN (whole numbers turn into floats
where there are any), of words None, of times NaT.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dugong.archives import arrow_file, from_arrow
from dugong.exceptions import LoaderError
from dugong.sources.loaders.rows import in_file
from dugong.types import AnyArray

# --- how a table is written as text ----------------------------------------------------------------------------------
# A spreadsheet in Europe writes semicolons and decimal commas, an instrument writes tabs and a few lines of remarks;
# all of them call it CSV.
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
    encoding : found: UTF-16 by its mark, else UTF-8
    skip : lines before the names of the columns, beside those that begin with ``#``
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


Columns = dict[str, AnyArray]
_LARGEST_BLOCK = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """How to read CSV files.

    Attributes
    ----------
    dialect : what files are written in, where that is not to be found out from each
    names : names of the columns, for files whose first line is data already
    """

    dialect: Dialect = field(default_factory=Dialect)
    names: tuple[str, ...] | None = None

    def read(self, path: Path) -> Columns:
        """Read a whole file."""
        return _guard(path, lambda: _columns(self._table(path)))

    def _table(self, path: Path) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        if not path.stat().st_size:
            raise LoaderError("it is empty. Remove it, or leave it out with pattern=.")
        found = self.dialect.of(path)
        utf8 = codecs.lookup(found.encoding).name == "utf-8"
        # One block for the whole file: the type of a column is that of all its cells, not of the first ones.
        size = min(max(path.stat().st_size + 1, 1 << 16), _LARGEST_BLOCK)
        try:
            table = csv.read_csv(
                path if utf8 else arrow_file(path.read_bytes().decode(found.encoding).encode()),
                read_options=csv.ReadOptions(
                    use_threads=False, block_size=size, column_names=self.names, skip_rows=found.skip
                ),
                parse_options=csv.ParseOptions(delimiter=found.delimiter),
                convert_options=csv.ConvertOptions(
                    strings_can_be_null=True,
                    null_values=[*csv.ConvertOptions().null_values, " "],  # "1, , 2"
                    decimal_point=found.decimal,
                ),
            )
        except pa.ArrowInvalid as error:
            raise LoaderError(
                f"{error}.\n  Cells are parted by {found.delimiter!r} here; if that is wrong, pass delimiter=. If "
                "lines stand before the names of the columns, pass skip=."
            ) from error
        names = [name.strip() for name in table.column_names]
        if self.names is None and all(map(is_number, names)):
            raise LoaderError("the first line must name the columns; it holds only numbers. Pass names=[...].")
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise UnicodeError(found.encoding)
        return table.rename_columns(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parquet:
    """How to read Parquet files."""

    def read(self, path: Path) -> Columns:
        """Read a whole file."""
        from pyarrow import parquet

        return _guard(path, lambda: _columns(parquet.read_table(path, use_threads=False)))


def _guard(path: Path, read: Callable[[], Columns]) -> Columns:
    import pyarrow as pa

    try:
        return read()
    except UnicodeError as error:
        raise in_file(
            path,
            'its text is not UTF-8. Save it as such, or pass encoding=: Excel writes "cp1252" in Western Europe.',
        ) from error
    except (OSError, LoaderError, pa.ArrowException) as error:
        raise in_file(path, f"cannot be read: {error}") from error


def is_number(text: str) -> bool:
    """Whether a word reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(table: Any) -> Columns:
    names = table.column_names
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise LoaderError(f"column names must be unique; found {min(repeated)!r} more than once.")
    return {name: _to_numpy(table.column(name)) for name in names}


def _to_numpy(column: Any) -> AnyArray:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _to_numpy(column.cast(kind.value_type))
    if pa.types.is_boolean(kind) and column.null_count:
        column = column.cast(pa.int8()).cast(pa.float64())
    elif pa.types.is_null(kind) or pa.types.is_decimal(kind) or (pa.types.is_integer(kind) and column.null_count):
        column = column.cast(pa.float64())
    if pa.types.is_nested(kind):
        return _nested(column.to_pylist())
    return from_arrow(column)


def _nested(values: list[Any]) -> AnyArray:
    """Lists of one length as a matrix (an embedding per row), everything else as objects."""
    if values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        matrix = np.array(values)
        if matrix.dtype.kind in "iuf":
            return matrix
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects

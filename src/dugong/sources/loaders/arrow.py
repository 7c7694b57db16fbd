"""CSV and Parquet files as numpy columns, with what is absent kept absent.

In: a file. Out: arrays by column name. Empty cells of numbers become NaN (whole numbers turn into floats
where there are any), of words None, of times NaT.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from dugong.archives import arrow_file, from_arrow
from dugong.exceptions import LoaderError
from dugong.types import AnyArray, BoolArray, read_only

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
    """What a file of a table is written in; what is empty is to be found out from the file.

    Attributes
    ----------
    delimiter : str
        What parts cells. Found: the semicolon or tab that stands equally often in all of the first lines, else what
        stands most often in the first one, else a comma.
    decimal : the sign of decimals. Found: a comma where numbers are written with it and cells are not parted by it.
    encoding : found: UTF-16 by its mark, else UTF-8
    skip : lines before the names of the columns, beside those that begin with ``#``
    """

    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    skip: int = 0

    def of(self, path: Path) -> Dialect:
        """Find out what was not said."""
        if not path.stat().st_size:
            raise LoaderError("it is empty. Remove it, or leave it out with pattern=.")
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
        return Dialect(delimiter=delimiter, decimal=decimal, encoding=encoding, skip=self.skip + remarks)


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


def read_csv(path: Path, dialect: Dialect, names: tuple[str, ...] | None) -> Columns:
    """Read a whole CSV file; `names` are those of the columns where the first line is data already."""
    return _guard(path, lambda: _columns(_csv_table(path, dialect.of(path), names)))


def _csv_table(path: Path, found: Dialect, given: tuple[str, ...] | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    utf8 = codecs.lookup(found.encoding).name == "utf-8"
    # One block for the whole file: the type of a column is that of all its cells, not of the first ones.
    size = min(max(path.stat().st_size + 1, 1 << 16), _LARGEST_BLOCK)
    try:
        table = csv.read_csv(
            path if utf8 else arrow_file(path.read_bytes().decode(found.encoding).encode()),
            read_options=csv.ReadOptions(use_threads=False, block_size=size, column_names=given, skip_rows=found.skip),
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
    if given is None and all(map(is_number, names)):
        raise LoaderError("the first line must name the columns; it holds only numbers. Pass names=[...].")
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise UnicodeError(found.encoding)
    return table.rename_columns(names)


def read_parquet(path: Path) -> Columns:
    """Read a whole Parquet file."""
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


# --- A table as a sequence: rows with named cells for sources, columns as arrays for vectorised ones ------------------
# ``rows[3]`` is a `Row` (``row.ankle_x`` or ``row["ankle_x"]``), ``rows[3:9]`` are rows again, and ``rows.ankle_x`` or
# ``rows["ankle_x"]`` is a whole column. Missing numbers are NaN, missing words None.
def in_file(path: Path, text: str) -> LoaderError:
    """An error that begins with the name of the file."""
    return LoaderError(f"{path}: {text}")


class Row:
    """One row: its cells by key, or by attribute where the name of the column allows it."""

    __slots__ = ("_cells", "_index")

    def __init__(self, cells: _Cells, index: int) -> None:
        self._cells = cells
        self._index = index

    def __getattr__(self, name: str) -> Any:
        # Columns are properties of the class that `row_class` makes, so this is never reached for them.
        raise AttributeError(unknown_column(name, self._cells.columns))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name][self._index]
        except KeyError:
            raise KeyError(unknown_column(name, self._cells.columns)) from None

    def __iter__(self) -> Iterator[Any]:
        """Run over the cells, in the order of the columns."""
        return (self[name] for name in self._cells.columns)

    def __len__(self) -> int:
        return len(self._cells.columns)

    def to_dict(self) -> dict[str, Any]:
        """The cells by name."""
        return {name: self[name] for name in self._cells.columns}

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        place = slice(self._index, self._index + 1)
        return _rebuild_row, ({name: column[place] for name, column in self._cells.columns.items()},)


class _Cells(dict[str, list[Any]]):
    """Columns as Python lists, each made when first asked for: plain numbers are quick."""

    def __init__(self, columns: Mapping[str, AnyArray]) -> None:
        super().__init__()
        self.columns = columns

    def __missing__(self, name: str) -> list[Any]:
        column = self.columns[name]
        # Lists of datetime64 would be whole numbers of nanoseconds, so such columns stay arrays.
        self[name] = cells = list(column) if column.dtype.kind in "mM" or column.ndim > 1 else column.tolist()
        return cells


@lru_cache(maxsize=128)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """A `Row` with a property for every column: ten times as quick as looking the attribute up by name."""
    free = [name for name in names if name.isidentifier() and not hasattr(Row, name)]
    return type("Row", (Row,), {"__slots__": ()} | {name: _cell_property(name) for name in free})


def _cell_property(name: str) -> property:
    return property(lambda row: row._cells[name][row._index])  # noqa: SLF001 (a part of the class)


def unknown_column(name: object, columns: Mapping[str, AnyArray]) -> str:
    """What to say when there is no such column."""
    return f"there is no column {name!r}; known are {', '.join(map(repr, columns))}"


class Rows:
    """A table with named columns of one length, read-only.

    Attributes
    ----------
    columns : mapping of name to array
    missing : (n_rows,) bool array
        Rows that were not in the file: gaps of a sensor, filled with NaN.
    clock : (start in seconds, rows per second) or None
    cells : the columns as Python values
    row : function from a place to its `Row`
        The quick way to ``rows[place]``, for places that exist.
    """

    __slots__ = ("cells", "clock", "columns", "missing", "row")

    def __init__(
        self,
        columns: Mapping[str, AnyArray],
        *,
        missing: BoolArray | None = None,
        clock: tuple[float, float] | None = None,
    ) -> None:
        if not columns:
            raise LoaderError("a table needs at least one column; found none.")
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise LoaderError(f"columns of a table must have one length; found {lengths}.")
        n_rows = next(iter(lengths.values()))
        self.columns = {name: read_only(column) for name, column in columns.items()}
        self.missing = read_only(np.zeros(n_rows, dtype=np.bool_) if missing is None else missing)
        self.clock = clock
        self.cells = _Cells(self.columns)
        self.row = partial(row_class(tuple(self.columns)), self.cells)

    def __len__(self) -> int:
        return len(self.missing)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Rows: ...
    @overload
    def __getitem__(self, key: str) -> AnyArray: ...
    def __getitem__(self, key: int | slice | str) -> Row | Rows | AnyArray:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(unknown_column(key, self.columns))
            return self.columns[key]
        if isinstance(key, slice):
            return self._part(key)
        n_rows = len(self.missing)
        if not -n_rows <= key < n_rows:
            raise IndexError(f"row {key} of a table with {n_rows} rows")
        return self.row(int(key) % n_rows)

    def __getattr__(self, name: str) -> AnyArray:
        # Slots have their own names; they come here only where nothing is set yet.
        if name in Rows.__slots__ or name not in self.columns:
            raise AttributeError(name if name in Rows.__slots__ else unknown_column(name, self.columns))
        return self.columns[name]

    def take_rows(self, places: Sequence[int]) -> Rows:
        """Some rows, in the given order; a row may occur more than once."""
        order = np.asarray(places, dtype=np.int64)
        columns = {name: column[order] for name, column in self.columns.items()}
        return Rows(columns, missing=self.missing[order])

    def _part(self, key: slice) -> Rows:
        clock = self.clock
        if clock is not None:
            first, _, step = key.indices(len(self))
            clock = (clock[0] + first / clock[1], clock[1]) if step == 1 else None
        columns = {name: column[key] for name, column in self.columns.items()}
        return Rows(columns, missing=self.missing[key], clock=clock)

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, range(len(self)))

    def __repr__(self) -> str:
        gaps = f", {int(self.missing.sum())} missing" if self.missing.any() else ""
        return f"Rows({len(self)} rows{gaps}; {', '.join(self.columns)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Rows, missing=self.missing, clock=self.clock), (self.columns,)


def _rebuild_row(columns: Mapping[str, AnyArray]) -> Row:
    return Rows(columns)[0]

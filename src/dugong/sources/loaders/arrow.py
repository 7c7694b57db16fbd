"""CSV and Parquet files as numpy columns, with what is absent kept absent.

In: a file. Out: arrays by column name. Empty cells of numbers become NaN (whole numbers turn into floats
where there are any), of words None, of times NaT.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dugong.archives import arrow_file, from_arrow
from dugong.sources.loaders.dialect import Dialect
from dugong.sources.loaders.errors import LoaderError, in_file
from dugong.types import AnyArray

Columns = dict[str, AnyArray]
_LARGEST_BLOCK = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """How to read CSV files.

    Attributes
    ----------
    dialect : Dialect
        What files are written in, where that is not to be found out from each.
    names : tuple of str or None
        Names of the columns, for files whose first line is data already.
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

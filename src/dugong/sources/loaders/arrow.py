"""CSV and Parquet files as numpy columns, with what is absent kept absent.

In: a file. Out: arrays by column name. Empty cells of numbers become NaN (whole numbers turn into floats
where there are any), of words None, of times NaT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dugong.sources.loaders.errors import LoaderError, in_file
from dugong.types import AnyArray

Columns = dict[str, AnyArray]
_LARGEST_BLOCK = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv:
    """How to read CSV files.

    Attributes
    ----------
    delimiter : str
    names : tuple of str or None
        Names of the columns, for files whose first line is data already.
    """

    delimiter: str = ","
    names: tuple[str, ...] | None = None

    def read(self, path: Path) -> Columns:
        """Read a whole file."""
        return _guard(path, lambda: _columns(self._table(path)))

    def _table(self, path: Path) -> Any:
        from pyarrow import csv

        # One block for the whole file: the type of a column is that of all its cells, not of the first ones.
        size = min(max(path.stat().st_size + 1, 1 << 16), _LARGEST_BLOCK)
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=size, column_names=self.names),
            parse_options=csv.ParseOptions(delimiter=self.delimiter),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
        if self.names is None and all(map(is_number, table.column_names)):
            raise LoaderError("the first line must name the columns; it holds only numbers. Pass names=[...].")
        return table


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
    except (OSError, LoaderError, pa.ArrowException, UnicodeDecodeError) as error:
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
    return np.asarray(column.to_numpy())


def _nested(values: list[Any]) -> AnyArray:
    """Lists of one length as a matrix (an embedding per row), everything else as objects."""
    if values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        matrix = np.array(values)
        if matrix.dtype.kind in "iuf":
            return matrix
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects

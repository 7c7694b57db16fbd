"""Votes in a Parquet file that any tool can open.

In: a header and flat arrays, or a path. Out: the file, or the same. One column per array, so votes on
elements are simply the matrix of elements by sources; row i of a column is its i-th task. Columns of
coarser resolutions are shorter and end in nulls, which cost nothing. int8 columns are dictionary and run-
length encoded, a million rows per row group, each page with a checksum; the header is in the metadata of
the schema under ``dugong``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dugong.exceptions import VoteError
from dugong.paths import Place, Url
from dugong.types import AnyArray
from dugong.votes.header import DamagedError, Stored, decode_header, empty_array, encode_header

__all__ = ["open_parquet", "read_parquet", "write_parquet"]

_KEY = b"dugong"
_ROWS = 1 << 20


def write_parquet(stored: Stored, handle: BinaryIO) -> None:
    """Write header and arrays."""
    fields = [pa.field(name, _arrow_type(array)) for name, array in stored.arrays.items()]
    schema = pa.schema(fields, metadata={_KEY: encode_header(stored.header)})
    n_rows = max(len(array) for array in stored.arrays.values())
    with pq.ParquetWriter(
        handle, schema, compression="zstd", write_statistics=False, write_page_checksum=True
    ) as writer:
        for start in range(0, max(n_rows, 1), _ROWS):
            count = min(_ROWS, n_rows - start)
            columns = [_padded(array[start : start + count], count) for array in stored.arrays.values()]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=_ROWS)


@contextmanager
def open_parquet(path: Place, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, here or at a URL."""
    with (
        path.open("rb") if isinstance(path, Url) else nullcontext(path) as readable,
        pq.ParquetFile(readable, **options) as file,
    ):
        yield file


def read_parquet(path: Place) -> Stored:
    """Read header and arrays."""
    try:
        with open_parquet(path, page_checksum_verification=True, pre_buffer=False) as file:
            metadata = file.schema_arrow.metadata or {}
            if _KEY not in metadata:
                raise VoteError(
                    "it is a Parquet file, but holds no votes written by Dugong.\n"
                    "  If it is a long table, use Votes.from_long(pyarrow.parquet.read_table(path))."
                )
            header = decode_header(metadata[_KEY])
            return Stored(header=header, arrays=_read_arrays(file, header["arrays"]))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DamagedError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def _read_arrays(file: pq.ParquetFile, wanted: dict[str, dict[str, object]]) -> dict[str, AnyArray]:
    """Fill one array after the other, a row group at a time, so that no second copy of the votes is made."""
    arrays = {name: empty_array(plain) for name, plain in wanted.items()}
    start = 0
    for group in range(file.num_row_groups):
        for name, array in arrays.items():
            if start < len(array):
                column = file.read_row_group(group, columns=[name], use_threads=False).column(name)
                piece = column.slice(0, len(array) - start)
                array[start : start + len(piece)] = piece.to_numpy()
        start += file.metadata.row_group(group).num_rows
    if start < max(len(array) for array in arrays.values()):
        raise DamagedError("it has fewer rows than its header says")
    return {name: array.astype(np.str_) if array.dtype == object else array for name, array in arrays.items()}


def _arrow_type(array: AnyArray) -> pa.DataType:
    return pa.string() if array.dtype.kind == "U" else pa.from_numpy_dtype(array.dtype)


def _padded(piece: AnyArray, count: int) -> pa.Array:
    """An arrow column of `count` rows that ends in nulls."""
    values = pa.array(piece, type=_arrow_type(piece))
    if len(values) == count:
        return values
    return pa.concat_arrays([values, pa.nulls(count - len(values), type=values.type)])

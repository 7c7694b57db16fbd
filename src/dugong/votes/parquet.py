"""Votes in a Parquet file that any tool can open.

In: a header and flat arrays, or a path. Out: the file, or the same. One column per array, so votes on elements are
simply the matrix of elements by sources; row i of a column is its i-th task. Columns of coarser resolutions are shorter
and end in nulls, which cost nothing. int8 columns are dictionary and run- length encoded, a million rows per row group,
each page with a checksum; the header is in the metadata of the schema under ``dugong``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dugong.archives import from_arrow, to_arrow
from dugong.codec import encode, parse
from dugong.exceptions import DugongError, FileError
from dugong.paths import Place, Url
from dugong.types import AnyArray
from dugong.votes.files import Header, Stored, StoredArray, decode_header, read_arrays

_KEY = b"dugong"
_ROWS = 1 << 20
_ARROW_NAMES = {"str": "string", "float64": "double", "float32": "float"}


def write_parquet(stored: Stored, handle: BinaryIO) -> None:
    """Write header and arrays."""
    fields = [
        pa.field(name, pa.string() if array.dtype.kind == "U" else pa.from_numpy_dtype(array.dtype))
        for name, array in stored.arrays.items()
    ]
    schema = pa.schema(fields, metadata={_KEY: json.dumps(encode(stored.header)).encode()})
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
    """Open a Parquet file, here or at a URL; whatever is wrong with it is a `FileError`."""
    try:
        with (
            path.open("rb") if isinstance(path, Url) else nullcontext(path) as readable,
            pq.ParquetFile(readable, **options) as file,
        ):
            yield file
    except DugongError:
        raise
    except (pa.ArrowException, OSError, KeyError, MemoryError, ValueError) as error:
        raise FileError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def read_header(file: pq.ParquetFile) -> Header:
    """The header of an open file."""
    metadata = file.schema_arrow.metadata or {}
    if _KEY not in metadata:
        raise FileError(
            "it is a Parquet file, but holds no votes written by Dugong.\n"
            "  If it is a long table, use Votes.from_long(pyarrow.parquet.read_table(path))."
        )
    return decode_header(parse(metadata[_KEY]))


def read_parquet(path: Place) -> Stored:
    """Read header and arrays."""
    with open_parquet(path, page_checksum_verification=True, pre_buffer=False) as file:
        header = read_header(file)
        return read_arrays(header, partial(read_columns, file, header), partial(_blocks, file, header))


def read_columns(file: pq.ParquetFile, header: Header, names: list[str]) -> dict[str, AnyArray]:
    """Fill one array after the other, a block at a time, so that no second copy of the votes is made."""
    arrays = {name: _empty(file, name, header.arrays[name]) for name in names}
    for name, array in arrays.items():
        start = 0
        for piece in _blocks(file, header, name):
            array[start : start + len(piece)] = piece
            start += len(piece)
    return {name: array.astype(np.str_) if array.dtype == object else array for name, array in arrays.items()}


def _blocks(file: pq.ParquetFile, header: Header, name: str) -> Iterator[AnyArray]:
    """The values of a column, block by block; rows beyond its length are empty."""
    length = header.arrays[name].length
    _empty(file, name, header.arrays[name])
    left = length
    for batch in file.iter_batches(batch_size=_ROWS, columns=[name], use_threads=False):
        piece = batch.column(0).slice(0, left)
        if piece.null_count:
            raise FileError(f"{name} must have {length:,} values; found empty ones among them")
        yield from_arrow(piece)
        left -= len(piece)
        if not left:
            return
    if left:  # the room that was made for them would be read as it was found
        raise FileError(f"{name} must have {length:,} values; found {length - left:,}")


def _empty(file: pq.ParquetFile, name: str, stored: StoredArray) -> AnyArray:
    """Room for a column that is what the header says: nothing is converted."""
    if name not in file.schema_arrow.names:
        raise FileError(f"it lacks the column {name!r}")
    found = file.schema_arrow.field(name).type
    if str(found) not in (stored.dtype, _ARROW_NAMES.get(stored.dtype)):
        raise FileError(f"the column {name!r} must hold {stored.dtype}; found {found}")
    if stored.length > file.metadata.num_rows:
        raise FileError("it has fewer rows than its header says")
    return np.empty(stored.length, dtype=object if stored.dtype == "str" else stored.dtype)


def _padded(piece: AnyArray, count: int) -> pa.Array:
    """An arrow column of `count` rows that ends in nulls."""
    values = to_arrow(piece)
    if len(values) == count:
        return values
    return pa.concat_arrays([values, pa.nulls(count - len(values), type=values.type)])

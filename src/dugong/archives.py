"""Arrays with a header in one file: a NumPy archive (``.npz``) that anybody can open, never code; and tables.

In: plain data and named arrays, or a path. Out: the file, or the same. The header is JSON, kept as an array of bytes
named ``header``. What an array claims to be is compared with the bytes that are there before room is made for it, and
its checksum is verified before anything in it is believed. Pickles are refused.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from dugong.codec import encode, parse
from dugong.exceptions import DugongError, FileError
from dugong.paths import Place
from dugong.types import AnyArray

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = "header"
_LONGEST_HEADER = 1 << 28  # bytes
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, KeyError, RuntimeError, ValueError)


def write_archive(handle: BinaryIO, header: Any, arrays: Mapping[str, AnyArray]) -> None:
    """Write a header and arrays; names are those of files, so neither empty nor with slashes."""
    text = np.frombuffer(json.dumps(encode(header)).encode(), dtype=np.uint8)
    with zipfile.ZipFile(handle, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in {_HEADER: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


class Archive:
    """An open archive: its header, and its arrays one by one."""

    def __init__(self, file: zipfile.ZipFile, stranger: str) -> None:
        self._file = file
        if f"{_HEADER}.npy" not in file.namelist():
            raise FileError(stranger)
        if self._size(_HEADER) > _LONGEST_HEADER:
            raise FileError(f"its header is longer than {_LONGEST_HEADER:,} bytes")
        self.header = parse(self.read(_HEADER, "u").tobytes())

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._file.namelist()

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return [name.removesuffix(".npy") for name in self._file.namelist() if name != f"{_HEADER}.npy"]

    def read(self, name: str, kinds: str = "iuf", shape: tuple[int | None, ...] | None = None) -> AnyArray:
        """One array.

        Parameters
        ----------
        kinds : letters of NumPy's kinds of numbers that are fine
        shape : what its shape must be, None for any size; optional
        """
        if name not in self:
            raise FileError(f"it lacks {name!r}")
        with self._file.open(f"{name}.npy") as member:
            found = _describe(member)
            if shape is not None and not (
                len(found.shape) == len(shape)
                and all(want in (None, size) for size, want in zip(found.shape, shape, strict=True))
            ):
                raise FileError(f"{name} must have the shape {shape}; found {found.shape}")
            return _read(member, found, self._size(name) - member.tell(), name, kinds)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not read."""
        if name not in self:
            raise FileError(f"it lacks {name!r}")
        with self._file.open(f"{name}.npy") as member:
            return _describe(member).shape

    def blocks(self, name: str, size: int = 1 << 20) -> Iterator[AnyArray]:
        """A flat array of whole numbers, so many at a time."""
        with self._file.open(f"{name}.npy") as member:
            found = _describe(member)
            left = math.prod(found.shape)
            if found.dtype.kind not in "iu" or left * found.dtype.itemsize != self._size(name) - member.tell():
                raise FileError(f"{name} must hold whole numbers, as many as its header says")
            while left:
                yield np.frombuffer(member.read(min(size, left) * found.dtype.itemsize), dtype=found.dtype)
                left -= min(size, left)

    def _size(self, name: str) -> int:
        """Bytes of an array; only ways to pack are read that cannot make much out of nothing."""
        about = self._file.getinfo(f"{name}.npy")
        if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileError(f"{name} is packed in a way that Dugong does not write")
        return about.file_size


def load_array(place: Place, kinds: str = "iufU") -> AnyArray:
    """The array of an ``.npy`` file; whatever is wrong with it is a `FileError`."""
    with place.open("rb") as handle:
        present = handle.seek(0, 2)
        handle.seek(0)
        return _read(handle, _describe(handle), present - handle.tell(), "the array", kinds)


@dataclass(frozen=True, slots=True)
class _Array:
    """What an array claims to be."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def check_array(place: Place) -> None:
    """Raise a `FileError` unless a file begins like an array that can be read without running code."""
    with place.open("rb") as handle:
        if _describe(handle).dtype.hasobject:
            raise FileError("it holds objects, which are never read")


def _read(handle: Any, found: _Array, present: int, name: str, kinds: str) -> AnyArray:
    """An array, if the bytes that are there are as many as it claims."""
    if found.dtype.kind not in kinds:
        held = "objects, which allow_pickle=False refuses" if found.dtype.hasobject else str(found.dtype)
        raise FileError(f"{name} must hold other values; found {held}")
    expected = math.prod(found.shape) * found.dtype.itemsize
    if expected != present:
        raise FileError(f"{name} must have {expected:,} bytes; found {present:,}")
    array: AnyArray = np.frombuffer(handle.read(), dtype=found.dtype)
    return array.reshape(found.shape, order="F" if found.fortran else "C")


def _describe(member: Any) -> _Array:
    """Shape, order and dtype of an array, off its own header."""
    try:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(member)
    except (ValueError, SyntaxError, TypeError, RecursionError, TokenError) as error:
        raise FileError(f"an array has no header that can be read: {error}") from None
    if any(type(size) is not int or size < 0 for size in shape):
        raise FileError(f"an array must have sizes of at least 0; found the shape {shape}")
    return _Array(shape, fortran, dtype)


@contextmanager
def open_archive(path: Place, stranger: str = "it was not written by Dugong") -> Iterator[Archive]:
    """Open an archive, here or at a URL; what is wrong with it is a `FileError`: `stranger` if it has no header."""
    try:
        with path.open("rb") as handle, zipfile.ZipFile(handle) as file:
            yield Archive(file, stranger)
    except DugongError:
        raise
    except _DAMAGED as error:
        raise FileError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


# --- tables --------------------------------------------------------------------------------------------------------
def read_table(file: Place | bytes) -> pa.Table:
    """A table of a ``.csv`` or Parquet file, or of the bytes of a Parquet file; errors are those of Arrow.

    Ids of sequences stay words: 007 is not 7.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    with arrow_file(file) as handle:
        if isinstance(file, bytes) or file.suffix != ".csv":
            return pyarrow.parquet.ParquetFile(handle).read()
        options = pyarrow.csv.ConvertOptions(column_types={"sequence": pa.string()})
        return pyarrow.csv.read_csv(handle, convert_options=options)


def arrow_file(file: Place | bytes) -> pa.NativeFile:
    """A file of Arrow's own: its threads may let go of one of Python's while Python ends, which aborts the process."""
    import pyarrow as pa

    if isinstance(file, Path):
        return pa.OSFile(str(file))
    room = pa.BufferOutputStream()
    room.write(file if isinstance(file, bytes) else file.read_bytes())
    return pa.BufferReader(room.getvalue())


# Arrow's own conversions import pandas wherever it is installed, which takes longer than all else in a short run; what
# a run needs goes by the bytes.
def from_arrow(column: pa.Array | pa.ChunkedArray) -> AnyArray:
    """A column as a NumPy array; words are objects."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(column.to_pylist(), dtype=object)
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(column)
    pieces = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    arrays = [
        np.frombuffer(one.buffers()[1], dtype, len(one), one.offset * dtype.itemsize) for one in pieces if len(one)
    ]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, dtype), *arrays])


def to_arrow(values: AnyArray) -> pa.Array:
    """Numbers or words as a column of Arrow."""
    import pyarrow as pa

    if values.dtype.kind in "iuf":
        parts = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), parts)
    if values.dtype.kind != "U":
        return pa.array(values)
    words = [word.encode() for word in values.tolist()]
    ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    return pa.Array.from_buffers(pa.large_string(), len(words), buffers).cast(pa.string())

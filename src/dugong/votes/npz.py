"""Votes in a NumPy archive, for places without Parquet.

In: a header and flat arrays, or a path. Out: the file, or the same. The header is an array of bytes named ``header``;
``array0``, ``array1``, ... are the arrays in the order in which it lists them (a source may have a name that an
archive cannot). Nothing is pickled, and reading refuses pickles.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import BinaryIO

import numpy as np

from dugong.exceptions import VoteError
from dugong.paths import Place
from dugong.types import AnyArray
from dugong.votes.header import DamagedError, Stored, decode_header, encode_header

__all__ = ["read_npz", "write_npz"]

_KEY = "header"


def write_npz(stored: Stored, handle: BinaryIO) -> None:
    """Write header and arrays."""
    header = np.frombuffer(encode_header(stored.header), dtype=np.uint8)
    with zipfile.ZipFile(handle, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        members = {f"array{place}": array for place, array in enumerate(stored.arrays.values())}
        for name, array in {_KEY: header, **members}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def read_npz(path: Place) -> Stored:
    """Read header and arrays."""
    try:
        with path.open("rb") as handle, zipfile.ZipFile(handle) as archive:
            if f"{_KEY}.npy" not in archive.namelist():
                raise VoteError(
                    "it is a NumPy file, but holds no votes written by Dugong.\n"
                    "  For a plain array of votes, use Votes.from_dense or Votes.from_classes."
                )
            header = decode_header(_read_array(archive, _KEY).tobytes())
            names = enumerate(header["arrays"])
            return Stored(header=header, arrays={name: _read_array(archive, f"array{i}") for i, name in names})
    except VoteError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, KeyError, NotImplementedError, ValueError) as error:
        raise DamagedError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def _read_array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    """One array, its checksum verified before anything in it is believed."""
    member = io.BytesIO(archive.read(f"{name}.npy"))
    return np.lib.format.read_array(member, allow_pickle=False)

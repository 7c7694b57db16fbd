"""Votes in files: ``.parquet`` and ``.npz``, versioned, self-describing, never code.

In: `Votes` and a path, or a path. Out: a file that is complete or not there at all, or the same `Votes`. Both
formats hold the same header (JSON) and the same flat arrays; see `header` for what they are.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from dugong.exceptions import VoteError
from dugong.votes.container import Votes
from dugong.votes.header import DamagedError, Stored, pack, unpack

__all__ = ["read_votes", "write_atomically", "write_votes"]


def write_votes(votes: Votes, path: str | PathLike[str]) -> None:
    """See `Votes.write`."""
    write, _ = _format(Path(path))
    stored = pack(votes)
    write_atomically(path, lambda handle: write(stored, handle))


def read_votes(path: str | PathLike[str]) -> Votes:
    """See `Votes.read`."""
    place = Path(path)
    _, read = _format(place)
    if not place.is_file():
        raise VoteError(f"there is no file {place}.")
    try:
        return unpack(read(place))
    except DamagedError as error:
        raise VoteError(
            f"{place} cannot be read: {error}.\n  The file is truncated or damaged: write it again, or copy it again."
        ) from error
    except VoteError as error:
        raise VoteError(f"{place} cannot be read: {error}") from None


def _format(path: Path) -> tuple[Callable[[Stored, BinaryIO], None], Callable[[Path], Stored]]:
    if path.suffix == ".parquet":
        from dugong.votes.parquet import read_parquet, write_parquet

        return write_parquet, read_parquet
    if path.suffix == ".npz":
        from dugong.votes.npz import read_npz, write_npz

        return write_npz, read_npz
    raise VoteError(f"votes are kept in .parquet or .npz files; found {path.name!r}.")


def write_atomically(path: str | PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file so that it appears under its name only when it is complete.

    Parameters
    ----------
    path : path of the file
    write : function
        Gets an open binary file and writes everything into it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise VoteError(f"there is no folder {target.parent}; make it first.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as handle:
            write(handle)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

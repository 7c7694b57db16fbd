"""Votes in files: ``.parquet`` and ``.npz``, versioned, self-describing, never code.

In: `Votes` and a path, or a path. Out: a file that is complete or not there at all, or the same `Votes`. Both
formats hold the same header (JSON) and the same flat arrays; see `header` for what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import BinaryIO

from dugong.exceptions import VoteError
from dugong.paths import Place, place_of, write_atomically
from dugong.votes.container import Votes
from dugong.votes.header import DamagedError, Stored, pack, unpack

__all__ = ["read_votes", "write_atomically", "write_votes"]


def write_votes(votes: Votes, path: str | PathLike[str]) -> None:
    """See `Votes.write`."""
    write, _ = _format(place_of(path))
    stored = pack(votes)
    write_atomically(path, lambda handle: write(stored, handle))


def read_votes(path: str | PathLike[str]) -> Votes:
    """See `Votes.read`."""
    place = place_of(path)
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


def _format(path: Place) -> tuple[Callable[[Stored, BinaryIO], None], Callable[[Place], Stored]]:
    if path.suffix == ".parquet":
        from dugong.votes.parquet import read_parquet, write_parquet

        return write_parquet, read_parquet
    if path.suffix == ".npz":
        from dugong.votes.npz import read_npz, write_npz

        return write_npz, read_npz
    raise VoteError(f"votes are kept in .parquet or .npz files; found {path.name!r}.")

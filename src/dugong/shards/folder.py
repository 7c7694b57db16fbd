"""Votes as a folder of Parquet files: a data set that need not fit into memory.

In: a folder of files that `Votes.write` wrote, with the same sources and classes. Out: `VoteShards`, which knows the
sizes of all shards from their headers and reads one shard at a time. Shards are in the order of their names.
Sequences without ids are called by shard and place (``part-00003/17``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike

import numpy as np

from dugong.codec import reading
from dugong.exceptions import FileError, VoteError
from dugong.paths import Place, place_of
from dugong.shards.stamps import check_finished, drop_others, refuse_others, unfinished, write_stamped
from dugong.types import IntArray
from dugong.votes import Votes
from dugong.votes.concat import concat
from dugong.votes.files import Header, pack
from dugong.votes.parquet import open_parquet, read_columns, read_header, write_parquet

_OURS = re.compile(r"part-\d+\.parquet")
_MEANING = ("n_classes", "class_names", "background", "partial", "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One file of votes, and its sizes; travels to workers in place of the votes."""

    path: Place
    n_sequences: int
    n_elements: int
    shortest: int
    longest: int

    @property
    def name(self) -> str:
        """The name of the file without its suffix."""
        return self.path.stem

    def read(self) -> Votes:
        """Read the votes; every sequence has an id."""
        votes = Votes.read(self.path)
        if votes.ids is not None:
            return votes
        return replace(votes, ids=np.array([f"{self.name}/{place}" for place in range(votes.n_sequences)]))

    def __str__(self) -> str:
        return f"shard {self.path.name}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VoteShards:
    """A folder of votes; iterate over it for one `Votes` after the other.

    Attributes
    ----------
    folder : Path, or Url
    shards : tuple of Shard
    n_sources, n_classes : int
    """

    folder: Place
    shards: tuple[Shard, ...]
    n_sources: int
    n_classes: int

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> VoteShards:
        """Read the headers of all shards of a complete folder; no votes are read."""
        place = place_of(folder)
        if not place.is_dir():
            raise VoteError(f"there is no folder {place}.")
        check_finished(place)
        files = _shard_files(place)
        if not files:
            raise VoteError(f"{place} holds no votes: there are no .parquet files in it.")
        found = [_read_head(file) for file in files]
        for (shard, header), (first, wanted) in zip(found, found[:1] * len(found), strict=True):
            different = [name for name in _MEANING if getattr(header, name) != getattr(wanted, name)]
            if different:
                raise VoteError(
                    f"all shards must have the same {different[0]}; {shard.path.name} differs from {first.path.name}.\n"
                    "  Write it again, or keep it in a folder of its own."
                )
        header = found[0][1]
        return cls(
            folder=place,
            shards=tuple(shard for shard, _ in found),
            n_sources=len(header.sources),
            n_classes=header.n_classes,
        )

    @classmethod
    def write(cls, parts: Iterable[Votes], folder: str | PathLike[str]) -> VoteShards:
        """Write votes that come one part at a time; the folder counts as complete when all are written."""
        place = place_of(folder)
        with unfinished(place):
            refuse_votes(place)
            kept = set()
            for number, votes in enumerate(parts):
                kept.add(file_name(number))
                content = pack(votes)
                write_stamped(place / file_name(number), partial(write_parquet, content), {"written": "whole"})
            drop_others(place, kept)
        return cls.open(place)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return sum(shard.n_sequences for shard in self.shards)

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return sum(shard.n_elements for shard in self.shards)

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[Votes]:
        return (shard.read() for shard in self.shards)

    def __repr__(self) -> str:
        return f"VoteShards({len(self)} shards, {self.n_sequences:,} sequences, {self.n_elements:,} elements)"

    def specimen(self) -> Votes:
        """The shortest and the longest sequence: what is voted on, without the votes."""
        ends = [
            min(self.shards, key=lambda shard: shard.shortest),
            max(self.shards, key=lambda shard: shard.longest),
        ]
        chosen = [pick(shard.read().lengths) for shard, pick in zip(ends, (np.argmin, np.argmax), strict=True)]
        same = ends[0] == ends[1] and chosen[0] == chosen[1]
        parts = [shard.read()[[place]] for shard, place in zip(ends, chosen, strict=True)]
        return parts[0] if same else concat(parts, keys=["shortest", "longest"])


def file_name(number: int, suffix: str = ".parquet") -> str:
    """Name of the file of a shard."""
    return f"part-{number:05d}{suffix}"


def refuse_votes(folder: Place) -> None:
    """Stop if a folder that is about to be written holds votes, or files of our names, that no run has put there."""
    refuse_others(file for file in folder.glob("*.parquet") if _OURS.fullmatch(file.name) or _holds_votes(file))


def _shard_files(folder: Place) -> list[Place]:
    """The files of votes. Where a run has written, a file of another name that holds no votes is the user's own."""
    files = sorted(file for file in folder.glob("*.parquet") if not file.name.startswith("."))
    ours = {file.stem for file in files if _OURS.fullmatch(file.name)}
    written = not ours.isdisjoint(stamp.stem for stamp in folder.glob("*.json"))
    return [file for file in files if not written or file.stem in ours or _holds_votes(file)]


def _holds_votes(path: Place) -> bool:
    try:
        with open_parquet(path) as file:
            return b"dugong" in (file.schema_arrow.metadata or {})
    except FileError:
        return False


def _read_head(path: Place) -> tuple[Shard, Header]:
    with reading(path, VoteError, "It is damaged: write it again."), open_parquet(path) as file:
        header = read_header(file)
        lengths: IntArray = read_columns(file, header, ["lengths"])["lengths"]
    shard = Shard(
        path=path,
        n_sequences=len(lengths),
        n_elements=int(lengths.sum()),
        shortest=int(lengths.min(initial=0) if not len(lengths) else lengths.min()),
        longest=int(lengths.max(initial=0)),
    )
    return shard, header

"""Votes as a folder of Parquet files: a data set that need not fit into memory.

In: a folder of files that `Votes.write` wrote, with the same sources and classes. Out: `VoteShards`, which knows the
sizes of all shards from their headers and reads one shard at a time. Shards are in the order of their names.
Sequences without ids are called by shard and place (``part-00003/17``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dugong.codec import decode, parse, reading
from dugong.engines import Engine, Serial, reduce_sums
from dugong.exceptions import FileError, VoteError
from dugong.paths import Place, locked, move, place_of, write_atomically, written_aside
from dugong.tasks import Resolution
from dugong.texts import read_size
from dugong.types import IntArray
from dugong.votes import Votes
from dugong.votes.concat import concat
from dugong.votes.files import Header, pack
from dugong.votes.parquet import open_parquet, read_columns, read_header, write_parquet
from dugong.votes.summary import Summary, Tally, summary_of

# --- files that say how they came about, and folders that say whether they are complete ------------------------------
# Beside a file there is a small ``.json`` with the same stem, its *stamp*, which names states by the digest of the
# file's bytes. It is written before its file is replaced, with the old and the new state, so that at every moment,
# whatever crashes, the bytes that are there have their own state or none. That holds for storage without renaming too:
# half a file has a digest that no state names.
UNFINISHED = "UNFINISHED"
_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}\.part")  # how `written_aside` calls files that are not complete
_STAMP = re.compile(rb'\s*\{\s*"[0-9a-f]{32}":|$')  # how stamps begin; an empty one is damaged, not foreign
State = dict[str, Any]


def digest_file(path: Place) -> str:
    """A digest of the bytes of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "blake2b").hexdigest()[:32]  # type: ignore[arg-type]


def digest_of(plain: Any) -> str:
    """A digest of plain data."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def stamp_of(path: Place) -> Place:
    """Where the stamp of a file is."""
    return path.with_suffix(".json")


def read_state(path: Place) -> State | None:
    """What the file that is there was made from; None if there is no file, or nothing is known of its bytes."""
    states = _read_states(path)
    return states.get(digest_file(path)) if states and path.is_file() else None


def write_stamped(path: Place, write: Callable[[BinaryIO], object], state: Mapping[str, Any]) -> None:
    """Replace a file and its state; one of the user that has its name is an error."""
    refuse_others([path])
    with written_aside(path, write) as new:
        digest, states = digest_file(new), _read_states(path)
        _write_states(path, {**states, digest: dict(state)})
        move(new, path)
        if states:
            _write_states(path, {digest: dict(state)})


def settle(path: Place, state: Mapping[str, Any]) -> None:
    """Forget states of bytes that are gone, which a crash may have left in the stamp."""
    if len(_read_states(path)) > 1:
        _write_states(path, {digest_file(path): dict(state)})


def _read_states(path: Place) -> dict[str, State]:
    """States by digest; a stamp that is damaged, or no stamp of ours, knows none."""
    try:
        return decode(dict[str, State], parse(stamp_of(path).read_bytes()))
    except (OSError, FileError):
        return {}


def _write_states(path: Place, states: Mapping[str, State]) -> None:
    text = json.dumps(states, sort_keys=True, indent=1).encode()
    write_atomically(stamp_of(path), lambda handle: handle.write(text))


# --- folders -------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def unfinished(folder: Place) -> Iterator[None]:
    """Lock a folder, and mark it as not complete until the block ends well."""
    text = b"Run the same command again to complete this folder.\n"
    with locked(folder):
        marker = folder / UNFINISHED
        write_atomically(marker, lambda handle: handle.write(text))
        drop_unfinished(folder)
        yield
        marker.unlink()


def drop_unfinished(folder: Place) -> None:
    """Remove what runs that died were writing; nobody else writes, because the folder is locked."""
    for left in folder.glob(".*.part"):
        if _ASIDE.fullmatch(left.name) and _is_file(left):
            left.unlink()


def _is_file(file: Place) -> bool:
    """Whether it is a file, and no link: we make none, so that links are the user's."""
    return file.is_file() and not (isinstance(file, Path) and file.is_symlink())


def check_finished(folder: Place) -> None:
    """Refuse a folder that is being written, or whose writer has died."""
    if (folder / UNFINISHED).exists():
        raise VoteError(
            f"{folder} is not complete: the run that writes it is still going, or was interrupted.\n"
            "  Run the same command again: it continues where it stopped."
        )


def refuse_others(files: Iterable[Place]) -> None:
    """Stop before files are replaced, or taken for shards, that no run has put there: they, or their stamps."""
    foreign = [other for file in files if (other := _foreign(file))]
    if foreign:
        more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise VoteError(
            f"{foreign[0].parent} holds {foreign[0].name}{more}, which Dugong did not write there.\n"
            "  Move it, or choose another folder."
        )


def _foreign(file: Place) -> Place | None:
    """The file, if it has no stamp, or what is in the place of its stamp and does not begin like one."""
    stamp = stamp_of(file)
    if stamp.exists():
        return None if _STAMP.match(stamp.read_bytes()) else stamp
    return file if file.exists() else None


def drop_others(folder: Place, kept: set[str], pattern: str = "part-*") -> None:
    """Remove files of an earlier run, with their stamps, whose names are not among the kept ones.

    Only files whose own stamp knows their bytes go: whatever else is in the folder belongs to the user.
    """
    stems = {name.rpartition(".")[0] for name in kept}
    for file in folder.glob(pattern):
        ours = all(map(_is_file, (file, stamp_of(file)))) and read_state(file) is not None
        if file.suffix != ".json" and file.name not in kept and ours:
            file.unlink()
            if file.stem not in stems:  # the stamp may be that of labels in another format, too
                stamp_of(file).unlink()


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
        first, wanted = found[0]
        for shard, header in found:
            different = [name for name in _MEANING if getattr(header, name) != getattr(wanted, name)]
            if different:
                raise VoteError(
                    f"all shards must have the same {different[0]}; {shard.path.name} differs from {first.path.name}.\n"
                    "  Write it again, or keep it in a folder of its own."
                )
        shards = tuple(shard for shard, _ in found)
        return cls(folder=place, shards=shards, n_sources=len(wanted.sources), n_classes=wanted.n_classes)

    @classmethod
    def write(cls, parts: Iterable[Votes], folder: str | PathLike[str]) -> VoteShards:
        """Write votes that come one part at a time; the folder counts as complete when all are written."""
        place = place_of(folder)
        with unfinished(place):
            refuse_votes(place)
            kept = set()
            for number, votes in enumerate(parts):
                kept.add(file_name(number))
                write_shard(place / file_name(number), votes, {"written": "whole"})
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

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The elements and every resolution that a source votes on."""
        return self.specimen().resolutions

    def specimen(self) -> Votes:
        """The shortest and the longest sequence: what is voted on, without the votes."""
        shards = min(self.shards, key=lambda one: one.shortest), max(self.shards, key=lambda one: one.longest)
        parts = [_pick(shard, place) for shard, place in zip(shards, (np.argmin, np.argmax), strict=True)]
        same = shards[0] == shards[1] and parts[0].equals(parts[1])
        return parts[0] if same else concat(parts, keys=["shortest", "longest"])


def _pick(shard: Shard, place: Callable[[IntArray], np.intp]) -> Votes:
    """One sequence, by the lengths of all."""
    votes = shard.read()
    return votes[[int(place(votes.lengths))]]


def file_name(number: int) -> str:
    """Name of the file of a shard."""
    return f"part-{number:05d}.parquet"


def write_shard(path: Place, votes: Votes, state: State) -> None:
    """Write votes, and what they were made from."""
    write_stamped(path, partial(write_parquet, pack(votes)), state)


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
        shortest=int(lengths.min()) if len(lengths) else 0,
        longest=int(lengths.max(initial=0)),
    )
    return shard, header


# --- Some whole sequences of a folder of votes, for what cannot be added up -------------------------------------------
# In: a folder of votes and a number of elements. Out: `Votes` in memory. A hash of its id decides about a sequence, and
# hashes decide about the order, so that neither the division into shards, nor their order, nor an engine matters.
#
# A limit of memory such as ``"2GB"`` says how many processes fit side by side, and how large a sample can be learned
# on. The numbers are measured: a process of Dugong holds about 0.3 GB before it has seen a vote, and a shard takes a
# few hundred bytes per element while it is labelled.
SAMPLE = 1 << 21


def read_sample(shards: VoteShards, n_elements: int = SAMPLE) -> Votes:
    """Whole sequences with about `n_elements` elements from all shards; if there are no more, all of them in order."""
    share = min(1.0, n_elements / max(shards.n_elements, 1))
    parts = []
    for votes in shards:
        chosen = np.flatnonzero(hashes_of(votes) <= share * 2.0**32)
        if len(chosen):
            parts.append(votes if len(chosen) == votes.n_sequences else votes[chosen])
    if not parts:  # a few sequences that are each longer than the sample
        parts = [_lowest(shards)]
    found = parts[0] if len(parts) == 1 else concat(parts)
    if found.n_sequences == shards.n_sequences:
        return found
    return found[np.lexsort((found.sequence_ids.astype(str), hashes_of(found)))]


def hashes_of(votes: Votes) -> IntArray:
    """A hash below 2 ** 32 of the id of every sequence."""
    digests = (hashlib.blake2b(str(one).encode(), digest_size=4).digest() for one in votes.sequence_ids.tolist())
    return np.array([int.from_bytes(digest) for digest in digests], dtype=np.int64)


def _lowest(shards: VoteShards) -> Votes:
    """The one sequence with the lowest hash."""
    found = [
        (int(hashes.min()), shard, int(hashes.argmin()))
        for shard in shards.shards
        if len(hashes := hashes_of(shard.read()))
    ]
    _, shard, place = min(found, key=lambda one: one[0])
    return shard.read()[[place]]


PROCESS = 300_000_000
_ELEMENT, _PER_SOURCE, _PER_CLASS = 100, 4, 40  # bytes


def words(n_bytes: float) -> str:
    """A size in words."""
    return f"{n_bytes / 1e9:.1f} GB"


def need(n_elements: int, shards: VoteShards) -> int:
    """Bytes of a process that works on so many elements of these votes."""
    return PROCESS + n_elements * (_ELEMENT + _PER_SOURCE * shards.n_sources + _PER_CLASS * shards.n_classes)


def check_memory(shards: VoteShards, memory: str | int | None) -> None:
    """Refuse a limit that the largest shard does not fit into."""
    jobs_within(shards, memory, 1)


def jobs_within(shards: VoteShards, memory: str | int | None, n_jobs: int) -> int:
    """How many of `n_jobs` processes have room for a shard each."""
    if memory is None:
        return n_jobs
    limit, largest = read_size(memory), max(shards.shards, key=lambda shard: shard.n_elements)
    wanted = need(largest.n_elements, shards)
    if wanted > limit:
        raise VoteError(
            f"the memory must hold one shard; {largest} has {largest.n_elements:,} elements, which need about "
            f"{words(wanted)}, and the limit is {words(limit)}.\n  Write smaller shards (--shard-size), or allow more."
        )
    return min(n_jobs, limit // wanted)


def sample_within(shards: VoteShards, memory: str | int | None, sample: int = SAMPLE) -> int:
    """Elements that can be learned on at once; what is not given does not change the sample."""
    if memory is None:
        return sample
    per_element = need(1, shards) - PROCESS
    return max(1, min(sample, (read_size(memory) - PROCESS) // per_element))


# --- what is in a folder ----------------------------------------------------------------------------------------------
# Counts are exact; whole columns (copies of each other) are compared in a bounded sample.
COMPARED = 1 << 18


def summarize_shards(shards: VoteShards, *, engine: Engine | None = None) -> Summary:
    """The summary of all shards, as `Votes.summary` gives it for votes in memory."""
    tally = reduce_sums(engine or Serial(), _tally, shards.shards, describe=str)
    return summary_of(tally, read_sample(shards, COMPARED))


def _tally(shard: Shard) -> Tally:
    return Tally.of(shard.read())

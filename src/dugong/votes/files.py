"""Votes in files: ``.parquet`` and ``.npz``, versioned, self-describing, never code.

In: `Votes` and a path, or a path. Out: a file that is complete or not there at all, or the same `Votes`. Both formats
hold the same header (JSON) and the same flat arrays: ``vote:NAME`` (int8, one per source, in the flat order of its
resolution), ``score:K:NAME`` (float32, one per class, of soft sources), ``lengths``, ``ids`` (if given),
``span:NAME:offsets`` / ``starts`` / ``stops``, and ``time:start`` / ``rate`` / ``stamps`` / ``offsets``. The header
says what they mean and how long they are; its ``storage`` leaves room for other physical forms (bit planes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, BinaryIO

import numpy as np

from dugong.archives import open_archive, write_archive
from dugong.codec import Numbers, check_version, decode, reading
from dugong.exceptions import FileError, VoteError
from dugong.paths import Place, place_of, write_atomically
from dugong.tasks import Element, Resolution, Rounding, Spans, SpanTable, TimeAxis, count_tasks
from dugong.types import AnyArray
from dugong.votes.codes import Fault, SourceInfo
from dugong.votes.container import Votes

FORMAT = "dugong-votes"
VERSION = 1
_STORAGE = "int8"
_SPAN_PARTS = ("offsets", "starts", "stops")
_LONGEST = 1 << 48  # elements of a sequence; more have never been voted on, and sums of them would overflow
_TIME_PARTS = ("start", "rate", "stamps", "offsets")
_SHARED = ("n_classes", "class_names", "background", "partial", "sources", "faults", "given")  # of votes and headers
_Size = Annotated[int, Numbers(low=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArray:
    """What an array of a file is: ``str``, or the name of a kind of numbers."""

    length: _Size
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTime:
    """What a file says of a time axis beside its arrays."""

    rounding: Rounding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the arrays of a file mean."""

    format: str = FORMAT
    version: int = VERSION
    storage: str = _STORAGE
    n_classes: Annotated[int, Numbers(low=2, high=126)]
    class_names: tuple[str, ...] | None
    background: int | None
    partial: Mapping[int, tuple[int, ...]]
    sources: tuple[SourceInfo, ...]
    spans: tuple[str, ...]
    time: StoredTime | None
    faults: tuple[Fault, ...]
    given: tuple[int | str, ...] | None = None
    soft: tuple[str, ...] = ()
    arrays: Mapping[str, StoredArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """The content of a file of votes."""

    header: Header
    arrays: Mapping[str, AnyArray]


# --- votes and plain data ------------------------------------------------------------------------------------------
def pack(votes: Votes) -> Stored:
    """Plain data of votes."""
    arrays: dict[str, AnyArray] = {
        f"vote:{source.name}": column for source, column in zip(votes.sources, votes.columns, strict=True)
    }
    for name, rows in votes.scores.items():
        arrays |= {f"score:{place}:{name}": np.ascontiguousarray(rows[:, place]) for place in range(rows.shape[1])}
    arrays["lengths"] = votes.lengths
    if votes.ids is not None:
        arrays["ids"] = votes.ids
    for name, table in votes.spans.items():
        arrays |= {f"span:{name}:{part}": getattr(table, part) for part in _SPAN_PARTS}
    if votes.time is not None:
        found = {part: getattr(votes.time, part) for part in _TIME_PARTS}
        arrays |= {f"time:{part}": value for part, value in found.items() if value is not None}
    header = Header(
        **{name: getattr(votes, name) for name in _SHARED},
        spans=tuple(votes.spans),
        time=None if votes.time is None else StoredTime(rounding=votes.time.rounding),
        soft=tuple(votes.scores),
        arrays={
            name: StoredArray(length=len(array), dtype="str" if array.dtype.kind == "U" else str(array.dtype))
            for name, array in arrays.items()
        },
    )
    return Stored(header=header, arrays=arrays)


def unpack(stored: Stored) -> Votes:
    """Votes of plain data."""
    header, arrays = stored.header, stored.arrays
    spans = {
        name: SpanTable(**{part: _array(arrays, f"span:{name}:{part}") for part in _SPAN_PARTS})
        for name in header.spans
    }
    return Votes(
        **{name: getattr(header, name) for name in _SHARED},
        columns=tuple(_array(arrays, f"vote:{source.name}") for source in header.sources),
        lengths=_array(arrays, "lengths"),
        ids=arrays.get("ids"),
        spans=spans,
        time=None if header.time is None else _time(header.time, arrays),
        scores=_scores(header, arrays),
    )


def _array(arrays: Mapping[str, AnyArray], name: str) -> AnyArray:
    if name not in arrays:
        raise FileError(f"its header lacks {name!r}")
    return arrays[name]


def _scores(header: Header, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    found = {}
    for source in header.sources:
        if source.name in header.soft:
            width = header.n_classes if isinstance(source.resolution, Element) else 2
            found[source.name] = np.stack([_array(arrays, f"score:{k}:{source.name}") for k in range(width)], axis=1)
    return found


def _time(stored: StoredTime, arrays: Mapping[str, AnyArray]) -> TimeAxis:
    found = {part: arrays[f"time:{part}"] for part in _TIME_PARTS if f"time:{part}" in arrays}
    return TimeAxis(**{"start": _array(arrays, "time:start"), **found}, rounding=stored.rounding)


def decode_header(plain: Any) -> Header:
    """The header of a file, if this version can read it."""
    check_version(plain, VERSION, "votes", FORMAT)
    if plain.get("storage", _STORAGE) != _STORAGE:
        raise FileError(
            f"it was written by a newer version of Dugong (storage {plain['storage']!r}).\n"
            "  Upgrade with: pip install --upgrade dugong-ws"
        )
    return decode(Header, plain)


# --- files ---------------------------------------------------------------------------------------------------------
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
    with reading(place, VoteError, "The file is truncated or damaged: write it again, or copy it again."):
        return unpack(read(place))


def _format(path: Place) -> tuple[Callable[[Stored, BinaryIO], None], Callable[[Place], Stored]]:
    if path.suffix == ".parquet":
        from dugong.votes.parquet import read_parquet, write_parquet

        return write_parquet, read_parquet
    if path.suffix == ".npz":
        return write_npz, read_npz
    raise VoteError(f"votes are kept in .parquet or .npz files; found {path.name!r}.")


def write_npz(stored: Stored, handle: BinaryIO) -> None:
    """Write header and arrays; a source may have a name that an archive cannot, so arrays are numbered."""
    write_archive(handle, stored.header, {f"array{place}": one for place, one in enumerate(stored.arrays.values())})


def read_npz(path: Place) -> Stored:
    """Read header and arrays."""
    foreign = (
        "it is a NumPy file, but holds no votes written by Dugong.\n"
        "  For a plain array of votes, use Votes.from_dense or Votes.from_classes."
    )
    with open_archive(path, foreign) as archive:
        header = decode_header(archive.header)
        places = {name: f"array{place}" for place, name in enumerate(header.arrays)}
        return read_arrays(
            header,
            lambda names: {name: archive.read(places[name], "iufU", (header.arrays[name].length,)) for name in names},
            lambda name: archive.blocks(places[name]),
        )


def read_arrays(
    header: Header, read: Callable[[list[str]], dict[str, AnyArray]], blocks: Callable[[str], Iterable[AnyArray]]
) -> Stored:
    """All arrays of a file, once their sizes were compared: with each other, and with the lengths, block by block.

    A few bytes can stand for billions of equal numbers, so that room is made only for what fits together.
    """
    sizes = {name: stored.length for name, stored in header.arrays.items()}
    _check_sizes(header, sizes)
    counts: dict[Resolution, int] = {
        source.resolution: 0 for source in header.sources if not isinstance(source.resolution, Spans)
    }
    n_elements = 0
    for lengths in blocks("lengths"):
        if int(lengths.min(initial=0)) < 0 or int(lengths.max(initial=0)) > _LONGEST:
            raise FileError(f"lengths must be whole numbers from 0 to {_LONGEST:,}; found others")
        n_elements += int(lengths.sum(dtype=np.uint64))
        for resolution in counts:
            counts[resolution] += int(count_tasks(resolution, lengths.astype(np.int64), {}).sum())
    for source in header.sources:
        expected = counts.get(source.resolution, sizes.get(f"span:{source.resolution.name}:starts", 0))
        stored = header.arrays[f"vote:{source.name}"]
        if (stored.length, stored.dtype) != (expected, _STORAGE):
            found = f"{stored.length:,} ({stored.dtype})"
            raise FileError(f"source {source.name!r} must have {expected:,} votes ({_STORAGE}); found {found}")
    if sizes.get("time:stamps", n_elements) != n_elements:
        raise FileError(f"time:stamps must be {n_elements:,}, one per element; found {sizes['time:stamps']:,}")
    return Stored(header=header, arrays=read(list(header.arrays)))


def _check_sizes(header: Header, sizes: Mapping[str, int]) -> None:
    """Compare the lengths of arrays with each other: one id per sequence, one end per span."""
    needed = ["lengths", *(f"vote:{source.name}" for source in header.sources)]
    needed += [f"span:{name}:{part}" for name in header.spans for part in _SPAN_PARTS]
    absent = [name for name in needed if name not in sizes]
    if absent:
        raise FileError(f"its header lacks {absent[0]!r}")
    n = sizes["lengths"]
    same = {"ids": n, "time:start": n, "time:rate": n, "time:offsets": n + 1}
    for name in header.spans:
        same |= {f"span:{name}:offsets": n + 1, f"span:{name}:stops": sizes[f"span:{name}:starts"]}
    for name, expected in same.items():
        if sizes.get(name, expected) != expected:
            raise FileError(f"{name} must have {expected:,} values; found {sizes[name]:,}")

"""Votes as plain data: one JSON header and named flat arrays, the content of every file of votes.

In: `Votes`, or a header and arrays. Out: the other. Arrays: ``vote:NAME`` (int8, one per source, in the
flat order of its resolution), ``lengths``, ``ids`` (if given), ``span:NAME:offsets`` / ``starts`` /
``stops``, and ``time:start`` / ``rate`` / ``stamps`` / ``offsets``. The header says what they mean and how
long they are. The key ``storage`` leaves room for other physical forms (bit planes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import SpanTable, TimeAxis, resolution_from_dict, resolution_to_dict
from dugong.types import AnyArray
from dugong.votes.container import SourceInfo, Votes
from dugong.votes.faults import Fault

__all__ = ["FORMAT", "VERSION", "DamagedError", "Stored", "decode_header", "encode_header", "pack", "unpack"]

FORMAT = "dugong-votes"
VERSION = 1
_STORAGE = "int8"
_SPAN_PARTS = ("offsets", "starts", "stops")
_TIME_PARTS = ("start", "rate", "stamps", "offsets")


class DamagedError(Exception):
    """A file that is no longer what was written."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """The content of a file of votes."""

    header: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


def pack(votes: Votes) -> Stored:
    """Plain data of votes."""
    arrays: dict[str, AnyArray] = {
        f"vote:{source.name}": column for source, column in zip(votes.sources, votes.columns, strict=True)
    }
    arrays["lengths"] = votes.lengths
    if votes.ids is not None:
        arrays["ids"] = votes.ids
    for name, table in votes.spans.items():
        arrays |= {f"span:{name}:{part}": getattr(table, part) for part in _SPAN_PARTS}
    time = None if votes.time is None else votes.time.to_dict()
    if votes.time is not None:
        found = {part: getattr(votes.time, part) for part in _TIME_PARTS}
        arrays |= {f"time:{part}": value for part, value in found.items() if value is not None}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "storage": _STORAGE,
        "n_classes": votes.n_classes,
        "class_names": votes.class_names,
        "background": votes.background,
        "partial": [[code, list(members)] for code, members in votes.partial.items()],
        "sources": [
            {"name": s.name, "resolution": resolution_to_dict(s.resolution), "shares": s.shares} for s in votes.sources
        ],
        "spans": list(votes.spans),
        "time": None if time is None else {"rounding": time["rounding"]},
        "faults": [fault.to_dict() for fault in votes.faults],
        "arrays": {name: {"length": len(array), "dtype": _kind(array)} for name, array in arrays.items()},
    }
    return Stored(header=header, arrays=arrays)


def unpack(stored: Stored) -> Votes:
    """Votes of plain data."""
    header, arrays = stored.header, stored.arrays
    try:
        sources = tuple(
            SourceInfo(name=s["name"], resolution=resolution_from_dict(s["resolution"]), shares=s["shares"])
            for s in header["sources"]
        )
        names = header["class_names"]
        return Votes(
            sources=sources,
            columns=tuple(arrays[f"vote:{source.name}"] for source in sources),
            lengths=arrays["lengths"],
            ids=arrays.get("ids"),
            n_classes=header["n_classes"],
            class_names=None if names is None else tuple(names),
            background=header["background"],
            partial={code: tuple(members) for code, members in header["partial"]},
            spans={
                name: SpanTable(**{part: arrays[f"span:{name}:{part}"] for part in _SPAN_PARTS})
                for name in header["spans"]
            },
            time=_unpack_time(header["time"], arrays),
            faults=tuple(Fault(**fault) for fault in header["faults"]),
        )
    except (KeyError, TypeError) as error:
        raise DamagedError(f"its header lacks {error}") from error


def _unpack_time(plain: Mapping[str, Any] | None, arrays: Mapping[str, AnyArray]) -> TimeAxis | None:
    if plain is None:
        return None
    found = {part: arrays[f"time:{part}"] for part in _TIME_PARTS if f"time:{part}" in arrays}
    return TimeAxis.from_dict({**found, **plain})


def encode_header(header: Mapping[str, Any]) -> bytes:
    """The header as bytes."""
    return json.dumps(header).encode()


def decode_header(text: bytes) -> dict[str, Any]:
    """The header of a file, if this version can read it."""
    try:
        header = json.loads(text)
    except ValueError as error:
        raise DamagedError("its header is no JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise VoteError("it holds something else than votes of Dugong.")
    if header.get("version", 0) > VERSION or header.get("storage", _STORAGE) != _STORAGE:
        raise VoteError(
            f"it was written by a newer version of Dugong (file version {header.get('version')}, storage "
            f"{header.get('storage')!r}; this one reads up to version {VERSION}).\n"
            "  Upgrade with: pip install --upgrade dugong-ws"
        )
    return header


def _kind(array: AnyArray) -> str:
    return "str" if array.dtype.kind == "U" else str(array.dtype)


def empty_array(plain: Mapping[str, Any]) -> AnyArray:
    """An array for `plain["length"]` values, as the header describes it."""
    return np.empty(plain["length"], dtype=object if plain["dtype"] == "str" else plain["dtype"])

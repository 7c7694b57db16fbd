"""Several votes, one after the other.

In: votes with the same classes. Out: votes on all their sequences. Sources are matched by name; where one
is absent, it was not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Layout, SpanTable, TimeAxis, describe
from dugong.types import MISSING, AnyArray, Int8Array
from dugong.votes.container import SourceInfo, Votes
from dugong.votes.faults import Fault

__all__ = ["concat"]

_SAME = ("n_classes", "class_names", "background", "partial")


def concat(parts: Iterable[Votes], keys: Iterable[str] | None = None) -> Votes:
    """See `Votes.concat`."""
    pieces = list(parts)
    if not pieces:
        raise VoteError("there must be votes to put together; found none.")
    first = pieces[0]
    for name in _SAME:
        found = [getattr(piece, name) for piece in pieces]
        if any(value != found[0] for value in found):
            raise VoteError(f"votes can be put together only if they have the same {name}; found {found}.")
    sources = _join_sources(pieces)
    ids = _join_ids(pieces, None if keys is None else list(keys))
    return Votes(
        sources=sources,
        columns=tuple(np.concatenate([_column(piece, source) for piece in pieces]) for source in sources),
        lengths=np.concatenate([piece.lengths for piece in pieces]),
        ids=ids,
        n_classes=first.n_classes,
        class_names=first.class_names,
        background=first.background,
        partial=first.partial,
        spans=_join_spans(pieces),
        time=_join_time(pieces),
        faults=_join_faults(pieces, ids),
    )


def _join_sources(pieces: list[Votes]) -> tuple[SourceInfo, ...]:
    known: dict[str, SourceInfo] = {}
    for piece in pieces:
        for source in piece.sources:
            other = known.setdefault(source.name, source)
            if (other.resolution, other.shares) != (source.resolution, source.shares):
                raise VoteError(
                    f"source {source.name!r} must be the same everywhere; found {describe(other.resolution)} "
                    "and "
                    f"{describe(source.resolution)}.\n  Rename one of them."
                )
    return tuple(known.values())


def _column(piece: Votes, source: SourceInfo) -> Int8Array:
    if source.name in piece.source_names:
        return piece.column(source.name)
    layout = Layout.of(source.resolution, piece.lengths, piece.spans)
    return np.full(layout.n_tasks, MISSING, dtype=np.int8)


def _join_ids(pieces: list[Votes], keys: list[str] | None) -> AnyArray | None:
    if keys is not None:
        if len(keys) != len(pieces):
            raise VoteError(f"found {len(keys)} keys for {len(pieces)} votes.")
        return np.array([f"{key}/{one}" for key, piece in zip(keys, pieces, strict=True) for one in piece.sequence_ids])
    if all(piece.ids is None for piece in pieces):
        return None
    ids = [one for piece in pieces for one in piece.sequence_ids.tolist()]
    if len(set(ids)) < len(ids) or len({type(one) for one in ids}) > 1:
        raise VoteError(
            "sequence ids must be unique, and all strings or all integers, over all votes that are put "
            "together.\n"
            "  Pass keys=['train', 'test', ...] to put a word before them."
        )
    return np.array(ids)


def _join_faults(pieces: list[Votes], ids: AnyArray | None) -> tuple[Fault, ...]:
    """All faults, under the new ids of their sequences."""
    old = [(place, one) for place, piece in enumerate(pieces) for one in piece.sequence_ids.tolist()]
    new = dict(zip(old, range(len(old)) if ids is None else ids.tolist(), strict=True))
    return tuple(
        replace(fault, sequence=new[place, fault.sequence])
        for place, piece in enumerate(pieces)
        for fault in piece.faults
    )


def _join_spans(pieces: list[Votes]) -> dict[str, SpanTable]:
    names = dict.fromkeys(name for piece in pieces for name in piece.spans)
    joined = {}
    for name in names:
        absent = [place for place, piece in enumerate(pieces) if name not in piece.spans]
        if absent:
            raise VoteError(f"spans {name!r} must be given for all votes; part {absent[0]} has none.")
        tables = [piece.spans[name] for piece in pieces]
        counts = np.concatenate([np.diff(table.offsets) for table in tables])
        joined[name] = SpanTable(
            offsets=np.concatenate([[0], np.cumsum(counts)]),
            starts=np.concatenate([table.starts for table in tables]),
            stops=np.concatenate([table.stops for table in tables]),
        )
    return joined


def _join_time(pieces: list[Votes]) -> TimeAxis | None:
    axes = [piece.time for piece in pieces if piece.time is not None]
    if not axes:
        return None
    if len(axes) < len(pieces):
        raise VoteError("either all votes that are put together have a time axis, or none; some have one.")
    return TimeAxis.concat(axes)

"""Votes brought together: several one after the other, or in the order of the sources that a model was fitted with.

Sources are matched by name; where one is absent, it was not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.tasks import Layout, SpanTable, TimeAxis, describe
from dugong.types import MISSING, AnyArray, Int8Array
from dugong.votes.codes import Fault, SourceInfo
from dugong.votes.flat import ScoreArray
from dugong.votes.pieces import not_votes

if TYPE_CHECKING:
    from dugong.votes.container import Votes

_SAME = ("n_classes", "class_names", "background", "partial")


@typed(VoteError)
def concat(parts: Iterable[Votes], keys: Iterable[str] | None = None) -> Votes:
    """The sequences of several votes, one after the other.

    Sources are matched by name; a source that is absent from a part was not asked there.

    Parameters
    ----------
    parts : iterable of Votes
        With the same classes, and the same resolution for each source.
    keys : iterable of str, optional
        One per part, put before the ids (``"train/0"``) when ids would otherwise repeat.
    """
    from dugong.votes.container import Votes

    pieces = list(parts)
    for piece in pieces:
        if not isinstance(piece, Votes):
            raise not_votes(piece)
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
        scores=_join_scores(pieces, sources),
        groups=None if any(one.groups is None for one in pieces) else np.concatenate([one.groups for one in pieces]),
        lengths=np.concatenate([piece.lengths for piece in pieces]),
        ids=ids,
        **{name: getattr(first, name) for name in _SAME},
        given=first.given if all(piece.given == first.given for piece in pieces) else None,
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
                    f"source {source.name!r} must be the same everywhere; found {describe(other.resolution)} and "
                    f"{describe(source.resolution)}.\n  Rename one of them."
                )
    return tuple(known.values())


def _column(piece: Votes, source: SourceInfo) -> Int8Array:
    if source.name in piece.source_names:
        return piece.column(source.name)
    layout = Layout.of(source.resolution, piece.lengths, piece.spans)
    return np.full(layout.n_tasks, MISSING, dtype=np.int8)


def _join_scores(pieces: list[Votes], sources: tuple[SourceInfo, ...]) -> dict[str, ScoreArray]:
    """Scores of every source that has some anywhere; where it has none, its votes speak for themselves."""
    found = {}
    for source in sources:
        known = [piece.scores.get(source.name) for piece in pieces]
        width = next((rows.shape[1] for rows in known if rows is not None), 0)
        if width:
            gaps = (np.full((len(_column(piece, source)), width), np.nan, np.float32) for piece in pieces)
            parts = [gap if rows is None else rows for rows, gap in zip(known, gaps, strict=True)]
            found[source.name] = np.concatenate(parts)
    return found


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
            "sequence ids must be unique, and all strings or all integers, over all votes that are put together.\n"
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
        joined[name] = SpanTable.concat([piece.spans[name] for piece in pieces])
    return joined


def _join_time(pieces: list[Votes]) -> TimeAxis | None:
    axes = [piece.time for piece in pieces if piece.time is not None]
    if not axes:
        return None
    if len(axes) < len(pieces):
        raise VoteError("either all votes that are put together have a time axis, or none; some have one.")
    return TimeAxis.concat(axes)


def align(votes: Votes, sources: Sequence[SourceInfo]) -> Votes:
    """The votes of these sources, in their order."""
    known = {info.name: info for info in sources}
    for info in votes.sources:
        if info.name not in known:
            raise VoteError(
                f"source {info.name!r} was not there when the model was fitted; known are "
                f"{', '.join(map(repr, known))}.\n  Fit again with it, or leave it out."
            )
        if info.resolution != known[info.name].resolution:
            raise VoteError(f"source {info.name!r} was fitted at another resolution than it has now.")
    if votes.source_names == tuple(known):
        return votes
    columns = [_column(votes, info) for info in sources]
    return replace(votes, sources=tuple(sources), columns=tuple(columns))

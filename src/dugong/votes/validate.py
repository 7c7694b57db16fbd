"""One look at everything that votes must satisfy, before any stage relies on it.

In: a `Votes` value under construction. Out: nothing, or a `VoteError` that names the first place and the remedy.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Element, describe
from dugong.types import MISSING, BoolArray, Int8Array
from dugong.votes.codes import CLASSES_HINT, MAX_CODE, SourceInfo, coding_words
from dugong.votes.flat import check_scores
from dugong.votes.pieces import check_words

if TYPE_CHECKING:
    from dugong.votes.container import Votes

_BLOCK = 1 << 18
_MAX_CLASSES = 100


def check_votes(votes: Votes) -> None:
    """Raise unless sources, shapes, codes, ids, spans, time and classes fit together."""
    _check_sources(votes)
    _check_sequences(votes)
    _check_classes(votes)
    for source in votes.sources:
        _check_of(votes, source)
    for name, table in votes.spans.items():
        table.check(votes.lengths, name)
    _check_time(votes)
    for source, column in zip(votes.sources, votes.columns, strict=True):
        _check_column(votes, source, column)
    check_scores(votes)


def _check_sources(votes: Votes) -> None:
    if len(votes.sources) != len(votes.columns):
        raise VoteError(f"found {len(votes.columns)} columns of votes for {len(votes.sources)} sources.")
    if not votes.sources:
        raise VoteError("votes need at least one source; found none.")
    nameless = [name for name in votes.source_names if not isinstance(name, str) or not name]
    if nameless:
        raise VoteError(f"a source must have a name, a string with at least one letter; found {nameless[0]!r}.")
    check_words(votes.source_names, "the name of a source")
    repeated = [name for name, count in Counter(votes.source_names).items() if count > 1]
    if repeated:
        raise VoteError(f"source names must be unique; found {repeated[0]!r} more than once.\n  Rename one of them.")


def _check_sequences(votes: Votes) -> None:
    if votes.n_sequences == 0:
        raise VoteError("votes need at least one sequence; found none.\n  Check the loader, or the filter before it.")
    if votes.ids is None:
        return
    if len(votes.ids) != votes.n_sequences:
        raise VoteError(f"found {len(votes.ids)} sequence ids for {votes.n_sequences} sequences.")
    values, counts = np.unique(votes.ids, return_counts=True)
    if (counts > 1).any():
        repeated = values[np.argmax(counts > 1)].item()
        raise VoteError(f"sequence ids must be unique; found {repeated!r} more than once.")


def _check_classes(votes: Votes) -> None:
    if not 2 <= votes.n_classes <= _MAX_CLASSES:
        raise VoteError(
            f"there must be from 2 to {_MAX_CLASSES} classes (they fit an int8); found n_classes={votes.n_classes}."
        )
    if votes.class_names is not None and len(set(votes.class_names)) != votes.n_classes:
        raise VoteError(f"there must be {votes.n_classes} different class names; found {list(votes.class_names)}.")
    if votes.given is not None and len(set(votes.given)) != votes.n_classes:
        raise VoteError(f"there must be {votes.n_classes} different values as given; found {list(votes.given)}.")
    check_words(votes.class_names or (), "the name of a class")
    if votes.background is not None and votes.background not in votes.classes:
        raise VoteError(f"the background must be one of the classes {votes.classes}; found {votes.background}.")
    for code, members in votes.partial.items():
        some = 0 < len(set(members)) < votes.n_classes and set(members) <= set(votes.classes)
        if not votes.n_classes < code <= MAX_CODE or not some:
            raise VoteError(
                f"an underspecified vote must have a code from {votes.n_classes + 1} to {MAX_CODE} and stand for "
                f"some, not all, of the classes {votes.classes}; found {code}: {members}."
            )


def _check_of(votes: Votes, source: SourceInfo) -> None:
    resolution = source.resolution
    if isinstance(resolution, Element):
        return
    names = votes.class_names or tuple(map(str, votes.classes))
    if votes.n_classes == 2:
        if resolution.of not in (None, 1, names[1]):
            raise VoteError(
                f"with two classes, a task is about the positive one; {describe(resolution)} of source "
                f"{source.name!r} has of={resolution.of!r}.\n  Leave of= out, and choose the link for it."
            )
    elif resolution.of not in (*names, *votes.classes):
        raise VoteError(
            f"with {votes.n_classes} classes, {describe(resolution)} of source {source.name!r} must say which class "
            f"counts: of= one of {', '.join(map(repr, names))}; found {resolution.of!r}."
        )


def _check_time(votes: Votes) -> None:
    if votes.time is None:
        return
    if votes.time.n_sequences != votes.n_sequences:
        raise VoteError(f"the time axis has {votes.time.n_sequences} sequences; there are {votes.n_sequences}.")
    if votes.time.offsets is not None and not np.array_equal(np.diff(votes.time.offsets), votes.lengths):
        first = int(np.argmax(np.diff(votes.time.offsets) != votes.lengths))
        raise VoteError(
            f"there must be one timestamp per element; sequence {votes.sequence_ids[first]} has "
            f"{np.diff(votes.time.offsets)[first]} for {votes.lengths[first]} elements."
        )


def _check_column(votes: Votes, source: SourceInfo, column: Int8Array) -> None:
    if column.dtype != np.int8 or column.ndim != 1:
        raise VoteError(
            f"the votes of {source.name!r} must be a flat int8 array; found {column.dtype}, {column.shape}."
        )
    n_tasks = votes.layout(source.resolution).n_tasks
    if len(column) != n_tasks:
        raise VoteError(
            f"source {source.name!r} votes on {describe(source.resolution)}, which has {n_tasks} tasks for the given "
            f"lengths; found {len(column)} votes."
        )
    on_elements = isinstance(source.resolution, Element)
    codes = [MISSING, 0, *((*votes.classes, *votes.partial) if on_elements else (-1, 1))]
    allowed = np.zeros(256, dtype=np.bool_)
    allowed[np.array(codes) % 256] = True
    _check_codes(votes, source, column, allowed)


def _check_codes(votes: Votes, source: SourceInfo, column: Int8Array, allowed: BoolArray) -> None:
    # Blocks stay in the cache, and keep temporary arrays small beside the votes.
    blocks = range(0, len(column), _BLOCK)
    n_bad = [_count_bad(column[at : at + _BLOCK], allowed) for at in blocks]
    if not sum(n_bad):
        return
    begin = blocks[int(np.flatnonzero(n_bad)[0])]
    first = begin + int(np.argmin(allowed[column[begin : begin + _BLOCK].view(np.uint8)]))
    coding = coding_words(votes.n_classes, source.resolution)
    raise VoteError(
        f"votes must be {coding}; found {sum(n_bad)} other values, the first at row {first}, "
        f"source {source.name!r} (value {column[first]}).\n  {CLASSES_HINT}"
    )


def _count_bad(block: Int8Array, allowed: BoolArray) -> int:
    """Votes of a block that are not allowed; nearly always none, so the least and the largest are looked at first."""
    low, high = int(block.min()), int(block.max())
    if low == MISSING:
        low = int((block * (block != MISSING)).min())  # abstain in their place
    if allowed[np.arange(low, high + 1) % 256].all():
        return 0
    return int(np.count_nonzero(~allowed[block.view(np.uint8)]))

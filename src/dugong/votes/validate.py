"""One look at everything that votes must satisfy, before any stage relies on it.

In: a `Votes` value under construction. Out: nothing, or a `VoteError` that names the first place and the remedy.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Element, Layout, describe
from dugong.types import MISSING, Int8Array

if TYPE_CHECKING:
    from dugong.votes.container import SourceInfo, Votes

_BLOCK = 1 << 20


def check_votes(votes: Votes) -> None:
    """Raise unless sources, shapes, codes, ids, spans and classes fit together."""
    _check_sources(votes)
    _check_sequences(votes)
    _check_classes(votes)
    for name, table in votes.spans.items():
        table.check(votes.lengths, name)
    allowed = {resolution: _allowed_codes(votes, resolution == Element()) for resolution in votes.resolutions}
    for source, column in zip(votes.sources, votes.columns, strict=True):
        _check_column(votes, source, column, allowed[source.resolution])


def _check_sources(votes: Votes) -> None:
    if len(votes.sources) != len(votes.columns):
        raise VoteError(f"found {len(votes.columns)} columns of votes for {len(votes.sources)} sources.")
    if not votes.sources:
        raise VoteError("votes need at least one source; found none.")
    repeated = [name for name, count in Counter(votes.source_names).items() if count > 1]
    if repeated:
        raise VoteError(f"source names must be unique; found {repeated[0]!r} more than once.\n  Rename one of them.")


def _check_sequences(votes: Votes) -> None:
    if votes.n_sequences == 0:
        raise VoteError("votes need at least one sequence; found none.\n  Check the loader, or the filter before it.")
    if (votes.lengths < 0).any():
        raise VoteError(f"lengths must not be negative; found {int(votes.lengths.min())}.")
    if votes.ids is not None:
        if len(votes.ids) != votes.n_sequences:
            raise VoteError(f"found {len(votes.ids)} sequence ids for {votes.n_sequences} sequences.")
        if len(np.unique(votes.ids)) != len(votes.ids):
            raise VoteError("sequence ids must be unique; found repeated ones.")


def _check_classes(votes: Votes) -> None:
    if votes.n_classes < 2:
        raise VoteError(f"there must be at least two classes; found n_classes={votes.n_classes}.")
    if votes.n_classes > 100:
        raise VoteError(f"at most 100 classes fit the int8 coding; found n_classes={votes.n_classes}.")
    if votes.class_names is not None and len(votes.class_names) != votes.n_classes:
        raise VoteError(f"found {len(votes.class_names)} class names for {votes.n_classes} classes.")
    if votes.background is not None and votes.background not in votes.classes:
        raise VoteError(f"the background must be one of the classes {votes.classes}; found {votes.background}.")
    for code, classes in votes.partial.items():
        if code <= votes.n_classes or code > 120 or not classes or not set(classes) <= set(votes.classes):
            raise VoteError(
                f"an underspecified vote must have a code from {votes.n_classes + 1} to 120 and stand for some of the "
                f"classes {votes.classes}; found {code}: {classes}."
            )
    if votes.n_classes > 2:
        for source in votes.sources:
            _check_of(votes, source)


def _check_of(votes: Votes, source: SourceInfo) -> None:
    resolution = source.resolution
    if isinstance(resolution, Element):
        return
    names = votes.class_names or tuple(map(str, votes.classes))
    if resolution.of not in (*names, *votes.classes):
        raise VoteError(
            f"with {votes.n_classes} classes, {describe(resolution)} of source {source.name!r} must say which class "
            f"counts: of= one of {', '.join(map(repr, names))}; found {resolution.of!r}."
        )


def _allowed_codes(votes: Votes, element: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    codes = [MISSING, 0]
    codes += [*votes.classes, *votes.partial] if element else [-1, 1]
    allowed = np.zeros(256, dtype=np.bool_)
    allowed[np.array(codes) % 256] = True
    return allowed


def _check_column(
    votes: Votes, source: SourceInfo, column: Int8Array, allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> None:
    if column.dtype != np.int8 or column.ndim != 1:
        raise VoteError(f"the votes of {source.name!r} must be a flat int8 array; found {column.dtype}, {column.shape}.")
    layout = Layout.of(source.resolution, votes.lengths, votes.spans)
    if len(column) != layout.n_tasks:
        raise VoteError(
            f"source {source.name!r} votes on {describe(source.resolution)}, which has {layout.n_tasks} tasks for the "
            f"given lengths; found {len(column)} votes."
        )
    # Blocks keep the temporary mask small, so that validation never doubles the memory of the votes.
    for start in range(0, len(column), _BLOCK):
        good = allowed[column[start : start + _BLOCK].view(np.uint8)]
        if not good.all():
            _report_bad_code(votes, source, column, start + int(np.argmin(good)), allowed)


def _report_bad_code(
    votes: Votes,
    source: SourceInfo,
    column: Int8Array,
    first: int,
    allowed: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    count = int((~allowed[column.view(np.uint8)]).sum())
    binary = votes.n_classes == 2 or not isinstance(source.resolution, Element)
    coding = "-1, 0 or +1" if binary else f"0 (abstain) or a class from 1 to {votes.n_classes}"
    raise VoteError(
        f"votes must be {coding}; found {count} other values, the first at row {first}, source {source.name!r} "
        f"(value {column[first]}).\n  If 0 means a class here, use Votes.from_classes(..., abstain=-1)."
    )

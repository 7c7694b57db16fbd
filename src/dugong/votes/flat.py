"""Votes that arrive as one flat array per source, each at its own resolution, in our own coding.

In: a mapping of source name to votes on all tasks of its resolution, and the lengths of the sequences. Out:
`Votes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.tasks import Element, Resolution, SpanTable, TimeAxis
from dugong.types import MISSING, ClassCount, Int8Array
from dugong.votes.codes import MAX_CODE
from dugong.votes.encode import Codebook, encode_values
from dugong.votes.pieces import as_lengths, normal_ids
from dugong.votes.records import SourceInfo

if TYPE_CHECKING:
    from dugong.votes.container import Votes

__all__ = ["as_spans", "from_tasks", "read_resolutions"]

SpanLists = SpanTable | Iterable[Iterable[tuple[int, int]]]


@typed(VoteError)
def from_tasks(
    votes: Mapping[str, ArrayLike],
    lengths: ArrayLike | None = None,
    *,
    resolutions: Mapping[str, Resolution] | None = None,
    n_classes: ClassCount | None = None,
    classes: Iterable[str] | None = None,
    spans: Mapping[str, SpanLists] | None = None,
    background: int | None = None,
    partial: Mapping[int, Iterable[int]] | None = None,
    shares: Mapping[str, str] | None = None,
    ids: ArrayLike | None = None,
    time: TimeAxis | None = None,
) -> Votes:
    """Votes at any resolutions: one flat array per source, in our own coding.

    Parameters
    ----------
    votes : mapping of source name to (n_tasks,) array
        -1, 0, +1 with two classes and for windows, spans and sequences; 0..K on elements with K > 2.
        `dugong.types.MISSING` (-128) stands for "was not asked".
    lengths : (n_sequences,) int
        Elements of each sequence.
    resolutions : mapping of source name to resolution, optional
        Elements unless given.
    n_classes : int, optional
        2, or the number of `classes`.
    classes : iterable of str, optional
    spans : mapping of name to lists of (start, stop) per sequence, optional
        For sources on `Spans`.
    background : int, optional
        A class, in our own coding.
    partial : mapping of code to classes, optional
        Underspecified votes; codes from K + 1 to 120.
    shares : mapping of source name to name, optional
        Sources with the same value share their parameters.
    ids, time
        As in `from_dense`.
    """
    from dugong.votes.container import Votes

    if not votes:
        raise VoteError("votes need at least one source; found none.")
    if lengths is None:
        raise VoteError("flat votes need lengths, the number of elements of each sequence; pass lengths=[...].")
    names = None if classes is None else tuple(classes)
    count = n_classes if n_classes is not None else len(names) if names is not None else 2
    found = read_resolutions(resolutions, tuple(votes))
    tying = dict(shares or {})
    infos = tuple(SourceInfo(name=name, resolution=found[name], shares=tying.get(name)) for name in votes)
    return Votes(
        sources=infos,
        columns=tuple(_column(votes[info.name], info, count) for info in infos),
        lengths=as_lengths(lengths),
        ids=normal_ids(ids),
        n_classes=count,
        class_names=names,
        background=background,
        partial={code: tuple(members) for code, members in (partial or {}).items()},
        spans={name: as_spans(given) for name, given in (spans or {}).items()},
        time=time,
    )


def read_resolutions(resolutions: Mapping[str, Resolution] | None, names: tuple[str, ...]) -> dict[str, Resolution]:
    """The resolution of every source; elements unless given."""
    given = dict(resolutions or {})
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(map(repr, names))
        raise VoteError(f"resolutions= names the unknown source {unknown[0]!r}; known are {known}.")
    return {name: given.get(name, Element()) for name in names}


def as_spans(spans: SpanLists) -> SpanTable:
    """Turn lists of (start, stop) per sequence into a table."""
    if isinstance(spans, SpanTable):
        return spans
    return SpanTable.from_lists([[(int(start), int(stop)) for start, stop in pairs] for pairs in spans])


def _column(values: Any, info: SourceInfo, n_classes: int) -> Int8Array:
    array = np.asarray(values)
    if array.ndim != 1:
        raise VoteError(
            f"the votes of {info.name!r} must be one flat array over all tasks; found shape {array.shape}.\n"
            "  For arrays of elements by sources, use Votes.from_dense or Votes.from_classes."
        )
    if array.dtype == np.int8:
        return array.copy() if array.flags.writeable else array  # votes stay what they are, whatever happens to it
    binary = n_classes == 2 or not isinstance(info.resolution, Element)
    book = Codebook(
        # Codes that this source may not use are found, with the same words, when the votes are validated.
        codes={code: code for code in (MISSING, *range(-1, MAX_CODE + 1))},
        says="-1, 0 or +1" if binary else f"0 (abstain) or a class from 1 to {n_classes}",
        hint="If 0 means a class here, use Votes.from_classes(..., abstain=-1).",
    )
    return encode_values(array, book, info.name)

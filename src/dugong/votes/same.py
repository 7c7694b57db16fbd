"""Whether two votes are the same value.

In: two `Votes`. Out: a bool. Everything counts: sources, codes, sequences, classes, spans, time and faults.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.tasks import SpanTable
from dugong.votes.container import Votes

__all__ = ["same_votes"]

_PLAIN = ("sources", "n_classes", "class_names", "background", "faults")


def same_votes(mine: Votes, theirs: Votes) -> bool:
    """See `Votes.equals`."""
    return (
        all(getattr(mine, name) == getattr(theirs, name) for name in _PLAIN)
        and dict(mine.partial) == dict(theirs.partial)
        and np.array_equal(mine.lengths, theirs.lengths)
        and np.array_equal(mine.sequence_ids, theirs.sequence_ids)
        and all(np.array_equal(a, b) for a, b in zip(mine.columns, theirs.columns, strict=True))
        and _same_spans(mine.spans, theirs.spans)
        and (theirs.time is None if mine.time is None else mine.time.equals(theirs.time))
    )


def _same_spans(mine: Mapping[str, SpanTable], theirs: Mapping[str, SpanTable]) -> bool:
    return mine.keys() == theirs.keys() and all(
        np.array_equal(getattr(mine[name], part), getattr(theirs[name], part))
        for name in mine
        for part in ("offsets", "starts", "stops")
    )

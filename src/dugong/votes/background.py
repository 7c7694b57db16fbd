"""The class of everything about which no source speaks.

In: votes. Out: the one class that no source ever votes for: O in tagging, "normal" in anomaly detection.
The votes themselves are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING
from dugong.votes.classes import allowed_classes, positive_class
from dugong.votes.codes import count_codes
from dugong.votes.container import Votes

__all__ = ["implied_background"]


def implied_background(votes: Votes, counts: Mapping[str, Mapping[int, int]] | None = None) -> int | None:
    """The background class: the given one, or the only class that is never voted for, or None.

    A vote on a window, span or sequence counts for the class that it is about; a negative one counts for the other
    class if there are two, and for none if there are more. An underspecified vote counts for all its classes. `counts`
    (codes by source) stand for votes that are not all here.
    """
    if votes.background is not None:
        return votes.background
    voted: set[int] = set()
    for source, column in zip(votes.sources, votes.columns, strict=True):
        codes = {*(count_codes(column) if counts is None else counts[source.name])} - {ABSTAIN, MISSING}
        if isinstance(source.resolution, Element):
            voted = voted.union(*(allowed_classes(votes, code) for code in codes))
        else:
            positive = positive_class(votes, source.resolution)
            voted |= {positive for code in codes if code == 1}
            voted |= {-positive for code in codes if code == -1 and votes.n_classes == 2}
    silent = [value for value in votes.classes if value not in voted]
    return silent[0] if len(silent) == 1 else None

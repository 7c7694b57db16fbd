"""What class a vote is about, and what it is called.

In: votes, a resolution or a code. Out: the class that counts as positive on a window, span or sequence; the
classes that a code allows; words for tables and messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dugong.tasks import Element, Resolution
from dugong.types import ABSTAIN, MISSING

if TYPE_CHECKING:
    from dugong.votes.container import Votes

__all__ = ["allowed_classes", "code_name", "positive_class"]


def positive_class(votes: Votes, resolution: Resolution) -> int:
    """The class that makes an element count as positive: +1, or with K > 2 the class that ``of=`` names."""
    if votes.n_classes == 2 or isinstance(resolution, Element):
        return 1
    names = votes.class_names or tuple(map(str, votes.classes))
    of = resolution.of
    return names.index(of) + 1 if isinstance(of, str) else int(of or 0)


def allowed_classes(votes: Votes, code: int) -> frozenset[int]:
    """The classes that a vote on an element leaves possible; all of them if it says nothing."""
    if code in (ABSTAIN, MISSING):
        return frozenset(votes.classes)
    return frozenset(votes.partial.get(code, (code,)))


def code_name(votes: Votes, code: int, resolution: Resolution) -> str:
    """A vote in words: a class name if there are names, else its number."""
    if code in (ABSTAIN, MISSING):
        return "abstain" if code == ABSTAIN else "missing"
    if code in votes.partial:
        return "|".join(code_name(votes, member, resolution) for member in votes.partial[code])
    if votes.n_classes > 2 and not isinstance(resolution, Element):
        return f"{code:+d}"
    if votes.class_names is not None:
        return votes.class_names[votes.classes.index(code)]
    return f"{code:+d}" if votes.n_classes == 2 else str(code)

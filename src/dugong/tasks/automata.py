"""Links as automata: how the label of a piece follows from its elements, read one element at a time.

A link reads, for each element, whether that element is positive, and keeps a small integer. Inference and the
exact moments of priors both run products of these automata, so there is one definition of every link.
"""

from __future__ import annotations

from dugong.exceptions import TaskError
from dugong.types import Link


def start(link: Link) -> int:
    """State before the first element."""
    return {"any": 0, "all": 1, "majority": 0}[_countable(link)]


def step(link: Link, state: int, positive: bool) -> int:  # noqa: FBT001  (read as a letter of an alphabet)
    """State after one more element."""
    if link == "any":
        return max(state, int(positive))
    if link == "all":
        return min(state, int(positive))
    return state + (1 if positive else -1)


def accept(link: Link, state: int) -> bool:  # noqa: ARG001  (every link accepts alike, a fact of these three)
    """Whether the piece read so far is positive. Majority: strictly more positive than other elements."""
    return state > 0


def _countable(link: Link) -> Link:
    if link == "joint":
        raise TaskError(
            'the link "joint" ties a task to its elements only through a priors.Joint table.\n'
            "  Give such a table as the prior."
        )
    return link

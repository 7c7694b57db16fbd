"""What every source says about every element, a piece of the element axis at a time.

In: votes at all resolutions. Out: for each element the set of classes that a source leaves possible, as a
small number, and whether the source spoke about it at all. A vote on a window, span or sequence says
something about its single elements only where the link forces them: *any* voted negative (no element is
positive) and *all* voted positive (every element is).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dugong.tasks import Element, Resolution, TaskFinder
from dugong.types import ABSTAIN, MISSING, BoolArray
from dugong.votes.classes import allowed_classes, positive_class
from dugong.votes.container import Votes

__all__ = ["Sayings", "Voices", "elements_in_pieces"]

_PIECE = 1 << 16  # elements at a time: small enough for the cache of a core
_SMALLEST = 1 << 10
_BITS = 64

Numbers = NDArray[np.uint8]
Words = NDArray[np.uint64]


class Sayings:
    """A numbering of the sets of classes that votes leave possible; number 0 says nothing."""

    def __init__(self, votes: Votes) -> None:
        self._everything = frozenset(votes.classes)
        self._sets: list[frozenset[int]] = [self._everything]
        self.on_elements = np.zeros(256, dtype=np.uint8)
        for code in (*votes.classes, *votes.partial):
            self.on_elements[code % 256] = self._number(allowed_classes(votes, code))
        self.forced = {resolution: self._forced(votes, resolution) for resolution in votes.resolutions}

    def _number(self, allowed: frozenset[int]) -> int:
        if allowed not in self._sets:
            self._sets.append(allowed)
        return self._sets.index(allowed)

    def _forced(self, votes: Votes, resolution: Resolution) -> tuple[int, int]:
        """The vote at a resolution that forces every element, and what it forces; (0, 0) if none does."""
        if isinstance(resolution, Element) or resolution.link not in ("any", "all"):
            return 0, 0
        positive = frozenset([positive_class(votes, resolution)])
        if resolution.link == "all":
            return 1, self._number(positive)
        return -1, self._number(self._everything - positive)

    @property
    def n_words(self) -> int:
        """How many 64-bit words hold one bit per saying."""
        return -(-len(self._sets) // _BITS)

    def bits(self, word: int) -> Words:
        """Per saying, its own bit in a word (none for the saying that says nothing)."""
        return self._words(word, lambda mine, other: mine == other)

    def against(self, word: int) -> Words:
        """Per saying, the bits of the sayings that cannot hold together with it."""
        return self._words(word, lambda mine, other: not mine & other)

    def calling(self, word: int, positive: int) -> tuple[np.uint64, np.uint64]:
        """The bits of the sayings that call an element positive, and of those that call it something else."""
        places = range(word * _BITS, min(len(self._sets), (word + 1) * _BITS))
        yes = sum(1 << (p % _BITS) for p in places if self._sets[p] == {positive})
        no = sum(1 << (p % _BITS) for p in places if positive not in self._sets[p])
        return np.uint64(yes), np.uint64(no)

    def _words(self, word: int, related: Any) -> Words:
        table = np.zeros(256, dtype=np.uint64)
        for mine, first in enumerate(self._sets[1:], start=1):
            for other in range(max(1, word * _BITS), min(len(self._sets), (word + 1) * _BITS)):
                if related(first, self._sets[other]):
                    table[mine] |= np.uint64(1 << (other % _BITS))
        return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voices:
    """What the sources say about a piece of the element axis.

    Attributes
    ----------
    begin : int
        The first element.
    said : (n_sources, n) numbers of sayings
    spoke : (n_sources, n) whether a source voted on a task with this element
    """

    begin: int
    said: Numbers
    spoke: BoolArray

    @property
    def end(self) -> int:
        """One past the last element."""
        return int(self.begin + self.said.shape[1])


def elements_in_pieces(votes: Votes, sayings: Sayings) -> Iterator[Voices]:
    """Walk over all elements of all sequences."""
    finders = {r: TaskFinder(votes.layout(r)) for r in votes.resolutions if not isinstance(r, Element)}
    size = max(_SMALLEST, _PIECE // max(1, votes.n_sources // 16))
    for begin in range(0, votes.n_elements, size):
        end = min(begin + size, votes.n_elements)
        said = np.zeros((votes.n_sources, end - begin), dtype=np.uint8)
        spoke = np.zeros((votes.n_sources, end - begin), dtype=np.bool_)
        for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
            if isinstance(source.resolution, Element):
                said[place] = sayings.on_elements[column[begin:end].view(np.uint8)]
                spoke[place] = said[place] != 0
                continue
            run = finders[source.resolution].touching(begin, end)
            tasks = column[run.first : run.last]
            first, last = np.maximum(run.starts, begin) - begin, np.minimum(run.stops, end) - begin
            spoke[place] = _paint((tasks != ABSTAIN) & (tasks != MISSING), first, last, end - begin)
            vote, number = sayings.forced[source.resolution]
            if vote:
                said[place] = number * _paint(tasks == vote, first, last, end - begin)
        yield Voices(begin=begin, said=said, spoke=spoke)


def _paint(chosen: BoolArray, first: Any, last: Any, size: int) -> BoolArray:
    """Whether an element lies in one of the chosen spans."""
    steps = np.bincount(first[chosen], minlength=size + 1) - np.bincount(last[chosen], minlength=size + 1)
    return np.asarray(np.cumsum(steps[:size]) > 0)

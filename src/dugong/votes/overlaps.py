"""Where sources meet, and where they contradict each other, across resolutions.

In: votes. Out: per source, on how many of its own tasks another source spoke too (overlaps), and how many of its
votes cannot be right if others are (conflicts). Another source *overlaps* if it voted on any task that shares an
element. A vote *conflicts* if another source votes differently on the same task, or if what others say about the
elements rules it out: a vote about every element (*any* voted negative, *all* voted positive) is ruled out by whoever
calls one of them otherwise, any other vote by the elements on which all who speak agree. For sources on elements
alone this is Snorkel's definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dugong.tasks import Element, Layout, Resolution, TaskCounter, TaskFinder, TaskRun
from dugong.tasks.links import forced
from dugong.types import ABSTAIN, MISSING, Additive, BoolArray, Int8Array, IntArray
from dugong.votes.codes import allowed_classes, positive_class
from dugong.votes.container import Votes

_PIECE = 1 << 16  # elements at a time: small enough for the cache of a core
_SMALLEST = 1 << 10
_BITS = 64

Numbers = NDArray[np.uint8]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlaps(Additive):
    """Counts per source, in tasks of its own resolution, and the elements about which nobody spoke."""

    overlaps: IntArray
    conflicts: IntArray
    n_silent: int


def count_overlaps(votes: Votes) -> Overlaps:
    """Count overlaps and conflicts in one pass over the elements."""
    sets = ClassSets(votes)
    counters = {
        place: TaskCounter(votes.layout(source.resolution), 3)
        for place, source in enumerate(votes.sources)
        if not isinstance(source.resolution, Element)
    }
    overlaps = np.zeros(votes.n_sources, dtype=np.int64)
    conflicts = np.zeros(votes.n_sources, dtype=np.int64)
    n_silent = 0
    for piece in elements_in_pieces(votes, sets):
        n_speaking = piece.spoke.sum(axis=0, dtype=np.int32)
        n_silent += int(np.count_nonzero(n_speaking == 0))
        contested = _contested(sets, piece)
        for place in range(votes.n_sources):
            if place in counters:
                others = n_speaking > piece.spoke[place]
                flags = [others, *_called(votes, sets, piece, place)]
                met, against = _judge(votes, place, *counters[place].feed(piece.begin, flags))
            else:
                met = int(np.count_nonzero(piece.spoke[place] & (n_speaking > 1)))
                against = int(np.count_nonzero(contested[place]))
            overlaps[place] += met
            conflicts[place] += against
    return Overlaps(overlaps=overlaps, conflicts=conflicts, n_silent=n_silent)


def _contested(sets: ClassSets, piece: ElementVotes) -> BoolArray:
    """Per source and element, whether somebody says what cannot hold together with it."""
    contested = np.zeros(piece.said.shape, dtype=np.bool_)
    for word, against in enumerate(sets.against.T):
        everybody = _said_by(sets, piece, word, leave_out=None)
        for place, said in enumerate(piece.said):
            contested[place] |= (everybody & against[said]) != 0
    return contested


def _said_by(sets: ClassSets, piece: ElementVotes, word: int, leave_out: int | None) -> Words:
    bits = sets.bits[:, word]
    said = np.zeros(piece.said.shape[1], dtype=np.uint64)
    for place, numbers in enumerate(piece.said):
        if place != leave_out and numbers.any():
            said |= bits[numbers]
    return said


def _called(votes: Votes, sets: ClassSets, piece: ElementVotes, place: int) -> tuple[BoolArray, BoolArray]:
    """Elements that count as positive and as negative against a vote of this source."""
    positive = positive_class(votes, votes.sources[place].resolution)
    yes = np.zeros(piece.said.shape[1], dtype=np.bool_)
    no = np.zeros(piece.said.shape[1], dtype=np.bool_)
    for word, (bits_yes, bits_no) in enumerate(zip(*sets.calling(positive), strict=True)):
        said = _said_by(sets, piece, word, leave_out=place)
        yes |= (said & bits_yes) != 0
        no |= (said & bits_no) != 0
    link = votes.sources[place].resolution.link
    return yes if link == "any" else yes & ~no, no if link == "all" else no & ~yes


def _judge(votes: Votes, place: int, done: TaskRun, counts: IntArray) -> tuple[int, int]:
    """Overlaps and conflicts of one source on tasks that are counted to their end."""
    resolution = votes.sources[place].resolution
    tasks = slice(done.first, done.last)
    mine = votes.columns[place][tasks]
    n_others, n_yes, n_no = counts
    against = _differ(votes, place, tasks, mine)
    if resolution.link is not None and resolution.link != "joint":
        yes, no = forced(resolution.link, n_yes, n_no, done.stops - done.starts)
        against |= ((mine == 1) & no) | ((mine == -1) & yes)
    met = (np.abs(mine) == 1) & (n_others > 0)
    return int(np.count_nonzero(met)), int(np.count_nonzero(against))


def _differ(votes: Votes, place: int, tasks: slice, mine: Int8Array) -> BoolArray:
    """Whether another source votes the opposite on the same task."""
    differ = np.zeros(len(mine), dtype=np.bool_)
    for source, column in zip(votes.sources, votes.columns, strict=True):
        if source.resolution == votes.sources[place].resolution:
            differ |= (np.abs(mine) == 1) & (column[tasks] == -mine)
    return differ


def find_covered(votes: Votes, layout: Layout) -> BoolArray:
    """Whether some source voted on a task that shares an element with each task of a layout."""
    covered = np.zeros(layout.n_tasks, dtype=np.bool_)
    counter = TaskCounter(layout, 1)
    for piece in elements_in_pieces(votes, ClassSets(votes)):
        done, counts = counter.feed(piece.begin, [np.asarray(piece.spoke.any(axis=0))])
        covered[done.first : done.last] = counts[0] > 0
    return covered


class ClassSets:
    """A numbering of the sets of classes that votes leave possible; number 0 says nothing.

    Attributes
    ----------
    bits : (n_sets, n_words) per set its own bit; none for the set that says nothing
    against : (n_sets, n_words) per set the bits of the sets that cannot hold together with it
    """

    def __init__(self, votes: Votes) -> None:
        self._everything = frozenset(votes.classes)
        self._sets: list[frozenset[int]] = [self._everything]
        self.on_elements = np.zeros(256, dtype=np.uint8)
        for code in (*votes.classes, *votes.partial):
            self.on_elements[code % 256] = self._number(allowed_classes(votes, code))
        self.forced = {resolution: self._forced(votes, resolution) for resolution in votes.resolutions}
        own = np.eye(len(self._sets), dtype=np.bool_)
        own[0] = False
        self.bits = _pack(own)
        self.against = _pack(np.array([[not one & other for other in self._sets] for one in self._sets]))

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

    def calling(self, positive: int) -> tuple[Words, Words]:
        """The bits of the sets that call an element positive, and of those that call it something else."""
        found = np.array([positive in one for one in self._sets])
        return _pack(found & (np.array(list(map(len, self._sets))) == 1)), _pack(~found)


def _pack(flags: BoolArray) -> Words:
    """Flags of sets, along the last axis, as bits of 64-bit words."""
    n_sets = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-n_sets // _BITS) * _BITS), dtype=np.bool_)
    padded[..., :n_sets] = flags
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElementVotes:
    """What the sources say about a piece of the element axis.

    Attributes
    ----------
    begin : the first element
    said : (n_sources, n) numbers of sets
    spoke : (n_sources, n) whether a source voted on a task with this element
    """

    begin: int
    said: Numbers
    spoke: BoolArray


def elements_in_pieces(votes: Votes, sets: ClassSets) -> Iterator[ElementVotes]:
    """Walk over all elements of all sequences."""
    finders = {r: TaskFinder(votes.layout(r)) for r in votes.resolutions if not isinstance(r, Element)}
    size = max(_SMALLEST, _PIECE // max(1, votes.n_sources // 16))
    for begin in range(0, votes.n_elements, size):
        end = min(begin + size, votes.n_elements)
        said = np.zeros((votes.n_sources, end - begin), dtype=np.uint8)
        spoke = np.zeros((votes.n_sources, end - begin), dtype=np.bool_)
        for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
            if isinstance(source.resolution, Element):
                said[place] = sets.on_elements[column[begin:end].view(np.uint8)]
                spoke[place] = said[place] != 0
                continue
            run = finders[source.resolution].touching(begin, end)
            tasks = column[run.first : run.last]
            first, last = np.maximum(run.starts, begin) - begin, np.minimum(run.stops, end) - begin
            spoke[place] = paint((tasks != ABSTAIN) & (tasks != MISSING), first, last, end - begin)
            vote, number = sets.forced[source.resolution]
            if vote:
                said[place] = number * paint(tasks == vote, first, last, end - begin)
        yield ElementVotes(begin=begin, said=said, spoke=spoke)


def paint(chosen: BoolArray, first: Any, last: Any, size: int) -> BoolArray:
    """Whether an element lies in one of the chosen spans."""
    steps = np.bincount(first[chosen], minlength=size + 1) - np.bincount(last[chosen], minlength=size + 1)
    return np.asarray(np.cumsum(steps[:size]) > 0)

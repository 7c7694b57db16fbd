"""Where sources meet, and where they contradict each other, across resolutions.

In: votes. Out: per source, on how many of its own tasks another source spoke too (overlaps), and how many of its
votes cannot be right if others are (conflicts). Another source *overlaps* if it voted on any task that shares an
element. A vote *conflicts* if another source votes differently on the same task, or if what others say about the
elements rules it out: a vote about every element (*any* voted negative, *all* voted positive) is ruled out by whoever
calls one of them otherwise, any other vote by the elements on which all who speak agree. For sources on elements
alone this is Snorkel's definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.tasks import CountedTasks, Element, Layout, TaskCounter
from dugong.tasks.links import forced
from dugong.types import BoolArray, Int8Array, IntArray
from dugong.votes.classes import positive_class
from dugong.votes.container import Votes
from dugong.votes.sayings import Sayings, Voices, elements_in_pieces

__all__ = ["Overlaps", "count_overlaps", "find_covered"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlaps:
    """Counts per source, in tasks of its own resolution, and the elements about which nobody spoke."""

    overlaps: IntArray
    conflicts: IntArray
    n_silent: int


def count_overlaps(votes: Votes) -> Overlaps:
    """Count overlaps and conflicts in one pass over the elements."""
    sayings = Sayings(votes)
    counters = {
        place: TaskCounter(votes.layout(source.resolution), 3)
        for place, source in enumerate(votes.sources)
        if not isinstance(source.resolution, Element)
    }
    overlaps = np.zeros(votes.n_sources, dtype=np.int64)
    conflicts = np.zeros(votes.n_sources, dtype=np.int64)
    n_silent = 0
    for voices in elements_in_pieces(votes, sayings):
        n_voices = voices.spoke.sum(axis=0, dtype=np.int32)
        n_silent += int(np.count_nonzero(n_voices == 0))
        contested = _contested(sayings, voices)
        for place in range(votes.n_sources):
            if place in counters:
                others = n_voices > voices.spoke[place]
                flags = [others, *_called(votes, sayings, voices, place)]
                met, against = _judge(votes, place, counters[place].feed(voices.begin, flags))
            else:
                met = int(np.count_nonzero(voices.spoke[place] & (n_voices > 1)))
                against = int(np.count_nonzero(contested[place]))
            overlaps[place] += met
            conflicts[place] += against
    return Overlaps(overlaps=overlaps, conflicts=conflicts, n_silent=n_silent)


def _contested(sayings: Sayings, voices: Voices) -> BoolArray:
    """Per source and element, whether somebody says what cannot hold together with it."""
    contested = np.zeros(voices.said.shape, dtype=np.bool_)
    for word in range(sayings.n_words):
        everybody = _said_by(sayings, voices, word, leave_out=None)
        against = sayings.against(word)
        for place, said in enumerate(voices.said):
            contested[place] |= (everybody & against[said]) != 0
    return contested


def _said_by(
    sayings: Sayings, voices: Voices, word: int, leave_out: int | None
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    bits = sayings.bits(word)
    said = np.zeros(voices.said.shape[1], dtype=np.uint64)
    for place, numbers in enumerate(voices.said):
        if place != leave_out and numbers.any():
            said |= bits[numbers]
    return said


def _called(votes: Votes, sayings: Sayings, voices: Voices, place: int) -> tuple[BoolArray, BoolArray]:
    """Elements that count as positive and as negative against a vote of this source."""
    positive = positive_class(votes, votes.sources[place].resolution)
    yes = np.zeros(voices.said.shape[1], dtype=np.bool_)
    no = np.zeros(voices.said.shape[1], dtype=np.bool_)
    for word in range(sayings.n_words):
        said = _said_by(sayings, voices, word, leave_out=place)
        bits_yes, bits_no = sayings.calling(word, positive)
        yes |= (said & bits_yes) != 0
        no |= (said & bits_no) != 0
    link = votes.sources[place].resolution.link
    return yes if link == "any" else yes & ~no, no if link == "all" else no & ~yes


def _judge(votes: Votes, place: int, done: CountedTasks) -> tuple[int, int]:
    """Overlaps and conflicts of one source on tasks that are counted to their end."""
    resolution = votes.sources[place].resolution
    tasks = slice(done.run.first, done.run.last)
    mine = votes.columns[place][tasks]
    n_others, n_yes, n_no = done.counts
    against = _differ(votes, place, tasks, mine)
    if resolution.link is not None and resolution.link != "joint":
        yes, no = forced(resolution.link, n_yes, n_no, done.run.stops - done.run.starts)
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
    for voices in elements_in_pieces(votes, Sayings(votes)):
        done = counter.feed(voices.begin, [np.asarray(voices.spoke.any(axis=0))])
        covered[done.run.first : done.run.last] = done.counts[0] > 0
    return covered

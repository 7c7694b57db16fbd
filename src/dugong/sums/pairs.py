"""Single votes and pairs of votes on the same task: the sums that nearly every plan is made of.

Binary votes are packed into bit planes, source by source, and counted by popcounts: all tasks tile by tile in total,
and the tasks of each group, gathered so that every group begins at a word of its own. What is in no group is the
difference. Votes with more classes go through a table of cells. Counts are integers, so no order of adding matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dugong.sums._kernels import count_packed_pairs, gather_runs, pack_votes
from dugong.sums.groups import divide, on_threads
from dugong.sums.sums import MomentRow
from dugong.types import MISSING, Int8Array, IntArray

# The planes of ten sources on one tile take 240 kB, which stay in the second-level cache.
TILE = 1 << 16
_WORD = 64
_WORTH_A_THREAD = 1 << 12  # runs
_ROOM = 7  # places that copying a short run as one word may touch after it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Runs of neighbouring tasks that belong to one group, in the order of the tasks; no group is called 0."""

    starts: IntArray
    stops: IntArray
    groups: IntArray

    def targets(self, n_groups: int) -> tuple[IntArray, IntArray]:
        """Place of every run where groups begin at words of their own, and the first word of every group.

        A group is followed by at least `_ROOM` places that no run has.
        """
        sizes = self.stops - self.starts
        tasks = np.bincount(self.groups, sizes, n_groups).astype(np.int64)
        words = np.concatenate([[0], np.cumsum(np.where(tasks > 0, -(-(tasks + _ROOM) // _WORD), 0))])
        # Sorting 16-bit numbers is a radix sort, several times as fast as comparing them.
        order = np.argsort(self.groups.astype(np.uint16) if n_groups < 1 << 16 else self.groups, kind="stable")
        placed = np.empty(len(sizes), dtype=np.int64)
        placed[order] = np.cumsum(sizes[order]) - sizes[order]
        return placed + (words[:-1] * _WORD - np.cumsum(tasks) + tasks)[self.groups], words


class PairCounter:
    """Counts singles and pairs of votes, one column per slot over the same tasks."""

    def __init__(self, rows: list[MomentRow], n_columns: int, n_groups: int) -> None:
        self.rows, self.n_columns, self.n_groups = rows, n_columns, n_groups
        self.slots = tuple(dict.fromkeys(slot for row in rows for slot in row.slots))
        places = {slot: place for place, slot in enumerate(self.slots)}
        self.first = np.array([places[row.slots[0]] for row in rows], dtype=np.int64)
        self.second = np.array([places[row.slots[-1]] for row in rows], dtype=np.int64)

    def packed(self, columns: list[Int8Array], runs: Runs, *, rest: bool, n_threads: int | None) -> IntArray:
        """Count binary votes by group; the `rest`, tasks in no run, becomes group 0."""
        counts = np.zeros((self.n_groups, len(self.rows), 3, 3), dtype=np.int64)
        # Every group begins at a word of its own, because a word holds the votes of one group only.
        targets, words = runs.targets(self.n_groups)
        planes = np.zeros((len(columns), 3, int(words[-1])), dtype=np.uint64)

        def pack_some(places: range) -> None:
            gathered = np.full(int(words[-1]) * _WORD, MISSING, dtype=np.int8)
            for place in places:
                gather_runs(columns[place], runs.starts, runs.stops, targets, gathered)
                pack_votes(gathered, planes[place])

        on_threads(pack_some, divide(range(len(columns)), n_threads if len(targets) > _WORTH_A_THREAD else 1))
        asked = np.zeros(len(columns), dtype=np.bool_)
        for group in np.flatnonzero(np.diff(words)):
            begin, end = int(words[group]), int(words[group + 1])
            count_packed_pairs(planes, asked, begin, end, self.first, self.second, counts[group])
        if rest:
            tiles = divide(range(0, len(columns[0]), TILE), n_threads)
            counts[0] = sum(on_threads(lambda own: self._tiles(columns, own), tiles)) - counts.sum(axis=0)
        return counts

    def _tiles(self, columns: list[Int8Array], starts: Iterable[int]) -> IntArray:
        total = np.zeros((len(self.rows), 3, 3), dtype=np.int64)
        planes = np.zeros((len(columns), 3, TILE // _WORD), dtype=np.uint64)
        asked = np.ones(len(columns), dtype=np.bool_)
        for start in starts:
            for place, column in enumerate(columns):
                tile = whole_words(column[start : start + TILE])
                asked[place] = pack_votes(tile, planes[place])
            count_packed_pairs(planes, asked, 0, len(tile) // _WORD, self.first, self.second, total)
        return total


def whole_words(votes: Int8Array) -> Int8Array:
    """Votes filled up with "not asked" to a multiple of 64, the bits of a word."""
    if len(votes) % _WORD == 0:
        return votes
    padded: Int8Array = np.full(-(-len(votes) // _WORD) * _WORD, MISSING, dtype=np.int8)
    padded[: len(votes)] = votes
    return padded

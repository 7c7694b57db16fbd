"""From spans with votes to one vote per task.

In: the rows of a long table, as half-open element spans, and their codes. Out: the flat column of one
source. Two different votes of one source on one task are an error, as is a row outside of its sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Element, Layout, SpanTable, describe
from dugong.tasks.layout import ranges
from dugong.types import Int8Array, IntArray
from dugong.votes.records import SourceInfo

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongRows:
    """The rows of a long table: place of the sequence, and half-open element bounds inside it."""

    sequences: IntArray
    starts: IntArray
    stops: IntArray
    ids: tuple[Any, ...]
    seconds: bool

    def check_inside(self, lengths: IntArray) -> None:
        """Raise unless every row lies inside its sequence and holds an element (seconds may hold none)."""
        ends = lengths[self.sequences]
        outside = (self.starts < 0) | (self.stops > ends)
        if not self.seconds:
            outside |= self.starts >= self.stops
        if outside.any():
            row = int(np.argmax(outside))
            raise VoteError(
                "votes must lie inside their sequence and cover at least one element; found "
                f"{int(outside.sum())} "
                f"rows that do not, the first {self.where(row)} of {ends[row]} elements.\n"
                "  Spans are half-open, [start, end), and counted from 0; check lengths= and unit= too."
            )

    def where(self, row: int) -> str:
        """Name a row for a message."""
        span = f"[{self.starts[row]}, {self.stops[row]})"
        return f"at row {row}: {span} in sequence {self.ids[int(self.sequences[row])]!r}"


def fill_column(
    info: SourceInfo,
    rows: LongRows,
    mine: IntArray,
    codes: Int8Array,
    lengths: IntArray,
    spans: Mapping[str, SpanTable],
) -> Int8Array:
    """The flat votes of one source; abstain where no row says anything.

    Parameters
    ----------
    info : SourceInfo
    rows : LongRows
        All rows of the table.
    mine : (n,) the rows of this source
    codes : (n,) our codes of these rows
    lengths, spans
        Where the tasks are.
    """
    layout = Layout.of(info.resolution, lengths, spans)
    column = np.zeros(layout.n_tasks, dtype=np.int8)
    begin = layout.element_offsets[rows.sequences[mine]]
    if isinstance(info.resolution, Element):
        counts = np.maximum(rows.stops[mine] - rows.starts[mine], 0)
        _spread(column, info, rows, mine, codes, places=begin + rows.starts[mine], counts=counts)
    else:
        places = _match(layout, info, rows, mine, begin)
        ones = np.ones(len(mine), dtype=np.int64)
        _spread(column, info, rows, mine, codes, places=places, counts=ones)
    return column


def _match(layout: Layout, info: SourceInfo, rows: LongRows, mine: IntArray, begin: IntArray) -> IntArray:
    """The task that each row is."""
    starts, stops = layout.flat_bounds()
    first, last = begin + rows.starts[mine], begin + rows.stops[mine]
    places = np.searchsorted(starts, first)
    inside = np.minimum(places, len(starts) - 1)
    bad = (starts[inside] != first) | (stops[inside] != last)
    if bad.any():
        row = int(mine[np.argmax(bad)])
        near = int(inside[np.argmax(bad)])
        shift = int(begin[np.argmax(bad)])
        raise VoteError(
            f"rows of source {info.name!r} must be exactly one task of {describe(info.resolution)}; found "
            f"{int(bad.sum())} that are none, the first {rows.where(row)}.\n"
            f"  The nearest task is [{starts[near] - shift}, {stops[near] - shift})."
        )
    return np.asarray(places)


def _spread(
    column: Int8Array,
    info: SourceInfo,
    rows: LongRows,
    mine: IntArray,
    codes: Int8Array,
    *,
    places: IntArray,
    counts: IntArray,
) -> None:
    """Write every row, then read every row back: a row that reads something else was overwritten."""
    before = np.concatenate([[0], np.cumsum(counts)])
    borders = np.unique(np.searchsorted(before, np.arange(0, before[-1] + _BLOCK, _BLOCK), side="left"))
    blocks = [slice(a, b) for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]
    for block in blocks:
        column[ranges(places[block], counts[block])] = np.repeat(codes[block], counts[block])
    for block in blocks:
        tasks = ranges(places[block], counts[block])
        lost = column[tasks] != np.repeat(codes[block], counts[block])
        if lost.any():
            first = int(np.argmax(lost))
            row = int(mine[block][np.searchsorted(np.cumsum(counts[block]), first, side="right")])
            raise VoteError(
                f"source {info.name!r} must not vote twice and differently on one task; found that its row "
                f"{rows.where(row)} overlaps another row with a different vote."
            )

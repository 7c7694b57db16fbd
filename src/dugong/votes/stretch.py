"""Stretches of sequences as sequences of their own: to look closely at a few places of very long recordings.

In: votes, and where each stretch begins and ends. Out: votes on these elements alone. A task that is not a task of the
stretch as well, because a border cuts it or because windows begin elsewhere, was not asked there.
"""

from __future__ import annotations

import numpy as np

from dugong.tasks import Element, Resolution, Spans
from dugong.tasks.layout import Layout, SpanTable, ranges
from dugong.types import MISSING, IntArray, read_only
from dugong.votes.container import Votes, replace_unchecked

__all__ = ["take_stretches"]


def take_stretches(votes: Votes, places: IntArray, begins: IntArray, ends: IntArray) -> Votes:
    """Elements begins..ends of the sequences at some places, each stretch as one sequence; without times and faults."""
    lengths, firsts = ends - begins, votes.layout(Element()).offsets[places] + begins
    spans = {
        one.name: _inside(votes.layout(one), firsts, lengths) for one in votes.resolutions if isinstance(one, Spans)
    }
    rows = {one: _rows(votes, one, firsts, lengths, spans) for one in votes.resolutions}
    columns, scores = [], {}
    for info, column in zip(votes.sources, votes.columns, strict=True):
        own = rows[info.resolution]
        columns.append(read_only(np.where(own < 0, np.int8(MISSING), column[own])))
        if info.name in votes.scores:
            found = votes.scores[info.name][own]
            found[own < 0] = np.nan
            scores[info.name] = read_only(found)
    return replace_unchecked(
        votes,
        columns=tuple(columns),
        scores=scores,
        lengths=read_only(lengths),
        ids=read_only(np.arange(len(places))),
        groups=None if votes.groups is None else read_only(votes.groups[places]),
        spans=spans,
        time=None,
        faults=(),
    )


def _inside(layout: Layout, firsts: IntArray, lengths: IntArray) -> SpanTable:
    """The given pieces that lie wholly inside each stretch."""
    starts, stops = layout.flat_bounds()
    low, high = np.searchsorted(starts, firsts), np.searchsorted(stops, firsts + lengths, side="right")
    counts = np.maximum(high - low, 0)
    rows, shift = ranges(low, counts), np.repeat(firsts, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return SpanTable(offsets=offsets, starts=starts[rows] - shift, stops=stops[rows] - shift)


def _rows(
    votes: Votes, resolution: Resolution, firsts: IntArray, lengths: IntArray, spans: dict[str, SpanTable]
) -> IntArray:
    """The row of every task of the stretches among those of the votes, -1 where there is none."""
    if isinstance(resolution, Element):
        return ranges(firsts, lengths)
    layout = Layout.of(resolution, lengths, spans)
    shift = firsts[layout.owners()]
    starts, stops = (bound + shift for bound in layout.bounds())
    known_starts, known_stops = votes.layout(resolution).flat_bounds()
    found = np.searchsorted(known_starts, starts)
    same = found < len(known_starts)
    same[same] = (known_starts[found[same]] == starts[same]) & (known_stops[found[same]] == stops[same])
    return np.where(same, found, -1)

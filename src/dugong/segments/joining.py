"""From labelled tasks to intervals: neighbours of one label become one.

In: the spans of tasks in elements, sequence after sequence and in time, and their labels. Out: `Segments`. The
probability of an interval is the mean over its tasks, each counting by its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dugong.segments.container import Recording, Segments
from dugong.types import BoolArray, FloatArray, IntArray
from dugong.version import __version__

__all__ = ["join"]


def join(
    *,
    recordings: Mapping[str, Recording],
    sequence: Sequence[str],
    spans: IntArray,
    kinds: IntArray,
    names: Sequence[str],
    probability: FloatArray,
    resolution: str,
    min_length: int | None = None,
    merge_gap: int | None = None,
) -> Segments:
    """Join tasks of one kind that touch; kind -1 is no interval.

    Parameters
    ----------
    recordings : what is known about the sequences
    sequence, spans, kinds, probability : one entry per task
    names : the label of every kind
    resolution : name
    min_length, merge_gap : elements; see `Labels.segments`
    """
    rows = np.flatnonzero(kinds >= 0)
    order = {name: place for place, name in enumerate(recordings)}
    owner = np.fromiter((order[name] for name in sequence), dtype=np.int64, count=len(sequence))[rows]
    start, end, kind = spans[rows, 0], spans[rows, 1], kinds[rows]
    opens = _opens(owner, kind, start, end, gap=merge_gap or 0)
    first, piece = np.flatnonzero(opens), np.cumsum(opens) - 1
    stop = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(stop, piece, end)
    weight = (end - start).astype(np.float64)
    shares = np.bincount(piece, weights=probability[rows] * weight) / np.bincount(piece, weights=weight)
    chosen = np.flatnonzero(stop - start[first] >= (min_length or 0))
    ids = list(recordings)
    return Segments(
        sequence=tuple(ids[place] for place in owner[first][chosen].tolist()),
        start=start[first][chosen].astype(np.float64),
        end=stop[chosen].astype(np.float64),
        label=tuple(names[place] for place in kind[first][chosen].tolist()),
        probability=np.clip(shares[chosen], 0.0, 1.0),
        source=(f"dugong-{__version__}",),
        resolution=(resolution,),
        recordings=recordings,
    )


def _opens(owner: IntArray, kind: IntArray, start: IntArray, end: IntArray, *, gap: int) -> BoolArray:
    """Where a new interval begins: another sequence, another label, or too far from the end of the one before."""
    opens = np.ones(len(owner), dtype=np.bool_)
    if len(owner):
        opens[1:] = (owner[1:] != owner[:-1]) | (kind[1:] != kind[:-1]) | (start[1:] > end[:-1] + gap)
    return opens

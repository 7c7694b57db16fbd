"""Votes as a long table: the logical schema, whatever the physical form.

In: `Votes`. Out: an arrow table with one row per vote (sequence, source, start, end, vote), source after
source, tasks in order. Abstaining has no row; a vote that was not asked for has one, with the code -128.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dugong.votes.container import Votes

__all__ = ["to_long"]


def to_long(votes: Votes) -> pa.Table:
    """See `Votes.to_long`."""
    ids, names = pa.array(votes.sequence_ids), pa.array(votes.source_names)
    parts = []
    for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
        layout = votes.layout(source.resolution)
        tasks = np.flatnonzero(column)
        starts, stops = layout.bounds()
        owner = np.searchsorted(layout.offsets, tasks, side="right") - 1
        voter = np.full(len(tasks), place, dtype=np.int32)
        parts.append(
            pa.table(
                {
                    "sequence": pa.DictionaryArray.from_arrays(owner.astype(np.int32), ids),
                    "source": pa.DictionaryArray.from_arrays(voter, names),
                    "start": starts[tasks],
                    "end": stops[tasks],
                    "vote": column[tasks],
                }
            )
        )
    return pa.concat_tables(parts)

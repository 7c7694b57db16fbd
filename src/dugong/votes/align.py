"""Votes in the order of the sources that a model was fitted with; a source that is absent was not asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Layout
from dugong.types import MISSING
from dugong.votes.container import SourceInfo, Votes


def align(votes: Votes, sources: Sequence[SourceInfo]) -> Votes:
    """The votes of these sources, in their order."""
    known = {info.name: info for info in sources}
    for info in votes.sources:
        if info.name not in known:
            raise VoteError(
                f"source {info.name!r} was not there when the model was fitted; known are "
                f"{', '.join(map(repr, known))}.\n  Fit again with it, or leave it out."
            )
        if info.resolution != known[info.name].resolution:
            raise VoteError(f"source {info.name!r} was fitted at another resolution than it has now.")
    if votes.source_names == tuple(known):
        return votes
    columns = []
    for info in sources:
        if info.name in votes.source_names:
            columns.append(votes.column(info.name))
        else:
            layout = Layout.of(info.resolution, votes.lengths, votes.spans)
            columns.append(np.full(layout.n_tasks, MISSING, dtype=np.int8))
    return replace(votes, sources=tuple(sources), columns=tuple(columns))

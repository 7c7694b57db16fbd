"""What deserves a look before anything is learned from votes.

In: valid votes. Out: remarks, none of which stops anything: a source that never votes, one that always says
the same, two that are copies of each other, sequences without elements, elements about which nobody speaks,
faults.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING
from dugong.votes.background import implied_background
from dugong.votes.classes import code_name
from dugong.votes.codes import count_codes, n_spoken
from dugong.votes.container import Votes
from dugong.votes.faults import count_faults
from dugong.votes.overlaps import count_overlaps

__all__ = ["Problem", "find_problems"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One remark: its kind (a fixed word), the source that it is about if any, and a sentence."""

    kind: str
    source: str | None
    text: str

    def __str__(self) -> str:
        return self.text


def find_problems(votes: Votes, n_silent: int | None = None) -> tuple[Problem, ...]:
    """All remarks about votes.

    Parameters
    ----------
    votes : Votes
    n_silent : int, optional
        Elements about which no source speaks, if that is known already.
    """
    return (*_about_sources(votes), *_about_copies(votes), *_about_sequences(votes, n_silent))


def _about_sources(votes: Votes) -> list[Problem]:
    found = []
    faults = count_faults(votes.faults)
    for source, column in zip(votes.sources, votes.columns, strict=True):
        counts = count_codes(column)
        spoken = [code for code in counts if code not in (ABSTAIN, MISSING)]
        if not spoken:
            asked = "was never asked" if counts.get(MISSING, 0) == len(column) else "never votes"
            text = f"source {source.name!r} {asked}; it has no influence and may be left out."
            found.append(Problem(kind="never-votes", source=source.name, text=text))
        elif len(spoken) == 1 and n_spoken(counts) == len(column):
            word = code_name(votes, spoken[0], source.resolution)
            text = f"source {source.name!r} always votes {word}; it tells no two tasks apart."
            found.append(Problem(kind="always-same", source=source.name, text=text))
        if source.name in faults:
            text = f"source {source.name!r} raised {faults[source.name]:,} times and abstained instead."
            found.append(Problem(kind="faults", source=source.name, text=text))
    return found


def _about_copies(votes: Votes) -> list[Problem]:
    found = []
    first: dict[tuple[object, int], int] = {}
    for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
        other = first.setdefault((source.resolution, zlib.crc32(column.data)), place)
        if other != place and np.array_equal(votes.columns[other], column) and n_spoken(count_codes(column)):
            text = f"source {source.name!r} votes exactly as {votes.source_names[other]!r}; count it once."
            found.append(Problem(kind="copy", source=source.name, text=text))
    return found


def _about_sequences(votes: Votes, n_silent: int | None) -> list[Problem]:
    found = []
    empty = int(np.count_nonzero(votes.lengths == 0))
    if empty:
        found.append(Problem(kind="empty", source=None, text=f"{empty:,} sequences have no elements."))
    silent = count_overlaps(votes).n_silent if n_silent is None else n_silent
    if silent:
        share = silent / votes.n_elements
        text = f"no source speaks about {silent:,} of {votes.n_elements:,} elements ({share:.1%})"
        background = implied_background(votes)
        if background is not None:
            word = code_name(votes, background, Element())
            text += f"; they count as background, {word}"
            text += "" if votes.background is not None else ", the only class that is never voted for"
        found.append(Problem(kind="silent", source=None, text=f"{text}."))
    return found

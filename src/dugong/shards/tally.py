"""What is in a folder of votes, in one pass: the table of `Votes.summary` from sums over shards.

In: a folder of votes. Out: a `Summary`. Coverage, overlaps, conflicts and the remarks that follow from counts are
exact. Remarks that compare whole columns (copies) come from a bounded sample of whole sequences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dugong.engines import Engine, Serial, reduce_sums
from dugong.shards.folder import Shard, VoteShards
from dugong.shards.sampling import read_sample
from dugong.types import ABSTAIN, MISSING, IntArray
from dugong.votes import Problem, SourceSummary, Summary, Votes, code_name, count_codes, count_faults, find_problems
from dugong.votes.overlaps import count_overlaps

COMPARED = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Sums over votes that merge with ``+``.

    Attributes
    ----------
    codes : per source, how often each code was voted
    overlaps, conflicts : (n_sources,) tasks
    faults : by source
    n_sequences, n_elements, n_empty, n_silent : int
    """

    codes: tuple[Counter[int], ...]
    overlaps: IntArray
    conflicts: IntArray
    faults: Mapping[str, int]
    n_sequences: int
    n_elements: int
    n_empty: int
    n_silent: int

    @classmethod
    def of(cls, votes: Votes) -> Tally:
        """The sums of votes that are in memory."""
        met = count_overlaps(votes)
        return cls(
            codes=tuple(Counter(count_codes(column)) for column in votes.columns),
            overlaps=met.overlaps,
            conflicts=met.conflicts,
            faults=count_faults(votes.faults),
            n_sequences=votes.n_sequences,
            n_elements=votes.n_elements,
            n_empty=int(np.count_nonzero(votes.lengths == 0)),
            n_silent=met.n_silent,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            codes=tuple(one + two for one, two in zip(self.codes, other.codes, strict=True)),
            overlaps=self.overlaps + other.overlaps,
            conflicts=self.conflicts + other.conflicts,
            faults=dict(Counter(self.faults) + Counter(other.faults)),
            n_sequences=self.n_sequences + other.n_sequences,
            n_elements=self.n_elements + other.n_elements,
            n_empty=self.n_empty + other.n_empty,
            n_silent=self.n_silent + other.n_silent,
        )


def _tally(shard: Shard) -> Tally:
    return Tally.of(shard.read())


def summarize_shards(shards: VoteShards, *, engine: Engine | None = None) -> Summary:
    """The summary of all shards, as `Votes.summary` gives it for votes in memory."""
    tally = reduce_sums(engine or Serial(), _tally, shards.shards, describe=str)
    sample = read_sample(shards, COMPARED)
    copies = tuple(one for one in find_problems(sample, n_silent=0) if one.kind == "copy")
    rows = tuple(_row(tally, place, sample) for place in range(sample.n_sources))
    return Summary(sources=rows, problems=(*_about_sources(tally, sample), *copies, *_about_all(tally)), has_gold=False)


def _spoken(codes: Counter[int]) -> dict[int, int]:
    return {code: codes[code] for code in sorted(codes) if code not in (ABSTAIN, MISSING)}


def _row(tally: Tally, place: int, votes: Votes) -> SourceSummary:
    source, codes = votes.sources[place], tally.codes[place]
    n_tasks, spoken = codes.total(), _spoken(codes)
    return SourceSummary(
        name=source.name,
        j=place,
        resolution=source.resolution.name,
        n_tasks=n_tasks,
        n_asked=n_tasks - codes[MISSING],
        polarity=tuple(spoken),
        words=tuple(code_name(votes, code, source.resolution) for code in spoken),
        coverage=sum(spoken.values()) / max(n_tasks, 1),
        overlaps=int(tally.overlaps[place]) / max(n_tasks, 1),
        conflicts=int(tally.conflicts[place]) / max(n_tasks, 1),
        soft=source.name in votes.scores,
    )


def _about_sources(tally: Tally, votes: Votes) -> list[Problem]:
    found = []
    for source, codes in zip(votes.sources, tally.codes, strict=True):
        spoken, name = _spoken(codes), source.name
        if not spoken:
            asked = "was never asked" if codes[MISSING] == codes.total() else "never votes"
            text = f"source {name!r} {asked}; it has no influence and may be left out."
            found.append(Problem(kind="never-votes", source=name, text=text))
        elif len(spoken) == 1 and sum(spoken.values()) == codes.total() and name not in votes.scores:
            word = code_name(votes, next(iter(spoken)), source.resolution)
            text = f"source {name!r} always votes {word}; it tells no two tasks apart."
            found.append(Problem(kind="always-same", source=name, text=text))
        if name in tally.faults:
            text = f"source {name!r} raised {tally.faults[name]:,} times and abstained instead."
            found.append(Problem(kind="faults", source=name, text=text))
    return found


def _about_all(tally: Tally) -> list[Problem]:
    found = []
    if tally.n_empty:
        found.append(Problem(kind="empty", source=None, text=f"{tally.n_empty:,} sequences have no elements."))
    if tally.n_silent:
        share = tally.n_silent / tally.n_elements
        text = f"no source speaks about {tally.n_silent:,} of {tally.n_elements:,} elements ({share:.1%})."
        found.append(Problem(kind="silent", source=None, text=text))
    return found

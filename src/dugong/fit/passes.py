"""What a fit can ask of votes, wherever they are: in memory, in shards, or as sums that were kept.

In: votes, or what stands for them. Out: sums that merge with ``+``: moments, posterior means of labels, expected
counts. The algorithm of a fit is written against `Passes`, once; how the votes are read is none of its business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from dugong.exceptions import VoteError
from dugong.fit.result import Note
from dugong.infer.answers import expected_counts, posterior
from dugong.infer.potentials import sum_by_sequence
from dugong.law import ExpectedCounts, Law
from dugong.progress import FitProgress
from dugong.sums import Grouping, Moments, Plan, Shapes, assign_groups, count
from dugong.tasks import Resolution
from dugong.types import ABSTAIN, MISSING, Additive, FloatArray, Int8Array, IntArray
from dugong.votes import Votes, count_codes

_SIGNS = np.array([-1.0, 1.0])  # values of y in the order of the classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents(Additive):
    """What votes are like, in numbers: shapes of their sequences, and how often each source gave each code."""

    shapes: Shapes
    codes: Mapping[str, Mapping[int, int]]

    @classmethod
    def of_moments(cls, moments: Moments) -> Contents:
        """The contents of votes with two classes, of which the moments are left."""
        # Reversed, so that the first row of a source wins: later ones may be by position.
        singles = {row.sources[0]: row for row in reversed(moments.plan.rows) if len(row.slots) == 1}
        codes = {}
        for info in moments.sources:
            counts = moments.table(singles[info.name])
            flat = counts.reshape(-1, counts.shape[-1]).sum(axis=0).astype(np.int64).tolist()
            codes[info.name] = dict(zip((-1, 1, ABSTAIN), flat, strict=False))
        return cls(shapes=moments.shapes, codes=codes)

    def coverage(self, source: str) -> float:
        """Share of the tasks that a source was asked about on which it did not abstain."""
        asked = self.n_asked(source)
        return 1 - self.codes[source].get(ABSTAIN, 0) / asked if asked else 0.0

    def n_asked(self, source: str) -> int:
        """Tasks that a source was asked about."""
        codes = self.codes[source]
        return sum(codes.values()) - codes.get(MISSING, 0)

    @property
    def n_votes(self) -> int:
        """Votes of all sources, abstains included; who was not asked gave none."""
        return sum(n for codes in self.codes.values() for code, n in codes.items() if code != MISSING)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelSums(Additive):
    """Sum of E[y] and number of tasks by resolution, each of shape (n_groups,): the class balance of a sample."""

    sums: Mapping[Resolution, FloatArray]
    counts: Mapping[Resolution, IntArray]

    def means(self) -> dict[Resolution, float]:
        """Mean of y where there are tasks."""
        return {
            where: float(sums.sum() / self.counts[where].sum())
            for where, sums in self.sums.items()
            if self.counts[where].sum()
        }

    def without_groups(self) -> dict[Resolution, FloatArray]:
        """Mean of y over all tasks but those of each group, shape (n_groups,)."""
        found = {}
        for where in self.means():
            sums, counts = self.sums[where], self.counts[where]
            # A group that holds everything leaves nothing over; its mean is never asked for.
            found[where] = np.asarray((sums.sum() - sums) / np.maximum(counts.sum() - counts, 1))
        return found


class Passes(Protocol):
    """Votes that need not be in one piece, and passes over them.

    Only moments may be left of them: `balance`, `counts` and `sample` then raise.

    Attributes
    ----------
    votes : the votes, or some of them, which say what is voted on: sources, classes, lengths
    evidence : (n_elements,) class values of known labels, 0 = unknown, or None; they take part in `counts`
    rereadable : whether there is more than moments
    progress : is told the steps of a fit (what, done, in all); None if nobody listens
    """

    @property
    def votes(self) -> Votes: ...  # noqa: D102
    @property
    def evidence(self) -> Int8Array | None: ...  # noqa: D102
    @property
    def rereadable(self) -> bool: ...  # noqa: D102
    @property
    def progress(self) -> FitProgress | None: ...  # noqa: D102

    def contents(self) -> Contents:
        """What the votes are like."""

    def moments(self, plan: Plan) -> Moments:
        """The moments of the votes, by group of sequences."""

    def balance(self, law: Law) -> LabelSums:
        """The class balance of the votes under a law, two classes, by group of sequences."""

    def counts(self, law: Law, *, apart: bool = False) -> ExpectedCounts:
        """Expected counts under a law; `apart`: every array has a leading axis over groups of sequences."""

    def sample(self) -> InMemory:
        """The votes, or whole sequences chosen from them, for what cannot be added up."""

    def parts(self) -> Mapping[str, Passes]:
        """Passes over the sequences of every group, by its name, sorted; nothing if there are no groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InMemory:
    """`Passes` over votes that are at hand.

    Attributes
    ----------
    evidence : (n_elements,) class values of known labels, 0 = unknown; optional
    groups : one label per sequence (patient, video), for standard errors; optional
    n_elements : of all shards, where these votes are one of several: groups then do not depend on the shard
    notes : how the votes were chosen, if they are a sample
    """

    votes: Votes
    evidence: Int8Array | None = None
    groups: Sequence[object] | None = None
    n_elements: int | None = None
    n_threads: int | None = None
    notes: tuple[Note, ...] = ()
    rereadable: bool = True
    progress: FitProgress | None = None

    @cached_property
    def grouping(self) -> Grouping:
        """Which elements belong together, for standard errors."""
        return assign_groups(self.votes, self.groups, n_elements=self.n_elements, n_threads=self.n_threads)

    def contents(self) -> Contents:
        """What the votes are like."""
        votes = self.votes
        codes = {name: count_codes(own) for name, own in zip(votes.source_names, votes.columns, strict=True)}
        return Contents(shapes=Shapes.of(votes.lengths, votes.spans), codes=codes)

    def moments(self, plan: Plan) -> Moments:
        """The moments of the votes."""
        return count(self.votes, plan, self.grouping, n_threads=self.n_threads)

    def balance(self, law: Law) -> LabelSums:
        """The class balance of the votes."""
        found = posterior(law, self.votes, self.votes.resolutions, n_threads=self.n_threads)
        sums, counts, n_groups = {}, {}, self.grouping.n_groups
        whole, base = bool((self.grouping.blocks == 1).all()), self.grouping.base
        for where in self.votes.resolutions:
            layout, values = self.votes.layout(where), found[where] @ _SIGNS
            if whole:  # sequences are fewer than their tasks
                total = np.bincount(base, sum_by_sequence(values, layout.offsets), n_groups)
                counts[where] = np.bincount(base, np.diff(layout.offsets), n_groups).astype(np.int64)
            else:
                groups = self.grouping.of_tasks(layout)
                total, counts[where] = np.bincount(groups, values, n_groups), np.bincount(groups, minlength=n_groups)
            sums[where] = np.asarray(total, dtype=np.float64)
        return LabelSums(sums=sums, counts=counts)

    def counts(self, law: Law, *, apart: bool = False) -> ExpectedCounts:
        """The expected counts of the votes."""
        # Apart costs a copy of the votes in the order of their groups: it is for where the spread matters.
        if not apart:
            return expected_counts(law, self.votes, evidence=self.evidence, n_threads=self.n_threads)
        groups, n_groups = self.grouping.base, self.grouping.n_groups
        return expected_counts(
            law, self.votes, groups=groups, n_groups=n_groups, evidence=self.evidence, n_threads=self.n_threads
        )

    def sample(self) -> InMemory:
        """All of the votes."""
        return self

    def parts(self) -> dict[str, InMemory]:
        """The votes of every group; their standard errors are by sequence."""
        found, votes, evidence = dict[str, InMemory](), self.votes, self.evidence
        for name in () if votes.groups is None else np.unique(votes.groups).tolist():
            chosen = votes.groups == name
            known = None if evidence is None else evidence[np.repeat(chosen, votes.lengths)]
            found[name] = replace(self, votes=votes[np.flatnonzero(chosen)], evidence=known, groups=None)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptMoments:
    """Moments that were counted elsewhere; `votes` only say what is voted on."""

    kept: Moments
    votes: Votes
    evidence: Int8Array | None = None
    rereadable: bool = False
    progress: FitProgress | None = None

    def contents(self) -> Contents:
        """What the votes were like."""
        return Contents.of_moments(self.kept)

    def moments(self, plan: Plan) -> Moments:  # noqa: ARG002  the plan was that of who counted
        """The moments that were kept."""
        return self.kept

    def balance(self, law: Law) -> LabelSums:  # noqa: ARG002
        """Needs the votes."""
        raise _gone("their class balance")

    def counts(self, law: Law, *, apart: bool = False) -> ExpectedCounts:  # noqa: ARG002
        """Needs the votes."""
        raise _gone("expected counts")

    def sample(self) -> InMemory:
        """Needs the votes."""
        raise _gone("a sample")

    def parts(self) -> dict[str, Passes]:
        """Nothing: moments are of all groups together."""
        return {}


def _gone(what: str) -> VoteError:
    return VoteError(f"the votes must be at hand for {what}; only their moments are.\n  Use fit(votes), or fit_shards.")

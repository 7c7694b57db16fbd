"""The class balance of a sample as sums that merge: posterior means of y, by resolution and group of sequences.

In: votes and a first estimate. Out: `LabelSums`, one exact E-step (the posterior under that estimate), summed. Sums of
shards add with ``+``, so the balance of any number of votes is found without holding them. `Passes` is what a fit asks
of votes that it does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dugong.fit.result import Estimate, Note
from dugong.infer.engine import expected_counts, posterior
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.priors import Prior
from dugong.sums import Grouping, assign_groups
from dugong.tasks import Resolution
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

_SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelSums:
    """Sum of E[y] and number of tasks by resolution, each of shape (n_groups,)."""

    sums: Mapping[Resolution, FloatArray]
    counts: Mapping[Resolution, IntArray]

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            sums={where: sums + other.sums[where] for where, sums in self.sums.items()},
            counts={where: counts + other.counts[where] for where, counts in self.counts.items()},
        )

    def means(self) -> dict[Resolution, float]:
        """Mean of y where there are tasks."""
        return {
            where: float(sums.sum() / self.counts[where].sum())
            for where, sums in self.sums.items()
            if self.counts[where].sum()
        }

    def note(self) -> Note:
        """The balance in words."""
        listed = ", ".join(f"{where.name} {mean:+.3f}" for where, mean in self.means().items())
        return Note(kind="balance", text=f"class balance of this sample (mean of y by resolution): {listed}")

    def without_groups(self) -> dict[Resolution, FloatArray]:
        """Mean of y over all tasks but those of each group, shape (n_groups,)."""
        found = {}
        for where in self.means():
            sums, counts = self.sums[where], self.counts[where]
            found[where] = np.asarray((sums.sum() - sums) / np.maximum(counts.sum() - counts, 1))
        return found


class Passes(Protocol):
    """Passes over votes that need not be in one piece, under an estimate that was made from their moments."""

    def balance(self, estimate: Estimate) -> LabelSums:
        """The class balance of the votes."""

    def counts(self, estimate: Estimate, step: int) -> ExpectedCounts:
        """The sufficient statistics of the votes, by group of sequences, for the E/M step of this number."""


def sum_labels(
    votes: Votes, parameters: Parameters, prior: Prior, grouping: Grouping, n_threads: int | None = None
) -> LabelSums:
    """One exact E-step over votes with two classes."""
    wanted = votes.resolutions
    found = posterior(votes, parameters, prior, resolutions=wanted, n_threads=n_threads).probabilities
    sums, counts = {}, {}
    for where in wanted:
        groups = grouping.of_tasks(votes.layout(where))
        sums[where] = np.bincount(groups, found[where] @ _SIGNS, grouping.n_groups).astype(np.float64)
        counts[where] = np.bincount(groups, minlength=grouping.n_groups)
    return LabelSums(sums=sums, counts=counts)


def count_by_group(
    votes: Votes, parameters: Parameters, prior: Prior, grouping: Grouping, n_threads: int | None = None
) -> ExpectedCounts:
    """One exact E-step, summed by group of sequences; every array has a leading axis over groups."""
    groups, n_groups = grouping.base, grouping.n_groups
    return expected_counts(votes, parameters, prior, groups=groups, n_groups=n_groups, n_threads=n_threads)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InMemory:
    """`Passes` over votes that are at hand."""

    votes: Votes
    prior: Prior
    grouping: Grouping | None = None
    n_threads: int | None = None

    def balance(self, estimate: Estimate) -> LabelSums:
        """The class balance of the votes."""
        return sum_labels(self.votes, estimate.parameters, self.prior, self._groups(), self.n_threads)

    def counts(self, estimate: Estimate, step: int) -> ExpectedCounts:  # noqa: ARG002  nothing is kept
        """The sufficient statistics of the votes, by group of sequences."""
        return count_by_group(self.votes, estimate.parameters, self.prior, self._groups(), self.n_threads)

    def _groups(self) -> Grouping:
        return self.grouping or assign_groups(self.votes, n_threads=self.n_threads)

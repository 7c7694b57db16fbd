"""How far the scores of a soft source can be believed: the law of how sure it says that it is.

In: rows of scores. Out: *cells*: which class comes second, and how high the score of the first is, in steps that are
narrower towards both ends: where positives are rare, nearly all of them lie in an end. The vote itself has its own
factor in the law; a `Grading` adds P(cell | label, vote). A score is never taken at its word: only the order of scores
matters, what a step is worth is learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit

from dugong.codec import Numbers
from dugong.exceptions import GraphError
from dugong.tasks import Resolution
from dugong.types import MISSING, FloatArray, Int8Array, IntArray, Probabilities, read_only
from dugong.votes import Votes, replace_unchecked
from dugong.votes.codes import MAX_CODE
from dugong.votes.scores import ScoreArray, certainty

MOST_STEPS = 101  # finer steps than these change no label
_ENDS = 8.0  # log-odds of the outermost cuts: about one task in 3,000 lies beyond each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grading:
    """The law of the scores of one source, given its vote.

    Attributes
    ----------
    source : str
    resolution : Resolution
    cuts : (K, S - 1) where the steps of the highest score begin, by the class that it is for; infinite if unused
    table : (K, K, cells) P(cell | label, vote for a class)
    """

    source: str
    resolution: Resolution
    cuts: Annotated[FloatArray, Numbers(finite=False, n_axes=2)]
    table: Probabilities

    def __post_init__(self) -> None:
        n_classes, n_steps = self.cuts.shape[0], self.cuts.shape[1] + 1
        cells = n_steps if n_classes == 2 else n_classes * n_steps
        if self.table.shape != (n_classes, n_classes, cells):
            raise GraphError(
                f"the table of the scores of {self.source!r} must have the shape {(n_classes, n_classes, cells)}; "
                f"found {self.table.shape}."
            )
        object.__setattr__(self, "table", read_only(self.table))

    @property
    def n_classes(self) -> int:
        """Classes of the tasks that the source votes on."""
        return len(self.cuts)

    def cells(self, rows: ScoreArray, votes: Int8Array) -> IntArray:
        """The cell of every task, -1 where the source did not vote for a class, or gave no score."""
        return cells_of(rows, votes, self.cuts)


def n_steps(n_classes: int) -> int:
    """As many steps as there are codes for, if every other class may come second."""
    return MOST_STEPS if n_classes == 2 else max(1, min(MOST_STEPS, (MAX_CODE - n_classes) // n_classes))


def choose_cuts(rows: ScoreArray, votes: Int8Array) -> FloatArray:
    """Cuts between steps at quantiles that are evenly spaced in their log-odds, by class; (K, S - 1)."""
    n_classes = rows.shape[1]
    steps = n_steps(n_classes)
    cuts = np.full((n_classes, steps - 1), np.inf)
    first, quantiles = _first(rows, votes), expit(np.linspace(-_ENDS, _ENDS, steps - 1))
    for place in range(n_classes):
        own = certainty(rows[first == place], place)
        if len(own) and steps > 1:
            # Cuts are scores that occurred, so that no step between two of them is empty.
            found = np.unique(np.quantile(own, quantiles, method="higher"))
            # A cut at the lowest score would leave the first step empty.
            found = found[found > own.min()]
            cuts[place, : len(found)] = found
    return cuts


def cells_of(rows: ScoreArray, votes: Int8Array, cuts: FloatArray) -> IntArray:
    """See `Grading.cells`."""
    n_classes, steps = cuts.shape[0], cuts.shape[1] + 1
    first = _first(rows, votes)
    cells = np.full(len(rows), -1, dtype=np.int64)
    for place in range(n_classes):
        own = np.flatnonzero(first == place)
        cells[own] = np.searchsorted(cuts[place], certainty(rows[own], place), side="right")
        if n_classes > 2:
            others = rows[own].copy()
            others[:, place] = -1
            cells[own] += steps * others.argmax(axis=1)
    return cells


def read_above(votes: Votes, thresholds: Mapping[str, float]) -> Votes:
    """The same votes, those of some soft sources positive from a score of their own on, and negative below it."""
    found = {name: one for name, one in thresholds.items() if name in votes.scores}
    if not found:
        return votes
    columns = list(votes.columns)
    for name, threshold in found.items():
        place, scores = votes.index(name), certainty(votes.scores[name], 1)
        # A score of exactly one half has no class by itself, but is above or below any other threshold.
        silent = np.isnan(scores) | (columns[place] == MISSING)
        own = np.where(silent, columns[place], np.where(scores >= threshold, 1, -1))
        columns[place] = read_only(own.astype(np.int8))
    return replace_unchecked(votes, columns=tuple(columns))


def _first(rows: ScoreArray, votes: Int8Array) -> IntArray:
    """Place of the class that a source voted for; -1 if it did not, or without a score."""
    places = (votes + 1) // 2 if rows.shape[1] == 2 else votes - 1
    spoken = (votes != 0) & (votes != -128) & ~np.isnan(rows[:, 0])
    return np.where(spoken, places, -1).astype(np.int64)

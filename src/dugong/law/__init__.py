"""The law of votes and labels: the one value that answers every question about labels.

In: what was learned or given. Out: a `Law`, which the functions of `dugong.infer.answers` read. Labels, best paths,
samples, explanations, reports and files all come from the same law, so that none of them can contradict another.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from dugong.codec import Numbers, Restorable, encode
from dugong.exceptions import GraphError
from dugong.law.parameters import Crossed, Parameters
from dugong.priors import Prior
from dugong.tasks import Resolution, describe, find_resolution
from dugong.types import MISSING, Additive, FloatArray, Inference, Int8Array, IntArray, Probabilities, read_only
from dugong.votes import Votes, replace_unchecked
from dugong.votes.codes import MAX_CODE
from dugong.votes.flat import ScoreArray, certainty

_UNSEEN = 1e-12  # small enough that tables which miss a sum of one by it are still laws


class Tempering(ABC):
    """How a law answers where its model does not explain the votes: by a chain with soft evidence in place of votes.

    A frozen dataclass with a `kind`, by which files name it, and a pure function of a law and votes.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def asked(self) -> Iterable[tuple[str, Resolution]]:
        """The sources whose votes it reads, and where they vote."""

    @abstractmethod
    def chain(
        self, law: Law, votes: Votes, evidence: Int8Array | None = None, n_threads: int | None = None
    ) -> tuple[Prior, FloatArray]:
        """The prior of the labels, and log-potentials of every element, (n_elements, n_classes)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law(Restorable):
    """P(votes, labels), and how far it is trusted.

    Attributes
    ----------
    parameters : the law of the votes given the labels
    prior : the law of the labels
    tempering : how the answer is made more cautious; None takes the law at its word
    inference : how exact answers must be
    soft : how far the scores of soft sources can be believed
    thresholds : from which score on soft sources are read as votes for the positive class, where it is not one half
    groups : laws of groups of sequences whose tables differ; this law is for all others
    """

    parameters: Parameters
    prior: Prior
    tempering: Tempering | None = None
    inference: Inference = "auto"
    soft: tuple[Grading, ...] = ()
    thresholds: Mapping[str, Annotated[float, Numbers(low=0, high=1)]] = field(default_factory=dict)
    groups: Mapping[str, Law] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {factor.source: factor.resolution for factor in self.parameters.factors}
        asked = [(one.source, one.resolution) for one in self.soft]
        asked += self.tempering.asked if self.tempering is not None else ()
        for source, resolution in asked:
            if known.get(source) != resolution:
                raise GraphError(
                    f"a law must ask sources of its parameters, where they vote; found {source!r} on "
                    f"{describe(resolution)}, known are {', '.join(map(repr, known))}."
                )

    def of_group(self, name: str) -> Law:
        """The law of a group of sequences; this one for a group that is not known."""
        return self.groups.get(name, self)

    def read(self, votes: Votes) -> Votes:
        """The votes as this law reads them: of soft sources by its own thresholds."""
        return read_above(votes, self.thresholds)

    @property
    def exact(self) -> Law:
        """The same law taken at its word."""
        return replace(self, tempering=None, groups={name: law.exact for name, law in self.groups.items()})

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides about a label."""
        return hashlib.sha256(json.dumps(encode(_written_out(self)), sort_keys=True).encode()).hexdigest()


def _written_out(law: Law) -> Law:
    """The same law with the chain of a prior of a user's own, which no file can name, in its place."""
    prior: Any = law.prior if is_dataclass(law.prior) else law.prior.chain()
    return replace(law, prior=prior, groups={name: _written_out(one) for name, one in law.groups.items()})


# --- votes that nobody has seen ------------------------------------------------------------------------------------
def allow_unseen(parameters: Parameters, given: Container[str] = ()) -> Parameters:
    """The same parameters, with room for votes that were not seen, under any label or under one.

    No sample shows that a vote cannot occur, and new votes may hold it: a zero that was estimated becomes a tiny
    probability, equal under all labels where none had the vote, so that it says nothing. Zeros in the tables of `given`
    sources are what somebody knows, but for votes that are zero under every label.
    """
    factors = []
    for factor in parameters.factors:
        lead = int(getattr(factor, "by_position", False))
        # A step and a crossed table have the labels of two tasks in front, all others that of one.
        pair = (0, 1) if isinstance(factor, Crossed) else (lead,)
        labels = {"table": pair, "marginal": (lead,), "first": (lead,), "step": (lead, lead + 1)}
        tables = {name: getattr(factor, name, None) for name in labels}
        lifted: dict[str, Any] = {}
        for name, table in tables.items():
            if table is not None and table.min(initial=1.0) == 0:
                known = factor.source in given
                never = table.max(axis=labels[name], keepdims=True) == 0 if known else table == 0
                lifted[name] = np.where(never, _UNSEEN, table)
        factors.append(replace(factor, **lifted) if lifted else factor)
    return replace(parameters, factors=tuple(factors))


# --- how far the scores of a soft source can be believed -------------------------------------------------------------
# *Cells* say which class comes second, and how high the score of the first is, in steps that are narrower towards both
# ends: where positives are rare, nearly all of them lie in an end. The vote itself has its own factor in the law; a
# `Grading` adds P(cell | label, vote). Only the order of scores matters, what a step is worth is learned.
MOST_STEPS = 101  # finer steps than these change no label
_ENDS = 8.0  # log-odds of the outermost cuts: about one task in 3,000 lies beyond each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grading:
    """The law of the scores of one source, given its vote.

    Attributes
    ----------
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
    """The cell of every task, -1 where the source did not vote for a class, or gave no score; see `Grading`."""
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


# --- what inference returns ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """P(label | all votes of the sequence) of every task, and how likely the votes are.

    Attributes
    ----------
    probabilities : mapping of resolution to (n_tasks, n_classes) float64
        Rows in the flat order of tasks, columns in class order; coarse tasks have two classes.
    log_likelihood : (n_sequences,) log P(votes of the sequence); an estimate where they are not exact
    exact : whether the probabilities are exact, or found by propagation between overlapping windows
    """

    probabilities: Mapping[Resolution, FloatArray]
    log_likelihood: FloatArray
    exact: bool = True

    def __getitem__(self, resolution: str | Resolution) -> FloatArray:
        """Marginals of one resolution, by name or object."""
        return self.probabilities[find_resolution(resolution, self.probabilities)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedCounts(Additive):
    """Sufficient statistics given the votes: how often each cell of each factor is expected to occur.

    Attributes
    ----------
    factors : mapping of source to a mapping of table to counts
        "table" (and "marginal" for factors with parents), "step" and "first" for temporal ones; each has the
        shape of the factor's own table. Votes that were not asked are not counted.
    initial : (K,) expected labels of the first elements
    transitions : (K, K) expected pairs of labels of neighbouring elements
    log_likelihood : () sum over the sequences

    With groups, every array has a leading axis over groups.
    """

    factors: Mapping[str, Mapping[str, FloatArray]]
    initial: FloatArray
    transitions: FloatArray
    log_likelihood: FloatArray

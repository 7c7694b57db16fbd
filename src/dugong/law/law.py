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

from dugong.codec import Numbers, encode
from dugong.exceptions import GraphError
from dugong.law.grading import Grading, read_above
from dugong.law.parameters import Crossed, Parameters
from dugong.priors import Prior
from dugong.tasks import Resolution, describe
from dugong.types import FloatArray, Inference, Int8Array
from dugong.votes import Votes

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
class Law:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return dict(encode(self))


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
            if table is not None:
                known = factor.source in given
                never = table.max(axis=labels[name], keepdims=True) == 0 if known else table == 0
                lifted[name] = np.where(never, _UNSEEN, table)
        factors.append(replace(factor, **lifted))
    return replace(parameters, factors=tuple(factors))

"""The law of votes and labels: the one value that answers every question about labels.

In: what was learned or given. Out: a `Law`, which the functions of `dugong.infer.answers` read. Labels, best paths,
samples, explanations, reports and files all come from the same law, so that none of them can contradict another.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from dugong.codec import encode
from dugong.law.parameters import Parameters
from dugong.priors import Prior
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes


class Tempering(ABC):
    """How a law answers where its model does not explain the votes: by a chain with soft evidence in place of votes.

    A frozen dataclass with a `kind`, by which files name it, and a pure function of a law and votes.
    """

    __slots__ = ()

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
    """

    parameters: Parameters
    prior: Prior
    tempering: Tempering | None = None

    @property
    def exact(self) -> Law:
        """The same law taken at its word."""
        return replace(self, tempering=None)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides about a label."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return dict(encode(self))

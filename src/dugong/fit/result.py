"""What every estimator returns: parameters for inference, tables for people, and a record of what was repaired.

Nothing is repaired in silence: clips, flips, projections and fallbacks are entries of `Diagnostics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from dugong.codec import Numbers
from dugong.law.parameters import Parameters
from dugong.types import FloatArray

_Sizes = Annotated[Mapping[str, float], Numbers(finite=False)]
_PairNumbers = Annotated[Mapping[tuple[str, str], float], Numbers(finite=False)]


# From here on a table that had to be moved says more about what is wrong than about chance.
FAR = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that a user should know: what happened, where, how large, and what can be done."""

    kind: str
    text: str
    where: str = ""
    size: Annotated[float, Numbers(finite=False)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnostics:
    """How the estimate came about.

    Attributes
    ----------
    notes : repairs, weak spots and choices, in words
    residuals : standardised residual of the moment equation of every pair of sources
    support : number of vote pairs behind every pair of sources
    signs : rule and outcome by connected group of sources
    condition : condition number by stage of the solution
    projections : how far each table moved to become a valid one
    learned : what was learned beside the tables (prior, edges, discounts)
    """

    notes: tuple[Note, ...] = ()
    residuals: _PairNumbers = field(default_factory=dict)
    support: Mapping[tuple[str, str], int] = field(default_factory=dict)
    signs: Mapping[str, str] = field(default_factory=dict)
    condition: _Sizes = field(default_factory=dict)
    projections: _Sizes = field(default_factory=dict)
    learned: Mapping[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        from dugong.report.notebook import diagnostics_html

        return diagnostics_html(self)

    @property
    def strengths(self) -> dict[tuple[str, str], float]:
        """Correlation of errors of every learned edge; of a source that repeats itself under (name, name)."""
        edges = {(first, second): float(value) for first, second, value in self.learned.get("edges", ())}
        return edges | {(name, name): float(value) for name, value in self.learned.get("self_dependent", {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """The outcome of an estimator.

    Attributes
    ----------
    parameters : the factors of P(votes | labels), for inference
    accuracies : P(vote | label) by source: (K, C); (positions, K, C) with sharing by task; patterns with "full"
    correlations : P(vote a, vote b | label) by pair: (K, C, C)
    raw : the same accuracies before they were projected to valid tables (for intervals)
    raw_correlations : likewise
    diagnostics : Diagnostics
    """

    parameters: Parameters
    accuracies: Mapping[str, FloatArray]
    correlations: Mapping[tuple[str, str], FloatArray]
    raw: Mapping[str, FloatArray]
    raw_correlations: Mapping[tuple[str, str], FloatArray]
    diagnostics: Diagnostics

    def noted(self, *notes: Note, instead_of: str | None = None) -> Estimate:
        """The same with more notes, and without those of one kind that they replace."""
        kept = (note for note in self.diagnostics.notes if note.kind != instead_of)
        return replace(self, diagnostics=replace(self.diagnostics, notes=(*kept, *notes)))


class Correlations(dict[tuple[str, str], FloatArray]):
    """Tables of dependent pairs; asking for (b, a) gives the table of (a, b) with its vote axes swapped."""

    def __missing__(self, edge: tuple[str, str]) -> FloatArray:
        swapped = (edge[1], edge[0])
        if swapped not in self:
            raise KeyError(edge)
        return np.swapaxes(self[swapped], -1, -2)

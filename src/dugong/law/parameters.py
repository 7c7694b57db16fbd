"""The law of the votes given the labels, as a product of factors: what estimation hands to inference.

Every source has exactly one factor, P(its vote | labels, votes of its parents); the product over factors and tasks is
P(votes | Y): conditionals along an elimination order of the source graph. The last axis of a table runs over vote
columns: the classes, abstain, then underspecified codes. A vote that was not asked leaves its factor out. If only a
parent's vote is missing, `marginal` takes the table's place; without a `marginal` the factor is left out as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dugong.codec import Restorable
from dugong.exceptions import GraphError, PriorError
from dugong.tasks import Element, Resolution, Sequence, Spans, Window, describe
from dugong.types import FloatArray, read_only

_TOLERANCE = 1e-6


class Sized:
    """Number of classes and of vote columns, read from the table of a factor."""

    __slots__ = ()

    @property
    def n_classes(self) -> int:
        """Classes of the tasks that the source votes on."""
        return self._sizes()[0]

    @property
    def n_columns(self) -> int:
        """Different votes that the source can give."""
        return self._sizes()[1]

    def _sizes(self) -> tuple[int, int]:
        """Most tables have the label on the first axis and the vote on the last; positions come before."""
        this: Any = self
        if hasattr(this, "n_tasks"):
            return _root(this.table.shape[0], this.n_tasks), _root(this.table.shape[1], this.n_tasks)
        shape = this.first.shape if hasattr(this, "first") else this.table.shape
        return int(shape[getattr(this, "by_position", 0)]), int(shape[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditional(Sized):
    """A source whose vote depends on its own task and on votes of other sources on the same task.

    Attributes
    ----------
    table : (K, C_parent1, ..., C_parentP, C), or (positions, K, ..., C) with `by_position`
        P(vote | label, votes of the parents). Positions beyond the last use the last.
    parents : sources that vote on the same task
    marginal : (K, C), or (positions, K, C) with `by_position`; optional
        P(vote | label), used where a parent's vote is missing.
    weight : a discount on the log-likelihood; 1 takes the vote at its word, 0 ignores it
    """

    source: str
    resolution: Resolution
    table: FloatArray
    parents: tuple[str, ...] = ()
    marginal: FloatArray | None = None
    by_position: bool = False
    weight: float = 1.0
    kind: ClassVar[str] = "conditional"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(self.parents))
        _settle(self, table=2 + len(self.parents) + self.by_position, marginal=2 + self.by_position)
        if self.source in self.parents or len(set(self.parents)) < len(self.parents):
            raise GraphError(f"the parents of {self.source!r} must be other sources, each once; found {self.parents}.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Temporal(Sized):
    """A source that depends on its own vote `lag` tasks earlier.

    Attributes
    ----------
    first : (K, C) P(vote | label), or (positions, K, C) with `by_position`
        For the first `lag` tasks of a sequence, and where the earlier vote is missing.
    step : (K_prev, K, C_prev, C) P(vote | earlier label, label, earlier vote), or (positions, ...) of the later task
    """

    source: str
    resolution: Resolution
    first: FloatArray
    step: FloatArray
    lag: int = 1
    by_position: bool = False
    weight: float = 1.0
    kind: ClassVar[str] = "temporal"

    def __post_init__(self) -> None:
        _settle(self, first=2 + self.by_position, step=4 + self.by_position)
        if int(self.lag) != self.lag or self.lag < 1:
            raise GraphError(f"the lag of {self.source!r} must be a positive number of tasks; found {self.lag}.")
        *positions, classes, columns = self.first.shape
        wanted = (*positions, classes, classes, columns, columns)
        if self.step.shape != wanted:
            raise GraphError(
                f"the step table of {self.source!r} must have the shape {wanted}, as its first table is "
                f"{self.first.shape}; found {self.step.shape}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossed(Sized):
    """A source whose vote depends on the vote of a coarser source on the task that contains its own.

    Attributes
    ----------
    parent, parent_resolution : the coarser source
        Its tasks must not overlap: windows with stride = size, spans, or the sequence.
    table : (K, 2, C_parent, C) P(vote | label, label of the containing task, vote of the parent there)
    marginal : (K, C), optional
        P(vote | label), used where no task contains this one, or where the parent's vote is missing.
    """

    source: str
    resolution: Resolution
    parent: str
    parent_resolution: Resolution
    table: FloatArray
    marginal: FloatArray | None = None
    weight: float = 1.0
    kind: ClassVar[str] = "crossed"

    def __post_init__(self) -> None:
        _settle(self, table=4, marginal=2)
        if self.table.shape[1] != 2:
            raise GraphError(
                f"the second axis of the table of {self.source!r} runs over the labels of the coarser task; "
                f"found the shape {self.table.shape}."
            )
        coarse = self.parent_resolution
        disjoint = isinstance(coarse, Sequence | Spans) or (isinstance(coarse, Window) and coarse.stride == coarse.size)
        if not disjoint or coarse == self.resolution:
            raise GraphError(
                f"{self.source!r} can depend on a source at a coarser resolution without overlaps (windows "
                f"with stride = size, spans, the sequence); found {describe(coarse)} for {self.parent!r}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullTable(Sized):
    """A source whose votes on all tasks of a sequence depend on all their labels (sharing="full").

    Attributes
    ----------
    n_tasks : tasks of this resolution that every sequence has
    table : (K ** n_tasks, C ** n_tasks) P(vote pattern | label pattern); task 0 is the most significant digit
    """

    source: str
    resolution: Resolution
    n_tasks: int
    table: FloatArray
    weight: float = 1.0
    kind: ClassVar[str] = "full"

    def __post_init__(self) -> None:
        _settle(self, table=2)
        for size, what in zip(self.table.shape, ("label", "vote"), strict=True):
            base = _root(size, self.n_tasks)
            if base < 2 or base**self.n_tasks != size:
                raise GraphError(
                    f"the full table of {self.source!r} must have (number of {what} values) "
                    f"** {self.n_tasks} {what} patterns; found {size}."
                )


Factor = Conditional | Temporal | Crossed | FullTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters(Restorable):
    """One factor per source, in elimination order, and the number of classes of element labels.

    Attributes
    ----------
    sources : names of the sources, in the same order
    """

    n_classes: int
    factors: tuple[Factor, ...]
    sources: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        object.__setattr__(self, "sources", tuple(factor.source for factor in self.factors))
        if len(set(self.sources)) < len(self.sources):
            raise GraphError(f"every source must have one factor; found {self.sources}.")
        for factor in self.factors:
            expected = self.n_classes if isinstance(factor.resolution, Element) else 2
            if factor.n_classes != expected:
                raise GraphError(
                    f"source {factor.source!r} votes on {describe(factor.resolution)}, whose tasks have "
                    f"{expected} classes; found a table with {factor.n_classes}."
                )
        earlier: dict[str, Factor] = {}
        for factor in self.factors:
            if isinstance(factor, Crossed) or (isinstance(factor, Conditional) and factor.parents):
                _check_parents(factor, earlier)
            earlier[factor.source] = factor

    def __getitem__(self, source: str) -> Factor:
        """The factor of one source."""
        if source not in self.sources:
            raise GraphError(f"there is no factor for {source!r}; known are {', '.join(map(repr, self.sources))}.")
        return self.factors[self.sources.index(source)]


def _check_parents(factor: Conditional | Crossed, earlier: Mapping[str, Factor]) -> None:
    """Raise unless every parent comes earlier in the order and votes where its child expects it."""
    if isinstance(factor, Crossed):
        names: tuple[str, ...] = (factor.parent,)
        widths, where = factor.table.shape[2:3], factor.parent_resolution
    else:
        names, widths = factor.parents, factor.table.shape[1 + factor.by_position : -1]
        where = factor.resolution
    for parent, columns in zip(names, widths, strict=True):
        if parent not in earlier:
            raise GraphError(
                f"the parents of {factor.source!r} must come before it; {parent!r} does not.\n"
                "  Give the factors in an elimination order of the source graph."
            )
        found = earlier[parent]
        if found.resolution != where or found.n_columns != columns:
            raise GraphError(
                f"{factor.source!r} expects its parent {parent!r} to vote on {describe(where)} with "
                f"{columns} columns; found {describe(found.resolution)} with {found.n_columns}."
            )


def _settle(factor: Factor, **tables: int) -> None:
    """Check the tables of a factor, given with their numbers of axes, and its weight; store the tables read-only."""
    for name, n_axes in tables.items():
        value = getattr(factor, name)
        if value is None:
            continue
        table = np.array(value, dtype=np.float64, order="C")
        place = f"the {name} of {factor.source!r}"
        if table.ndim != n_axes:
            raise GraphError(f"{place} must have {n_axes} axes; found the shape {table.shape}.")
        # Of what is no number, neither holds.
        off = np.abs(table.sum(axis=-1) - 1).max(initial=0.0) if table.min(initial=0.0) >= 0 else np.inf
        if not off <= _TOLERANCE:
            bad = table[~np.isfinite(table) | (table < 0)]
            if bad.size:
                raise PriorError(f"{place} must hold probabilities; found {bad[0]:g}.")
            raise PriorError(
                f"every row of {place} must sum to one over its last axis; found a sum that is off by {off:.3g}."
            )
        object.__setattr__(factor, name, read_only(table))
    if not 0 <= factor.weight < np.inf:
        raise GraphError(f"the weight of {factor.source!r} must be a number of at least 0; found {factor.weight}.")
    if isinstance(factor, Conditional | Crossed) and factor.marginal is not None:
        # The table without the axes of what it depends on beside its own label.
        lead = (*factor.table.shape[: factor.marginal.ndim - 1], factor.table.shape[-1])
        if factor.marginal.shape != lead:
            found = factor.marginal.shape
            raise GraphError(f"the marginal of {factor.source!r} must have the shape {lead}; found {found}.")


def _root(size: int, degree: int) -> int:
    """The whole number whose power is nearest to a size; 0 if there is none."""
    return round(float(size ** (1 / degree))) if degree > 0 else 0

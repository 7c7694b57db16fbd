"""Sources with known tables: what a world is made of.

A *block* is one source, or a few that vote jointly on each task of one resolution; blocks are independent
of each other given the labels. Tables hold P(votes | label): rows are classes, every further axis runs
over the vote columns of one source, classes first and abstain last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from dugong.exceptions import GraphError, PriorError
from dugong.law.parameters import Sized
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, read_only

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block(Sized):
    """Sources of one resolution that vote jointly on each task.

    Attributes
    ----------
    names : tuple of str
    table : (K, C, ..., C), one axis per source; or (positions, K, C, ..., C) with `by_position`
        P(votes | label). Positions beyond the last use the last.
    resolution : Resolution
    by_position : bool
    edges : tuple of pairs of names, optional
        Which of the sources depend on each other given the label; all pairs by default.
    """

    names: tuple[str, ...]
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)
    by_position: bool = False
    edges: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (self.names,) if isinstance(self.names, str) else tuple(self.names))
        if self.edges is None:
            object.__setattr__(self, "edges", tuple(combinations(self.names, 2)))
        object.__setattr__(self, "edges", tuple(tuple(edge) for edge in self.edges or ()))
        _store(self, "table", 1 + self.by_position, len(self.names))

    def tables(self) -> FloatArray:
        """The joint tables with a positions axis, (positions, K, C, ..., C)."""
        return self.table if self.by_position else self.table[np.newaxis]

    def marginal(self, names: tuple[str, ...]) -> FloatArray:
        """P(votes of some of the sources | label), (positions, K, C, ..., C), axes in the order of `names`."""
        tables = self.tables()
        places = [2 + self.names.index(name) for name in names]
        summed = tables.sum(axis=tuple(a for a in range(2, tables.ndim) if a not in places))
        order = np.argsort(np.argsort(places))
        return np.transpose(summed, (0, 1, *(2 + order)))


class _Single(Sized):
    """A block of one source."""

    __slots__ = ()

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The one source."""
        return (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemporalBlock(_Single):
    """A source that depends on its own vote `lag` tasks earlier.

    Attributes
    ----------
    first : (K, C) P(vote | label) for the first `lag` tasks of a sequence
    step : (K_prev, K, C_prev, C) P(vote | earlier label, label, earlier vote)
    """

    name: str
    first: FloatArray
    step: FloatArray
    resolution: Resolution = field(default_factory=Element)
    lag: int = 1

    def __post_init__(self) -> None:
        _store(self, "first", 1, 1)
        _store(self, "step", 3, 1)
        classes, columns = self.first.shape
        if self.step.shape != (classes, classes, columns, columns) or self.lag < 1:
            raise GraphError(
                f"the step table of {self.name!r} must have the shape {(classes, classes, columns, columns)} and "
                f"its lag must be at least 1; found {self.step.shape} and lag {self.lag}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossedBlock(_Single):
    """A source that depends on the vote of a coarser source on the task that contains its own.

    Attributes
    ----------
    parent : str
        A source of an earlier block, at a resolution whose tasks do not overlap.
    table : (K, 2, C_parent, C) P(vote | label, label of the containing task, vote of the parent there)
    marginal : (K, C), optional
        P(vote | label) where no task contains this one (spans with gaps).
    """

    name: str
    parent: str
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)
    marginal: FloatArray | None = None

    def __post_init__(self) -> None:
        _store(self, "table", 3, 1)
        if self.marginal is not None:
            _store(self, "marginal", 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FullBlock(_Single):
    """A source whose votes on all tasks of a sequence depend on all their labels.

    Attributes
    ----------
    n_tasks : int
        Tasks of this resolution that every sequence has.
    table : (K ** n_tasks, C ** n_tasks) P(vote pattern | label pattern); task 0 is the most significant digit
    """

    name: str
    n_tasks: int
    table: FloatArray
    resolution: Resolution = field(default_factory=Element)

    def __post_init__(self) -> None:
        _store(self, "table", 1, 1)
        if self.table.shape != (self.n_classes**self.n_tasks, self.n_columns**self.n_tasks):
            raise GraphError(
                f"the full table of {self.name!r} needs K ** {self.n_tasks} rows and C ** {self.n_tasks} columns; "
                f"found the shape {self.table.shape}."
            )


AnyBlock = Block | TemporalBlock | CrossedBlock | FullBlock


def _store(block: Any, name: str, n_given: int, n_votes: int) -> None:
    """Check that a table is a law over its last `n_votes` axes for each of the first `n_given`, and freeze it."""
    table = np.array(getattr(block, name), dtype=np.float64)
    who = " and ".join(map(repr, block.names))
    if table.ndim != n_given + n_votes or len(set(table.shape[n_given:])) > 1:
        raise GraphError(
            f"the {name} of {who} must have {n_given} axes for what is given and {n_votes} equal ones for the votes; "
            f"found the shape {table.shape}."
        )
    if not np.isfinite(table).all() or (table < 0).any():
        raise PriorError(f"the {name} of {who} must hold probabilities; found {np.nanmin(table):g}.")
    totals = table.sum(axis=tuple(range(n_given, table.ndim)))
    if np.abs(totals - 1).max() > _TOLERANCE:
        worst = totals.reshape(-1)[np.abs(totals - 1).argmax()]
        raise PriorError(f"the votes of {who} must sum to one for every label; found {worst:.6g} in `{name}`.")
    object.__setattr__(block, name, read_only(table))

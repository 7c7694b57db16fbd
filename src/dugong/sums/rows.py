"""Which sums are wanted: names only, no numbers.

A `MomentRow` names a few votes that are looked at together; counting it gives the contingency table of those votes over
all places where they were all asked. Pairs of sources carry the agreements of the paper (section 3.1.1); rows with more
slots carry what correlations and self-dependence need. A `Plan` is a set of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from dugong.exceptions import GraphError

Relation = Literal["same", "inside"]


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """One vote of a row: a source, and how many tasks after the anchor it is read."""

    source: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class MomentRow:
    """Votes that are counted together.

    Attributes
    ----------
    slots : tuple of Slot
    relation : {"same", "inside"}
        "same": all sources vote at one resolution and the anchor is one of its tasks. "inside": sources of two
        resolutions; the anchors are all pairs of a finer task that starts inside a coarser one.
    by_position : bool
        Whether counts are kept apart by the position of the anchor (the finer task with "inside") in its sequence.
    sources : tuple of str
        Source of every slot.
    """

    slots: tuple[Slot, ...]
    relation: Relation = "same"
    by_position: bool = False
    sources: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Kept, because rows are asked for their sources in every loop over a plan, and looked up by the thousand.
        object.__setattr__(self, "sources", tuple(slot.source for slot in self.slots))
        object.__setattr__(self, "_hash", hash((self.slots, self.relation, self.by_position)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, because every process hashes text in its own way.
        return MomentRow, (self.slots, self.relation, self.by_position)

    @property
    def span(self) -> int:
        """How far apart in tasks the votes of this row lie."""
        offsets = [slot.offset for slot in self.slots]
        return max(offsets) - min(offsets)


def pair(first: str, second: str, *, lag: int = 0, by_position: bool = False) -> MomentRow:
    """Two votes at the same resolution; the second one `lag` tasks later."""
    return MomentRow(slots=(Slot(first), Slot(second, lag)), by_position=by_position)


def inside(fine: str, coarse: str, *, by_position: bool = False) -> MomentRow:
    """A vote on a fine task and a vote on a coarser task that contains it."""
    return MomentRow(slots=(Slot(fine), Slot(coarse)), relation="inside", by_position=by_position)


@dataclass(frozen=True, slots=True)
class Plan:
    """A set of rows in a fixed order; equal plans can be added up."""

    rows: tuple[MomentRow, ...] = field(default=())
    _places: dict[MomentRow, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {row: place for place, row in enumerate(self.rows)})

    def __contains__(self, row: MomentRow) -> bool:
        """Whether a row is counted."""
        return row in self._places

    def place(self, row: MomentRow) -> int:
        """Place of a row among the rows."""
        place = self._places.get(row)
        if place is None:
            names = ", ".join(f"{slot.source}[{slot.offset:+d}]" for slot in row.slots)
            raise GraphError(f"the row {names} ({row.relation}) was not counted; plan it first.")
        return place

    @classmethod
    def of(cls, rows: Iterable[MomentRow]) -> Plan:
        """Keep each row once, in order of first appearance."""
        return cls(rows=tuple(dict.fromkeys(rows)))

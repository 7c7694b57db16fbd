"""Sums over the votes that merge exactly with ``+``, in any order.

`Moments` holds, for every row of a plan, integer contingency tables by group of sequences, and how many sequences of
each shape were seen. Population moments of a known world have the same form with real numbers, so that exact and
sampled moments go through the same estimators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np

from dugong.archives import Archive, open_archive, write_archive
from dugong.codec import Numbers, check_version, decode, reading
from dugong.contract import typed
from dugong.exceptions import FileError, GraphError, VoteError
from dugong.paths import place_of, write_atomically
from dugong.sums.groups import N_NAMED_GROUPS
from dugong.tasks import SpanTable
from dugong.types import AnyArray, FloatArray, IntArray, read_only
from dugong.votes import SourceInfo

_VERSION = 2  # version 1 had slots without names, which the codec reads as well
_GROUPS = (N_NAMED_GROUPS + 1,)  # and the rest
_LONGEST = 1 << 30  # elements of a sequence: the laws of its tasks are followed element by element
MOST_COLUMNS = 128  # different votes of a source
_MOST = 1 << 53  # anchors of a row: beyond, sums of counts are no longer exact, and overflow
_SUMMED = 1 << 17  # cells that are summed at once
_SPAN_PARTS = ("offsets", "starts", "stops")
# A tally needs a place for every length up to the longest, a sort does not.
_SHORT = 1 << 20  # lengths below this are tallied without sorting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    """How many sequences of each shape were counted: distinct lengths, and their spans where there are any."""

    lengths: IntArray
    counts: IntArray
    spans: Mapping[str, SpanTable] = field(default_factory=dict)

    @classmethod
    def of(cls, lengths: IntArray, spans: Mapping[str, SpanTable]) -> Shapes:
        """Summarise sequences; with spans every sequence is a shape of its own."""
        # Spans differ from sequence to sequence, so that no two shapes are alike.
        if spans:
            return cls(lengths=lengths, counts=np.ones(len(lengths), dtype=np.int64), spans=spans)
        if int(lengths.max(initial=0)) < _SHORT:
            tally = np.bincount(lengths)
            distinct = np.flatnonzero(tally)
            return cls(lengths=distinct, counts=tally[distinct])
        distinct, counts = np.unique(lengths, return_counts=True)
        return cls(lengths=distinct, counts=counts.astype(np.int64))

    def __add__(self, other: Shapes) -> Shapes:
        lengths = np.concatenate([self.lengths, other.lengths])
        counts = np.concatenate([self.counts, other.counts])
        if self.spans:
            spans = {name: SpanTable.concat([table, other.spans[name]]) for name, table in self.spans.items()}
            return Shapes(lengths=lengths, counts=counts, spans=spans)
        distinct, inverse = np.unique(lengths, return_inverse=True)
        merged = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(merged, inverse, counts)
        return Shapes(lengths=distinct, counts=merged)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Counts of a plan.

    Attributes
    ----------
    plan : Plan
    sources : the sources that the plan names, with their resolutions
    n_classes : int
    counts : one array per row, shape (n_groups, [n_positions,] columns of slot 1, columns of slot 2, ...)
        Columns are classes, then abstain, then underspecified votes.
    shapes : Shapes
    """

    plan: Plan
    sources: tuple[SourceInfo, ...]
    n_classes: int
    counts: tuple[AnyArray, ...]
    shapes: Shapes
    _totals: dict[int, FloatArray] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(read_only(np.ascontiguousarray(c)) for c in self.counts))

    @property
    def n_groups(self) -> int:
        """Groups of sequences, the rest (group 0) included."""
        return int(self.counts[0].shape[0]) if self.counts else 0

    def table(self, row: MomentRow) -> FloatArray:
        """Total counts of one row over all groups."""
        place = self.plan.place(row)
        if place not in self._totals:
            # Estimators ask for the same totals again and again, and for those of all rows: one sum of many is quicker.
            shape = self.counts[place].shape
            alike = [other for other, counts in enumerate(self.counts) if counts.shape == shape]
            at_once = max(_SUMMED // max(self.counts[place].size, 1), 1)
            for some in (alike[begin : begin + at_once] for begin in range(0, len(alike), at_once)):
                sums = np.stack([self.counts[other] for other in some]).sum(axis=1).astype(np.float64)
                self._totals.update(zip(some, read_only(sums), strict=True))
        return self._totals[place]

    def placed(self, row: MomentRow) -> FloatArray:
        """As `table`, with an axis over positions before those of the slots in any case; of length one if pooled."""
        table = self.table(row)
        at = table.ndim - len(row.slots)
        return table if row.by_position else table.reshape(*table.shape[:at], 1, *table.shape[at:])

    def without(self, groups: int | IntArray) -> LeftOut:
        """The moments with one group left out, or each of some groups in turn (for the jackknife)."""
        parts = {name: getattr(self, name) for name in ("plan", "sources", "n_classes", "counts", "shapes")}
        return LeftOut(**parts, groups=np.asarray(groups))

    def __add__(self, other: Moments) -> Moments:
        if self.plan != other.plan or self.sources != other.sources or self.n_classes != other.n_classes:
            raise VoteError("moments add up only if plan, sources and classes are the same; these differ.")
        counts = tuple(_add(a, b) for a, b in zip(self.counts, other.counts, strict=True))
        return replace(self, counts=counts, shapes=self.shapes + other.shapes)

    @typed(VoteError)
    def save(self, path: str | PathLike[str]) -> None:
        """Write to an ``.npz`` file: plain arrays and one JSON header, no pickle."""
        write_atomically(path, self.write)

    def write(self, handle: BinaryIO) -> None:
        """Write to an open file."""
        header = _Header(
            n_classes=self.n_classes, rows=self.plan.rows, sources=self.sources, spans=tuple(self.shapes.spans)
        )
        arrays: dict[str, AnyArray] = {f"row{i}": counts for i, counts in enumerate(self.counts)}
        arrays |= {"lengths": self.shapes.lengths, "shape_counts": self.shapes.counts}
        for i, table in enumerate(self.shapes.spans.values()):
            arrays |= {f"span{i}_{part}": getattr(table, part) for part in _SPAN_PARTS}
        write_archive(handle, header, arrays)

    @classmethod
    @typed(VoteError)
    def load(cls, path: str | PathLike[str]) -> Moments:
        """Read what `save` wrote."""
        place = place_of(path)
        with (
            reading(place, VoteError, "The file is truncated or damaged: count again."),
            open_archive(place, "it holds no moments of Dugong") as stored,
        ):
            check_version(stored.header, _VERSION, "moments")
            header = decode(_Header, stored.header)
            shapes = [stored.shape(f"row{i}") for i in range(len(header.rows))]
            if len({shape[:1] for shape in shapes}) > 1 or max((shape[:1] for shape in shapes), default=()) > _GROUPS:
                raise FileError(f"all rows must have the same number of groups, at most {_GROUPS[0]}; found others")
            if stored.shape("lengths") != stored.shape("shape_counts"):
                raise FileError("lengths and shape_counts must be as many; found others")
            counts = tuple(_read_counts(stored, i, row, header) for i, row in enumerate(header.rows))
            return cls(
                plan=Plan(rows=header.rows),
                sources=header.sources,
                n_classes=header.n_classes,
                counts=counts,
                shapes=_read_shapes(stored, header.spans),
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftOut(Moments):
    """Moments without each of some groups in turn: every table has an axis over these groups in front, if several.

    Tables are made when they are asked for, as most of the rows of many sources never are. Estimators that read tables
    from their last axes thus make all estimates of a jackknife at once.
    """

    groups: IntArray

    def __post_init__(self) -> None:
        """Nothing to check: the counts are those of moments."""

    def table(self, row: MomentRow) -> FloatArray:
        """Counts of one row without each group, (n_left_out, ...)."""
        place = self.plan.place(row)
        if place not in self._totals:
            counts = np.asarray(self.counts[place], dtype=np.float64)
            self._totals[place] = read_only(counts.sum(axis=0) - counts[self.groups])
        return self._totals[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """What the arrays of a file of moments mean."""

    version: int = _VERSION
    n_classes: Annotated[int, Numbers(low=2, high=126)]
    rows: tuple[MomentRow, ...]
    sources: tuple[SourceInfo, ...]
    spans: tuple[str, ...]


def _read_counts(stored: Archive, place: int, row: MomentRow, header: _Header) -> AnyArray:
    """Counts of one row; one axis for groups, one for positions if they are kept apart, one per vote."""
    unknown = set(row.sources) - {source.name for source in header.sources}
    if unknown:
        raise FileError(f"rows[{place}] must be of the sources; found {sorted(unknown)[0]!r}")
    n_axes = 1 + row.by_position + len(row.slots)
    columns = stored.shape(f"row{place}")[1 + row.by_position :]
    if len(columns) != len(row.slots) or not all(2 < one <= MOST_COLUMNS for one in columns):
        raise FileError(f"row{place} must have {n_axes} axes, with 3 to {MOST_COLUMNS} votes each; found others")
    return _read_tally(stored, f"row{place}", (None,) * n_axes)


def _read_tally(stored: Archive, name: str, shape: tuple[int | None, ...]) -> AnyArray:
    counts = stored.read(name, "iuf", shape)
    if not np.isfinite(counts).all() or counts.min(initial=0) < 0:
        raise FileError(f"{name} must hold counts of at least 0; found {counts.min()}")
    if counts.sum(dtype=np.float64) > _MOST:
        raise FileError(f"{name} must hold at most {_MOST:,} in all; found {counts.sum(dtype=np.float64):.3g}")
    return counts


def _read_shapes(stored: Archive, names: tuple[str, ...]) -> Shapes:
    lengths = stored.read("lengths", "iu", (None,))
    counts = _read_tally(stored, "shape_counts", lengths.shape)
    if lengths.min(initial=0) < 0 or int(lengths.max(initial=0)) > _LONGEST:
        raise FileError(f"lengths must be from 0 to {_LONGEST:,}; found others")
    spans = {
        name: SpanTable(**{part: stored.read(f"span{i}_{part}", "iu", (None,)) for part in _SPAN_PARTS})
        for i, name in enumerate(names)
    }
    for name, table in spans.items():
        table.check(lengths, name)
    return Shapes(lengths=lengths, counts=counts, spans=spans)


def _add(first: AnyArray, second: AnyArray) -> AnyArray:
    """Add counts; with different numbers of positions the shorter one is padded with zeros."""
    if first.shape == second.shape:
        return np.asarray(first + second)
    shape = tuple(max(a, b) for a, b in zip(first.shape, second.shape, strict=True))
    total = np.zeros(shape, dtype=first.dtype)
    for counts in (first, second):
        total[tuple(slice(0, size) for size in counts.shape)] += counts
    return total


# --- which sums are wanted: names only, no numbers -------------------------------------------------------------------
# A `MomentRow` names a few votes that are looked at together; counting it gives the contingency table of those votes
# over all places where they were all asked. Pairs of sources carry the agreements of the paper (section 3.1.1); rows
# with more slots carry what correlations and self-dependence need.
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
    sources : source of every slot
    span : how far apart in tasks the votes lie
    """

    slots: tuple[Slot, ...]
    relation: Relation = "same"
    by_position: bool = False
    sources: tuple[str, ...] = field(init=False, repr=False, compare=False)
    span: int = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Kept, because rows are asked for their sources in every loop over a plan, and looked up by the thousand.
        object.__setattr__(self, "sources", tuple([slot.source for slot in self.slots]))
        offsets = [slot.offset for slot in self.slots]
        object.__setattr__(self, "span", max(offsets) - min(offsets))
        object.__setattr__(self, "_hash", hash((self.slots, self.relation, self.by_position)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, because every process hashes text in its own way.
        return MomentRow, (self.slots, self.relation, self.by_position)


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

"""Votes that arrive as a long table: one row says what one source thinks of one span of one sequence.

In: columns sequence, source, start, end, vote; half-open spans of elements or of seconds. Out: `Votes`. A
row of a source on elements is spread over the elements of its span, so sources with different frame rates
meet on one axis; a row of a source on windows, spans or sequences must be exactly one of its tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import TaskError, VoteError
from dugong.tasks import Element, Layout, Resolution, TimeAxis, describe
from dugong.tasks.layout import offsets_of, ranges
from dugong.types import AnyArray, ClassCount, Int8Array, IntArray
from dugong.votes.codes import SourceInfo
from dugong.votes.encode import ValueCoding, read_values
from dugong.votes.flat import SpanLists, as_spans, read_resolutions
from dugong.votes.pieces import as_lengths
from dugong.votes.table import Factor, factorise, numbers_of, read_table

if TYPE_CHECKING:
    from dugong.votes.container import Votes

Value = str | float | bool  # what a cell of a table can hold


@typed(VoteError)
def from_long(  # noqa: PLR0913  (a table says little about itself; each argument is a fact that it lacks)
    table: Any,
    lengths: ArrayLike | Mapping[Any, int] | None = None,
    *,
    resolutions: Mapping[str, Resolution] | None = None,
    unit: str = "element",
    rate: float | ArrayLike | Mapping[Any, float] | None = None,
    start: float | ArrayLike | Mapping[Any, float] = 0.0,
    timestamps: Mapping[Any, ArrayLike] | None = None,
    n_classes: ClassCount | None = None,
    classes: Iterable[Value] | None = None,
    abstain: Value | None = None,
    missing: Value | None = None,
    background: Value | None = None,
    partial: Mapping[Any, Iterable[Value]] | None = None,
    spans: Mapping[str, SpanLists] | None = None,
    sources: Iterable[str] | None = None,
    ids: Iterable[Value] | None = None,
    ignore: Iterable[str] = (),
) -> Votes:
    """Votes from a long table: columns sequence, source, start, end, vote.

    Parameters
    ----------
    table : pandas, polars or arrow table, or a dictionary of columns
        Spans are half-open and counted inside their sequence. A source on elements is spread over its span;
        two rows of one source on one element must agree. A source on windows, spans or sequences must name
        exactly one of its tasks per row. Where no row says anything, a source abstains.
    lengths : mapping of sequence to int, or (n_sequences,) int, optional
        Elements of each sequence; by default up to the last vote. A mapping may list sequences without votes.
    resolutions : mapping of source to resolution, optional
        Elements unless given.
    unit : {"element", "second"}
        What start and end count. Seconds need `rate` or `timestamps`: an element belongs to a span if its
        centre, or its timestamp, does. What was rounded is in ``votes.time.rounding``.
    rate : float or mapping of sequence to float, optional
        Elements per second.
    start : float or mapping of sequence to float
        Seconds on the clock at which a sequence begins; 0 by default.
    timestamps : mapping of sequence to seconds of its elements, optional
    n_classes : int, optional
        2, or the number of `classes`.
    classes : iterable of str or int, optional
        The classes in order. Strings: votes are these names, or integers in our own coding (-1/+1, or 1..K).
        Integers: votes are these values, for instance ``range(18)`` for class indices.
    abstain, missing : optional
        Values of the vote column for "no opinion" (0 in our own coding) and "was not asked".
    background : optional
        The class of elements about which no source speaks, as a value of the vote column.
    partial : mapping, optional
        Underspecified votes, such as ``{"B or I": ("B", "I")}``.
    spans : mapping of name to lists of (start, stop) per sequence, optional
        For sources on `Spans`.
    sources, ids : iterable, optional
        Order of sources and sequences; of first appearance by default.
    ignore : iterable of str
        Columns to leave aside; any other unknown column is an error.

    Raises
    ------
    VoteError
        For unknown or absent columns, nulls, votes outside of the classes or of every sequence, rows that
        contradict each other or are no task.
    TaskError
        For seconds without a rate.
    """
    from dugong.votes.container import Votes

    columns = read_table(table, ignore)
    further = tuple(lengths) if isinstance(lengths, Mapping) else ()
    order = _order(factorise(columns["sequence"], "sequence"), ids, further, "sequence", "ids=")
    voters = _order(factorise(columns["source"], "source"), sources, (), "source", "sources=")
    votes = factorise(columns["vote"], "vote")
    coding = read_values(
        votes.values, n_classes=n_classes, classes=classes, abstain=abstain, missing=missing, partial=partial
    )
    names = tuple(map(str, voters.values))
    found = read_resolutions(resolutions, names)
    time = _make_axis(unit, rate, start, timestamps, order.values)
    starts, stops, time = _to_elements(columns, order, unit, time)
    counts = _make_lengths(lengths, order, stops, time)
    rows = LongRows(numbers=np.arange(len(starts)), sequences=order.codes, starts=starts, stops=stops, ids=order.values)
    rows.check_inside(counts, may_be_empty=unit == "second")
    tables = {name: as_spans(given) for name, given in (spans or {}).items()}
    infos = tuple(SourceInfo(name=name, resolution=found[name]) for name in names)
    return Votes(
        sources=infos,
        columns=_fill(infos, rows, voters, votes, coding, lengths=counts, spans=tables),
        lengths=counts,
        ids=np.array(order.values),
        n_classes=coding.n_classes,
        class_names=coding.class_names,
        background=None if background is None else coding.class_of(background, "the background"),
        partial=coding.codebook,
        spans=tables,
        time=time,
    )


def _order(column: Factor, wanted: Iterable[Any] | None, further: tuple[Any, ...], what: str, option: str) -> Factor:
    """Renumber a column: in the wanted order, or of first appearance and then whatever is known besides."""
    if wanted is None:
        values = tuple(dict.fromkeys((*column.values, *further)))
        unknown = [value for value in column.values if value not in {*further}] if further else []
    else:
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in wanted)
        unknown = [value for value in column.values if value not in {*values}]
    if unknown:
        known = "lengths=" if wanted is None else option
        raise VoteError(
            f"votes must lie in a known {what}; found {len(unknown)} unknown, the first {unknown[0]!r}.\n"
            f"  Known are those that {known} lists, such as {next(iter(values), None)!r}."
        )
    place = {value: number for number, value in enumerate(values)}
    return replace(column, codes=np.array([place[v] for v in column.values])[column.codes], values=values)


def _make_axis(
    unit: str, rate: Any, start: Any, timestamps: Mapping[Any, ArrayLike] | None, ids: tuple[Any, ...]
) -> TimeAxis | None:
    if unit not in ("element", "second"):
        raise TaskError(f"unit must be 'element' or 'second'; found {unit!r}.")
    if rate is not None and timestamps is not None:
        raise TaskError("a time axis has either a rate or timestamps; found both.")
    if timestamps is not None:
        return TimeAxis.from_timestamps(timestamps, ids=ids, start=start)
    if rate is not None:
        return TimeAxis.from_rate(rate, ids=ids, start=start)
    if unit == "second":
        raise TaskError(
            "seconds become elements only at a known rate, which is never guessed; found unit='second' without one.\n"
            "  Pass rate= (elements per second: one number, or a mapping by sequence), or timestamps= by sequence."
        )
    return None


def _to_elements(
    columns: Mapping[str, Any], order: Factor, unit: str, time: TimeAxis | None
) -> tuple[IntArray, IntArray, TimeAxis | None]:
    starts, stops = numbers_of(columns["start"], "start"), numbers_of(columns["end"], "end")
    if unit == "second":
        assert time is not None
        spans = time.to_elements(order.codes, starts, stops)
        return spans.starts, spans.stops, replace(time, rounding=spans.rounding)
    return _whole(starts, "start"), _whole(stops, "end"), time


def _whole(values: AnyArray, name: str) -> IntArray:
    bad = values != np.floor(values)
    if bad.any():
        first = int(np.argmax(bad))
        raise VoteError(
            f"the column {name!r} must hold whole elements; found {int(bad.sum())} fractions, the first at row "
            f"{first} ({values[first]}).\n  If these are seconds, pass unit='second' and rate=."
        )
    return values.astype(np.int64)


def _make_lengths(lengths: Any, order: Factor, stops: IntArray, time: TimeAxis | None) -> IntArray:
    if isinstance(lengths, Mapping):
        absent = [value for value in order.values if value not in lengths]
        if absent:
            raise VoteError(f"lengths must be given for every sequence; found none for {absent[0]!r}.")
        return as_lengths([lengths[value] for value in order.values])
    if lengths is not None:
        found = as_lengths(lengths)
        if len(found) != len(order.values):
            raise VoteError(
                f"found {len(found)} lengths for {len(order.values)} sequences; pass a mapping by sequence."
            )
        return found
    if time is not None and time.offsets is not None:
        return np.diff(time.offsets)
    longest = np.zeros(len(order.values), dtype=np.int64)
    np.maximum.at(longest, order.codes, stops)
    return longest


def _fill(
    infos: tuple[SourceInfo, ...], rows: LongRows, voters: Factor, votes: Factor, coding: ValueCoding, **where: Any
) -> tuple[Int8Array, ...]:
    by_source = np.argsort(voters.codes, kind="stable")
    borders = np.searchsorted(voters.codes[by_source], np.arange(1, len(infos)))
    columns = []
    for info, mine in zip(infos, np.split(by_source, borders), strict=True):
        codes = _codes(votes, mine, coding.codes_for(info.resolution), info)
        columns.append(fill_column(info, rows.take(mine), codes, Layout.of(info.resolution, **where)))
    return tuple(columns)


def _codes(votes: Factor, mine: IntArray, codes: Mapping[Any, int], info: SourceInfo) -> Int8Array:
    invalid = 127
    ours = np.array([codes.get(value, invalid) for value in votes.values], dtype=np.int8)[votes.codes[mine]]
    bad = ours == invalid
    if bad.any():
        first = int(mine[np.argmax(bad)])
        known = ", ".join(repr(value) for value in codes)
        raise VoteError(
            f"votes of source {info.name!r} must be one of {known}; found {int(bad.sum())} other values, the first "
            f"at row {first} (value {votes.values[votes.codes[first]]!r}).\n"
            "  Name the classes with classes=, and other values with abstain=, missing= or partial=."
        )
    return ours


# --- from spans with votes to one vote per task ----------------------------------------------------------------------
# Two different votes of one source on one task are an error, as is a row outside of its sequence.
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongRows:
    """Rows of a long table: their numbers, places of their sequences, and half-open element bounds inside these."""

    numbers: IntArray
    sequences: IntArray
    starts: IntArray
    stops: IntArray
    ids: tuple[Any, ...]

    def take(self, chosen: IntArray) -> LongRows:
        """Some of the rows."""
        parts = {name: getattr(self, name)[chosen] for name in ("numbers", "sequences", "starts", "stops")}
        return LongRows(**parts, ids=self.ids)

    def check_inside(self, lengths: IntArray, *, may_be_empty: bool) -> None:
        """Raise unless every row lies inside its sequence and holds an element."""
        ends = lengths[self.sequences]
        outside = (self.starts < 0) | (self.stops > ends)
        if not may_be_empty:
            outside |= self.starts >= self.stops
        if outside.any():
            row = int(np.argmax(outside))
            raise VoteError(
                f"votes must lie inside their sequence and cover at least one element; found {int(outside.sum())} "
                f"rows that do not, the first {self.where(row)} of {ends[row]} elements.\n"
                "  Spans are half-open, [start, end), and counted from 0; check lengths= and unit= too."
            )

    def where(self, row: int) -> str:
        """Name a row for a message."""
        span = f"[{self.starts[row]}, {self.stops[row]})"
        return f"at row {self.numbers[row]}: {span} in sequence {self.ids[int(self.sequences[row])]!r}"


def fill_column(info: SourceInfo, rows: LongRows, codes: Int8Array, layout: Layout) -> Int8Array:
    """The flat votes of one source, whose rows have these codes; abstain where no row says anything."""
    begin = layout.element_offsets[rows.sequences]
    if isinstance(info.resolution, Element):
        places, counts = begin + rows.starts, np.maximum(rows.stops - rows.starts, 0)
    else:
        places, counts = _match(layout, info, rows, begin), np.ones(len(codes), dtype=np.int64)
    # Write every row, then read every row back: a row that reads something else was overwritten.
    column = np.zeros(layout.n_tasks, dtype=np.int8)
    before = offsets_of(counts)
    borders = np.unique(np.searchsorted(before, np.arange(0, before[-1] + _BLOCK, _BLOCK), side="left"))
    blocks = [slice(a, b) for a, b in pairwise(borders.tolist())]
    for block in blocks:
        column[ranges(places[block], counts[block])] = np.repeat(codes[block], counts[block])
    for block in blocks:
        lost = column[ranges(places[block], counts[block])] != np.repeat(codes[block], counts[block])
        if lost.any():
            row = int(np.searchsorted(before, before[block.start] + np.argmax(lost), side="right")) - 1
            raise VoteError(
                f"source {info.name!r} must not vote twice and differently on one task; found that its row "
                f"{rows.where(row)} overlaps another row with a different vote."
            )
    return column


def _match(layout: Layout, info: SourceInfo, rows: LongRows, begin: IntArray) -> IntArray:
    """The task that each row is."""
    starts, stops = layout.flat_bounds()
    first, last = begin + rows.starts, begin + rows.stops
    places = np.searchsorted(starts, first)
    inside = np.minimum(places, len(starts) - 1)
    bad = (starts[inside] != first) | (stops[inside] != last)
    if bad.any():
        row = int(np.argmax(bad))
        near, shift = inside[row], begin[row]
        raise VoteError(
            f"rows of source {info.name!r} must be exactly one task of {describe(info.resolution)}; found "
            f"{int(bad.sum())} that are none, the first {rows.where(row)}.\n"
            f"  The nearest task is [{starts[near] - shift}, {stops[near] - shift})."
        )
    return np.asarray(places)

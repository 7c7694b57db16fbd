"""A column of a table as one more source: another model's predictions, an annotator's file.

In: votes, and an arrow table (or a data frame) with a column ``sequence`` and, for elements, ``element`` or ``start``
and ``end`` (half open); without these, one row per element in their order. Out: the votes with one more source. Cells
are votes in our own coding, class names or words that `values` explains; or probabilities. What the table does not
mention, and empty cells, were not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dugong.exceptions import VoteError
from dugong.tasks import Element, Resolution, Sequence, describe
from dugong.tasks.layout import ranges
from dugong.types import MISSING, Int8Array, IntArray, class_values
from dugong.votes.codes import SourceInfo
from dugong.votes.flat import ScoreArray, rows_of, votes_of

if TYPE_CHECKING:
    from dugong.votes.container import Votes


def with_table(
    votes: Votes,
    table: Any,
    name: str,
    *,
    column: str | Iterable[str] | None = None,
    soft: bool = False,
    values: Mapping[Any, int] | None = None,
    resolution: Resolution | None = None,
) -> Votes:
    """These votes and those of a column of a table, as one more source.

    Parameters
    ----------
    table : arrow table or data frame
        With a column ``sequence``, and ``element`` or ``start`` and ``end`` unless its rows are all elements in order.
        Rows of other sequences are left out.
    name : str
        Of the source.
    column : str or list of str
        Where the votes are, `name` by default; of a soft source P(positive), or one column per class.
    soft : bool
        Whether the cells are probabilities; empty ones were not asked.
    values : mapping of cell to vote, optional
        Such as ``{"speech": 1, "none": -1}``; else votes in our own coding, or class names.
    resolution : Sequence, optional
        Elements by default; a table on sequences has one row for each.
    """
    found = pa.Table.from_pandas(table) if hasattr(table, "iloc") else table
    names = [name] if column is None else [column] if isinstance(column, str) else list(column)
    absent = [one for one in ("sequence", *names) if one not in found.column_names]
    if absent:
        known = ", ".join(found.column_names)
        raise VoteError(f"the table of source {name!r} must have a column {absent[0]!r}; found {known}.")
    where = Element() if resolution is None else resolution
    if not isinstance(where, Element | Sequence):
        raise VoteError(f"the table of source {name!r} is about elements or whole sequences; found {describe(where)}.")
    tasks, rows = _tasks(votes, found, name, where)
    codes, scores = np.full(votes.layout(where).n_tasks, MISSING, dtype=np.int8), dict(votes.scores)
    if soft:
        width = votes.n_classes if isinstance(where, Element) else 2
        full = scores[name] = np.full((len(codes), width), np.nan, dtype=np.float32)
        full[tasks] = _probabilities(found.select(names), name, width)[rows]
        asked = ~np.isnan(full).all(axis=1)
        codes[asked] = votes_of(full[asked], class_values(width))
    else:
        codes[tasks] = _codes(found.column(names[0]).to_pylist(), votes, name, values, where)[rows]
    info = SourceInfo(name=name, resolution=where)
    return replace(votes, sources=(*votes.sources, info), columns=(*votes.columns, codes), scores=scores)


def _tasks(votes: Votes, table: pa.Table, name: str, where: Resolution) -> tuple[IntArray, IntArray]:
    """Tasks that the table speaks about, and the row for each."""
    places = {str(one): place for place, one in enumerate(votes.sequence_ids.tolist())}
    owners = np.array([places.get(str(one), -1) for one in table.column("sequence").to_pylist()], dtype=np.int64)
    rows = np.flatnonzero(owners >= 0)
    if not len(rows):
        raise VoteError(
            f"the table of source {name!r} must name sequences of the votes, such as {next(iter(places), None)!r}; "
            f"found {len(owners):,} rows, of none of them"
            + (f" (the first is of {table.column('sequence')[0].as_py()!r})." if len(owners) else ".")
        )
    offsets = votes.layout(where).offsets
    owners = owners[rows]
    if isinstance(where, Sequence):
        empty = np.flatnonzero(votes.lengths[owners] == 0)
        if len(empty):
            raise VoteError(
                f"every row of source {name!r} must be about a sequence with elements; row {rows[empty[0]]} is of "
                f"{votes.sequence_ids[owners[empty[0]]]}, which has none."
            )
        tasks = offsets[owners]
    else:
        starts, stops = _bounds(table, rows, owners, votes, name)
        tasks, rows = ranges(offsets[owners] + starts, stops - starts), np.repeat(rows, stops - starts)
    if len(np.unique(tasks)) < len(tasks):
        twice = tasks[np.flatnonzero(np.bincount(tasks)[tasks] > 1)[0]]
        owner = int(np.searchsorted(offsets, twice, side="right") - 1)
        raise VoteError(
            f"the table of source {name!r} must have one row per task; it has several for task "
            f"{int(twice - offsets[owner])} of sequence {votes.sequence_ids[owner]}."
        )
    return tasks, rows


def _bounds(table: pa.Table, rows: IntArray, owners: IntArray, votes: Votes, name: str) -> tuple[IntArray, IntArray]:
    """Where in its sequence every row lies, half open."""
    if "element" in table.column_names:
        starts = _whole(table, "element", name)[rows]
        stops = starts + 1
    elif {"start", "end"} <= set(table.column_names):
        starts, stops = _whole(table, "start", name)[rows], _whole(table, "end", name)[rows]
    else:
        counts = np.bincount(owners, minlength=votes.n_sequences)
        odd = np.flatnonzero((counts > 0) & (counts != votes.lengths))
        if len(odd):
            one = int(odd[0])
            raise VoteError(
                f"without a column element, or start and end, the table of source {name!r} must have one row per "
                f"element; sequence {votes.sequence_ids[one]} has {votes.lengths[one]}, and {counts[one]} rows."
            )
        order = np.argsort(owners, kind="stable")
        starts = np.empty(len(owners), dtype=np.int64)
        starts[order] = ranges(np.zeros(len(counts), dtype=np.int64), counts)
        stops = starts + 1
    bad = (starts < 0) | (stops < starts) | (stops > votes.lengths[owners])
    if bad.any():
        first = int(np.argmax(bad))
        raise VoteError(
            f"every row of source {name!r} must lie inside of its sequence; row {rows[first]} covers elements "
            f"{starts[first]} to {stops[first]} of {votes.sequence_ids[owners[first]]}, which has "
            f"{votes.lengths[owners[first]]}."
        )
    return starts, stops


def _whole(table: pa.Table, column: str, name: str) -> IntArray:
    cells = table.column(column)
    if not pa.types.is_integer(cells.type) or cells.null_count:
        what = f"{cells.null_count} empty cells" if cells.null_count else str(cells.type)
        raise VoteError(
            f"the column {column!r} of source {name!r} must hold whole numbers, places of elements; found {what}.\n"
            "  Times in seconds come in as segments: dugong import, or a file of annotations in sources = [...]."
        )
    return np.asarray(cells.to_numpy(), dtype=np.int64)


def _probabilities(table: pa.Table, name: str, width: int) -> ScoreArray:
    try:
        given = np.stack([pc.cast(one, pa.float64()).to_numpy() for one in table.columns], axis=1)
    except pa.ArrowInvalid as error:
        raise VoteError(f"the scores of source {name!r} must be numbers: {error}") from None
    if given.shape[1] != width and not (given.shape[1] == 1 and width == 2):
        raise VoteError(
            f"column= of the soft source {name!r} must name one column per class, {width} of them"
            f"{', or one with P(positive)' if width == 2 else ''}; found {given.shape[1]}."
        )
    return rows_of(given[:, 0] if given.shape[1] == 1 else given, width)


def _codes(cells: list[Any], votes: Votes, name: str, values: Mapping[Any, int] | None, where: Resolution) -> Int8Array:
    """Votes of cells; empty ones were not asked."""
    classes = votes.classes if isinstance(where, Element) else (-1, 1)
    codes: dict[Any, int] = {None: MISSING, 0: 0, **{one: one for one in classes}}
    if isinstance(where, Element) or votes.n_classes == 2:
        codes |= dict(zip(votes.class_names or (), votes.classes, strict=bool(votes.class_names)))
    meant = sorted({MISSING, 0, *classes, *(votes.partial if isinstance(where, Element) else ())})
    for key, value in (values or {}).items():
        if value not in meant:
            raise VoteError(f"values= of source {name!r} must lead to votes, {meant}; found {value!r}.")
        codes[str(key)] = value
    if "" not in codes:
        codes[""] = MISSING
    known_as = [
        cell if cell is None or (isinstance(cell, int | float) and cell in codes) else str(cell) for cell in cells
    ]
    read = [codes.get(cell, 127) for cell in known_as]
    found = np.array(read, dtype=np.int8)
    if (found == 127).any():
        first = int(np.argmax(found == 127))
        known = ", ".join(repr(one) for one in codes if one not in (None, ""))
        raise VoteError(
            f"the cells of source {name!r} must be votes ({known}) or empty; found {cells[first]!r} in row {first}.\n"
            "  Say what words mean with values=, such as {'speech': 1, 'none': -1}."
        )
    return found

"""Known labels in files: a table of spans (.parquet, .csv), one flat array (.npy), corrections, or another tool's.

In: a file and the votes that it belongs to. Out: one label per element in our own coding, 0 where unknown. The table
has the columns sequence, start, end (half open, in elements; or start_seconds and end_seconds) and label; a label is a
class value or a class name. Elements that no row of a table covers are unknown; in files of other tools, silence where
somebody looked is the background (see `Segments.to_gold`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dugong.archives import from_arrow, load_array, read_table
from dugong.cli.corrections import FILE, Journal
from dugong.codec import reading
from dugong.exceptions import FormatError, LabelError, TaskError
from dugong.paths import Place, place_of, write_atomically
from dugong.tasks import Element
from dugong.tasks.layout import ranges, stretches
from dugong.types import AnyArray, Int8Array
from dugong.votes import gold_at

if TYPE_CHECKING:
    from dugong.segments import Segments
    from dugong.segments.container import Unit
    from dugong.shards import VoteShards
    from dugong.votes import Votes

COLUMNS = ("sequence", "start", "end", "label")


def read_gold(path: str | PathLike[str], votes: Votes, *, missing_ok: bool = False) -> Int8Array:
    """Labels of all elements, 0 where unknown.

    Parameters
    ----------
    path : file
    votes : Votes
    missing_ok : bool
        Whether the table may name sequences that have no votes (when only a part of the data was voted on).
    """
    place = place_of(path)
    if place.name == FILE and isinstance(place, Path) and place.is_file():
        return Journal(place).labels(votes)
    if place.suffix == ".npy" and place.is_file():
        with reading(place, LabelError, "It must be an array of whole numbers, one per element."):
            return gold_at(votes, load_array(place, "iub").astype(np.int64), Element())  # not yet known to be ours
    return _reader(place)(votes, missing_ok=missing_ok)


def _reader(place: Place) -> Callable[..., Int8Array]:
    """A function from votes to their labels; the file is read once."""
    marked = _marked(place)
    if marked is not None:
        return partial(_named, place, marked)
    table = _read_table(place)
    return lambda votes, *, missing_ok: _labels(place, _voted(table, votes) if missing_ok else table, votes)


def _marked(place: Place) -> Segments | None:
    """Intervals of another tool, or of a table in seconds; None for a table of elements."""
    from dugong import formats
    from dugong.segments import Segments

    if not place.is_dir() and place.suffix in (".parquet", ".csv"):
        table = _named_table(place) if place.is_file() else None
        if table is None or "start_seconds" not in table.column_names or "start" in table.column_names:
            return None
        names = ("sequence", "start_seconds", "end_seconds", "label")
        columns = {one.removesuffix("_seconds"): table.column(one).to_pylist() for one in names}
        return Segments(**columns, unit="second", asked={})  # silence is unknown in a table
    try:
        return formats.read(place)
    except FormatError as error:
        raise LabelError(
            f"gold labels are read from .parquet, .csv or .npy files, or from files of other tools: {error}"
        ) from None


def _named(place: Place, marked: Segments, votes: Votes, *, missing_ok: bool) -> Int8Array:
    try:
        return marked.to_gold(votes, missing_ok=missing_ok)
    except (LabelError, TaskError) as error:
        raise LabelError(f"{place} cannot be used: {error}") from None


def table_labels(place: Place, shards: VoteShards, *, missing_ok: bool) -> Callable[[Votes, int], Int8Array]:
    """A function from one shard of votes to its labels; without `missing_ok` every row must name some sequence."""
    labels, names = _reader(place), _sequences(place)
    if not missing_ok:
        for votes in shards:
            names = names.filter(pc.invert(pc.is_in(names, value_set=_ids(votes))))
        if len(names):
            raise LabelError(
                f"{place} cannot be used: a row must name a sequence of the votes; {names[0].as_py()!r} is none, and "
                f"{len(names)} rows are like this."
            )
    return lambda votes, _: labels(votes, missing_ok=True)


def _sequences(place: Place) -> pa.Array | pa.ChunkedArray:
    marked = _marked(place)
    if marked is not None:
        return pa.array(list(marked.recordings), pa.string())
    return pc.cast(_read_table(place).column("sequence"), pa.string())


def _labels(place: Place, table: pa.Table, votes: Votes) -> Int8Array:
    try:
        return _spread(table, votes)
    except LabelError as error:
        raise LabelError(f"{place} cannot be used: {error}") from None


def write_gold(gold: AnyArray, votes: Votes, path: str | PathLike[str]) -> None:
    """Write labels of elements as runs: one row per stretch of equal known labels."""
    write_table(gold_table(gold, votes), path)


def write_segments(segments: Segments, path: str | PathLike[str]) -> None:
    """Write intervals as such a table, in elements or in seconds."""
    from dugong.formats.texts import placed

    unit: Unit = "second" if segments.unit == "second" else "element"
    found = placed(segments, unit, "gold labels")
    names = ("start", "end") if unit == "element" else ("start_seconds", "end_seconds")
    bounds = [bound.astype(np.int64) if unit == "element" else bound for bound in (found.start, found.end)]
    words = {name: pa.array(found.column(name), pa.string()) for name in ("sequence", "label")}
    write_table(
        pa.table({"sequence": words["sequence"], **dict(zip(names, bounds, strict=True)), "label": words["label"]}),
        path,
    )


def write_table(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write a table, as the ending says."""
    if place_of(path).suffix == ".csv":
        write_atomically(path, lambda handle: pyarrow.csv.write_csv(table, handle))
    else:
        write_atomically(path, lambda handle: pyarrow.parquet.write_table(table, handle))


def gold_table(gold: AnyArray, votes: Votes) -> pa.Table:
    """Labels of elements as a table of runs."""
    labels = np.asarray(gold)
    offsets = votes.layout("element").offsets
    starts, stops = stretches(labels, offsets)
    owners = np.searchsorted(offsets, starts, side="right") - 1
    known = labels[starts] != 0
    columns = {
        "sequence": pa.array(votes.sequence_ids[owners]),
        "start": pa.array(starts - offsets[owners]),
        "end": pa.array(stops - offsets[owners]),
        "label": _names(labels[starts], votes),
    }
    return pa.table(columns).filter(pa.array(known))


def _names(labels: AnyArray, votes: Votes) -> pa.Array:
    if votes.class_names is None:
        return pa.array(labels.astype(np.int64))
    names = dict(zip(votes.classes, votes.class_names, strict=True))
    return pa.array([names.get(label) for label in labels.tolist()])


def _read_table(place: Place) -> pa.Table:
    if not place.is_file():
        raise LabelError(f"there is no file {place}.")
    return _named_table(place, _checked_table)


def _named_table(place: Place, checked: Callable[[pa.Table], pa.Table] = lambda table: table) -> pa.Table:
    try:
        return checked(known_table(place))
    except LabelError as error:
        raise LabelError(f"{place} cannot be used: {error}") from None


def _checked_table(table: pa.Table) -> pa.Table:
    absent = [name for name in COLUMNS if name not in table.column_names]
    if absent:
        raise LabelError(
            f"a table of gold labels must have the columns {', '.join(COLUMNS)}; {absent[0]!r} is missing, found "
            f"{', '.join(table.column_names)}."
        )
    twice = [name for name in COLUMNS if table.column_names.count(name) > 1]
    if twice:
        raise LabelError(f"the names of columns must be different; found {twice[0]!r} more than once.")
    label = table.column("label").type
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    if not any(fits(label) for fits in kinds):  # a column without any cell is of no type: nobody has looked yet
        raise LabelError(f"the column 'label' must hold class values or names; found {label}.")
    table = _looked_at(table)
    empty = [name for name in COLUMNS if table.column(name).null_count]
    if empty:
        raise LabelError(f"the column {empty[0]!r} must not have empty cells; leave out rows that are not known.")
    return table


def _looked_at(table: pa.Table) -> pa.Table:
    """Rows with a label: of a table to fill in, the others were not looked at."""
    column = table.column("label")
    known = pc.is_valid(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        known = pc.and_kleene(known, pc.cast(pc.binary_length(column), pa.bool_()))
    return table.filter(known)


def known_table(place: Place) -> pa.Table:
    """A table of a .parquet or .csv file, in which sequences are words."""
    if not place.is_file():
        raise LabelError(f"there is no file {place}.")
    try:
        table = read_table(place)
        _ = table.column_names  # decoded only now
        return table
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: text that is no UTF-8
        raise LabelError(
            f"the file is damaged, or of another kind: {error}\n"
            "  Save a CSV as UTF-8 with a comma between columns, or write the file again."
        ) from None


def _voted(table: pa.Table, votes: Votes) -> pa.Table:
    return table.filter(pc.is_in(pc.cast(table.column("sequence"), pa.string()), value_set=_ids(votes)))


def _ids(votes: Votes) -> pa.Array:
    return pa.array(list(map(str, votes.sequence_ids.tolist())))


def _spread(table: pa.Table, votes: Votes) -> Int8Array:
    owners = _owners(table.column("sequence").to_pylist(), votes)
    starts, stops = (_whole(table, name) for name in ("start", "end"))
    bad = (starts < 0) | (stops > votes.lengths[owners]) | (stops < starts)
    if bad.any():
        row = int(np.argmax(bad))
        raise LabelError(
            f"a row must lie inside its sequence; found {int(bad.sum())} that do not, the first is row {row}: elements "
            f"{starts[row]} to {stops[row]} of sequence {votes.sequence_ids.tolist()[owners[row]]!r}, which has "
            f"{votes.lengths[owners[row]]}."
        )
    codes = _codes(table.column("label").to_pylist(), votes)
    elements = ranges(starts + votes.layout("element").offsets[owners], stops - starts)
    spread = np.repeat(codes, stops - starts)
    labels = np.zeros(votes.n_elements, dtype=np.int8)
    labels[elements] = spread
    twice = labels[elements] != spread
    if twice.any():
        raise LabelError(f"an element must have one label; {int(twice.sum())} have two different ones.")
    return labels


def _owners(ids: list[Any], votes: Votes) -> AnyArray:
    places = {str(one): place for place, one in enumerate(votes.sequence_ids.tolist())}
    unknown = [one for one in ids if str(one) not in places]
    if unknown:
        raise LabelError(
            f"a row must name a sequence of the votes; {unknown[0]!r} is none, and {len(unknown)} rows are like this."
        )
    return np.array([places[str(one)] for one in ids], dtype=np.int64)


def _whole(table: pa.Table, name: str) -> AnyArray:
    column = table.column(name)
    if not pa.types.is_integer(column.type):
        raise LabelError(f"the column {name!r} must hold whole numbers of elements; found {column.type}.")
    return np.asarray(from_arrow(column), dtype=np.int64)


def _codes(labels: list[Any], votes: Votes) -> Int8Array:
    codes: dict[Any, int] = {value: value for value in (0, *votes.classes)}
    codes |= dict(zip(votes.class_names or (), votes.classes, strict=bool(votes.class_names)))
    unknown = [label for label in labels if label not in codes]
    if unknown:
        known = ", ".join(map(str, votes.class_names or votes.classes))
        raise LabelError(f"a label must be one of {known}; found {unknown[0]!r}, and {len(unknown)} such rows.")
    return np.array([codes[label] for label in labels], dtype=np.int8)

"""The long table: the logical schema of votes, whichever library it comes from.

In: a pandas, polars or arrow table, anything that speaks the Arrow stream protocol, or a dictionary of
columns. Out: five checked Arrow columns: sequence, source, start, end, vote. A column too few or too many
is an error, because a misspelt or forgotten column must not change what the votes mean. `to_long` makes such a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dugong.exceptions import VoteError
from dugong.types import AnyArray, IntArray

if TYPE_CHECKING:
    from dugong.votes.container import Votes

LONG_COLUMNS = ("sequence", "source", "start", "end", "vote")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factor:
    """A column as numbers: ``values[codes]``, values in order of first appearance."""

    codes: IntArray
    values: tuple[Any, ...]


def read_table(table: Any, ignore: Iterable[str] = ()) -> dict[str, pa.ChunkedArray]:
    """The five columns of a long table, without nulls."""
    arrow = _to_arrow(table)
    skipped = {*ignore}
    # Pandas calls a row index without a name so.
    names = [name for name in arrow.column_names if not (name in skipped or name.startswith("__index_level_"))]
    absent = [name for name in LONG_COLUMNS if name not in names]
    unknown = [name for name in names if name not in LONG_COLUMNS]
    if absent or unknown:
        raise VoteError(_column_message(names, absent, unknown))
    if arrow.num_rows == 0:
        raise VoteError("a long table must have at least one row; found none.\n  Check the filter before it.")
    columns = {name: arrow.column(name) for name in LONG_COLUMNS}
    for name, column in columns.items():
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            raise VoteError(
                f"the column {name!r} must not have nulls; found {column.null_count}, the first at row {row}.\n"
                "  Where a source abstains, leave the row out."
            )
    return columns


def _to_arrow(table: Any) -> pa.Table:
    if isinstance(table, Mapping):
        arrays = {str(name): _plain(column) for name, column in table.items()}
        lengths = {name: len(column) for name, column in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise VoteError(f"the columns of a long table must be equally long; found {lengths}.")
        return pa.table(arrays)
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "__arrow_c_stream__") or isinstance(table, pa.RecordBatch):
        return pa.table(table)
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return pa.table({str(name): pa.array(np.asarray(table[name])) for name in table.columns})
    raise VoteError(
        "a long table must be a pandas, polars or arrow table or a dictionary of columns; found "
        f"{type(table).__name__}."
    )


def _plain(column: Any) -> pa.Array | pa.ChunkedArray:
    try:
        return column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise VoteError(f"a column of a long table must hold one type of value: {error}") from None


def _column_message(names: list[str], absent: list[str], unknown: list[str]) -> str:
    found = ", ".join(map(repr, names)) or "none"
    text = f"a long table must have the columns {', '.join(LONG_COLUMNS)}; found {found}."
    if absent:
        text += f"\n  Missing: {', '.join(map(repr, absent))}."
    if unknown:
        listing = ", ".join(map(repr, unknown))
        text += f"\n  Unknown column: {listing}. Rename it, drop it, or pass ignore=[{listing}]."
    return text


def factorise(column: pa.ChunkedArray, name: str) -> Factor:
    """Number the distinct values of a column in order of first appearance."""
    if pa.types.is_dictionary(column.type):
        # By hand, because arrow cannot cast all kinds of categories.
        kind = column.type.value_type if pa.types.is_integer(column.type.value_type) else pa.large_string()
        parts = [part.dictionary.cast(kind).take(part.indices) for part in column.chunks]
        column = pa.chunked_array(parts, type=kind)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        try:
            column = column.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise VoteError(f"the column {name!r} must hold strings or numbers; found {column.type}.") from None
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Factor(
        codes=encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        values=tuple(encoded.dictionary.to_pylist()),
    )


def numbers_of(column: pa.ChunkedArray, name: str) -> AnyArray:
    """A column of finite numbers as int64 or float64."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise VoteError(f"the column {name!r} must hold numbers; found {column.type}.")
    values = column.to_numpy()
    if values.dtype.kind != "f":
        return np.asarray(values.astype(np.int64))
    bad = ~np.isfinite(values)
    if bad.any():
        raise VoteError(
            f"the column {name!r} must hold finite numbers; found {int(bad.sum())} NaN or infinite, "
            f"the first at row {int(np.argmax(bad))}."
        )
    return np.asarray(values.astype(np.float64))


def to_long(votes: Votes) -> pa.Table:
    """See `Votes.to_long`."""
    ids, names = pa.array(votes.sequence_ids), pa.array(votes.source_names)
    parts = []
    for place, (source, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
        layout = votes.layout(source.resolution)
        tasks = np.flatnonzero(column)
        starts, stops = layout.bounds()
        owner = np.searchsorted(layout.offsets, tasks, side="right") - 1
        voter = np.full(len(tasks), place, dtype=np.int32)
        parts.append(
            pa.table(
                {
                    "sequence": pa.DictionaryArray.from_arrays(owner.astype(np.int32), ids),
                    "source": pa.DictionaryArray.from_arrays(voter, names),
                    "start": starts[tasks],
                    "end": stops[tasks],
                    "vote": column[tasks],
                }
            )
        )
    return pa.concat_tables(parts)

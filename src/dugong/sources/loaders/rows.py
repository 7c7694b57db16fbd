"""A table as a sequence: rows with named cells for sources, columns as arrays for vectorised ones.

``rows[3]`` is a `Row` (``row.ankle_x`` or ``row["ankle_x"]``), ``rows[3:9]`` are rows again, and
``rows["ankle_x"]`` is a whole column. Missing numbers are NaN, missing words None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from dugong.exceptions import LoaderError
from dugong.types import AnyArray, BoolArray, read_only


def in_file(path: Path, text: str) -> LoaderError:
    """An error that begins with the name of the file."""
    return LoaderError(f"{path}: {text}")


class Row:
    """One row: its cells by key, or by attribute where the name of the column allows it."""

    __slots__ = ("_cells", "_index")

    def __init__(self, cells: _Cells, index: int) -> None:
        self._cells = cells
        self._index = index

    def __getattr__(self, name: str) -> Any:
        # Columns are properties of the class that `row_class` makes, so this is never reached for them.
        raise AttributeError(unknown_column(name, self._cells.columns))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name][self._index]
        except KeyError:
            raise KeyError(unknown_column(name, self._cells.columns)) from None

    def __iter__(self) -> Iterator[Any]:
        """Run over the cells, in the order of the columns."""
        return (self[name] for name in self._cells.columns)

    def __len__(self) -> int:
        return len(self._cells.columns)

    def to_dict(self) -> dict[str, Any]:
        """The cells by name."""
        return {name: self[name] for name in self._cells.columns}

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        place = slice(self._index, self._index + 1)
        return _rebuild_row, ({name: column[place] for name, column in self._cells.columns.items()},)


class _Cells(dict[str, list[Any]]):
    """Columns as Python lists, each made when first asked for: plain numbers are quick."""

    def __init__(self, columns: Mapping[str, AnyArray]) -> None:
        super().__init__()
        self.columns = columns

    def __missing__(self, name: str) -> list[Any]:
        column = self.columns[name]
        # Lists of datetime64 would be whole numbers of nanoseconds, so such columns stay arrays.
        self[name] = cells = list(column) if column.dtype.kind in "mM" or column.ndim > 1 else column.tolist()
        return cells


@lru_cache(maxsize=128)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """A `Row` with a property for every column: ten times as quick as looking the attribute up by name."""
    free = [name for name in names if name.isidentifier() and not hasattr(Row, name)]
    return type("Row", (Row,), {"__slots__": ()} | {name: _cell_property(name) for name in free})


def _cell_property(name: str) -> property:
    return property(lambda row: row._cells[name][row._index])  # noqa: SLF001 (a part of the class)


def unknown_column(name: object, columns: Mapping[str, AnyArray]) -> str:
    """What to say when there is no such column."""
    return f"there is no column {name!r}; known are {', '.join(map(repr, columns))}"


class Rows:
    """A table with named columns of one length, read-only.

    Attributes
    ----------
    columns : mapping of name to array
    missing : (n_rows,) bool array
        Rows that were not in the file: gaps of a sensor, filled with NaN.
    clock : (start in seconds, rows per second) or None
    cells : the columns as Python values
    row : function from a place to its `Row`
        The quick way to ``rows[place]``, for places that exist.
    """

    __slots__ = ("cells", "clock", "columns", "missing", "row")

    def __init__(
        self,
        columns: Mapping[str, AnyArray],
        *,
        missing: BoolArray | None = None,
        clock: tuple[float, float] | None = None,
    ) -> None:
        if not columns:
            raise LoaderError("a table needs at least one column; found none.")
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise LoaderError(f"columns of a table must have one length; found {lengths}.")
        n_rows = next(iter(lengths.values()))
        self.columns = {name: read_only(column) for name, column in columns.items()}
        self.missing = read_only(np.zeros(n_rows, dtype=np.bool_) if missing is None else missing)
        self.clock = clock
        self.cells = _Cells(self.columns)
        self.row = partial(row_class(tuple(self.columns)), self.cells)

    def __len__(self) -> int:
        return len(self.missing)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Rows: ...
    @overload
    def __getitem__(self, key: str) -> AnyArray: ...
    def __getitem__(self, key: int | slice | str) -> Row | Rows | AnyArray:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(unknown_column(key, self.columns))
            return self.columns[key]
        if isinstance(key, slice):
            return self._part(key)
        n_rows = len(self.missing)
        if not -n_rows <= key < n_rows:
            raise IndexError(f"row {key} of a table with {n_rows} rows")
        return self.row(int(key) % n_rows)

    def take_rows(self, places: Sequence[int]) -> Rows:
        """Some rows, in the given order; a row may occur more than once."""
        order = np.asarray(places, dtype=np.int64)
        columns = {name: column[order] for name, column in self.columns.items()}
        return Rows(columns, missing=self.missing[order])

    def _part(self, key: slice) -> Rows:
        clock = self.clock
        if clock is not None:
            first, _, step = key.indices(len(self))
            clock = (clock[0] + first / clock[1], clock[1]) if step == 1 else None
        columns = {name: column[key] for name, column in self.columns.items()}
        return Rows(columns, missing=self.missing[key], clock=clock)

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, range(len(self)))

    def __repr__(self) -> str:
        gaps = f", {int(self.missing.sum())} missing" if self.missing.any() else ""
        return f"Rows({len(self)} rows{gaps}; {', '.join(self.columns)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Rows, missing=self.missing, clock=self.clock), (self.columns,)


def _rebuild_row(columns: Mapping[str, AnyArray]) -> Row:
    return Rows(columns)[0]

"""Tables and figures as values: printed as Markdown, written as Markdown and CSV, PNG and SVG.

A `Table` holds plain records; how a cell looks is decided when it is printed. A `Drawing` holds a function that draws
on new matplotlib figure (extra ``plot``), so that nothing is imported before something is drawn.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dugong.exceptions import import_extra
from dugong.paths import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shown = Mapping[str, Callable[[Any], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with named columns.

    Attributes
    ----------
    name : str
        Of its files.
    title : str
    columns : tuple of str
        Shown in this order.
    rows : tuple of mappings
        Text of every column, as it is shown.
    records : tuple of mappings
        The numbers behind the rows, for the CSV file.
    notes : tuple of str
        Below the table.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]
    records: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, title: str, records: Sequence[Mapping[str, Any]], shown: Shown, notes: tuple[str, ...] = ()
    ) -> Self:
        """A table with one row per record, and the text of each column by what shows it."""
        rows = tuple({column: text(record) for column, text in shown.items()} for record in records)
        return cls(name=name, title=title, columns=tuple(shown), rows=rows, records=tuple(records), notes=notes)

    def __str__(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns)]
        lines += [tuple(row.get(column, "") for column in self.columns) for row in self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", table, *self.notes])

    __repr__ = __str__

    def csv(self) -> str:
        """The records as CSV, with a header."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure that is not drawn yet.

    Attributes
    ----------
    name : str
        Of its files.
    draw : function
        Returns a matplotlib figure.
    """

    name: str
    draw: Callable[[], Figure] = field(repr=False)

    def write(self, folder: Path) -> list[Path]:
        """Draw and save as PNG and SVG."""
        figure = self.draw()
        paths = [folder / f"{self.name}.{kind}" for kind in ("png", "svg")]
        for path in paths:
            write_atomically(path, lambda handle, path=path: figure.savefig(handle, format=path.suffix[1:], dpi=150))  # type: ignore[misc]
        return paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What `reproduce` found: tables that print as Markdown, and figures.

    Attributes
    ----------
    name : str
    tables : tuple of Table
    drawings : tuple of Drawing
    """

    name: str
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    __repr__ = __str__

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write every table as ``.md`` and ``.csv`` and every figure as ``.png`` and ``.svg``; returns the paths."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = [place / f"{self.name}.md", *(place / f"{table.name}.csv" for table in self.tables)]
        texts = [f"{self}\n", *(table.csv() for table in self.tables)]
        for path, text in zip(paths, texts, strict=True):
            write_atomically(path, lambda handle, text=text: handle.write(text.encode()))  # type: ignore[misc]
        return [*paths, *(path for drawing in self.drawings for path in drawing.write(place))]


def new_figure(n_panels: int = 1, *, width: float = 4.2, height: float = 3.2) -> tuple[Figure, Sequence[Any]]:
    """A figure with panels side by side, and its axes."""
    made = import_extra("matplotlib.figure", "plot", "drawing figures").Figure
    figure = made(figsize=(width * n_panels, height), layout="constrained")
    axes = figure.subplots(1, n_panels, squeeze=False)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (NaN for one value)."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan")
    return mean, float((sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5)


def formatted(key: str, form: str = "", scale: float | None = None) -> Callable[[Any], str]:
    """The text of one value of a record; nothing where it has none."""
    return lambda record: (
        "" if record.get(key) is None else format(record[key] if scale is None else scale * record[key], form)
    )


def spread_of(key: str, scale: float = 1.0) -> Callable[[Any], str]:
    """The text of a number of a record and of its deviation, in percent."""
    return lambda record: percent(scale * record[key], scale * record[f"{key} sd"])


def percent(mean: float, sd: float | None) -> str:
    """``53.8 ± 7.6``: both in percent; no deviation where there is none."""
    return f"{mean:.1f}" if sd is None or isnan(sd) else f"{mean:.1f} ± {sd:.1f}"

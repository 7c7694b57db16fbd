"""Lists of intervals: text with one interval per line, and the table that says what its columns are.

The core of Audacity, RTTM, DCASE, BIDS, MNE and plain CSV files: each of them is one `ListStyle`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np

from dugong.formats.files import File
from dugong.formats.intervals import Intervals
from dugong.segments import Recording, Segments
from dugong.segments.container import Unit

__all__ = ["ListStyle", "read_list", "written"]

_ABSENT = ("", "n/a", "<NA>", "NA", "nan", "None")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStyle:
    """How a list of intervals is laid out.

    Attributes
    ----------
    names : the columns in order; those that are known by a name of ours are read
    header : whether the first line names the columns; if not, `names` are them
    delimiter : one character, or None for white space
    quoted : whether cells may be in quotation marks
    comments : lines that begin like this are left out
    ours : our name (sequence, start, end, duration, label, probability, source, resolution) by theirs
    unit : of start, end and duration
    """

    names: tuple[str, ...]
    ours: Mapping[str, str]
    header: bool = False
    delimiter: str | None = "\t"
    quoted: bool = False
    comments: tuple[str, ...] = ()
    unit: Unit = "second"
    optional: tuple[str, ...] = field(default=("probability", "source", "resolution"))


def read_list(file: File, style: ListStyle, sequence: str | None = None, *, unit: Unit | None = None) -> Segments:
    """Read a list of intervals; `sequence` is the id where there is no column for it."""
    lines = _cells(file, style)
    names: Sequence[str] = style.names
    if style.header:
        first = next(lines, None)
        if first is None:
            raise file.error("the file is empty; its first line must name the columns.")
        names = first[1]
    places = {style.ours[name]: place for place, name in enumerate(names) if name in style.ours}
    _check_columns(file, style, places, names, sequence)
    rows = Intervals(file, unit or style.unit)
    for number, cells in lines:
        if len(cells) < len(names) and len(cells) <= max(places.values()):
            raise file.error(f"a line must have {len(names)} columns; found {len(cells)}.", number)
        _add(rows, number, {name: cells[place] for name, place in places.items() if place < len(cells)}, sequence)
    return rows.done({sequence: Recording()} if sequence is not None else None)


def _cells(file: File, style: ListStyle) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, without comments and empty lines."""
    if style.quoted:
        reader = csv.reader(StringIO(file.text.removeprefix("\ufeff")), delimiter=style.delimiter or ",", strict=True)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise file.error(f"this is no CSV: {error}.", reader.line_num) from None
        return
    for number, line in enumerate(file.lines, start=1):
        if line.strip() and not line.startswith(style.comments or ("\0",)):
            yield number, line.split(style.delimiter)


def _check_columns(
    file: File, style: ListStyle, places: Mapping[str, int], names: Sequence[str], sequence: str | None
) -> None:
    needed = [one for one in dict.fromkeys(style.ours.values()) if one not in (*style.optional, "end", "duration")]
    absent = [one for one in needed if one not in places and (one != "sequence" or sequence is None)]
    if "end" not in places and "duration" not in places:
        absent.append("end")
    if absent:
        theirs = [name for name, one in style.ours.items() if one == absent[0]]
        raise file.error(f"there must be a column {' or '.join(map(repr, theirs))}; found {', '.join(names)}.", 1)


def _add(rows: Intervals, number: int, cells: Mapping[str, str], sequence: str | None) -> None:
    file = rows.file
    start = file.number(cells["start"], "the start", number)
    if "end" in cells:
        end = file.number(cells["end"], "the end", number)
    else:
        absent = cells["duration"] in _ABSENT
        end = start + (0.0 if absent else file.number(cells["duration"], "the duration", number))
    given = cells.get("probability", "")
    rows.add(
        number,
        cells.get("sequence", sequence or ""),
        start,
        round(end, 9) if "end" not in cells else end,
        cells["label"],
        None if given in _ABSENT else file.number(given, "the probability", number),
        source=cells.get("source", ""),
        resolution=cells.get("resolution") or "element",
    )


def written(lines: Iterable[str]) -> bytes:
    """Lines as the bytes of a file."""
    return ("\n".join(lines) + "\n").encode()


def quoted(rows: Iterable[Sequence[Any]]) -> bytes:
    """Intervals as CSV; NaN becomes an empty cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(["" if isinstance(one, float) and np.isnan(one) else one for one in row] for row in rows)
    return text.getvalue().encode()

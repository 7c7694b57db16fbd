"""Known labels in files: a table of spans (.parquet, .csv), one flat array (.npy), corrections, or another tool's.

In: a file and the votes that it belongs to. Out: one label per element in our own coding, 0 where unknown. The table
has the columns sequence, start, end (half open, in elements; or start_seconds and end_seconds) and label; a label is a
class value or a class name. Elements that no row of a table covers are unknown; in files of other tools, silence where
somebody looked is the background (see `Segments.to_gold`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dugong.archives import from_arrow, load_array, read_table
from dugong.cli.corrections import FILE, Journal, corrected
from dugong.cli.project import Project, inside
from dugong.codec import reading
from dugong.exceptions import DugongError, FormatError, LabelError, TaskError, VoteError
from dugong.paths import Place, place_of, write_atomically
from dugong.segments import Segments
from dugong.shards.folder import SAMPLE, hashes_of
from dugong.tasks import Element, Sequence
from dugong.tasks.layout import stretches
from dugong.types import AnyArray, BoolArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Summary, Votes, gold_at
from dugong.votes.concat import concat

if TYPE_CHECKING:
    from dugong.segments.container import Unit
    from dugong.shards import VoteShards


def read_gold(path: str | PathLike[str], votes: Votes, *, missing_ok: bool = False) -> Int8Array:
    """Labels of all elements, 0 where unknown.

    With `missing_ok` they may name sequences that have no votes (when only a part of the data was voted on).
    """
    place = place_of(path)
    if place.name == FILE and isinstance(place, Path) and place.is_file():
        return Journal(place).labels(votes)
    if place.suffix == ".npy" and place.is_file():
        return _array_labels(place, votes)
    return _labels(place, _marked(place), votes, missing_ok=missing_ok)


def _array_labels(place: Place, votes: Votes) -> Int8Array:
    """Labels of votes by an array in a file."""
    with reading(place, LabelError, "It must be an array of whole numbers, one per element."):
        return gold_at(votes, load_array(place, "iub").astype(np.int64), Element())  # not yet known to be ours


def _labels(place: Place, marked: Segments | pa.Table, votes: Votes, *, missing_ok: bool) -> Int8Array:
    """Labels of votes by what was read from a file."""
    try:
        if not isinstance(marked, Segments):
            marked = _as_segments(_voted(marked, votes) if missing_ok else marked)
        return marked.to_gold(votes, missing_ok=missing_ok)
    except (LabelError, TaskError) as error:
        raise LabelError(f"{place} cannot be used: {error}") from None


def _marked(place: Place) -> Segments | pa.Table:
    """Intervals of another tool, or a table of them."""
    from dugong import formats

    if not place.is_dir() and place.suffix in (".parquet", ".csv"):
        if not place.is_file():
            raise LabelError(f"there is no file {place}.")
        try:
            return _checked_table(known_table(place))
        except LabelError as error:
            raise LabelError(f"{place} cannot be used: {error}") from None
    try:
        return formats.read(place)
    except FormatError as error:
        raise LabelError(
            f"gold labels are read from .parquet, .csv or .npy files, or from files of other tools: {error}"
        ) from None


def _as_segments(table: pa.Table) -> Segments:
    """A table of intervals in elements or in seconds; where it has no row, the label is not known."""
    start, end = _bounds(table)
    found = Segments(
        sequence=table.column("sequence").to_pylist(),
        label=table.column("label").to_pylist(),
        start=from_arrow(table.column(start)),
        end=from_arrow(table.column(end)),
        unit="element" if start == "start" else "second",
        asked={},
    )
    return found.take([label != "0" for label in found.label]) if "0" in found.label else found


def _bounds(table: pa.Table) -> tuple[str, str]:
    """The columns of start and end: in elements, or in seconds where there are only these."""
    seconds = "start_seconds" in table.column_names and "start" not in table.column_names
    return ("start_seconds", "end_seconds") if seconds else ("start", "end")


def table_labels(place: Place, shards: VoteShards, *, missing_ok: bool) -> Callable[[Votes, int], Int8Array]:
    """A function from one shard of votes to its labels; without `missing_ok` every row must name some sequence."""
    marked = _marked(place)
    names = list(marked.recordings) if isinstance(marked, Segments) else marked.column("sequence").to_pylist()
    strange = set(map(str, names))
    if not missing_ok:
        for votes in shards:
            strange -= set(map(str, votes.sequence_ids.tolist()))
        if strange:
            rows = [name for name in map(str, names) if name in strange]
            raise LabelError(
                f"{place} cannot be used: a row must name a sequence of the votes; {rows[0]!r} is none, and "
                f"{len(rows)} rows are like this."
            )
    return lambda votes, _: _labels(place, marked, votes, missing_ok=True)


def labelled(labels: Int8Array, votes: Votes) -> BoolArray:
    """Which sequences have a label that is known."""
    counts = np.concatenate([[0], np.cumsum(labels != 0)])
    return np.diff(counts[votes.layout("element").offsets]) > 0


def write_gold(gold: AnyArray, votes: Votes, path: str | PathLike[str]) -> None:
    """Write labels of elements as runs: one row per stretch of equal known labels."""
    owners, starts, stops, labels = known_runs(np.asarray(gold), votes)
    names = dict(zip(votes.classes, votes.class_names or votes.classes, strict=True))
    columns = {
        "sequence": pa.array(votes.sequence_ids[owners]),
        "start": pa.array(starts),
        "end": pa.array(stops),
        "label": pa.array([names[label] for label in labels.tolist()]),
    }
    write_table(columns, path)


def known_runs(gold: AnyArray, votes: Votes) -> tuple[IntArray, IntArray, IntArray, AnyArray]:
    """Stretches of equal known labels: the place of the sequence, start and end inside it, and the label."""
    offsets = votes.layout("element").offsets
    starts, stops = stretches(gold, offsets)
    known = gold[starts] != 0
    starts, stops = starts[known], stops[known]
    owners = np.searchsorted(offsets, starts, side="right") - 1
    return owners, starts - offsets[owners], stops - offsets[owners], gold[starts]


def write_segments(segments: Segments, path: str | PathLike[str]) -> None:
    """Write intervals as such a table, in elements or in seconds."""
    from dugong.formats.files import placed

    unit: Unit = "second" if segments.unit == "second" else "element"
    found = placed(segments, unit, "gold labels")
    after, kind = ("", np.int64) if unit == "element" else ("_seconds", np.float64)
    columns = {
        "sequence": pa.array(found.column("sequence"), pa.string()),
        f"start{after}": found.start.astype(kind),
        f"end{after}": found.end.astype(kind),
        "label": pa.array(found.column("label"), pa.string()),
    }
    write_table(columns, path)


def write_table(columns: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a table, as the ending says."""
    table = pa.table(dict(columns))
    write = pyarrow.csv.write_csv if place_of(path).suffix == ".csv" else pyarrow.parquet.write_table
    write_atomically(path, lambda handle: write(table, handle))


def _checked_table(table: pa.Table) -> pa.Table:
    columns = ("sequence", *_bounds(table), "label")
    absent = [name for name in columns if name not in table.column_names]
    if absent:
        raise LabelError(
            f"a table of gold labels must have the columns {', '.join(columns)}; {absent[0]!r} is missing, found "
            f"{', '.join(table.column_names)}."
        )
    twice = [name for name in columns if table.column_names.count(name) > 1]
    if twice:
        raise LabelError(f"the names of columns must be different; found {twice[0]!r} more than once.")
    label = table.column("label").type
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    if not any(fits(label) for fits in kinds):  # a column without any cell is of no type: nobody has looked yet
        raise LabelError(f"the column 'label' must hold class values or names; found {label}.")
    table = _looked_at(table)
    empty = [name for name in columns if table.column(name).null_count]
    if empty:
        raise LabelError(f"the column {empty[0]!r} must not have empty cells; leave out rows that are not known.")
    for name in ("start", "end") if "start" in columns else ():
        if len(table) and not pa.types.is_integer(table.column(name).type):
            raise LabelError(
                f"the column {name!r} must hold whole numbers of elements; found {table.column(name).type}."
            )
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
    ids = pa.array(list(map(str, votes.sequence_ids.tolist())))
    return table.filter(pc.is_in(pc.cast(table.column("sequence"), pa.string()), value_set=ids))


# --- what people marked, as a project names it ------------------------------------------------------------------------
def add_annotations(project: Project, votes: Votes) -> Votes:
    """The votes, and what the files of annotations say, as further sources.

    Where an annotator looked and marked nothing, the vote is the background; with two classes, the negative one.
    """
    from dugong import formats

    for place in project.annotations:
        marked = formats.read(place)
        marked = replace(marked, source=tuple(one or place.stem for one in marked.source) or (place.stem,))
        names = votes.class_names or tuple(map(str, votes.classes))
        silence = project.background or (names[0] if votes.n_classes == 2 else None)
        try:
            votes = votes.with_segments(marked, background=silence, missing_ok=True)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return _add_tables(project, votes)


def _add_tables(project: Project, votes: Votes) -> Votes:
    """The votes, and the columns of tables that the project names, as further sources."""
    for name, about in project.tables.items():
        place, options = inside(project.folder, about["file"]), {key: about[key] for key in about if key != "file"}
        options["resolution"] = Sequence() if options.get("resolution") == "sequence" else None
        try:
            votes = votes.with_table(known_table(place), name, **options)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return votes


def train_labels(project: Project, votes: Votes) -> Int8Array | None:
    """Known labels that the model is fitted with, if the project has any: its file, and corrections of its studio."""
    known = None if project.train_gold is None else read_gold(project.train_gold, votes, missing_ok=True)
    return corrected(project.folder, votes, known)


def held_out(gold: Int8Array, train: Int8Array | None, votes: Votes) -> Int8Array:
    """Known labels of sequences that the model was not fitted with; 0 elsewhere."""
    if train is None:
        return gold
    return np.where(np.repeat(labelled(train, votes), votes.lengths), np.int8(0), gold)


def left_to_compare(
    gold: Int8Array, train: Int8Array | None, votes: Votes, tell: Callable[[str], object]
) -> Int8Array | None:
    """What `held_out` leaves, or None if every sequence with a known label was fitted with; that is told."""
    others = held_out(gold, train, votes)
    if others.any() or not gold.any():
        return others
    tell("nothing is compared with known labels: every sequence that has some was fitted with.")
    return None


# --- known labels of a folder of votes --------------------------------------------------------------------------------
# The votes on all sequences with a known label and their labels, read one shard after the other. If those are more than
# memory should hold, a hash of the ids chooses among them.
Labels = Callable[[Votes, int], Int8Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """Votes on sequences with known labels (0 where unknown); a remark says what they are, if not simply all votes."""

    votes: Votes
    gold: Int8Array
    remark: str = ""

    def graded(self, summary: Summary) -> Summary:
        """A summary of all votes, with right and wrong votes where labels are known."""
        rows = zip(summary.sources, self.votes.summary(self.gold).sources, strict=True)
        sources = tuple(replace(row, correct=known.correct, incorrect=known.incorrect) for row, known in rows)
        return replace(summary, sources=sources, has_gold=True)


def read_known(
    path: str | PathLike[str], shards: VoteShards, n_elements: int = SAMPLE, *, missing_ok: bool = False
) -> Known:
    """The sequences of a folder that have a known label, at most about `n_elements` elements of them.

    With `missing_ok` the labels may name sequences that have no votes.
    """
    place = place_of(path)
    labels = _flat(place, shards) if place.suffix == ".npy" else table_labels(place, shards, missing_ok=missing_ok)
    sizes = [int(votes.lengths[known].sum()) for votes, _, known in _walk(shards, labels)]
    share = min(1.0, n_elements / max(sum(sizes), 1))
    votes, gold, n_known = [], [], 0
    for part, marks, known in _walk(shards, labels):
        n_known += int(known.sum())
        chosen = known & (hashes_of(part) <= share * 2.0**32)
        if chosen.any():
            votes.append(part[np.flatnonzero(chosen)])
            gold.append(marks[np.repeat(chosen, part.lengths)])
    if not votes:
        raise LabelError(f"{place} has no label of a sequence of {shards.folder}.")
    found = concat(votes)
    some, how = f"{found.n_sequences:,} of ", ", chosen by a hash of their ids"
    if found.n_sequences == n_known:
        some = how = ""
    remark = f"compared on {some}the {n_known:,} sequences with known labels{how}"
    return Known(votes=found, gold=np.concatenate(gold), remark=remark)


def with_others(known: Known, others: Votes) -> tuple[Votes, Int8Array]:
    """Sequences with known labels, and after them those of `others` without, whose labels are 0."""
    named = set(known.votes.sequence_ids.tolist())
    rest = [place for place, one in enumerate(others.sequence_ids.tolist()) if one not in named]
    if not rest:
        return known.votes, known.gold
    more = others[np.array(rest)]
    return concat([known.votes, more]), np.concatenate([known.gold, np.zeros(more.n_elements, dtype=np.int8)])


def _walk(shards: VoteShards, labels: Labels) -> Iterator[tuple[Votes, Int8Array, BoolArray]]:
    """Every shard, its labels, and which of its sequences have one."""
    start = 0
    for votes in shards:
        found = labels(votes, start)
        yield votes, found, labelled(found, votes)
        start += votes.n_elements


def _flat(place: Place, shards: VoteShards) -> Labels:
    """One label per element of all shards, in their order."""
    if not place.is_file():
        raise LabelError(f"there is no file {place}.")
    # All labels at once: whether 0 and 1 are classes or not can be seen only in all of them.
    nobody = Votes(
        sources=(SourceInfo(name="nobody", resolution=Element()),),
        columns=(np.zeros(shards.n_elements, dtype=np.int8),),
        lengths=np.array([shards.n_elements]),
        n_classes=shards.n_classes,
    )
    labels = _array_labels(place, nobody)
    return lambda votes, start: labels[start : start + votes.n_elements]

"""Labels for people and programs: probabilities, the label by name, and intervals.

In: votes and the probabilities that a model gives them. Out: a frozen value around one tidy Arrow table, one row per
task: sequence, start and end in elements (half open), resolution, one probability per class, the likeliest label by
name, its probability as the confidence, the label on the best path of the sequence (elements only), and start and end
in seconds where the votes have a time axis.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dugong.archives import from_arrow, read_table, to_arrow
from dugong.contract import typed
from dugong.exceptions import LabelError, import_extra
from dugong.paths import Place, place_of, write_atomically
from dugong.segments import Recording, Segments
from dugong.tasks import Element, Resolution
from dugong.training import LabelledWindows, match, torch_windows, weighted_rows
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes, class_indices, implied_background

__all__ = ["Labels", "class_columns", "holds_labels"]

_NEEDED = ("sequence", "start", "end", "resolution")
_ABOUT = b"dugong.labels"
_PROBABILITY = "p_"
_REGULAR = 1e-6  # seconds by which a clock may be off and still be regular


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Labels:
    """Probabilistic labels of all tasks of some resolutions.

    What a `pyarrow.Table` offers works here too, with a DeprecationWarning: `table` is that table.
    """

    table: pa.Table

    @classmethod
    def of(cls, votes: Votes, probabilities: Mapping[Resolution, FloatArray], path: Int8Array | None = None) -> Labels:
        """Put the probabilities of some resolutions into one table; columns that a resolution does not have are null.

        Parameters
        ----------
        votes : Votes
        probabilities : mapping of resolution to (n_tasks, n_classes)
        path : (n_elements,) labels on the best path of every sequence, optional
        """
        parts = [_one_resolution(votes, resolution, values, path) for resolution, values in probabilities.items()]
        table = pa.concat_tables(parts, promote_options="default")
        background = -1 if votes.n_classes == 2 else implied_background(votes)
        names = dict(zip(votes.classes, votes.class_words, strict=True))
        about = {"background": None if background is None else names[background]}
        return cls(table=table.replace_schema_metadata({_ABOUT: json.dumps(about)}))

    # --- columns -----------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def ids(self) -> AnyArray:
        """The sequence of every row."""
        return from_arrow(self.table.column("sequence"))

    @property
    def spans(self) -> IntArray:
        """First and one-past-last element of every row, shape (n, 2)."""
        return np.stack([from_arrow(self.table.column(name)) for name in ("start", "end")], axis=1)

    @property
    def seconds(self) -> FloatArray | None:
        """The same in seconds; None where the votes have no clock."""
        if "start_seconds" not in self.table.column_names:
            return None
        return np.stack([from_arrow(self.table.column(f"{name}_seconds")) for name in ("start", "end")], axis=1)

    @property
    def resolution(self) -> AnyArray:
        """The name of the resolution of every row."""
        return from_arrow(self.table.column("resolution"))

    @property
    def label(self) -> AnyArray:
        """The likeliest label of every row, by name."""
        return from_arrow(self.table.column("label"))

    @property
    def confidence(self) -> FloatArray:
        """The probability of that label."""
        return from_arrow(self.table.column("confidence"))

    @property
    def resolutions(self) -> tuple[str, ...]:
        """The names of the resolutions, in order."""
        return tuple(self.table.column("resolution").unique().to_pylist())

    @property
    def background(self) -> str | None:
        """The label of everything that is nothing special, if there is one."""
        about = (self.table.schema.metadata or {}).get(_ABOUT)
        found = None if about is None else json.loads(about)["background"]
        return None if found is None else str(found)

    def at(self, resolution: str | Resolution) -> Labels:
        """The labels of one resolution."""
        name = resolution if isinstance(resolution, str) else resolution.name
        if name not in self.resolutions:
            raise LabelError(f"there are no labels of {name!r} here; there are {', '.join(self.resolutions)}.")
        return Labels(
            table=self.table.filter(pc.is_in(self.table.column("resolution"), value_set=to_arrow(np.array([name]))))
        )

    def probabilities(self, resolution: str | Resolution = "element") -> dict[str, FloatArray]:
        """Probability of every class by its name, at one resolution."""
        part = self.at(resolution).table
        names = [name for name in part.column_names if name.startswith(_PROBABILITY)]
        present = [name for name in names if part.column(name).null_count < max(part.num_rows, 1)]
        return {name.removeprefix(_PROBABILITY): from_arrow(part.column(name)) for name in present}

    # --- intervals ---------------------------------------------------------------------------------------------
    @typed(LabelError)
    def segments(
        self,
        resolution: str | Resolution = "element",
        threshold: float | None = None,
        *,
        decode: bool = True,
        min_length: int | None = None,
        merge_gap: int | None = None,
    ) -> Segments:
        """Intervals of equal labels, without those of the background (with two classes: the negative one).

        Parameters
        ----------
        resolution : str or Resolution
            Touching windows of one label become one interval. A whole sequence always gives one.
        threshold : float, optional
            Label where a class is likelier than this; switches decoding off. More than two classes: the likeliest one.
        decode : bool
            Whether the intervals are those of the best path of the sequence; else of the likeliest labels.
        min_length, merge_gap : int, optional
            Elements: join intervals of one label that are at most so far apart, then leave out shorter ones.

        Returns
        -------
        Segments
            In elements; `to_unit("second")` converts where the votes had a clock. The probability of an interval is the
            mean over its tasks.
        """
        from dugong.segments.gold import join

        part = self.at(resolution)
        given = part.probabilities(resolution)
        names, values = list(given), np.stack(list(given.values()), axis=1)
        chosen = _chosen(part, names, values, threshold, decode=decode)
        ids = [str(one) for one in part.ids.tolist()]
        name = resolution if isinstance(resolution, str) else resolution.name
        keep = chosen >= 0
        # Two columns are negative and positive, also those of windows about one of many classes.
        silent = names[0] if len(names) == 2 else self.background
        if name != "sequence" and silent in names:
            keep &= chosen != names.index(silent)
        return join(
            recordings=_recordings(part, ids),
            sequence=ids,
            spans=part.spans,
            kinds=np.where(keep, chosen, -1),
            names=names,
            probability=values[np.arange(len(chosen)), np.maximum(chosen, 0)],
            resolution=name,
            min_length=min_length,
            merge_gap=merge_gap,
        )

    # --- out ---------------------------------------------------------------------------------------------------
    def to_arrow(self) -> pa.Table:
        """The table."""
        return self.table

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        return self.table.to_pandas()

    def to_numpy(self, resolution: str | Resolution = "element") -> FloatArray:
        """Probabilities of one resolution, shape (n_tasks, n_classes)."""
        return np.stack(list(self.probabilities(resolution).values()), axis=1)

    def to_torch(
        self, inputs: Mapping[Any, Any], windows: int | None = None, stride: int | None = None
    ) -> LabelledWindows:
        """A dataset of (input, soft label, mask) for PyTorch.

        Parameters
        ----------
        inputs : mapping of sequence id to array, one row per element
        windows : int, optional
            Elements per item; whole sequences by default. The last window of a sequence is padded, and masked there.
        stride : int, optional
            Elements between the starts of two windows; no overlap by default.
        """
        return torch_windows(self._by_sequence(), inputs, windows, stride)

    def to_sklearn(self, inputs: Mapping[Any, Any]) -> tuple[AnyArray, AnyArray, FloatArray]:
        """Rows, labels and sample weights: every element once per class, weighted by the probability of the class.

        ``classifier.fit(rows, y, sample_weight=weights)`` then minimises the expected loss under the probabilities.
        """
        return weighted_rows(self._by_sequence(), inputs, list(self.probabilities()))

    def to_datasets(self, inputs: Mapping[Any, Any] | None = None) -> Any:
        """A Hugging Face dataset, one row per sequence: id, labels by name, probabilities and, if given, the inputs."""
        pieces, part = self._by_sequence(), self.at("element")
        ids, words = part.ids, part.label
        columns = {
            "id": list(pieces),
            "labels": [words[ids.astype(str) == name].tolist() for name in pieces],
            "probabilities": [law.tolist() for law in pieces.values()],
        }
        if inputs is not None:
            columns["inputs"] = [np.asarray(values).tolist() for _, values in match(pieces, inputs)]
        return import_extra("datasets", "hf", "data sets of Hugging Face").Dataset.from_dict(columns)

    def _by_sequence(self) -> dict[str, FloatArray]:
        """Probabilities of the elements of every sequence."""
        ids, values = self.at("element").ids.astype(str), self.to_numpy("element")
        borders = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
        return {str(ids[a]): values[a:b] for a, b in pairwise(borders) if b > a}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def write(self, path: str | PathLike[str]) -> None:
        """Write as ``.parquet`` or ``.csv``, moved into place when it is whole."""
        suffix = place_of(path).suffix
        if suffix == ".parquet":
            write_atomically(path, lambda handle: pyarrow.parquet.write_table(self.table, handle))
        elif suffix == ".csv":
            write_atomically(path, lambda handle: pyarrow.csv.write_csv(self.table, handle))
        else:
            raise LabelError(f"labels are written as .parquet or .csv; found {str(path)!r}.")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Labels:
        """Read what `write` wrote, or a folder of such files."""
        place = place_of(path)
        files: list[Place] = sorted(place.glob("*.parquet"), key=str) if place.is_dir() else [place]
        if not files:
            raise LabelError(f"there are no .parquet files in {place}.")
        return cls(table=pa.concat_tables(map(_read, files), promote_options="default"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "table" or not hasattr(pa.Table, name):
            raise AttributeError(f"labels have no attribute {name!r}")
        _warn(f".{name}")
        return getattr(self.table, name)

    def __getitem__(self, key: Any) -> Any:
        _warn(f"[{key!r}]")
        return self.table[key]

    def __repr__(self) -> str:
        classes = ", ".join(name.removeprefix(_PROBABILITY) for name in self.table.column_names if name[:2] == "p_")
        return f"Labels({len(self):,} tasks at {', '.join(self.resolutions)}; probabilities of {classes})"


def holds_labels(place: Place) -> bool:
    """Whether a file, or the first file of a folder, has the columns of labels."""
    files: list[Place] = sorted(place.glob("*.parquet"), key=str) if place.is_dir() else [place]
    if not files or not files[0].is_file() or files[0].suffix not in (".parquet", ".csv"):
        return False
    with files[0].open("rb") as handle:
        if files[0].suffix == ".csv":
            names = handle.readline().decode(errors="replace").replace('"', "").strip().split(",")
        else:
            try:
                names = pyarrow.parquet.read_schema(handle).names
            except (pa.ArrowInvalid, OSError):
                return False
    return set(_NEEDED) <= set(names) and any(name.startswith(_PROBABILITY) for name in names)


def _warn(what: str) -> None:
    warnings.warn(f"labels are no longer an Arrow table; write labels.table{what}.", DeprecationWarning, stacklevel=3)


def class_columns(votes: Votes, resolution: Resolution) -> list[str]:
    """Names of the probability columns of a resolution: ``p_<class>``."""
    if isinstance(resolution, Element) or votes.n_classes == 2:
        return [f"{_PROBABILITY}{name}" for name in votes.class_words]
    return [f"{_PROBABILITY}negative", f"{_PROBABILITY}positive"]


def _one_resolution(votes: Votes, resolution: Resolution, values: FloatArray, path: Int8Array | None) -> pa.Table:
    layout = votes.layout(resolution)
    starts, stops = layout.bounds()
    owners = layout.owners()
    columns = {
        "sequence": to_arrow(votes.sequence_ids).take(to_arrow(owners)),
        "start": to_arrow(starts),
        "end": to_arrow(stops),
        "resolution": to_arrow(np.array([resolution.name])).take(to_arrow(np.zeros(len(starts), dtype=np.int64))),
    }
    names = class_columns(votes, resolution)
    columns |= {name: to_arrow(values[:, place]) for place, name in enumerate(names)}
    words = to_arrow(np.array([name.removeprefix(_PROBABILITY) for name in names]))
    likeliest = values.argmax(axis=1) if values.shape[1] > 2 else (values[:, 1] > 0.5).astype(np.int64)
    columns["label"] = words.take(to_arrow(likeliest))
    columns["confidence"] = to_arrow(values[np.arange(len(values)), likeliest])
    if path is not None and isinstance(resolution, Element):
        columns["best_path"] = words.take(to_arrow(class_indices(votes, path, votes.n_classes)))
    if votes.time is not None:
        columns["start_seconds"] = to_arrow(votes.time.borders(owners, starts))
        columns["end_seconds"] = to_arrow(votes.time.borders(owners, stops))
    return pa.table(columns)


def _read(place: Place) -> pa.Table:
    if not place.is_file():
        raise LabelError(f"there is no file {place}.")
    try:
        table = read_table(place)
    except (pa.ArrowInvalid, OSError) as error:
        raise LabelError(f"{place} cannot be read: {error}") from None
    absent = [name for name in _NEEDED if name not in table.column_names]
    if absent:
        raise LabelError(f"{place} holds no labels: there is no column {absent[0]!r}.")
    return table


def _chosen(part: Labels, names: list[str], values: FloatArray, threshold: float | None, *, decode: bool) -> IntArray:
    """The class of every row, by its place; -1 where none is likely enough."""
    likeliest = np.asarray(values.argmax(axis=1) if values.shape[1] > 2 else values[:, 1] > 0.5, dtype=np.int64)
    if threshold is not None:
        if values.shape[1] == 2:
            return (values[:, 1] > threshold).astype(np.int64)
        return np.where(values.max(axis=1, initial=0.0) > threshold, likeliest, -1)
    if not decode or part.resolutions != ("element",):
        return likeliest
    if "best_path" not in part.table.column_names:
        raise LabelError(
            "these labels hold no best path, so there is nothing to decode.\n"
            "  Pass decode=False for the likeliest label of every element, or label the votes anew."
        )
    place = {name: number for number, name in enumerate(names)}
    path = part.table.column("best_path").combine_chunks().dictionary_encode()
    path = path.combine_chunks() if isinstance(path, pa.ChunkedArray) else path
    order = np.array([place[name] for name in path.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(order[from_arrow(path.indices)])


def _recordings(part: Labels, ids: list[str]) -> dict[str, Recording]:
    """How long the sequences are and, where the table has seconds, when their elements happen."""
    order = np.array(ids)
    begins = np.flatnonzero(np.append(True, order[1:] != order[:-1])) if len(order) else np.empty(0, dtype=np.int64)
    pieces = [slice(*pair) for pair in zip(begins.tolist(), [*begins[1:].tolist(), len(ids)], strict=True)]
    spans, seconds = part.spans, part.seconds
    clocks: list[dict[str, Any]] = [{} for _ in pieces]
    if seconds is not None:
        regular = [_regular(spans[rows], seconds[rows]) for rows in pieces]
        stamped = [_stamped(spans[rows], seconds[rows]) for rows in pieces]
        clocks = regular if all(regular) else stamped
    return {
        ids[rows.start]: Recording(length=int(spans[rows, 1].max(initial=0)), **clock)
        for rows, clock in zip(pieces, clocks, strict=True)
    }


def _regular(spans: IntArray, seconds: FloatArray) -> dict[str, Any]:
    """Rate and start of a regular clock; nothing if it is none."""
    rate = float((spans[-1, 1] - spans[0, 0]) / (seconds[-1, 1] - seconds[0, 0]))
    begin = float(seconds[0, 0] - spans[0, 0] / rate)
    regular = np.abs(seconds - (begin + spans / rate)).max() <= _REGULAR
    return {"rate": round(rate, 9), "start": round(begin, 9)} if regular else {}


def _stamped(spans: IntArray, seconds: FloatArray) -> dict[str, Any]:
    """The time of every element, if every element has a row of its own."""
    every = (spans[:, 1] - spans[:, 0] == 1).all() and spans[0, 0] == 0
    return {"stamps": tuple(seconds[:, 0].tolist())} if every else {}

"""What was observed: all votes of all sources at all resolutions, validated once, frozen.

`Votes` keeps one flat int8 column per source (source-major: what the counting kernels want), the lengths of
the sequences, and what the codes mean. Every later stage reads columns and offsets; nothing else is stored.
The constructors, files and tables are one small file each beside this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.tasks import Element, Layout, Resolution, SpanTable, Window, find_resolution, in_elements
from dugong.tasks.layout import pieces_of
from dugong.types import AnyArray, BoolArray, Int8Array, IntArray, class_values, read_only
from dugong.votes.codes import Fault, SourceInfo
from dugong.votes.concat import concat
from dugong.votes.dense import from_classes, from_dense, from_flyingsquid, from_metal
from dugong.votes.flat import ScoreArray, from_scores, from_tasks
from dugong.votes.long import from_long
from dugong.votes.pieces import as_lengths, normal_ids, not_votes
from dugong.votes.segments import from_segments, to_segments, with_segments

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

    from dugong.tasks import TimeAxis
    from dugong.votes.summary import Summary


_PLAIN = ("sources", "n_classes", "class_names", "background", "faults", "partial")  # compared by ==


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Votes:
    """Votes of several sources on sequences of any lengths.

    Use a named constructor (`from_dense`, `from_classes`, `from_tasks`, `from_long`, ...): the coding is never guessed.

    Attributes
    ----------
    sources : tuple of SourceInfo
    columns : tuple of int8 arrays, one per source, flat over the tasks of its resolution
        -1, 0, +1 with two classes; 0..K with K > 2; codes above are underspecified votes; -128 was not asked.
    lengths : (n_sequences,) elements of each sequence
    ids : (n_sequences,) array or None
        None stands for 0, 1, 2, ...
    n_classes : int
    class_names : tuple of str or None
    background : the class (in our own coding) of elements about which no source speaks
    partial : mapping of code to tuple of classes
        Votes that mean "one of these classes".
    spans : mapping of name to SpanTable
    time : TimeAxis or None
    given : how the classes were written where the votes came from, in the order of `classes`; None for our own coding
    scores : mapping of source name to (n_tasks, K) float32
        What soft sources said in probabilities; a row of NaN where they abstained. Their votes are in `columns` too.
    groups : (n_sequences,) array of str or None
        Which sequences belong together (patients, videos); not kept in files.
    faults : sources that raised while they were applied with ``on_fault="abstain"``
    n_sequences, n_elements : how many there are in all
    source_names : names of the sources, in order
    resolutions : the elements and every resolution that a source votes on, each once, elements first
    """

    sources: tuple[SourceInfo, ...]
    columns: tuple[Int8Array, ...]
    lengths: IntArray
    ids: AnyArray | None = None
    n_classes: int = 2
    class_names: tuple[str, ...] | None = None
    background: int | None = None
    partial: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    spans: Mapping[str, SpanTable] = field(default_factory=dict)
    time: TimeAxis | None = None
    given: tuple[int | str, ...] | None = None
    scores: Mapping[str, ScoreArray] = field(default_factory=dict)
    groups: AnyArray | None = None
    faults: tuple[Fault, ...] = ()
    n_sequences: int = field(init=False)
    n_elements: int = field(init=False)
    source_names: tuple[str, ...] = field(init=False)
    resolutions: tuple[Resolution, ...] = field(init=False)
    _layouts: dict[str | Resolution, Layout] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        from dugong.votes.validate import check_votes

        object.__setattr__(self, "lengths", read_only(np.ascontiguousarray(as_lengths(self.lengths))))
        found = [(source, self.resolved(source.resolution)) for source in self.sources]
        sources = (one if there is one.resolution else replace(one, resolution=there) for one, there in found)
        object.__setattr__(self, "sources", tuple(sources))
        object.__setattr__(self, "ids", normal_ids(self.ids))
        object.__setattr__(self, "columns", tuple(read_only(np.ascontiguousarray(c)) for c in self.columns))
        object.__setattr__(self, "scores", {name: read_only(rows) for name, rows in self.scores.items()})
        _note_sizes(self)
        check_votes(self)

    def resolved(self, resolution: Resolution) -> Resolution:
        """A resolution whose size is in elements: windows in seconds by the clock of these votes."""
        if not isinstance(resolution, Window) or resolution.seconds is None:
            return resolution
        return in_elements(resolution, None if self.time is None else self.time.common_rate)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: layouts are not worth sending, and unpickled arrays would not be read-only.
        return partial(Votes, **{one.name: getattr(self, one.name) for one in fields(self) if one.init}), ()

    # --- named constructors: one per coding, so that what a 0 means is never guessed ------------------------
    from_dense = staticmethod(from_dense)
    from_classes = staticmethod(from_classes)
    from_tasks = staticmethod(from_tasks)
    from_long = staticmethod(from_long)
    from_flyingsquid = staticmethod(from_flyingsquid)
    from_metal = staticmethod(from_metal)
    from_scores = staticmethod(from_scores)
    from_segments = staticmethod(from_segments)
    concat = staticmethod(concat)
    explain_misfit = staticmethod(not_votes)

    # --- sizes and names -----------------------------------------------------------------------------
    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.sources)

    @property
    def class_words(self) -> tuple[str, ...]:
        """What the classes are called, in the order of `classes`: by name, else as they were written, else by value."""
        return self.class_names or tuple(map(str, self.classes if self.given is None else self.given))

    @property
    def sequence_ids(self) -> AnyArray:
        """Ids of the sequences; 0, 1, 2, ... if none were given."""
        return np.arange(self.n_sequences) if self.ids is None else self.ids

    @property
    def classes(self) -> tuple[int, ...]:
        """Class values of element labels: (-1, 1), or 1..K."""
        return class_values(self.n_classes)

    # --- look-ups ------------------------------------------------------------------------------------
    @typed(VoteError)
    def index(self, name: str) -> int:
        """Place of a source by name."""
        names = self.source_names
        if name not in names:
            raise VoteError(f"there is no source {name!r} in these votes; known are {', '.join(map(repr, names))}.")
        return names.index(name)

    def resolution(self, resolution: str | Resolution) -> Resolution:
        """The resolution of that name; an object is itself."""
        return find_resolution(resolution, self.resolutions) if isinstance(resolution, str) else resolution

    def column(self, name: str) -> Int8Array:
        """The flat votes of one source."""
        return self.columns[self.index(name)]

    @typed(VoteError)
    def layout(self, resolution: str | Resolution = "element") -> Layout:
        """Where the tasks of a resolution lie; any Window or Sequence object may be asked for."""
        if resolution in self._layouts:
            return self._layouts[resolution]
        found = self.resolved(self.resolution(resolution))
        layout = Layout.of(found, self.lengths, self.spans)
        if found in self.resolutions:  # every stage asks for these, by name or object
            self._layouts[found] = self._layouts[resolution] = layout
        return layout

    # --- what is in them -----------------------------------------------------------------------------
    @typed(VoteError)
    def summary(self, gold: Any = None) -> Summary:
        """Coverage, overlaps and conflicts of every source, with Snorkel's column names.

        Parameters
        ----------
        gold : (n_elements,) labels in our own coding (0 where unknown), or a mapping by resolution, optional
            Adds Correct, Incorrect and Emp. Acc. Labels of windows, spans and sequences follow from those of the
            elements by their link unless given.

        Returns
        -------
        Summary
            Prints as a table; `to_dict` and `to_arrow` give the numbers.
        """
        from dugong.votes.summary import Tally, summary_of

        return summary_of(Tally.of(self), self, gold)

    @typed(VoteError)
    def covered(self, resolution: str | Resolution = "element") -> BoolArray:
        """Whether some source spoke about each task: voted on a task that shares an element with it."""
        from dugong.votes.overlaps import find_covered

        return find_covered(self, self.layout(resolution))

    @typed(VoteError)
    def buckets(self, source: str, gold: Any) -> dict[tuple[int, int], IntArray]:
        """Where a source is right and wrong: tasks by (gold label, vote).

        Parameters
        ----------
        source : str
        gold : as in `summary`

        Returns
        -------
        dict of (label, vote) to (n,) int
            Places in the flat task order of the source's resolution. A vote of 0 is abstain; tasks without a
            known label, and votes that were not asked for, are left out.
        """
        from dugong.votes.gold import find_buckets

        return find_buckets(self, source, gold)

    # --- parts ---------------------------------------------------------------------------------------
    @typed(VoteError)
    def select(self, sequences: Any = None, sources: Iterable[str] | None = None) -> Votes:
        """Some sequences (slice, indices or mask) and some sources (by name), in the given order."""
        votes = self
        if sources is not None:
            names = tuple(sources)
            places = [self.index(name) for name in names]
            # Some sources of valid votes are valid, unless there is none, or one twice.
            taken = replace_unchecked if len(set(names)) == len(names) > 0 else replace
            votes = taken(
                self,
                sources=tuple(self.sources[place] for place in places),
                columns=tuple(self.columns[place] for place in places),
                scores={name: rows for name, rows in self.scores.items() if name in names},
                faults=tuple(fault for fault in self.faults if fault.source in names),
            )
        return votes if sequences is None else votes._select_sequences(sequences)  # noqa: SLF001  (our own)

    def __getitem__(self, sequences: Any) -> Votes:
        """Some sequences: an index, a slice, an array of indices or a mask."""
        return self.select(sequences)

    def _select_sequences(self, sequences: Any) -> Votes:
        try:
            chosen = self._places(sequences)
        except (IndexError, TypeError, ValueError, OverflowError) as error:
            raise VoteError(f"sequences are chosen by place, slice, list of places or mask: {error}.") from None
        if chosen.ndim != 1:
            raise VoteError(f"sequences are chosen by one list of places or one mask; found {chosen.ndim} axes.")
        tasks: dict[Resolution, IntArray] = {}
        for resolution in dict.fromkeys(source.resolution for source in self.sources):
            _, tasks[resolution] = pieces_of(self.layout(resolution).offsets, chosen)
        columns = [column.take(tasks[info.resolution]) for info, column in zip(self.sources, self.columns, strict=True)]
        scores = {
            name: read_only(rows[tasks[self.sources[self.index(name)].resolution]])
            for name, rows in self.scores.items()
        }
        ids = chosen if self.ids is None else self.ids[chosen]
        kept = set(ids.tolist()) if self.faults else set()
        # Sequences of valid votes are valid, unless one is taken twice: its id would be there twice.
        once = (np.diff(chosen) > 0).all() or len(np.unique(chosen)) == len(chosen)
        taken = replace_unchecked if once else replace
        return taken(
            self,
            columns=tuple(map(read_only, columns)),
            scores=scores,
            lengths=read_only(self.lengths[chosen]),
            ids=read_only(ids),
            groups=None if self.groups is None else read_only(self.groups[chosen]),
            spans={name: table.select(chosen) for name, table in self.spans.items()},
            time=None if self.time is None else self.time.select(chosen),
            faults=tuple(fault for fault in self.faults if fault.sequence in kept),
        )

    def _places(self, sequences: Any) -> IntArray:
        """Places of sequences that are chosen in any way that numpy knows."""
        listed = isinstance(sequences, np.ndarray) and sequences.dtype == np.int64 and sequences.ndim == 1
        if listed and len(sequences) and 0 <= sequences.min() <= sequences.max() < self.n_sequences:
            return np.array(sequences)  # of very many sequences a list of all takes as long as what follows
        return np.atleast_1d(np.arange(self.n_sequences)[sequences])

    def in_groups(self, groups: Iterable[object] | None) -> Votes:
        """The same votes with one group (patient, video) per sequence, or with none."""
        if groups is None:
            return self if self.groups is None else replace_unchecked(self, groups=None)
        names = np.array([str(one) for one in groups], dtype=np.str_)
        if len(names) != self.n_sequences:
            raise VoteError(f"groups must name one group per sequence ({self.n_sequences}); found {len(names)}.")
        return replace_unchecked(self, groups=read_only(names))

    with_segments = with_segments

    def with_table(self, table: Any, name: str, **options: Any) -> Votes:
        """These votes and a column of a table (other predictions, an annotator's file) as one more source.

        See `dugong.votes.columns.with_table` for the options: column, soft, values, resolution.
        """
        from dugong.votes.columns import with_table

        return with_table(self, table, name, **options)

    # --- out -----------------------------------------------------------------------------------------
    def to_long(self) -> pa.Table:
        """The votes as an arrow table: sequence, source, start, end, vote; one row per vote, none for abstain.

        Spans are half-open and count elements inside their sequence; votes are in our own coding (-128 was not
        asked). `from_long` reads it back.
        """
        from dugong.votes.table import to_long

        return to_long(self)

    to_segments = to_segments

    @typed(VoteError)
    def write(self, path: str | PathLike[str]) -> None:
        """Write to a ``.parquet`` or ``.npz`` file: versioned, self-describing, never code.

        The file appears under its name only when it is complete.
        """
        from dugong.votes.files import write_votes

        write_votes(self, path)

    @classmethod
    @typed(VoteError)
    def read(cls, path: str | PathLike[str]) -> Votes:
        """Read what `write` wrote; a truncated, foreign or newer file is a `VoteError` that says so."""
        from dugong.votes.files import read_votes

        return read_votes(path)

    @typed(VoteError)
    def equals(self, other: Votes) -> bool:
        """Whether two votes are the same: sources, codes, sequences, classes, spans, time and faults."""
        return (
            all(getattr(self, name) == getattr(other, name) for name in _PLAIN)
            and all(np.array_equal(a, b) for a, b in zip(self.columns, other.columns, strict=True))
            and self.scores.keys() == other.scores.keys()
            and all(np.array_equal(rows, other.scores[name], equal_nan=True) for name, rows in self.scores.items())
            and np.array_equal(self.lengths, other.lengths)
            and np.array_equal(self.sequence_ids, other.sequence_ids)
            and self.spans.keys() == other.spans.keys()
            and all(table.equals(other.spans[name]) for name, table in self.spans.items())
            and (other.time is None if self.time is None else self.time.equals(other.time))
        )

    def plot(self, sequence: int = 0, *, gold: Any = None, ax: Axes | None = None) -> Axes:
        """Draw the votes on one sequence, one ribbon per source at its own resolution (needs the extra ``plot``).

        Parameters
        ----------
        sequence : place of the sequence
        gold : (n_elements,) known labels, 0 = unknown, as a further ribbon; optional
        ax : matplotlib axes to draw on; new ones by default
        """
        from dugong.report.notebook import plot_votes

        return plot_votes(self, sequence, gold=gold, ax=ax)

    def _repr_html_(self) -> str:
        from dugong.report.notebook import votes_html

        return votes_html(self)

    def __repr__(self) -> str:
        from dugong.votes.summary import describe_votes

        return describe_votes(self)


def replace_unchecked(votes: Votes, **changes: Any) -> Votes:
    """The same with other parts that are known to be valid; checking them again would cost more than taking them."""
    found = object.__new__(Votes)
    for one in fields(Votes):
        if one.init:
            object.__setattr__(found, one.name, changes.get(one.name, getattr(votes, one.name)))
    object.__setattr__(found, "_layouts", {})
    _note_sizes(found)
    return found


def _note_sizes(votes: Votes) -> None:
    """Work out once what every loop asks for."""
    object.__setattr__(votes, "n_sequences", len(votes.lengths))
    object.__setattr__(votes, "n_elements", int(votes.lengths.sum()))
    object.__setattr__(votes, "source_names", tuple(source.name for source in votes.sources))
    where = dict.fromkeys([Element(), *(source.resolution for source in votes.sources)])
    object.__setattr__(votes, "resolutions", tuple(where))

"""What was observed: all votes of all sources at all resolutions, validated once, frozen.

`Votes` keeps one flat int8 column per source (source-major: what the counting kernels want), the lengths of the
sequences, and what the codes mean. Every later stage reads columns and offsets; nothing else is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Element, Layout, Resolution, SpanTable, find_resolution
from dugong.tasks.layout import ranges
from dugong.types import MISSING, AnyArray, Int8Array, IntArray, read_only

if TYPE_CHECKING:
    from dugong.tasks.time import TimeAxis
    from dugong.votes.faults import Fault

MAX_CODE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """Who votes, on what, and with whom it shares its parameters."""

    name: str
    resolution: Resolution = field(default_factory=Element)
    shares: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    background : int or None
        The class (in our own coding) of elements about which no source speaks.
    partial : mapping of code to tuple of classes
        Votes that mean "one of these classes".
    spans : mapping of name to SpanTable
    time : TimeAxis or None
    faults : tuple of Fault
        Sources that raised while they were applied with ``on_fault="abstain"``.
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
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        from dugong.votes.validate import check_votes

        lengths = read_only(np.ascontiguousarray(self.lengths, dtype=np.int64))
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "columns", tuple(read_only(np.ascontiguousarray(c)) for c in self.columns))
        check_votes(self)

    # --- sizes and names -------------------------------------------------------------------------------------------
    @property
    def n_sequences(self) -> int:
        return len(self.lengths)

    @property
    def n_elements(self) -> int:
        return int(self.lengths.sum())

    @property
    def n_sources(self) -> int:
        return len(self.sources)

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    @property
    def sequence_ids(self) -> AnyArray:
        """Ids of the sequences; 0, 1, 2, ... if none were given."""
        return np.arange(self.n_sequences) if self.ids is None else self.ids

    @property
    def classes(self) -> tuple[int, ...]:
        """Class values of element labels: (-1, 1), or 1..K."""
        return (-1, 1) if self.n_classes == 2 else tuple(range(1, self.n_classes + 1))

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The elements and every resolution that a source votes on, each once, elements first."""
        return tuple(dict.fromkeys([Element(), *(source.resolution for source in self.sources)]))

    # --- look-ups --------------------------------------------------------------------------------------------------
    def index(self, name: str) -> int:
        """Place of a source by name."""
        if name not in self.source_names:
            known = ", ".join(map(repr, self.source_names))
            raise VoteError(f"there is no source {name!r} in these votes; known are {known}.")
        return self.source_names.index(name)

    def column(self, name: str) -> Int8Array:
        """The flat votes of one source."""
        return self.columns[self.index(name)]

    def layout(self, resolution: str | Resolution = "element") -> Layout:
        """Where the tasks of a resolution lie; any Window or Sequence object may be asked for."""
        found = find_resolution(resolution, self.resolutions) if isinstance(resolution, str) else resolution
        return Layout.of(found, self.lengths, self.spans)

    # --- parts -----------------------------------------------------------------------------------------------------
    def select(self, sequences: Any = None, sources: Iterable[str] | None = None) -> Votes:
        """Some sequences (slice, indices or mask) and some sources (by name), in the given order."""
        votes = self if sources is None else self._select_sources(tuple(sources))
        return votes if sequences is None else votes._select_sequences(sequences)

    def __getitem__(self, sequences: Any) -> Votes:
        """Some sequences: an index, a slice, an array of indices or a mask."""
        return self.select(sequences)

    def _select_sources(self, names: tuple[str, ...]) -> Votes:
        places = [self.index(name) for name in names]
        return replace(
            self, sources=tuple(self.sources[p] for p in places), columns=tuple(self.columns[p] for p in places)
        )

    def _select_sequences(self, sequences: Any) -> Votes:
        chosen = np.atleast_1d(np.arange(self.n_sequences)[sequences])
        columns = []
        for source, column in zip(self.sources, self.columns, strict=True):
            offsets = self.layout(source.resolution).offsets
            columns.append(column[ranges(offsets[:-1][chosen], np.diff(offsets)[chosen])])
        return replace(
            self,
            columns=tuple(columns),
            lengths=self.lengths[chosen],
            ids=self.sequence_ids[chosen],
            spans={name: table.select(chosen) for name, table in self.spans.items()},
            time=None if self.time is None else self.time.select(chosen),
        )


def class_indices(votes: Votes, column: Int8Array, n_classes: int) -> Int8Array:
    """Codes as table columns: classes 0..K-1, abstain K, underspecified K+1.., not asked -1."""
    if n_classes == 2:
        lookup = np.full(256, -1, dtype=np.int8)
        lookup[[255, 1, 0]] = [0, 1, 2]
    else:
        lookup = np.arange(-1, 255).astype(np.int8)
        lookup[0] = n_classes
        lookup[n_classes + 1 : MAX_CODE + 1] = np.arange(n_classes + 1, MAX_CODE + 1)
    lookup[MISSING % 256] = -1
    return lookup[column.view(np.uint8)]

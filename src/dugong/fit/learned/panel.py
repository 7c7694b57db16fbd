"""Votes on elements as the learned defaults read them: one code per element and source, a range of elements at a time.

In: votes. Out: `Panel`s of the sources on elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dugong.fit.beliefs import AnyBelief
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.lifting import denial, spread
from dugong.tasks import Element
from dugong.types import BoolArray, FloatArray, Int8Array, IntArray, read_only
from dugong.votes import SourceInfo, Votes, class_indices
from dugong.votes.codes import code_columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coding:
    """What the codes of votes on elements say.

    Attributes
    ----------
    split : (C, K) every code, spread over the classes: abstain says nothing, those behind it are underspecified
    n_columns, n_classes : numbers of different votes, abstain included, and of classes
    silent : the code of abstain, the one after the classes
    """

    split: FloatArray
    n_columns: int = field(init=False)
    n_classes: int = field(init=False)
    silent: int = field(init=False)

    def __post_init__(self) -> None:
        n_columns, n_classes = len(self.split), self.split.shape[1]
        for name, size in (("n_columns", n_columns), ("n_classes", n_classes), ("silent", n_classes)):
            object.__setattr__(self, name, size)

    @classmethod
    def of(cls, votes: Votes, *, spread: bool = False) -> Coding:
        """The coding of some votes; with those that deny a class if votes on windows are spread over elements."""
        n_classes = votes.n_classes
        split = np.zeros((n_classes + 1 + len(votes.partial), n_classes))
        split[:n_classes] = np.eye(n_classes)
        said = dict(votes.partial)
        if spread and n_classes > 2:
            for place, own in enumerate(votes.classes):
                others = tuple(one for one in votes.classes if one != own)
                said |= {denial(votes, place): others} if denial(votes, place) else {}
        for code, members in said.items():
            places = [votes.classes.index(member) for member in members]
            row = int(class_indices(votes, np.array([code], dtype=np.int8), n_classes)[0])
            if row >= len(split):
                split = np.vstack([split, np.zeros((row + 1 - len(split), n_classes))])
            split[row, places] = 1 / len(places)
        return cls(split=read_only(split))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """What the sources say about some elements.

    Attributes
    ----------
    coding : Coding
    codes : (n, m) int8, -1 was not asked
    starts : (n,) whether an element is the first of its sequence
    known : (n,) class index of known labels, -1 unknown
    ties : (m,) equal numbers for sources that share their tables, or None if none do
    beliefs : (m,) what is believed about each source, or None if nothing is
    """

    coding: Coding
    codes: Int8Array
    starts: BoolArray
    known: Int8Array
    ties: IntArray | None = None
    beliefs: tuple[AnyBelief | None, ...] | None = None

    def places(self) -> IntArray:
        """(n,) the place of every element in its sequence."""
        every = np.arange(len(self.starts))
        return np.asarray(every - np.maximum.accumulate(np.where(self.starts, every, 0)))

    def spoken(self) -> BoolArray:
        """(n, m) whether a source spoke: voted and did not abstain."""
        return np.asarray((self.codes >= 0) & (self.codes != self.coding.silent))

    def rows(self, chosen: IntArray, starts: BoolArray) -> Panel:
        """Some of the elements, in whole pieces that begin where `starts` says."""
        codes = self.codes.take(chosen, axis=0)  # of rows this short an index takes many times as long
        return replace(self, codes=codes, starts=starts[chosen], known=self.known[chosen])

    def columns(self, places: IntArray) -> Panel:
        """Some of the sources."""
        return replace(
            self,
            codes=self.codes.take(places, axis=1),
            ties=None if self.ties is None else self.ties[places],
            beliefs=None if self.beliefs is None else tuple(self.beliefs[place] for place in places),
        )


class Reader:
    """Reads panels of some sources off votes; a source that is not there was not asked.

    A vote on a window is read as one on each of its elements. `known` are the class indices of known labels, -1 where
    there is none; None where there is none at all.
    """

    def __init__(
        self, votes: Votes, sources: Iterable[SourceInfo], coding: Coding, evidence: Int8Array | None = None
    ) -> None:
        self.sources, self.coding, self.offsets = tuple(sources), coding, votes.layout(Element()).offsets
        self.known: Int8Array | None = None
        if evidence is not None:
            given = np.asarray(evidence, dtype=np.int8)
            self.known = np.where(given == 0, np.int8(-1), class_indices(votes, given, coding.n_classes))
        said = dict(zip(votes.source_names, votes.columns, strict=True))
        self._columns = {
            info.name: said[info.name] if isinstance(info.resolution, Element) else spread(votes, info)
            for info in self.sources
            if info.name in said
        }
        self._lookup = code_columns(coding.n_classes)
        shares = [info.shares for info in self.sources]
        alone = range(len(shares), 2 * len(shares))
        ties = [place if one is None else shares.index(one) for place, one in zip(alone, shares, strict=True)]
        self.ties = np.array(ties) if any(shares) else None

    def read(self, begin: int, end: int) -> Panel:
        """The elements from `begin` to `end` on the flat axis; `begin` counts as the start of a sequence."""
        codes = np.full((end - begin, len(self.sources)), -1, dtype=np.int8)
        for place, info in enumerate(self.sources):
            if info.name in self._columns:
                kernels.fill_codes(self._columns[info.name][begin:end], self._lookup, place, codes)
        starts = np.zeros(end - begin, dtype=np.bool_)
        first, last = np.searchsorted(self.offsets, (begin, end))
        starts[self.offsets[first:last] - begin] = True
        starts[:1] = True
        known = np.full(end - begin, -1, dtype=np.int8) if self.known is None else self.known[begin:end]
        return Panel(coding=self.coding, codes=codes, starts=starts, known=known, ties=self.ties)

    def columns(self) -> Iterator[Int8Array]:
        """The codes of every source that is there, one after the other."""
        return (self._lookup.take(column.view(np.uint8)) for column in self._columns.values())

"""What a source sees of a sequence: a window with its place, or the bounds of all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.types import BoolArray, IntArray


class WindowView:
    """The piece of a sequence that one window or span covers.

    Attributes
    ----------
    elements : ``sequence[start:stop]``
        Made when first asked for.
    start, stop : int
        Its first element and the one after its last, counted in the sequence.
    index : int
        Its place among the windows or spans of the sequence.
    length : int
        Elements of the whole sequence.
    full : bool
        Whether it has all its elements; the last window of a sequence may be short.
    """

    __slots__ = ("_elements", "_sequence", "full", "index", "length", "start", "stop")
    _elements: Any

    def __init__(self, sequence: Any, start: int, stop: int, index: int, length: int, *, full: bool = True) -> None:
        self._sequence = sequence
        self.start = start
        self.stop = stop
        self.index = index
        self.length = length
        self.full = full

    @property
    def elements(self) -> Any:
        """The elements themselves, in the type that slicing the sequence gives."""
        try:
            return self._elements
        except AttributeError:
            self._elements = self._sequence[self.start : self.stop]
            return self._elements

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Any]:
        elements = self.elements
        elements = getattr(elements, "iloc", elements)
        return map(elements.__getitem__, range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """An element, a slice of them, or a named column where the sequence has such."""
        return self.elements[key]

    def __repr__(self) -> str:
        return f"WindowView({self.index}: elements {self.start} to {self.stop} of {self.length})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskBounds:
    """First and one-past-last element of every task of one sequence, and whether it has all its elements."""

    starts: IntArray
    stops: IntArray
    full: BoolArray

    def __len__(self) -> int:
        return len(self.starts)


def padded(window: WindowView, size: int) -> WindowView:
    """A short window with its last element repeated until it has `size` elements."""
    found, short = window.elements, len(window)
    places = [*range(short), *([short - 1] * (size - short))]
    if hasattr(found, "take_rows"):
        elements = found.take_rows(places)
    elif hasattr(found, "iloc"):
        elements = found.iloc[places]
    elif isinstance(found, np.ndarray):
        elements = found[places]
    else:
        elements = [found[place] for place in places]
    return WindowView(_Only(elements), window.start, window.start + size, window.index, window.length, full=False)


class _Only:
    """Elements that are the answer to any slice: those of a padded window."""

    def __init__(self, elements: Any) -> None:
        self._all = elements

    def __getitem__(self, _: slice) -> Any:
        return self._all


def by_position(sequence: Any) -> Any:
    """The object that is indexed by position: pandas keeps it at `iloc`, everything else is it."""
    return getattr(sequence, "iloc", sequence)

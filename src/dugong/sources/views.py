"""What a source sees of a sequence: a window with its place, or the bounds of all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dugong.types import IntArray


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
    """

    __slots__ = ("_elements", "_sequence", "index", "length", "start", "stop")
    _elements: Any

    def __init__(self, sequence: Any, start: int, stop: int, index: int, length: int) -> None:
        self._sequence = sequence
        self.start = start
        self.stop = stop
        self.index = index
        self.length = length

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
    """First and one-past-last element of every task of one sequence, for vectorised sources."""

    starts: IntArray
    stops: IntArray

    def __len__(self) -> int:
        return len(self.starts)


def by_position(sequence: Any) -> Any:
    """The object that is indexed by position: pandas keeps it at `iloc`, everything else is it."""
    return getattr(sequence, "iloc", sequence)

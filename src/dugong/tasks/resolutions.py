"""What is asked: one hidden label per element, per window, per span, or per sequence.

A *resolution* says which pieces of a sequence carry a hidden label (a *task*) and how the label of a piece
follows from the labels of its elements (the *link*). Resolutions are plain values: two windows with the same
size, stride, link and class are the same resolution, whatever they are called. (Paper, section 2.1: the sets
R_r.)
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from dugong.exceptions import TaskError
from dugong.types import Link


def _check_link(link: str, where: str) -> None:
    if link not in get_args(Link):
        choices = ", ".join(repr(choice) for choice in get_args(Link))
        raise TaskError(f"the link of {where} must be one of {choices}; found {link!r}.")


@dataclass(frozen=True, slots=True)
class Element:
    """Every single element: a video frame, a stride, a token."""

    kind: ClassVar[str] = "element"
    link: ClassVar[None] = None
    of: ClassVar[None] = None

    @property
    def name(self) -> str:
        """How the resolution is called in tables."""
        return "element"


@dataclass(frozen=True, slots=True, init=False)
class Window:
    """Windows of `size` elements, `stride` apart, that stop with the first that reaches the end.

    They start at 0, stride, 2 stride, ...: one window if T <= size, else ceil((T - size) / stride) + 1.

    Parameters
    ----------
    size : int
        Elements in a window; the last window of a sequence may be shorter.
    stride : int, optional
        Elements between the starts of two windows; `size` (no overlap) by default, at most `size`.
    link : {"any", "all", "majority", "joint"}
        When a window is positive. Majority means strictly more than half of the elements actually inside.
    name : str, optional
        How the resolution is called in tables; ``window<size>`` by default.
    of : str or int, optional
        With more than two classes: the class that counts as positive ("contains class REM").
    """

    size: int
    stride: int
    link: Link
    name: str = field(compare=False)
    of: str | int | None
    kind: ClassVar[str] = "window"

    def __init__(
        self,
        size: int,
        stride: int | None = None,
        link: Link = "any",
        name: str | None = None,
        of: str | int | None = None,
    ) -> None:
        _check_link(link, "a window")
        step = size if stride is None else stride
        for what, value in (("size", size), ("stride", step)):
            if not isinstance(value, numbers.Real) or int(value) != value or value < 1:
                raise TaskError(f"the {what} of a window must be a positive number of elements; found {value!r}.")
        if step > size:
            raise TaskError(
                f"the stride of a window must be at most its size; found stride {step} and size {size}.\n"
                "  A larger stride would leave elements that no window covers: use Spans for such pieces."
            )
        set_field = object.__setattr__
        set_field(self, "size", int(size))
        set_field(self, "stride", int(step))
        set_field(self, "link", link)
        set_field(self, "name", name or f"window{int(size)}")
        set_field(self, "of", of)


@dataclass(frozen=True, slots=True)
class Sequence:
    """The whole sequence: one task each."""

    link: Link = "any"
    of: str | int | None = None
    kind: ClassVar[str] = "sequence"

    def __post_init__(self) -> None:
        _check_link(self.link, "a sequence")

    @property
    def name(self) -> str:
        """How the resolution is called in tables."""
        return "sequence"


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces that are given for every sequence: shots, sentences, strides.

    The pieces themselves come with the votes (``spans={"shot": ...}``): sorted, apart, inside the sequence.
    """

    name: str = "span"
    link: Link = "majority"
    of: str | int | None = None
    kind: ClassVar[str] = "spans"

    def __post_init__(self) -> None:
        _check_link(self.link, "spans")
        if not self.name:
            raise TaskError("spans need a name, such as Spans(name='shot').")


WholeSequence = Sequence
Resolution = Element | Window | Sequence | Spans


def describe(resolution: Resolution) -> str:
    """Say in words what a resolution is, for messages and tables."""
    if isinstance(resolution, Element):
        return "element"
    of = "" if resolution.of is None else f", of={resolution.of!r}"
    if isinstance(resolution, Window):
        size = f"size={resolution.size}, stride={resolution.stride}"
        return f"{resolution.name} ({size}, link={resolution.link!r}{of})"
    return f"{resolution.name} (link={resolution.link!r}{of})"


def find_resolution(wanted: str | Resolution, available: Iterable[Resolution]) -> Resolution:
    """Find the resolution that a user means by a name, a kind ("window") or the object itself.

    Raises
    ------
    TaskError
        If nothing fits, or more than one resolution does; the message lists them.
    """
    pool = list(dict.fromkeys(available))
    if not isinstance(wanted, str):
        if wanted in pool:
            return wanted
        found = []
    else:
        found = [one for one in pool if one.name == wanted] or [one for one in pool if one.kind == wanted]
        if len(found) == 1:
            return found[0]
    listing = "\n".join(f"  - {describe(one)}" for one in (found or pool))
    asked = wanted if isinstance(wanted, str) else describe(wanted)
    if found:
        raise TaskError(f"the resolution {asked!r} is ambiguous; pass one of these objects instead:\n{listing}")
    raise TaskError(f"there is no resolution {asked!r} here; these are known:\n{listing}")

"""What is asked: one hidden label per element, per window, per span, or per sequence.

A *resolution* says which pieces of a sequence carry a hidden label (a *task*) and how the label of a piece follows from
the labels of its elements (the *link*). Resolutions are plain values: two windows with the same size, stride, link and
class are the same resolution, whatever they are called. (Paper, section 2.1: the sets R_r.)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, get_args

from dugong.contract import typed
from dugong.exceptions import TaskError
from dugong.types import Link


@dataclass(frozen=True, slots=True)
class Element:
    """Every single element: a video frame, a stride, a token."""

    kind: ClassVar[str] = "element"
    name: ClassVar[str] = "element"
    link: ClassVar[None] = None
    of: ClassVar[None] = None


@dataclass(frozen=True, slots=True, init=False, repr=False)
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
    seconds, stride_seconds : float, optional
        The same in seconds, in place of `size` and `stride`. Such a window becomes one of elements where the rate is
        known (`at`), and is then equal to it.
    """

    size: int
    stride: int
    link: Link
    name: str = field(compare=False)
    of: str | int | None
    seconds: float | None
    stride_seconds: float | None
    kind: ClassVar[str] = "window"

    def __init__(
        self,
        size: int | None = None,
        stride: int | None = None,
        link: Link = "any",
        name: str | None = None,
        of: str | int | None = None,
        *,
        seconds: float | None = None,
        stride_seconds: float | None = None,
    ) -> None:
        if not isinstance(link, str) or link not in get_args(Link):
            choices = ", ".join(map(repr, get_args(Link)))
            raise TaskError(f"the link of a window must be one of {choices}; found {link!r}.")
        if not isinstance(name, str | None) or not isinstance(of, str | int | None):
            raise TaskError(f"the name of a window is text and of= a class; found name={name!r} and of={of!r}.")
        if (size is None) == (seconds is None) or (stride is not None and stride_seconds is not None):
            raise TaskError(
                "a window has a size in elements or in seconds, and likewise its stride; found "
                f"size={size!r}, stride={stride!r}, seconds={seconds!r}, stride_seconds={stride_seconds!r}.\n"
                "  Write Window(size=30) or Window(seconds=4, stride_seconds=0.5)."
            )
        if seconds is None:
            size, step = _checked_sizes(size, stride, stride_seconds)
            called = f"window{size}"
        else:
            seconds, stride_seconds = _checked_seconds(seconds, stride, stride_seconds)
            size = step = 0  # not known yet: `at` finds them
            called = f"window{seconds:g}s"
        values = (size, step, link, name or called, of, seconds, stride_seconds)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    def __repr__(self) -> str:
        sizes = ("size", "stride") if self.seconds is None else ("seconds", "stride_seconds")
        return f"Window({', '.join(f'{name}={getattr(self, name)!r}' for name in (*sizes, 'link', 'name', 'of'))})"

    def at(self, rate: float) -> Window:
        """The same window in elements, at `rate` elements per second; a window of elements is itself.

        A length that is not a whole number of elements is an error, unless it is one within one per cent (a second
        of video at 29.97 frames per second has 30).
        """
        if self.seconds is None:
            return self
        stride = None if self.stride_seconds is None else _elements_in(self.stride_seconds, rate)
        return Window(_elements_in(self.seconds, rate), stride, self.link, self.name, self.of)


def _checked_sizes(size: Any, stride: Any, stride_seconds: float | None) -> tuple[int, int]:
    if stride_seconds is not None:
        raise TaskError("stride_seconds= goes with seconds=; give both in seconds or both in elements.")
    step = size if stride is None else stride
    for what, value in (("size", size), ("stride", step)):
        whole = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
        if not whole or int(value) != value or value < 1:
            raise TaskError(f"the {what} of a window must be a positive number of elements; found {value!r}.")
    if step > size:
        raise TaskError(
            f"the stride of a window must be at most its size; found stride {step} and size {size}.\n"
            "  A larger stride would leave elements that no window covers: use Spans for such pieces."
        )
    return int(size), int(step)


def _checked_seconds(seconds: Any, stride: int | None, stride_seconds: Any) -> tuple[float, float | None]:
    if stride is not None:
        raise TaskError("stride= goes with size=; give both in elements or both in seconds (stride_seconds=).")
    step = seconds if stride_seconds is None else stride_seconds
    for what, value in (("seconds", seconds), ("stride_seconds", step)):
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
            raise TaskError(f"{what}= of a window must be a positive number of seconds; found {value!r}.")
    if stride_seconds is not None and stride_seconds > seconds:
        raise TaskError(
            f"the stride of a window must be at most its length; found {stride_seconds:g} s and {seconds:g} s.\n"
            "  A larger stride would leave elements that no window covers: use Spans for such pieces."
        )
    return float(seconds), None if stride_seconds is None else float(stride_seconds)


# A frame rate such as 29.97 per second counts as 30; three and a half elements are neither three nor four.
_WHOLE = 0.01


def _elements_in(seconds: float, rate: float) -> int:
    exact = seconds * rate
    nearest = round(exact)
    if nearest < 1 or abs(exact - nearest) > _WHOLE * exact:
        shorter, longer = (max(1, int(exact)) / rate, (int(exact) + 1) / rate)
        raise TaskError(
            f"a window of {seconds:g} s must be a whole number of elements; at {rate:g} elements per second it is "
            f"{exact:.4g}.\n  Use {shorter:g} or {longer:g} s, or resample the data (every= of the loaders)."
        )
    return nearest


def in_elements(resolution: Resolution, rate: float | None) -> Resolution:
    """A resolution whose size is in elements; `rate` is None where there is no single one."""
    if not isinstance(resolution, Window) or resolution.seconds is None:
        return resolution
    if rate is None:
        raise TaskError(
            f"a window of {resolution.seconds:g} s needs to know how many elements there are per second.\n"
            "  Pass rate=..., give the loader time= and rate= or every=, or use Window(size=...)."
        )
    return resolution.at(rate)


@typed(TaskError)
@dataclass(frozen=True, slots=True)
class Sequence:
    """The whole sequence: one task each."""

    link: Link = "any"
    of: str | int | None = None
    kind: ClassVar[str] = "sequence"

    @property
    def name(self) -> str:
        """How the resolution is called in tables."""
        return "sequence"


@typed(TaskError)
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
        if resolution.seconds is not None:
            size = f"{resolution.seconds:g} s, every {resolution.stride_seconds or resolution.seconds:g} s"
        return f"{resolution.name} ({size}, link={resolution.link!r}{of})"
    return f"{resolution.name} (link={resolution.link!r}{of})"


@typed(TaskError)
def find_resolution(wanted: str | Resolution, available: Iterable[Resolution]) -> Resolution:
    """Find the one resolution that a user means by a name, a kind ("window") or the object itself."""
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

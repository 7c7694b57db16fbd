"""Who votes: a plain function, and what it votes on.

In: a function of about five lines. Out: a frozen `Source` that can still be called like the function. A
source says nothing about how it is applied; `apply` reads it together with the others.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial, reduce
from typing import Any, Literal, overload

from dugong.contract import fits
from dugong.engines import importable
from dugong.exceptions import SourceError
from dugong.tasks import Element, Resolution, Sequence, Spans, Window
from dugong.votes import SourceInfo

VoteFunction = Callable[..., Any]
Short = Literal["give", "pad", "skip"]
Declared = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A function that votes, with its name and its resolution; make it with `source`.

    Attributes
    ----------
    function : what was decorated
    resolution : Element, Window, Sequence or Spans
    shares : sources with the same word share their parameters
    pre : preprocessing of a whole sequence, applied from left to right
    vectorized : whether the function reads a whole sequence and returns one vote per task
    wants_tasks : whether a vectorised function has a parameter `tasks`, where it gets the bounds of its tasks
    short : what happens at the last window of a sequence where it is short
    depends_on : tuple of (name, lag)
        Declared dependencies: another source with lag 0, or this source itself with lag 1 or more.
    soft : whether it returns probabilities in place of votes
    """

    function: VoteFunction
    name: str
    resolution: Resolution = field(default_factory=Element)
    shares: str | None = None
    pre: tuple[Callable[[Any], Any], ...] = ()
    vectorized: bool = False
    wants_tasks: bool = False
    short: Short = "give"
    depends_on: tuple[Declared, ...] = ()
    soft: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it had not been decorated."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {self.resolution!r})"

    @property
    def __wrapped__(self) -> VoteFunction:
        return self.function

    @property
    def info(self) -> SourceInfo:
        """What the votes keep of a source."""
        return SourceInfo(name=self.name, resolution=self.resolution, shares=self.shares)

    def __reduce__(self) -> tuple[Any, ...]:
        # Its module holds the source under the name of the function, so the function alone cannot be found
        # by name. Where the module can be imported the source is found there; elsewhere (notebooks, closures)
        # its parts travel.
        module = getattr(self.function, "__module__", None) or ""
        path = getattr(self.function, "__qualname__", "")
        if importable(module) and _look_up(sys.modules[module], path) is self:
            return _import_source, (module, path)
        return partial(Source, **{one.name: getattr(self, one.name) for one in fields(self)}), ()


def _look_up(module: Any, path: str) -> Any:
    return reduce(lambda found, name: getattr(found, name, None), path.split("."), module)


def _import_source(module: str, path: str) -> Source:
    found: Source = _look_up(importlib.import_module(module), path)
    return found


@overload
def source(function: VoteFunction, /) -> Source: ...


@overload
def source(
    *,
    resolution: Resolution | None = None,
    name: str | None = None,
    shares: str | None = None,
    pre: Iterable[Callable[[Any], Any]] = (),
    vectorized: bool = False,
    short: Short = "give",
    depends_on: Any = (),
    soft: bool = False,
) -> Callable[[VoteFunction], Source]: ...


def source(
    function: VoteFunction | None = None,
    /,
    *,
    resolution: Resolution | None = None,
    name: str | None = None,
    shares: str | None = None,
    pre: Iterable[Callable[[Any], Any]] = (),
    vectorized: bool = False,
    short: Short = "give",
    depends_on: Any = (),
    soft: bool = False,
) -> Source | Callable[[VoteFunction], Source]:
    """Turn a function into a source of votes; works with and without arguments.

    The function gets one element (``sequence[i]``), a `WindowView` if the resolution is a window or span, or
    the whole sequence; it returns -1, 0, +1 or None (abstain), or a class when there are more than two.

    Parameters
    ----------
    resolution : Element, Window, Sequence or Spans, optional
        What it votes on; every element by default.
    name : str, optional
        Its name in votes and tables; the name of the function by default.
    shares : str, optional
        Sources that say the same word here share their parameters.
    pre : callables, optional
        Preprocessing, from left to right: ``pre=[f, g]`` lets the source read ``g(f(sequence))`` in place of
        the sequence. Each step runs once per sequence for all sources whose chains begin alike.
    vectorized : bool
        The function reads the whole sequence and returns one vote per task, in order. If it has a parameter
        called `tasks`, it gets their bounds there (``tasks.starts``, ``tasks.stops``).
    short : {"give", "pad", "skip"}
        The last window of a sequence may be short. "give": the function gets it as it is (``window.full`` tells).
        "pad": its last element is repeated until the window is full. "skip": the function is not asked.
    depends_on : name, lag, source, pair or a list of these
        Sources whose errors go along with those of this one. A whole number k says that it depends on its own
        vote k tasks earlier.
    soft : bool
        The function returns P(positive), or one probability per class, in place of a vote; None abstains. How far the
        numbers can be believed is learned: they need not be calibrated.

    Examples
    --------
    >>> @source
    ... def loud(sample):
    ...     return 1 if abs(sample) > 0.5 else 0
    >>> loud(0.9)
    1
    """

    def decorate(inner: VoteFunction) -> Source:
        _check_function(inner)
        label = _name_of(inner) if name is None else name
        if not isinstance(label, str) or not label:
            raise SourceError(f"the name of a source must be a word; found {label!r}.")
        return Source(
            function=inner,
            name=label,
            resolution=_check_resolution(Element() if resolution is None else resolution, label),
            shares=shares,
            pre=_check_pre(pre, label),
            vectorized=vectorized,
            wants_tasks=vectorized and _has_parameter(inner, "tasks"),
            short=_check_short(short, label, vectorized=vectorized),
            depends_on=read_dependencies(depends_on, label),
            soft=bool(soft),
        )

    return decorate if function is None else decorate(function)


def _check_function(function: Any) -> None:
    if isinstance(function, Source):
        raise SourceError(f"{function.name!r} is a source already; found @source on it for a second time.")
    if not callable(function):
        raise SourceError(
            f"@source decorates a function; found {function!r}.\n"
            "  Options go by name: @source(resolution=..., name=...)."
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise SourceError(
            f"a source must return its vote; {function.__name__!r} is a coroutine or generator.\n"
            "  Write a plain function with return."
        )


def _has_parameter(function: VoteFunction, name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise SourceError(f"a source needs a name, and {function!r} has none; pass name='...'.")
    return str(name)


def _check_resolution(resolution: Any, name: str) -> Resolution:
    if isinstance(resolution, Element | Window | Sequence | Spans):
        return resolution
    hint = f"call it: {resolution.__name__}(...)" if isinstance(resolution, type) else "such as Window(size=30)"
    raise SourceError(
        f"the resolution of source {name!r} must be Element(), Window(...), Sequence(...) or Spans(...); "
        f"found {resolution!r}.\n  Give an object, {hint}."
    )


def _check_short(short: Any, name: str, *, vectorized: bool) -> Short:
    if not fits(short, Short):
        raise SourceError(f"short= of source {name!r} must be 'give', 'pad' or 'skip'; found {short!r}.")
    if short == "pad" and vectorized:
        raise SourceError(
            f"short='pad' of source {name!r} must be without vectorized=True, which reads the whole sequence at once.\n"
            "  Look at tasks.full inside of the function, or use short='skip'."
        )
    return short  # type: ignore[no-any-return]


def _check_pre(pre: Any, name: str) -> tuple[Callable[[Any], Any], ...]:
    steps = [pre] if callable(pre) or not fits(pre, Iterable[Any]) else list(pre)
    wrong = [step for step in steps if not callable(step)]
    if wrong:
        raise SourceError(f"pre= of source {name!r} must hold functions of a sequence; found {wrong[0]!r}.")
    return tuple(steps)


def read_dependencies(given: Any, name: str) -> tuple[Declared, ...]:
    """Normalise the dependencies of the source `name`."""
    many = given if isinstance(given, list | set | frozenset) or _is_tuple_of_many(given) else [given]
    return tuple(dict.fromkeys(_check(_read_one(one, name), name) for one in many))


def _is_tuple_of_many(given: Any) -> bool:
    """Whether a tuple is a list of dependencies; ``("other", 1)`` is one dependency with its lag."""
    return isinstance(given, tuple) and not (len(given) == 2 and _is_lag(given[1]) and not _is_lag(given[0]))


def _is_lag(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_one(one: Any, name: str) -> Declared:
    if isinstance(one, str):
        return one, 0
    if _is_lag(one):
        return name, one
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and _is_lag(one[1]):
        return one[0], one[1]
    # What `temporal("name", lag=1)` returns, and a `Source` itself, know their own names.
    known, lag = getattr(one, "source", getattr(one, "name", None)), getattr(one, "lag", 0)
    if isinstance(known, str) and _is_lag(lag):
        return known, lag
    raise SourceError(
        f"depends_on of source {name!r} must hold names of sources, or lags of its own; found {one!r}.\n"
        f"  Write depends_on='other', or depends_on=1 if {name!r} depends on its own vote one task earlier."
    )


def _check(declared: Declared, name: str) -> Declared:
    other, lag = declared
    if other == name and lag < 1:
        raise SourceError(
            f"source {name!r} can only depend on its own earlier votes: the lag must be at least 1; found {lag}."
        )
    if other != name and lag != 0:
        raise SourceError(
            f"a lag is for the earlier votes of a source itself; source {name!r} names {other!r} with lag {lag}."
        )
    return declared


def declared_dependencies(sources: Iterable[Source]) -> tuple[tuple[str, str, int], ...]:
    """All declared dependencies as (source, other, lag); a temporal one names the same source twice.

    Pairs that both sides declare are listed once.
    """
    found: dict[tuple[str, str, int], None] = {}
    for one in sources:
        for other, lag in one.depends_on:
            if (other, one.name, lag) not in found:
                found[one.name, other, lag] = None
    return tuple(found)

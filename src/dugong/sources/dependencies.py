"""Declared dependencies, as plain data: which other source, or how far back this one looks.

In: what a user writes at ``depends_on=``. Out: pairs of a name and a lag, which the label model turns into
edges of its source graph. Lag 0 is another source on the same task; lag k >= 1 is the source's own earlier
vote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dugong.exceptions import SourceError

if TYPE_CHECKING:
    from dugong.sources.decorator import Source

Declared = tuple[str, int]


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

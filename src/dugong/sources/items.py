"""One sequence as an item of work: a checked id, the sequence or how to load it, and its spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dugong.exceptions import SourceError, TaskError
from dugong.sources.inputs import SpanPairs
from dugong.tasks import SpanTable

SequenceId = str | int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """One sequence (or how to load it), its id, and the spans that are given for it."""

    id: SequenceId
    sequence: Any
    spans: Mapping[str, SpanPairs] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"sequence {self.id!r}"


def items_of(pairs: Iterable[tuple[Any, Any]], spans: Mapping[str, Any]) -> Iterator[Item]:
    """Check ids and add the spans that are given, one item at a time."""
    seen: set[SequenceId] = set()
    kind: type | None = None
    for place, (given, sequence) in enumerate(pairs):
        one = _plain_id(given, place)
        if one in seen:
            raise SourceError(f"sequence ids must be unique; found {one!r} a second time at place {place}.")
        kind = kind or type(one)
        if type(one) is not kind:
            raise SourceError(
                f"sequence ids must be all words or all whole numbers; found {one!r} at place {place} after "
                f"others that are {kind.__name__}."
            )
        seen.add(one)
        yield Item(id=one, sequence=sequence, spans={name: _of(spans[name], name, one, place) for name in spans})


def _plain_id(given: Any, place: int) -> SequenceId:
    if isinstance(given, str):
        return str(given)
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    raise SourceError(
        f"a sequence id must be a word or a whole number; found {given!r} at place {place}.\n  Use str(...) of it."
    )


def _of(spans: Any, name: str, sequence_id: SequenceId, place: int) -> SpanPairs:
    """The spans of one sequence: by id from a mapping, by place from a table or list."""
    try:
        if isinstance(spans, Mapping):
            return list(spans[sequence_id])
        if isinstance(spans, SpanTable):
            rows = slice(int(spans.offsets[place]), int(spans.offsets[place + 1]))
            return list(zip(spans.starts[rows].tolist(), spans.stops[rows].tolist(), strict=True))
        return list(spans[place])
    except (LookupError, TypeError):
        raise TaskError(
            f"spans {name!r} must be given for every sequence; found none for {sequence_id!r}, "
            f"at place {place}.\n"
            "  Give a mapping of id to (start, stop) pairs, one list per sequence, or a function."
        ) from None


def split_spans(
    spans: Mapping[str, Any] | None,
) -> tuple[dict[str, Callable[[Any], SpanPairs]], dict[str, Any]]:
    """Spans that a function finds, and spans that are given."""
    every = dict(spans or {})
    makers = {name: value for name, value in every.items() if callable(value)}
    return makers, {name: value for name, value in every.items() if name not in makers}

"""Votes and segments: a person's annotations as one more source, and votes as intervals.

In: `Segments`, and what is known about lengths, clock and classes. Out: `Votes` with one source per annotator. Where an
annotator was not asked there is no vote at all; where one looked and marked nothing, the vote is the background class
if it is named, else abstain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.segments import Segments, class_codes
from dugong.segments.gold import asked_spans, looked_at, on_axis, recordings_of
from dugong.tasks import Element, Resolution, Sequence
from dugong.tasks.layout import stretches
from dugong.tasks.links import count_inside
from dugong.types import ABSTAIN, MISSING, BoolArray, Int8Array
from dugong.votes.codes import SourceInfo, code_name
from dugong.votes.flat import from_tasks
from dugong.votes.long import from_long
from dugong.votes.pieces import as_lengths

if TYPE_CHECKING:
    from dugong.votes.container import Votes

_BINARY = {"-1", "1", "+1"}


@typed(VoteError)
def from_segments(
    segments: Segments,
    lengths: ArrayLike | Mapping[Any, int] | None = None,
    *,
    rate: float | Mapping[Any, float] | None = None,
    timestamps: Mapping[Any, ArrayLike] | None = None,
    resolutions: Mapping[str, Resolution] | None = None,
    classes: Iterable[str] | None = None,
    background: str | None = None,
    source: str = "annotator",
) -> Votes:
    """Intervals that people marked, as votes: one source per annotator.

    Parameters
    ----------
    segments : Segments
        Whole-sequence labels become votes of a source on sequences. Sequences and spans that a source did not look
        at (`Segments.asked`) are missing votes, which are no evidence.
    lengths : mapping of sequence to int, or (n_sequences,) int, optional
        Elements of each sequence, where the segments do not know them. A mapping may list sequences that nobody looked
        at: their votes are missing.
    rate, timestamps : optional
        Elements per second, or the seconds of the elements by sequence, for intervals in seconds. An element
        belongs to an interval if its centre, or its timestamp, does; ``votes.time.rounding`` says what moved.
    resolutions : mapping of source to resolution, optional
        Where intervals are windows or spans.
    classes : iterable of str, optional
        The classes in order; by default the labels in order of first appearance, after the background; one label
        alone becomes the positive class of two.
    background : str, optional
        The class that silence stands for where somebody looked; by default silence abstains.
    source : str
        The name of those who have none.
    """
    told = _named(segments, source)
    ids = tuple(told.recordings)
    if timestamps is not None:
        uneven = [key for key, one in timestamps.items() if np.ndim(one) != 1]
        if uneven:
            raise VoteError(f"timestamps must be a list of seconds by sequence; found no list for {uneven[0]!r}.")
        told = told.describe(stamps={key: tuple(np.asarray(one).tolist()) for key, one in timestamps.items()})
    told = told.describe(length=_by_id(lengths, ids), rate=rate).to_unit("element")
    silent = [one for one in ids if told.recordings[one].n_elements is None]
    if silent:
        raise VoteError(
            f"votes need the length of every sequence, in elements; there is none for {silent[0]!r}.\n"
            "  Pass lengths= (a mapping by sequence, or one per sequence)."
        )
    counts = {one: int(told.recordings[one].n_elements or 0) for one in ids}
    if isinstance(lengths, Mapping):  # may list sequences that nobody looked at
        counts |= {str(one): int(length) for one, length in lengths.items() if str(one) not in counts}
    names = _classes(told, classes, background)
    coarse = _resolutions(told) | dict(resolutions or {})
    found = _votes(told, counts, names, background, coarse, rate=rate, timestamps=timestamps)
    if found.time is None or told.rounding is None:
        return found
    return replace(found, time=replace(found.time, rounding=told.rounding))


@typed(VoteError)
def with_segments(
    votes: Votes, segments: Segments, *, background: str | None = None, missing_ok: bool = False
) -> Votes:
    """These votes, and what people marked on the same sequences as further sources.

    Parameters
    ----------
    segments : Segments
        Labels are classes of these votes. Sequences that nobody looked at become missing votes.
    background : str, optional
        The class that silence stands for where somebody looked; by default silence abstains.
    missing_ok : bool
        Whether sequences may be named that have no votes.
    """
    placed = on_axis(_named(segments, "annotator"), votes, missing_ok=missing_ok)
    names = votes.class_names or tuple(map(str, votes.classes))
    codes, name_of = class_codes(votes), dict(zip(votes.classes, names, strict=True))
    placed = replace(placed, label=tuple(name_of.get(codes.get(one, 0), one) for one in placed.label))
    word = None if background is None else name_of.get(codes.get(str(background), 0), background)
    every = {str(one): length for one, length in zip(votes.sequence_ids.tolist(), votes.lengths.tolist(), strict=True)}
    found = _votes(placed, every, names, word, _resolutions(placed))
    taken = [one.name for one in found.sources if one.name in votes.source_names]
    if taken:
        raise VoteError(f"sources must have different names; {taken[0]!r} is one of the votes and of the segments.")
    return replace(votes, sources=votes.sources + found.sources, columns=votes.columns + found.columns)


def _named(segments: Segments, source: str) -> Segments:
    """Segments whose sources all have a name."""
    asked = segments.asked
    if asked is not None:
        asked = {(who or source, name): spans for (who, name), spans in asked.items()}
    return replace(segments, source=tuple(one or source for one in segments.source) or (source,), asked=asked)


def _by_id(lengths: Any, ids: tuple[str, ...]) -> Any:
    if lengths is None:
        return None
    if isinstance(lengths, Mapping):
        return dict(zip(lengths, as_lengths(list(lengths.values())).tolist(), strict=True))
    given = np.asarray(lengths).tolist()
    given = given if isinstance(given, list) else [given] * len(ids)
    if len(given) != len(ids):
        raise VoteError(f"found {len(given)} lengths for {len(ids)} sequences; pass a mapping by sequence.")
    return dict(zip(ids, as_lengths(given).tolist(), strict=True))


def _resolutions(segments: Segments) -> dict[str, Resolution]:
    """Sources that label whole sequences."""
    whole = {who for who, one in zip(segments.source, segments.resolution, strict=True) if one == "sequence"}
    parts = {who for who, one in zip(segments.source, segments.resolution, strict=True) if one == "element"}
    if whole & parts:
        raise VoteError(
            f"a source votes on elements or on whole sequences; {min(whole & parts)!r} marks both.\n"
            '  Take one of them: segments.select(resolution="element").'
        )
    return dict.fromkeys(whole, Sequence())


def _classes(segments: Segments, classes: Iterable[str] | None, background: str | None) -> tuple[str, ...]:
    if classes is not None:
        return tuple(map(str, classes))
    labels = [label for label, one in zip(segments.label, segments.resolution, strict=True) if one == "element"]
    found = tuple(dict.fromkeys(labels or segments.label))
    if set(found) <= _BINARY:
        return ("-1", "1")
    named = (background, *(one for one in found if one != background)) if background is not None else found
    return named if len(named) > 1 else (f"no {named[0]}", *named)


def _votes(
    segments: Segments,
    lengths: Mapping[str, int],
    classes: tuple[str, ...],
    background: str | None,
    resolutions: Mapping[str, Resolution],
    **clock: Any,
) -> Votes:
    """Votes of all sources of segments in elements, on the sequences that `lengths` lists."""
    names, plain = segments.sources, set(classes) <= _BINARY
    size = np.array([lengths[one] for one in segments.sequence], dtype=np.float64)
    end = np.where(np.isinf(segments.end), size, segments.end)
    inside = end > segments.start  # not those that begin behind their sequence
    marked = replace(segments.take(inside), end=end[inside])
    if len(marked):
        table = {name: getattr(marked, name) for name in ("sequence", "source", "start", "end")}
        found = from_long(
            {**table, "vote": [one.removeprefix("+") if plain else one for one in marked.label]},
            lengths=dict(lengths),
            resolutions=resolutions,
            classes=classes,
            sources=names,
            ids=tuple(lengths),
            **clock,
        )
    else:
        silence = np.zeros(sum(lengths.values()), dtype=np.int8)
        found = from_tasks(
            dict.fromkeys(names, silence), list(lengths.values()), classes=classes, ids=np.array(list(lengths))
        )
    word = None if background is None or background not in classes else classes.index(background)
    code = ABSTAIN if word is None else found.classes[word]
    columns = [_asked(found, info, looked_at(asked_spans(segments, info.name), found), code) for info in found.sources]
    return replace(found, columns=tuple(columns), class_names=None if plain else found.class_names)


def _asked(votes: Votes, info: SourceInfo, looked: BoolArray, silence: int) -> Int8Array:
    """The column of a source: silence where it looked, missing where it did not."""
    column = votes.column(info.name).copy()
    if isinstance(info.resolution, Element):
        column[(column == ABSTAIN) & looked] = silence
    starts, stops = votes.layout(info.resolution).flat_bounds()
    column[(column == ABSTAIN) & (count_inside(looked, starts, stops) == 0)] = MISSING
    return column


# --- from votes --------------------------------------------------------------------------------------------------
@typed(VoteError)
def to_segments(votes: Votes, sources: Iterable[str] | None = None) -> Segments:
    """The votes as intervals: longest stretches of equal votes on elements, single votes on coarser tasks.

    What a source was not asked about is outside of the spans in `Segments.asked`.
    """
    ids = [str(one) for one in votes.sequence_ids.tolist()]
    rows: list[tuple[str, float, float, str, str, str]] = []
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for name in votes.source_names if sources is None else sources:
        info, column = votes.sources[votes.index(name)], votes.column(name)
        layout = votes.layout(info.resolution)
        starts, stops = layout.bounds()
        first, last = stretches(column, layout.offsets)
        if not isinstance(info.resolution, Element):
            first, last = np.arange(len(column)), np.arange(1, len(column) + 1)
        owners = np.searchsorted(layout.offsets, first, side="right") - 1
        looked: dict[str, list[tuple[float, float]]] = {one: [] for one in ids}
        cells = zip(owners.tolist(), starts[first].tolist(), stops[last - 1].tolist(), column[first], strict=True)
        for place, start, stop, code in cells:
            if code != MISSING:
                looked[ids[place]].append((start, stop))
            if code not in (ABSTAIN, MISSING):
                label = code_name(votes, int(code), info.resolution).removeprefix("+")
                rows.append((ids[place], start, stop, label, name, info.resolution.name))
        asked |= {(name, one): tuple(spans) for one, spans in looked.items()}
    columns = list(zip(*rows, strict=True)) or [()] * 6
    return Segments(
        sequence=columns[0],
        start=np.array(columns[1], dtype=np.float64),
        end=np.array(columns[2], dtype=np.float64),
        label=columns[3],
        source=columns[4],
        resolution=columns[5],
        recordings=recordings_of(votes),
        asked=asked,
    )

"""Segments and known labels: what people marked, element by element, and back.

In: `Segments` and the votes that they belong to. Out: one label per element (or sequence) in our own coding, 0 where
unknown; or stretches of equal labels as segments. Where somebody looked and marked nothing, the label is the background
class if there is one. `join` makes intervals of labelled tasks: neighbours of one label become one, with the mean
probability of its tasks, each counting by its length.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from dugong.exceptions import LabelError, TaskError
from dugong.segments.container import UNITS, Recording, Segments, Unit, places_of
from dugong.tasks import Rounding, TimeAxis
from dugong.tasks.layout import ranges, stretches
from dugong.types import AnyArray, BoolArray, FloatArray, Int8Array, IntArray
from dugong.version import __version__

KeyT = TypeVar("KeyT", bound=Hashable)


class Axis(Protocol):
    """What segments are laid upon: `Votes` are one."""

    @property
    def sequence_ids(self) -> AnyArray:
        """Ids of the sequences."""

    @property
    def lengths(self) -> IntArray:
        """Elements of each."""

    @property
    def classes(self) -> tuple[int, ...]:
        """Class values."""

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called."""

    @property
    def background(self) -> int | None:
        """The class of everything that nobody marks."""

    @property
    def time(self) -> TimeAxis | None:
        """When the elements happen."""


def class_codes(votes: Axis) -> dict[str, int]:
    """Our class for every way to write it: by name, or as a number."""
    codes = {str(value): value for value in votes.classes}
    codes |= {f"{value:+d}": value for value in votes.classes}
    return codes | dict(zip(votes.class_names or (), votes.classes, strict=False))


def _ids(votes: Axis) -> list[str]:
    return [str(one) for one in votes.sequence_ids.tolist()]


def recordings_of(votes: Axis) -> dict[str, Recording]:
    """What votes know about their sequences."""
    ids, lengths, time = _ids(votes), votes.lengths.tolist(), votes.time
    if time is None:
        return {one: Recording(length=length) for one, length in zip(ids, lengths, strict=True)}
    if time.rate is not None:
        clocks = zip(ids, lengths, time.rate.tolist(), time.start.tolist(), strict=True)
        return {one: Recording(length=length, rate=rate, start=start) for one, length, rate, start in clocks}
    assert time.stamps is not None
    assert time.offsets is not None
    pieces = np.split(time.stamps, time.offsets[1:-1])
    return {
        one: Recording(length=length, start=start, stamps=tuple(stamps.tolist()))
        for one, length, start, stamps in zip(ids, lengths, time.start.tolist(), pieces, strict=True)
    }


def on_axis(segments: Segments, votes: Axis, *, missing_ok: bool = False) -> Segments:
    """The segments in elements of the sequences of the votes."""
    known = dict.fromkeys(_ids(votes))
    strange = [one for one in segments.recordings if one not in known]
    if strange and not missing_ok:
        raise LabelError(
            f"segments must lie in sequences of the votes; {strange[0]!r} is none, and {len(strange)} are like this.\n"
            f"  Known are such as {next(iter(known), None)!r}."
        )
    kept = segments.select(sequences=[one for one in segments.recordings if one in known]) if strange else segments
    if kept.unit == "element":  # no clock is needed
        return kept
    clocks = recordings_of(votes)
    told = {one: _merged(about, clocks[one]) for one, about in kept.recordings.items()}
    return replace(kept, recordings=told).to_unit("element")


def _merged(about: Recording, axis: Recording) -> Recording:
    """The votes know best how long a sequence is and when its elements happen."""
    if axis.rate is None and axis.stamps is None:
        return replace(about, length=axis.length)
    return replace(about, length=axis.length, rate=axis.rate, stamps=axis.stamps, start=axis.start)


# --- to known labels ---------------------------------------------------------------------------------------------
def to_gold(
    segments: Segments, votes: Axis, resolution: str, *, background: Any = None, missing_ok: bool = False
) -> Int8Array:
    """See `Segments.to_gold`."""
    if resolution not in ("element", "sequence"):
        raise LabelError(f"segments become labels of elements or of sequences; found {resolution!r}.")
    placed = on_axis(segments, votes, missing_ok=missing_ok)
    whole = np.fromiter((one == "sequence" for one in placed.resolution), dtype=np.bool_, count=len(placed))
    if resolution == "sequence":
        return _of_sequences(placed.take(whole), votes)
    marked = placed.take(~whole)
    owner, start, end = _bounds(marked, votes)
    codes = _codes(marked.label, votes)
    labels = np.zeros(int(votes.lengths.sum()), dtype=np.int8)
    silence = _silence(codes, votes, background)
    if silence:
        labels[looked_at(asked_spans(marked), votes)] = silence
    offsets = np.concatenate([[0], np.cumsum(votes.lengths)])
    elements, spread = ranges(start + offsets[owner], end - start), np.repeat(codes, end - start)
    labels[elements] = spread
    twice = labels[elements] != spread
    if twice.any():
        place = int(np.searchsorted(offsets, elements[np.argmax(twice)], side="right")) - 1
        raise LabelError(
            f"an element must have one label; {int(twice.sum())} have two different ones, the first is element "
            f"{elements[np.argmax(twice)] - offsets[place]} of sequence {votes.sequence_ids.tolist()[place]!r}.\n"
            "  Choose whose word counts: segments.select(sources=[...])."
        )
    return labels


def _bounds(segments: Segments, votes: Axis) -> tuple[IntArray, IntArray, IntArray]:
    """Place of the sequence and whole, half-open elements of every interval."""
    owner = places_of(segments.sequence, _ids(votes))
    size = votes.lengths[owner]
    end = np.where(np.isinf(segments.end), size, segments.end)
    bad = (end > size) | (segments.start != np.floor(segments.start)) | (end != np.floor(end))
    if bad.any():
        row = int(np.argmax(bad))
        raise LabelError(
            f"an interval must lie on whole elements inside its sequence; found {int(bad.sum())} that do not, the "
            f"first is row {row}: elements {segments.start[row]:g} to {end[row]:g} of sequence "
            f"{segments.sequence[row]!r}, which has {size[row]}."
        )
    return owner, segments.start.astype(np.int64), end.astype(np.int64)


def _codes(labels: tuple[str, ...], votes: Axis) -> Int8Array:
    codes = class_codes(votes)
    unknown = [label for label in labels if label not in codes]
    if unknown:
        known = ", ".join(map(str, votes.class_names or votes.classes))
        raise LabelError(f"a label must be one of {known}; found {unknown[0]!r}, and {len(unknown)} such intervals.")
    return np.fromiter((codes[label] for label in labels), dtype=np.int8, count=len(labels))


def _silence(codes: Int8Array, votes: Axis, background: Any) -> int:
    """What it means that somebody looked and marked nothing; 0 if that is unknown."""
    if background is not None:
        return int(_codes((str(background),), votes)[0])
    marked = set(codes.tolist())
    if votes.background is not None:
        return 0 if votes.background in marked else votes.background
    if len(votes.classes) == 2:
        return -1 if -1 not in marked else 0
    outside = class_codes(votes).get("O", 0)
    return 0 if outside in marked else outside


def looked_at(asked: Mapping[str, Iterable[tuple[float, float]]], votes: Axis) -> BoolArray:
    """Which elements lie in one of the spans of their sequence."""
    looked = np.zeros(int(votes.lengths.sum()), dtype=np.bool_)
    offsets = np.concatenate([[0], np.cumsum(votes.lengths)]).tolist()
    for name, first, last in zip(_ids(votes), offsets[:-1], offsets[1:], strict=True):
        for start, end in asked.get(name, ()):
            looked[first + int(min(start, last - first)) : first + int(min(end, last - first))] = True
    return looked


def spans_by(keys: Iterable[KeyT], start: AnyArray, end: AnyArray) -> dict[KeyT, tuple[tuple[float, float], ...]]:
    """Spans by what they belong to."""
    found: dict[KeyT, list[tuple[float, float]]] = {}
    for key, *span in zip(keys, start.tolist(), end.tolist(), strict=True):
        found.setdefault(key, []).append((span[0], span[1]))
    return {key: tuple(spans) for key, spans in found.items()}


def asked_spans(segments: Segments, source: str | None = None) -> Mapping[str, list[tuple[float, float]]]:
    """Spans that a source, or anybody, looked at, by sequence."""
    if segments.asked is None:
        return {name: [(0.0, np.inf)] for name in segments.recordings}
    found: dict[str, list[tuple[float, float]]] = {}
    for (who, name), spans in segments.asked.items():
        if source in (None, who):
            found.setdefault(name, []).extend(spans)
    return found


def _of_sequences(segments: Segments, votes: Axis) -> Int8Array:
    """Labels of whole sequences: -1 or +1."""
    codes = {"negative": -1, "positive": 1, "-1": -1, "+1": 1, "1": 1}
    if len(votes.classes) == 2:
        codes |= class_codes(votes)
    labels = np.zeros(len(votes.lengths), dtype=np.int8)
    places = places_of(segments.sequence, _ids(votes)).tolist()
    for place, name, label in zip(places, segments.sequence, segments.label, strict=True):
        if label not in codes:
            raise LabelError(f"the label of a sequence must be one of {', '.join(codes)}; found {label!r}.")
        if labels[place] not in (0, codes[label]):
            raise LabelError(f"a sequence must have one label; {name!r} has two different ones.")
        labels[place] = codes[label]
    return labels


# --- from known labels -------------------------------------------------------------------------------------------
def from_gold(gold: AnyArray, votes: Axis, source: str) -> Segments:
    """See `Segments.from_gold`."""
    labels = np.asarray(gold)
    if labels.shape != (int(votes.lengths.sum()),):
        raise LabelError(f"there must be one label per element, {int(votes.lengths.sum())}; found {labels.shape}.")
    offsets = np.concatenate([[0], np.cumsum(votes.lengths)])
    starts, stops = stretches(labels, offsets)
    known = labels[starts] != 0
    starts, stops = starts[known], stops[known]
    owners = np.searchsorted(offsets, starts, side="right") - 1
    names = dict(zip(votes.classes, votes.class_names or map(str, votes.classes), strict=True))
    recordings = recordings_of(votes)
    ids = list(recordings)
    names_of = [ids[place] for place in owners.tolist()]
    first, last = starts - offsets[owners], stops - offsets[owners]
    return Segments(
        sequence=tuple(names_of),
        start=first,
        end=last,
        label=tuple(names[int(code)] for code in labels[starts].tolist()),
        source=(source,),
        recordings={name: recordings[name] for name in dict.fromkeys(names_of)},
        asked=spans_by(((source, name) for name in names_of), first, last),
    )


def join(
    *,
    recordings: Mapping[str, Recording],
    sequence: Sequence[str],
    spans: IntArray,
    kinds: IntArray,
    names: Sequence[str],
    probability: FloatArray,
    resolution: str,
    min_length: int | None = None,
    merge_gap: int | None = None,
) -> Segments:
    """Join tasks of one kind that touch; kind -1 is no interval.

    Parameters
    ----------
    recordings : what is known about the sequences
    sequence, spans, kinds, probability : one entry per task
    names : the label of every kind
    resolution : name
    min_length, merge_gap : elements; see `Labels.segments`
    """
    rows = np.flatnonzero(kinds >= 0)
    owner = places_of(sequence, recordings)[rows]
    start, end, kind = spans[rows, 0], spans[rows, 1], kinds[rows]
    opens = _opens(owner, kind, start, end, gap=merge_gap or 0)
    first, piece = np.flatnonzero(opens), np.cumsum(opens) - 1
    stop = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(stop, piece, end)
    weight = (end - start).astype(np.float64)
    shares = np.bincount(piece, weights=probability[rows] * weight) / np.bincount(piece, weights=weight)
    chosen = np.flatnonzero(stop - start[first] >= (min_length or 0))
    ids = list(recordings)
    return Segments(
        sequence=tuple(ids[place] for place in owner[first][chosen].tolist()),
        start=start[first][chosen].astype(np.float64),
        end=stop[chosen].astype(np.float64),
        label=tuple(names[place] for place in kind[first][chosen].tolist()),
        probability=np.clip(shares[chosen], 0.0, 1.0),
        source=(f"dugong-{__version__}",),
        resolution=(resolution,),
        recordings=recordings,
    )


def _opens(owner: IntArray, kind: IntArray, start: IntArray, end: IntArray, *, gap: int) -> BoolArray:
    """Where a new interval begins: another sequence, another label, or too far from the end of the one before."""
    opens = np.ones(len(owner), dtype=np.bool_)
    if len(owner):
        opens[1:] = (owner[1:] != owner[:-1]) | (kind[1:] != kind[:-1]) | (start[1:] > end[:-1] + gap)
    return opens


# --- Elements, seconds, characters: intervals from one unit to another, with a report of what had to move -------------
# In: `Segments` whose recordings know their rate, time stamps or tokens. Out: the same intervals in another unit.
# Nothing is guessed: what is not known is an error that says how to give it. An infinite end stays the end of the
# sequence.
_INSTANT = 1e-9  # seconds; less than the clock resolves, so that an instant stays without an element
_Bounds = tuple[FloatArray, FloatArray, Rounding | None]


def to_unit(segments: Segments, unit: Unit) -> Segments:
    """See `Segments.to_unit`."""
    if unit not in UNITS:
        raise TaskError(f"the unit of segments is one of {', '.join(UNITS)}; found {unit!r}.")
    if unit == segments.unit:
        return segments
    start, end, rounding = _convert(segments, segments.sequence, segments.start, segments.end, unit)
    asked = segments.asked
    if asked is not None:
        keys = [key for key, spans in asked.items() for _ in spans]
        bounds = np.array([span for spans in asked.values() for span in spans], dtype=np.float64).reshape(-1, 2)
        first, last, _ = _convert(segments, tuple(key[1] for key in keys), bounds[:, 0], bounds[:, 1], unit)
        asked = dict.fromkeys(asked, ()) | spans_by(keys, first, last)
    return replace(segments, start=start, end=end, unit=unit, rounding=rounding, asked=asked)


def _convert(segments: Segments, names: tuple[str, ...], start: FloatArray, end: FloatArray, unit: Unit) -> _Bounds:
    """Bounds of intervals of the named sequences in another unit."""
    new_start, new_end = np.zeros(len(start)), np.full(len(start), np.inf)
    rows = np.flatnonzero((start != 0) | ~np.isinf(end))  # the whole sequence is the whole sequence in every unit
    if not len(rows):
        return new_start, new_end, None
    kept = [names[row] for row in rows.tolist()]
    recordings = {name: segments.recordings.get(name, Recording()) for name in dict.fromkeys(kept)}
    owner, start, to_the_end = places_of(kept, recordings), start[rows], np.isinf(end[rows])
    finite = np.where(to_the_end, start, end[rows])
    if "character" in (unit, segments.unit):
        found = _by_tokens(recordings, owner, start, finite, segments.unit, unit)
    else:
        found = _by_clock(recordings, owner, start, finite, unit)
    new_start[rows], new_end[rows] = found[0], np.where(to_the_end, np.inf, found[1])
    return new_start, new_end, found[2]


# --- clocks ------------------------------------------------------------------------------------------------------
def _by_clock(
    recordings: dict[str, Recording], owner: IntArray, start: FloatArray, end: FloatArray, unit: Unit
) -> _Bounds:
    axis = _axis(recordings)
    if unit == "second":
        return axis.borders(owner, start), axis.borders(owner, end), None
    spans = axis.to_elements(owner, start, np.maximum(end, start + _INSTANT))
    first = spans.starts.astype(np.float64)
    return first, np.maximum(spans.stops, spans.starts).astype(np.float64), spans.rounding


def _axis(recordings: dict[str, Recording]) -> TimeAxis:
    """The clocks of some sequences."""
    starts = [one.start for one in recordings.values()]
    stamps = [one.stamps for one in recordings.values()]
    if all(one is not None for one in stamps):
        return TimeAxis.from_timestamps([one for one in stamps if one is not None], start=starts)
    silent = [name for name, one in recordings.items() if one.rate is None]
    if silent:
        raise TaskError(
            f"seconds become elements, and elements seconds, only at a known rate, which is never guessed; there is "
            f"none for {len(silent)} sequences, the first {silent[0]!r}.\n"
            "  Pass rate= (elements per second: one number, or a mapping by sequence)."
        )
    return TimeAxis.from_rate([float(one.rate) for one in recordings.values() if one.rate is not None], start=starts)


# --- tokens ------------------------------------------------------------------------------------------------------
def _by_tokens(
    recordings: dict[str, Recording],
    owner: IntArray,
    start: FloatArray,
    end: FloatArray,
    given: Unit,
    unit: Unit,
) -> _Bounds:
    if "second" in (given, unit):
        raise TaskError(f"{given}s cannot become {unit}s: text has no clock.")
    first, last = np.zeros(len(start)), np.zeros(len(start))
    by_owner = np.argsort(owner, kind="stable")
    pieces = np.split(by_owner, np.cumsum(np.bincount(owner))[:-1])
    to = _to_elements if unit == "element" else _to_characters
    for (name, about), rows in zip(recordings.items(), pieces, strict=True):
        first[rows], last[rows] = to(_tokens(about, name), start[rows], end[rows])
    if unit == "character":
        return first, last, None
    back_start, back_end, _ = _by_tokens(recordings, owner, first, last, "element", "character")
    moved = np.where(first < last, np.concatenate([back_start - start, back_end - end]).reshape(2, -1), 0)
    rounding = Rounding(
        n_bounds=2 * len(start),
        n_moved=int(np.count_nonzero(moved)),
        largest=float(np.abs(moved).max(initial=0)),
        n_empty=int(np.count_nonzero(first >= last)),
    )
    return first, last, rounding


def _tokens(recording: Recording, name: str) -> FloatArray:
    if recording.tokens is None:
        raise TaskError(
            f"characters become elements, and elements characters, only where the tokens are known; there are none for "
            f"{name!r}.\n  Give them: segments.describe(tokens={{sequence: [(start, end), ...]}})."
        )
    return np.array(recording.tokens, dtype=np.float64).reshape(-1, 2)


def _to_elements(tokens: FloatArray, start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Tokens that share a character with the intervals."""
    first = np.searchsorted(tokens[:, 1], start, side="right")
    last = np.searchsorted(tokens[:, 0], end, side="left")
    return first.astype(np.float64), np.maximum(first, np.where(end > start, last, first)).astype(np.float64)


def _to_characters(tokens: FloatArray, start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    first, last = start.astype(np.int64), end.astype(np.int64)
    if len(last) and last.max(initial=0) > len(tokens):
        raise TaskError(f"an interval ends at element {int(last.max())}, and there are {len(tokens)} tokens.")
    borders = np.append(tokens[:, 0], tokens[-1, 1] if len(tokens) else 0.0)
    ends = np.append(0.0, tokens[:, 1])
    return borders[first], np.where(last > first, ends[last], borders[first])

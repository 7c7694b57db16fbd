"""Elements, seconds, characters: intervals from one unit to another, with a report of what had to move.

In: `Segments` whose recordings know their rate, time stamps or tokens. Out: the same intervals in another unit. Nothing
is guessed: what is not known is an error that says how to give it. An infinite end stays the end of the sequence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dugong.exceptions import TaskError
from dugong.segments.container import UNITS, Recording, Segments, Unit
from dugong.tasks import Rounding, TimeAxis
from dugong.types import FloatArray, IntArray

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
        pieces: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in asked}
        for key, *span in zip(keys, first.tolist(), last.tolist(), strict=True):
            pieces[key].append((span[0], span[1]))
        asked = {key: tuple(spans) for key, spans in pieces.items()}
    return replace(segments, start=start, end=end, unit=unit, rounding=rounding, asked=asked)


def _convert(segments: Segments, names: tuple[str, ...], start: FloatArray, end: FloatArray, unit: Unit) -> _Bounds:
    """Bounds of intervals of the named sequences in another unit."""
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    owner = np.fromiter((order[name] for name in names), dtype=np.int64, count=len(names))
    recordings = {name: segments.recordings.get(name, Recording()) for name in order}
    whole = (start == 0) & np.isinf(end)  # the whole sequence is the whole sequence in every unit
    to_the_end = np.isinf(end)
    new_start, new_end = np.zeros(len(start)), np.full(len(start), np.inf)
    rows = np.flatnonzero(~whole)
    if not len(rows):
        return new_start, new_end, None
    finite = np.where(to_the_end, start, end)[rows]
    if "character" in (unit, segments.unit):
        found = _by_tokens(recordings, owner[rows], start[rows], finite, segments.unit, unit)
    else:
        found = _by_clock(recordings, owner[rows], start[rows], finite, unit)
    new_start[rows], new_end[rows] = found[0], np.where(to_the_end[rows], np.inf, found[1])
    return new_start, new_end, found[2]


# --- clocks ------------------------------------------------------------------------------------------------------
def _by_clock(
    recordings: dict[str, Recording], owner: IntArray, start: FloatArray, end: FloatArray, unit: Unit
) -> _Bounds:
    axis, owner = _axis(recordings, owner)
    if unit == "second":
        return axis.borders(owner, start), axis.borders(owner, end), None
    spans = axis.to_elements(owner, start, np.maximum(end, start + _INSTANT))
    first = spans.starts.astype(np.float64)
    return first, np.maximum(spans.stops, spans.starts).astype(np.float64), spans.rounding


def _axis(recordings: dict[str, Recording], owner: IntArray) -> tuple[TimeAxis, IntArray]:
    """The clocks of the sequences that need one, and the places of the intervals on it."""
    needed, places = np.unique(owner, return_inverse=True)
    every = list(recordings)
    names = [every[place] for place in needed.tolist()]
    starts = [recordings[name].start for name in names]
    stamps = [recordings[name].stamps for name in names]
    rates = [recordings[name].rate for name in names]
    if all(one is not None for one in stamps):
        return TimeAxis.from_timestamps([one for one in stamps if one is not None], start=starts), places
    silent = [name for name, rate in zip(names, rates, strict=True) if rate is None]
    if silent:
        raise TaskError(
            f"seconds become elements, and elements seconds, only at a known rate, which is never guessed; there is "
            f"none for {len(silent)} sequences, the first {silent[0]!r}.\n"
            "  Pass rate= (elements per second: one number, or a mapping by sequence)."
        )
    return TimeAxis.from_rate([float(rate) for rate in rates if rate is not None], start=starts), places


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
    present, begins = np.unique(owner[by_owner], return_index=True)
    names = list(recordings)
    for place, rows in zip(present.tolist(), np.split(by_owner, begins[1:]), strict=True):
        tokens = _tokens(recordings[names[place]], names[place])
        to = _to_elements if unit == "element" else _to_characters
        first[rows], last[rows] = to(tokens, start[rows], end[rows])
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

"""One sequence as the pixels need it: probabilities, labels, votes, signals and words of a stretch, in bins.

In: a `Snapshot`, the corrections that hold now, what the loader shows of the raw sequence. Out: plain data with packed
arrays. What is worked out for a sequence is kept while it is looked at, so that panning only cuts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dugong.report.html import geometry
from dugong.report.material import places_of
from dugong.report.media import Raw, Signal
from dugong.report.track import VoterInfo
from dugong.studio.snapshot import Snapshot
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes

UNKNOWN = 255
MOST_TOKENS = 20_000
MOST_FAULTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Elements `begin` to `end`, to be drawn on `px` pixels."""

    begin: int
    end: int
    px: int


class TaskBins(NamedTuple):
    """Bins of the tasks of a lane, or of the values of a signal: `first` to `last`, `step` in each."""

    first: int
    last: int
    step: int

    @classmethod
    def of(cls, first: int, last: int, n: int, px: int) -> TaskBins:
        """Aligned bins around some of `n` values, so that neighbouring stretches fit together."""
        step = step_for(last - first, px)
        return cls(first // step * step, min(-(-last // step) * step, n), step)


class SequenceTracks:
    """What is shown of one sequence."""

    def __init__(self, snapshot: Snapshot, place: int) -> None:
        self._of = snapshot
        self._place = place
        self.lanes = [SequenceLane(snapshot, place, one) for one in snapshot.lanes]  # elements first
        self._votes: dict[int, CodeCounts] = {}

    def cut(self, stretch: Stretch, known: MarkedLabels, only: str | None = None) -> dict[str, Any]:
        """Lanes and votes of a stretch; all of them, or those of one source."""
        bins = [lane.bins(stretch) for lane in self.lanes]
        lanes = [lane.plain(one) for lane, one in zip(self.lanes, bins, strict=True)]
        lanes[0] |= self._labels(bins[0], known)
        voters = enumerate(self._of.voters)
        votes = [self.votes(place, bins[voter.lane]) for place, voter in voters if only in (None, voter.name)]
        return {"id": self._of.ids[self._place], "from": stretch.begin, "to": stretch.end, "fit": self._of.number} | {
            "lanes": lanes,
            "votes": votes,
        }

    def votes(self, place: int, bins: TaskBins) -> dict[str, Any]:
        """Votes of one source in bins."""
        voter = self._of.voters[place]
        if place not in self._votes:
            self._votes[place] = CodeCounts(self._of.codes[place][self.lanes[voter.lane].rows], len(voter.codes))
        return {**vote_bins(self._votes[place], voter, bins), "faults": self._faults(voter)}

    @cached_property
    def _chosen(self) -> dict[str, CodeCounts]:
        """Labels of the elements: the likelier class, the best path, the plain vote."""
        rows, material = self._of.elements(self._place), self._of.material
        found = {"labels": material.chosen, "decoded": material.decoded, "majority": material.majority}
        return {name: label_codes(places[rows], len(self._of.classes)) for name, places in found.items()}

    def _labels(self, bins: TaskBins, known: MarkedLabels) -> dict[str, Any]:
        codes = {**self._chosen, "gold": known.codes}
        found = {name: packed(label_bins(one, bins), "u1") for name, one in codes.items()}
        return found | {"corrected": packed(known.corrected.cut(*bins), "u1")}

    def _faults(self, voter: VoterInfo) -> list[list[int]]:
        name, lane = self._of.ids[self._place], self.lanes[voter.lane]
        tasks = [one.task for one in self._of.votes.faults if one.source == voter.name and str(one.sequence) == name]
        tasks = tasks[:MOST_FAULTS]
        bounds = [(0, lane.length) if task is None else (lane.starts[task], lane.stops[task]) for task in tasks]
        return [[int(start), int(stop)] for start, stop in bounds]


class SequenceLane:
    """The tasks of one resolution in one sequence."""

    def __init__(self, snapshot: Snapshot, place: int, resolution: Resolution) -> None:
        self.resolution = resolution
        self.length = int(snapshot.votes.lengths[place])
        self.rows, self.starts, self.stops = task_bounds(snapshot.votes, place, resolution)
        self._law = snapshot.material.probabilities[resolution][self.rows]

    @cached_property
    def _curves(self) -> list[Curve]:
        return law_curves(self._law)

    def bins(self, stretch: Stretch) -> TaskBins:
        """Which tasks share an element with a stretch, and how many go into one bin."""
        first = int(np.searchsorted(self.stops, stretch.begin, side="right"))
        last = max(first, int(np.searchsorted(self.starts, stretch.end, side="left")))
        return TaskBins.of(first, last, len(self.starts), stretch.px)

    def plain(self, bins: TaskBins) -> dict[str, Any]:
        """The lane without its votes."""
        kind = {"name": self.resolution.name, "first": bins.first, "step": bins.step}
        n_bins = -(-(bins.last - bins.first) // bins.step)
        empty = dict.fromkeys(("labels", "decoded", "majority", "gold", "corrected"))
        law = law_bins(self._curves, bins)
        return {**kind, "n": n_bins, **self._geometry(bins), "probability": law, **empty}

    def _geometry(self, bins: TaskBins) -> dict[str, Any]:
        """Where the bins lie: in a regular row, or one by one."""
        starts = self.starts[bins.first : bins.last : bins.step]
        lasts = np.minimum(np.arange(bins.first, bins.last, bins.step) + bins.step, bins.last) - 1
        stops = self.stops[lasts]
        if len(starts) == 0:
            return {"start": 0, "stride": 1, "size": 0}
        return geometry(starts, stops, self.length)


def task_bounds(votes: Votes, place: int, resolution: Resolution) -> tuple[slice, IntArray, IntArray]:
    """The tasks of one sequence: where they stand in flat arrays, and their elements, counted inside of it."""
    layout = votes.layout(resolution)
    rows = layout.rows(place)
    if isinstance(resolution, Element):  # the bounds of all elements of all sequences would be a long array
        starts = np.arange(rows.stop - rows.start)
        return rows, starts, starts + 1
    starts, stops = layout.between(place, place + 1).bounds()
    return rows, starts, stops


def task_span(votes: Votes, place: int, resolution: Resolution, task: int) -> dict[str, int]:
    """The elements of one task, for JSON."""
    _, starts, stops = task_bounds(votes, place, resolution)
    return {"start": int(starts[task]), "stop": int(stops[task])}


# --- parts in bins -------------------------------------------------------------------------------------------------
def law_curves(law: FloatArray) -> list[Curve]:
    """Curves of the probabilities of labels, (n_tasks, K): one per label, only the last of two."""
    columns = [law[:, 1]] if law.shape[1] == 2 else list(law.T)
    return [Curve(column) for column in columns]


def law_bins(curves: Sequence[Curve], bins: TaskBins) -> list[dict[str, Any]]:
    """Probabilities in bins: mean, and smallest and largest where a bin holds more than one task."""

    def p(values: FloatArray) -> dict[str, Any]:
        return packed(np.rint(np.clip(values, 0, 1) * 65535), "u2")

    alone = bins.step == 1
    return [
        {
            "mean": p(curve.mean(*bins)),
            "min": None if alone else p(curve.low.cut(*bins)),
            "max": None if alone else p(curve.high.cut(*bins)),
        }
        for curve in curves
    ]


def label_codes(places: AnyArray, n_classes: int) -> CodeCounts:
    """Class places with one more code for unknown."""
    return CodeCounts(np.where(places < 0, n_classes, places).astype(np.uint8), n_classes + 1)


def label_bins(codes: CodeCounts, bins: TaskBins) -> AnyArray:
    """The most frequent class of every bin, 255 where none is known."""
    unknown = codes.n_codes - 1
    chosen = codes.codes[bins.first : bins.last]
    if bins.step > 1:
        chosen = dominant(codes.cut(*bins), (unknown,))
    return np.where(chosen == unknown, UNKNOWN, chosen)


def vote_bins(codes: CodeCounts, voter: VoterInfo, bins: TaskBins) -> dict[str, Any]:
    """Votes in bins: the code that stands out, and the share of each."""
    code, shares = codes.codes[bins.first : bins.last], None
    if bins.step > 1:
        counts = codes.cut(*bins)
        code = dominant(counts, [place for place, one in enumerate(voter.codes) if one in ("abstain", "not asked")])
        parts = np.rint(255 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
        shares = [packed(column, "u1") for column in parts.T]
    head = {"source": voter.name, "lane": voter.lane, "codes": voter.codes, "classes": voter.classes}
    return {**head, "code": packed(code, "u1"), "shares": shares}


# --- raw data ------------------------------------------------------------------------------------------------------
class RawTracks:
    """What the loader shows of a sequence, in bins."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._levels = [(smallest(one.low), largest(one.high)) for one in raw.signals]
        self._ranges = [_range(one) for one in raw.signals]

    def cut(self, stretch: Stretch) -> dict[str, Any]:
        """Signals and words of a stretch."""
        signals = []
        for one, (low, high), (bottom, top) in zip(self.raw.signals, self._levels, self._ranges, strict=True):
            first = max(0, int(stretch.begin / one.per))
            last = min(len(one.low), int(np.ceil(stretch.end / one.per)))
            bins = TaskBins.of(first, last, len(one.low), stretch.px)
            signals.append(
                {"name": one.name, "first": bins.first, "step": bins.step, "per": one.per, "low": bottom, "high": top}
                | {"min": packed(low.cut(*bins), "f4"), "max": packed(high.cut(*bins), "f4")}
            )
        words = self.raw.tokens[stretch.begin : min(stretch.end, stretch.begin + MOST_TOKENS)]
        return {"signals": signals, "tokens": {"first": stretch.begin, "words": list(words)} if words else None}


def _range(signal: Signal) -> tuple[float | None, float | None]:
    """The smallest and the largest value; None where no value is a number."""
    low, high = (values[np.isfinite(values)] for values in (signal.low, signal.high))
    return (float(low.min()), float(high.max())) if low.size and high.size else (None, None)


class MarkedLabels:
    """Known labels of one sequence, and where corrections are among them."""

    def __init__(self, snapshot: Snapshot, place: int, marked: Int8Array) -> None:
        rows = snapshot.elements(place)
        known = marked if snapshot.known is None else np.where(marked != 0, marked, snapshot.known[rows])
        places = places_of(known.astype(np.int8), snapshot.votes)
        self.codes = label_codes(places, len(snapshot.classes))
        self.corrected = largest((marked != 0).astype(np.uint8))


# --- bins of long arrays ----------------------------------------------------------------------------------------------
# Bins of 1, 2, 4, ... values, worked out once, cut out when asked for: the smallest, largest and mean value of every
# bin, or the share of every code in it. Bins are aligned, so that stretches beside each other fit together.
_KEPT_FROM = 16  # coarser steps are kept; finer ones are quick to work out where they are shown
_BLOCK = 1 << 16  # values that are joined at a time, because codes take more room while they are counted
Reduce = Callable[..., Any]


def packed(values: AnyArray, kind: str) -> dict[str, Any]:
    """An array as JSON: its type, its length, and its bytes in base64."""
    data = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return {"t": kind, "n": int(data.size), "b": base64.b64encode(data.tobytes()).decode("ascii")}


def step_for(n: float, px: int) -> int:
    """Values per bin, a power of 2, so that `n` values take at least half as many bins as there are pixels."""
    step = 1
    while n / step > px:
        step *= 2
    return step


class Levels:
    """An array in bins of growing size; `reduce` joins the values of a bin along the first axis."""

    def __init__(self, values: AnyArray, reduce: Reduce) -> None:
        self._values = values
        self._reduce = reduce

    def __len__(self) -> int:
        return len(self._values)

    def cut(self, first: int, last: int, step: int) -> AnyArray:
        """Bins of `step` values that cover the values `first` to `last`; `first` is a multiple of `step`."""
        if step < _KEPT_FROM:
            return self._joined(self._spread(self._values[first:last]), step)
        level = self._kept[(step // _KEPT_FROM).bit_length() - 1]
        return level[first // step : -(-last // step)]

    @cached_property
    def _kept(self) -> list[AnyArray]:
        blocks = [self._values[begin : begin + _BLOCK] for begin in range(0, max(len(self), 1), _BLOCK)]
        levels = [np.concatenate([self._joined(self._spread(one), _KEPT_FROM) for one in blocks])]
        while len(levels[-1]) > 1:
            levels.append(self._joined(levels[-1], 2))
        # A step may be larger than the whole array: the last level stands for all of these.
        return levels + [levels[-1]] * 40

    def _spread(self, values: AnyArray) -> AnyArray:
        """What is joined of values: themselves."""
        return values

    def _joined(self, values: AnyArray, step: int) -> AnyArray:
        if step == 1 or not len(values):
            return values
        return np.asarray(self._reduce(values, np.arange(0, len(values), step), axis=0))


def smallest(values: AnyArray) -> Levels:
    """The smallest value of every bin; missing ones are left out."""
    return Levels(values, np.fmin.reduceat if values.dtype.kind == "f" else np.minimum.reduceat)


def largest(values: AnyArray) -> Levels:
    """The largest value of every bin."""
    return Levels(values, np.fmax.reduceat if values.dtype.kind == "f" else np.maximum.reduceat)


class Curve:
    """Numbers with smallest, largest and mean value of every bin."""

    def __init__(self, values: FloatArray) -> None:
        self.low, self.high = smallest(values), largest(values)
        self._sum = Levels(values, np.add.reduceat)

    def mean(self, first: int, last: int, step: int) -> FloatArray:
        """Means of the bins."""
        total = self._sum.cut(first, last, step)
        counts = np.full(len(total), step)
        if len(total) and first + len(total) * step > len(self._sum):
            counts[-1] = max(1, len(self._sum) - (first + (len(total) - 1) * step))
        return np.asarray(total / counts)


class CodeCounts(Levels):
    """Small whole numbers from 0 on: how often each occurs in every bin, (n_bins, n_codes)."""

    def __init__(self, codes: AnyArray, n_codes: int) -> None:
        super().__init__(codes, np.add.reduceat)
        self.codes, self.n_codes = codes, n_codes

    def _spread(self, values: AnyArray) -> AnyArray:
        return np.asarray(values[:, None] == np.arange(self.n_codes), dtype=np.int32)


def dominant(counts: AnyArray, weak: Sequence[int] = ()) -> AnyArray:
    """The most frequent code of every bin; codes in `weak` only where there is no other."""
    strong = counts.copy()
    strong[:, list(weak)] = 0
    chosen = np.where(strong.any(axis=1, keepdims=True), strong, counts)
    return np.asarray(chosen.argmax(axis=1))

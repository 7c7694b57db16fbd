"""From chosen sequences to tracks: everything that a timeline shows, cut out of the flat arrays.

A report has a *budget* in characters. Sequences are taken in order of interest until the next one would not fit; if
the very first is too long, its most uncertain part is taken. What a sequence costs is known from its number of tasks
(`pack` says how many characters a value takes).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dugong.infer.answers import posterior
from dugong.report.material import (
    WHOLE,
    Interest,
    Material,
    element_entropy,
    find_sequences,
    label_names,
    measure,
    places_of,
    take_in_turn,
)
from dugong.report.media import find_media, show
from dugong.report.track import (
    LOG_CHARS,
    Lane,
    LaneInfo,
    Sequences,
    Track,
    VoterInfo,
    chars_per_code,
    codes_of,
    logs_of,
    make_voters,
    order_of_credit,
)
from dugong.tasks import Element, Resolution, describe
from dugong.types import MISSING, FloatArray, Int8Array, IntArray, read_only
from dugong.votes import Votes

MOST = 100
BUDGET = 2_800_000  # pages stay below 5 MB: what a task costs is an estimate
MEDIA = 1_000_000  # of these, for words, pictures and signals
_WELL = 8  # sequences that share what is left for media: the first, most informative ones are shown well


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackPart:
    """A sequence, or a part of it, that will be shown."""

    place: int
    begin: int
    end: int


def make_sequences(
    material: Material,
    *,
    n_sequences: int | None = None,
    wanted: Iterable[object] = (),
    budget: int | None = BUDGET,
    media: Any = None,
    media_bytes: int = MEDIA,
) -> Sequences:
    """Choose sequences and cut them out; options as for `summarize`, whose `sequences` are `wanted` here."""
    if media is not None and budget is not None:
        budget = max(budget - media_bytes, budget // 4)
    interest, voters = measure(material), make_voters(material)
    first = find_sequences(material.votes, wanted)
    order = take_in_turn(interest, first=first)
    order = order[material.votes.lengths[order] > 0]
    most = MOST if n_sequences is None else n_sequences
    parts = choose_parts(material, order[: max(most, len(first))], voters, budget)
    tracks = _with_media(_cut(material, parts, voters, interest), media, media_bytes)
    return Sequences(
        n_all=material.votes.n_sequences,
        how=_how(material.votes, parts) + _how_many_drawn(tracks, media),
        classes=material.names,
        lanes=tuple(lane_info(material.votes, one) for one in material.probabilities),
        voters=voters,
        path=material.how_decoded == WHOLE,
        order=order_of_credit(material),
        tracks=tracks,
    )


# --- choosing ------------------------------------------------------------------------------------------------------
def choose_parts(
    material: Material, order: IntArray, voters: tuple[VoterInfo, ...], budget: int | None
) -> list[TrackPart]:
    """As many of the sequences as the budget allows; a part of the first if even that is too long."""
    costs = _costs(material, voters)
    left = np.inf if budget is None else float(budget)
    parts: list[TrackPart] = []
    for place in order.tolist():
        length = int(material.votes.lengths[place])
        if costs[place] <= left:
            parts.append(TrackPart(place=place, begin=0, end=length))
            left -= costs[place]
        elif not parts:
            share = left / costs[place]
            return [_doubtful_part(material, place, max(1, int(length * share)))]
    return parts


def _costs(material: Material, voters: tuple[VoterInfo, ...]) -> FloatArray:
    """Characters that every sequence takes, (n_sequences,)."""
    votes = material.votes
    costs = np.full(votes.n_sequences, 400.0)
    codes = chars_per_code(votes.n_classes + 1)
    for place, resolution in enumerate(material.probabilities):
        n_logs = 1 if len(label_names(votes, resolution)) == 2 else votes.n_classes
        per_task = float(LOG_CHARS) * n_logs * (1 if material.model.law_.tempering is None else 2)
        per_task += 4 * codes if isinstance(resolution, Element) else LOG_CHARS
        per_task += sum(chars_per_code(len(voter.codes)) for voter in voters if voter.lane == place)
        costs += per_task * np.diff(votes.layout(resolution).offsets)
    return costs


def _doubtful_part(material: Material, place: int, size: int) -> TrackPart:
    """The stretch of `size` elements with the largest uncertainty."""
    rows = material.votes.layout("element").rows(place)
    total = np.concatenate([[0.0], np.cumsum(element_entropy(material.elements[rows]))])
    begin = int(np.argmax(total[size:] - total[:-size]))
    return TrackPart(place=place, begin=begin, end=begin + size)


def _how(votes: Votes, parts: list[TrackPart]) -> str:
    n_shown, n_all = len(parts), votes.n_sequences
    excerpt = any(part.end - part.begin < votes.lengths[part.place] for part in parts)
    if excerpt:
        part = parts[0]
        return (
            f"This file holds a part of one of {n_all:,} sequences: elements {part.begin:,} to {part.end:,} of "
            f"{votes.lengths[part.place]:,}, where the labels are least certain. The numbers in all other sections are "
            "about all sequences."
        )
    if n_shown == n_all:
        return "This file holds all sequences." if n_all > 1 else "This file holds the one sequence."
    return (
        f"This file holds {n_shown:,} of {n_all:,} sequences, to keep it small: those that are most uncertain, in "
        "which resolutions disagree most, and that differ most from majority vote, taken in turn. The numbers in all "
        "other sections are about all sequences."
    )


def _how_many_drawn(tracks: tuple[Track, ...], media: Any) -> str:
    n_drawn = sum(one.media is not None for one in tracks)
    if media is None or n_drawn == len(tracks):
        return ""
    return f" Data are drawn beside {n_drawn:,} of them: elements must be words, pictures or numbers, and fit."


# --- cutting -------------------------------------------------------------------------------------------------------
def lane_info(votes: Votes, resolution: Resolution) -> LaneInfo:
    """A resolution in words."""
    words = "elements" if isinstance(resolution, Element) else describe(resolution)
    return LaneInfo(name=resolution.name, kind=resolution.kind, words=words, labels=label_names(votes, resolution))


def _cut(
    material: Material, parts: list[TrackPart], voters: tuple[VoterInfo, ...], interest: Interest
) -> tuple[Track, ...]:
    votes = material.votes
    places = [part.place for part in parts]
    priors = _inferred(material, places, silent=True)
    # Labels may be an average of the exact model and a more cautious answer, be it only the class balance.
    exact = None if material.model.law_.tempering is None else _inferred(material, places, silent=False)
    codes = codes_of(votes, voters)
    bounds = {resolution: votes.layout(resolution).bounds() for resolution in material.probabilities}
    tracks = []
    for number, part in enumerate(parts):
        lanes, rows = [], []
        for resolution, law in material.probabilities.items():
            layout = votes.layout(resolution)
            inside = _inside(layout.rows(part.place), bounds[resolution], part)
            shift = inside.start - int(layout.offsets[part.place])
            shown = slice(shift, shift + inside.stop - inside.start)
            starts, stops = (one[inside] for one in bounds[resolution])
            lanes.append(
                Lane(
                    first=shift,
                    starts=read_only(starts),
                    stops=read_only(stops),
                    log_probability=read_only(logs_of(law[inside])),
                    log_prior=read_only(logs_of(priors[resolution][number][shown])),
                    log_exact=None if exact is None else read_only(logs_of(exact[resolution][number][shown])),
                )
            )
            rows.append(inside)
        own = tuple(read_only(codes[place][rows[voter.lane]]) for place, voter in enumerate(voters))
        tracks.append(_track(material, part, tuple(lanes), own, rows[0], interest))
    return tuple(tracks)


def _with_media(tracks: tuple[Track, ...], media: Any, size: float) -> tuple[Track, ...]:
    """Tracks with their words, pictures or signals, as far as the bytes reach."""
    if media is None:
        return tracks
    found = find_media(media, [one.name for one in tracks])
    done = []
    for place, track in enumerate(tracks):
        share = size / min(len(tracks) - place, _WELL)
        part = slice(track.begin, track.end)
        seen = show(found[track.name], track.name, track.length, part, share) if track.name in found else None
        size -= 0 if seen is None else seen.n_bytes
        done.append(replace(track, media=seen))
    return tuple(done)


def _inside(rows: slice, bounds: tuple[IntArray, IntArray], part: TrackPart) -> slice:
    """Tasks of a sequence that share an element with the part that is shown."""
    starts, stops = (one[rows] for one in bounds)
    first = int(np.searchsorted(stops, part.begin, side="right"))
    last = int(np.searchsorted(starts, part.end, side="left"))
    return slice(rows.start + first, rows.start + max(first, last))


def _track(
    material: Material,
    part: TrackPart,
    lanes: tuple[Lane, ...],
    own: tuple[Int8Array, ...],
    rows: slice,
    interest: Interest,
) -> Track:
    votes, place = material.votes, part.place
    gold = None if material.gold is None else places_of(material.gold[rows], votes)
    return Track(
        place=place,
        name=str(votes.sequence_ids[place]),
        length=int(votes.lengths[place]),
        begin=part.begin,
        end=part.end,
        uncertainty=float(interest.uncertainty[place]),
        disagreement=_known(interest.disagreement[place]),
        difference=float(interest.difference[place]),
        wrong=_known(interest.wrong[place]),
        wrong_path=_known(interest.wrong_path[place]),
        lanes=lanes,
        votes=own,
        labels=material.chosen[rows].astype(np.int8),
        decoded=material.decoded[rows].astype(np.int8),
        majority=material.majority[rows].astype(np.int8),
        gold=None if gold is None else gold.astype(np.int8),
        seconds=seconds_of(votes, place),
    )


def seconds_of(votes: Votes, place: int) -> tuple[float, float] | None:
    """When a sequence begins and how long an element takes; None without a regular clock."""
    if votes.time is None or votes.time.rate is None:
        return None
    return float(votes.time.start[place]), float(1 / votes.time.rate[place])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _inferred(material: Material, places: list[int], *, silent: bool) -> dict[Resolution, list[FloatArray]]:
    """P(label) by the law at its word, by resolution and shown sequence; `silent`: if nobody had been asked."""
    wanted, model = tuple(material.probabilities), material.model
    if not places:
        return {resolution: [] for resolution in wanted}
    chosen = material.votes[places]
    if silent:
        columns = tuple(np.full(len(column), MISSING, dtype=np.int8) for column in chosen.columns)
        chosen = replace(chosen, columns=columns, faults=())
    laws = posterior(model.law_.exact, chosen, wanted, n_threads=model.n_threads)
    return {resolution: np.split(laws[resolution], chosen.layout(resolution).offsets[1:-1]) for resolution in wanted}

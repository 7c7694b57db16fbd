"""What an edited source would do: its new votes, and what the model of the last fit makes of them.

In: a `Snapshot`, and the votes of one source on a few sequences (`Tried`). Out: plain data for the page. The law is
that of the last fit; only saving fits anew, as `dugong run` would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dugong.report.evidence import code_names
from dugong.report.material import label_names
from dugong.report.track import VoterInfo
from dugong.studio.bench import Tried
from dugong.studio.bins import CodeCounts, packed
from dugong.studio.pages import MOST_SHOWN, flips_of, measured, number, trouble
from dugong.studio.snapshot import Snapshot, spoken
from dugong.studio.tracks import SequenceTracks, Stretch, label_bins, label_codes, law_bins, law_curves, vote_bins
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes, class_indices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _New:
    """Votes on some sequences with one column replaced, and their labels by the law of the last fit."""

    votes: Votes
    law: dict[Resolution, FloatArray]

    @property
    def chosen(self) -> IntArray:
        return np.asarray(self.law[Element()].argmax(axis=1))


def others(snapshot: Snapshot, name: str, n: int) -> list[str]:
    """The sequence that is looked at, and the most uncertain others."""
    order = np.argsort(-np.nan_to_num(snapshot.interest.uncertainty), kind="stable").tolist()
    return [name, *[snapshot.ids[place] for place in order if snapshot.ids[place] != name][:n]]


def preview(snapshot: Snapshot, tried: Tried, tracks: SequenceTracks, stretch: Stretch) -> dict[str, Any]:
    """The answer to a try; the first of the tried sequences is the one on the screen."""
    votes, resolution = snapshot.votes, tried.info.resolution
    places = [snapshot.places[str(one.id)] for one in tried.votes]
    new, why = _labelled(snapshot, tried, places)
    voter = _voter(snapshot, tried)
    lanes = snapshot.lanes
    summary, flips = _summary(snapshot, tried, places, new)
    codes = _codes(votes, resolution, tried.votes[0].votes[0], len(voter.codes))
    bins = [lane.bins(stretch) for lane in tracks.lanes]
    found: dict[str, Any] = {"vote": None, "probability": None, "labels": None, "why": why}
    if resolution in lanes:
        own = bins[lanes.index(resolution)]
        found["vote"] = {**vote_bins(CodeCounts(codes, len(voter.codes)), voter, own), "faults": []}
    if new is not None:
        first = {one: law[new.votes.layout(one).rows(0)] for one, law in new.law.items()}
        found["probability"] = [law_bins(law_curves(first[one]), own) for one, own in zip(lanes, bins, strict=True)]
        chosen = first[Element()].argmax(axis=1)
        found["labels"] = packed(label_bins(label_codes(chosen, len(snapshot.classes)), bins[0]), "u1")
    faults = [fault for one in tried.votes for fault in one.faults]
    return {
        **found,
        "printed": tried.printed,
        "trouble": [trouble(one, snapshot, resolution) for one in faults[:MOST_SHOWN]],
        "summary": summary,
        "flips": flips,
    }


def _labelled(snapshot: Snapshot, tried: Tried, places: list[int]) -> tuple[_New | None, str | None]:
    """The new votes under the old law; None and the reason where that cannot be."""
    votes, name = snapshot.votes, tried.info.name
    if name not in votes.source_names:
        return None, f"{name} is new to the model: save it to see what labels become."
    if votes.sources[votes.index(name)].resolution != tried.info.resolution:
        return None, f"{name} votes at another resolution than before: save it to see what labels become."
    if any((name in one.scores) != (name in votes.scores) for one in tried.votes):
        return None, f"{name} votes or gives scores, and did the other before: save it to see what labels become."
    some = votes[places]
    if [one.length for one in tried.votes] != some.lengths.tolist():
        return None, "the data have changed since the last fit: run it again."
    place = votes.index(name)
    columns = list(some.columns)
    columns[place] = np.concatenate([one.votes[0] for one in tried.votes])
    scores = dict(some.scores)
    if name in scores:
        scores[name] = np.concatenate([one.scores[name] for one in tried.votes])
    new = replace(some, columns=tuple(columns), scores=scores, faults=())
    known = snapshot.trained
    if known is not None:
        known = np.concatenate([known[snapshot.elements(one)] for one in places])
    law = snapshot.model._probabilities(new, tuple(snapshot.lanes), known)  # noqa: SLF001  (our own)
    return _New(votes=new, law=dict(law)), None


def _voter(snapshot: Snapshot, tried: Tried) -> VoterInfo:
    known = [one for one in snapshot.voters if one.name == tried.info.name]
    resolution, lanes = tried.info.resolution, snapshot.lanes
    if known and resolution == snapshot.votes.sources[snapshot.votes.index(tried.info.name)].resolution:
        return known[0]
    n_labels = len(label_names(snapshot.votes, resolution))
    names = code_names(snapshot.votes, resolution, n_labels + 1)
    return VoterInfo(
        name=tried.info.name,
        lane=lanes.index(resolution) if resolution in lanes else 0,
        codes=names,
        classes=tuple(place if place < n_labels else -1 for place in range(len(names))),
        evidence=None,
        parents=(),
    )


def _codes(votes: Votes, resolution: Resolution, column: Int8Array, n_codes: int) -> AnyArray:
    """Votes as places in the list of codes."""
    places = class_indices(votes, column, votes.n_classes if isinstance(resolution, Element) else 2)
    return np.where((places < 0) | (places >= n_codes), n_codes - 1, places).astype(np.int8)


def _summary(
    snapshot: Snapshot, tried: Tried, places: list[int], new: _New | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Numbers over all tried sequences, and what is labelled otherwise than by the last fit."""
    column = np.concatenate([one.votes[0] for one in tried.votes])
    voter = _voter(snapshot, tried)
    codes, counts = np.unique(
        _codes(snapshot.votes, tried.info.resolution, column, len(voter.codes)), return_counts=True
    )
    summary: dict[str, Any] = {
        "sequences": len(tried.votes),
        "tasks": len(column),
        "coverage": number(spoken(column).mean()) if len(column) else None,
        "votes": {voter.codes[code]: int(n) for code, n in zip(codes.tolist(), counts.tolist(), strict=True)},
        "changed": None,
        "flipped": None,
        "measured": None,
    }
    if new is None:
        return summary, []
    layout = snapshot.votes.layout(tried.info.resolution)
    rows = np.concatenate([np.arange(*layout.rows(place).indices(layout.n_tasks)) for place in places])
    summary["changed"] = int((snapshot.votes.column(tried.info.name)[rows] != column).sum())
    summary["measured"] = number(measured(snapshot, tried.info.resolution, rows, column))
    flips, offsets, chosen = [], new.votes.layout("element").offsets, new.chosen
    for number_, place in enumerate(places):
        now = chosen[offsets[number_] : offsets[number_ + 1]]
        flips += flips_of(snapshot, snapshot.ids[place], snapshot.material.chosen[snapshot.elements(place)], now)
    summary["flipped"] = sum(one["stop"] - one["start"] for one in flips)
    return summary, flips[:MOST_SHOWN]

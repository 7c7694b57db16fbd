"""The numbers of the pages: queue, sources, model, explanation. In: a `Snapshot`. Out: plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dugong.infer.explain import Contribution
from dugong.infer.potentials import sum_by_sequence
from dugong.report.material import label_names
from dugong.report.overview import make_prior
from dugong.report.track import VoterInfo
from dugong.review import take_stretches
from dugong.studio.snapshot import Snapshot, spoken
from dugong.studio.tracks import task_span
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, Int8Array, IntArray
from dugong.votes import Votes, code_name, gold_at

MOST_SHOWN = 50
_KNOWN = (
    "Some labels of this sequence are known, and make those beside them more certain. This explains what votes and "
    "prior alone say."
)
_HEARD = 20_000  # elements on either side that an explanation looks at
_PARTS = ("probability", "log_odds", "prior", "neighbours", "averaging")
_SCORES = ("accuracy", "f1", "brier", "log_loss")
SORTS = {
    "entropy": "most uncertain first",
    "disagreement": "resolutions disagree",
    "conflict": "sources contradict each other",
    "change": "changed by the last fit",
    "review": "what teaches most",
    "difference": "unlike the plain vote",
    "wrong": "wrong on known labels",
    "name": "by name",
    "length": "longest first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the queue is asked for."""

    sort: str = "entropy"
    page: int = 0
    size: int = 50
    q: str = ""
    corrected: str = ""
    label: str = ""
    source: str = ""


def number(value: Any) -> Any:
    """Rounded, and None for what is not known; of several numbers, and of rows of them, each."""
    if isinstance(value, list | tuple | np.ndarray):
        return [number(one) for one in value]
    return None if value is None or not np.isfinite(value) else round(float(value), 6)


# --- the queue -----------------------------------------------------------------------------------------------------
def queue(snapshot: Snapshot, wanted: Wanted, corrected: Mapping[str, int]) -> dict[str, Any]:
    """One page of the sequences, sorted and filtered."""
    order = _order(snapshot, wanted.sort)
    kept = order[_filter(snapshot, wanted, corrected)[order]]
    begin = wanted.page * wanted.size
    shown = kept[begin : begin + wanted.size].tolist()
    return {
        "total": len(kept),
        "page": wanted.page,
        "size": wanted.size,
        "sort": wanted.sort,
        "sequences": [sequence_row(snapshot, place, corrected) for place in shown],
    }


def sequence_row(snapshot: Snapshot, place: int, corrected: Mapping[str, int]) -> dict[str, Any]:
    """What the queue says about one sequence."""
    votes, name = snapshot.votes, snapshot.ids[place]
    rate = None if votes.time is None or votes.time.rate is None else float(votes.time.rate[place])
    return {
        "id": name,
        "place": place,
        "length": int(votes.lengths[place]),
        "seconds": None if rate is None else number(votes.lengths[place] / rate),
        **{name: number(values[place]) for name, values in snapshot.figures.items()},
        "corrected": corrected.get(name, 0),
        "known": int(snapshot.n_known[place]),
        "shares": number(snapshot.shares[place]),
        "faults": sum(str(one.sequence) == name for one in votes.faults),
    }


def _order(snapshot: Snapshot, sort: str) -> IntArray:
    name = sort.removeprefix("-")
    if name == "name":
        order = np.array(sorted(range(len(snapshot.ids)), key=snapshot.ids.__getitem__), dtype=np.int64)
    elif name == "review":
        order = _review_order(snapshot)
    else:
        figures = snapshot.figures
        values = figures | {"entropy": figures["uncertainty"], "length": snapshot.votes.lengths.astype(np.float64)}
        order = np.argsort(-np.nan_to_num(values[name], nan=-1.0), kind="stable")
    return order[::-1] if sort.startswith("-") else order


def _review_order(snapshot: Snapshot) -> IntArray:
    """What teaches most first, and not the same thing twice; the rest by what is left in them."""
    first = snapshot.model.review(snapshot.votes, budget=min(200, snapshot.votes.n_sequences)).places
    rest = np.argsort(-snapshot.worth, kind="stable")
    return np.concatenate([first, rest[~np.isin(rest, first)]])


def _filter(snapshot: Snapshot, wanted: Wanted, corrected: Mapping[str, int]) -> Any:
    kept = np.ones(len(snapshot.ids), dtype=np.bool_)
    if wanted.q:
        kept &= np.array([wanted.q.lower() in one.lower() for one in snapshot.ids])
    if wanted.corrected:
        kept &= np.array([bool(corrected.get(one)) == (wanted.corrected == "yes") for one in snapshot.ids])
    if wanted.label in snapshot.classes:
        kept &= snapshot.shares[:, snapshot.classes.index(wanted.label)] > 0
    if wanted.source in snapshot.votes.source_names:
        place = snapshot.votes.index(wanted.source)
        offsets = snapshot.votes.layout(snapshot.votes.sources[place].resolution).offsets
        kept &= sum_by_sequence(spoken(snapshot.votes.columns[place]).astype(np.float64), offsets) > 0
    return kept


# --- why -----------------------------------------------------------------------------------------------------------
def explanation(
    snapshot: Snapshot, place: int, task: int, resolution: Resolution, label: str | None = None
) -> dict[str, Any]:
    """Why a label is what it is; with more than two of them, why it is or is not one that is named."""
    votes = snapshot.votes
    near, first = _around(votes[[place]], task)
    names = label_names(votes, resolution)
    values = dict(zip(names, votes.classes, strict=True)) if len(names) > 2 else {}
    target = None if label is None else values.get(label)
    found = snapshot.model.explain(near, 0, task - first, resolution, target=target)

    def part(one: Contribution) -> dict[str, Any]:
        return {
            "source": one.source,
            "resolution": one.resolution.name,
            "task": one.task + first,
            **task_span(votes, place, one.resolution, one.task + first),
            "vote": code_name(votes, one.vote, one.resolution),
            "log_odds": number(one.log_odds),
        }

    return {
        "id": snapshot.ids[place],
        "task": task,
        "resolution": resolution.name,
        **task_span(votes, place, resolution, task),
        "label": code_name(votes, found.target, resolution),
        **{name: number(getattr(found, name)) for name in _PARTS},
        "own_votes": [part(one) for one in found.own_votes],
        "influences": [part(one) for one in found.influences],
        "text": str(found),
        "note": _KNOWN if snapshot.trained is not None and snapshot.trained[snapshot.elements(place)].any() else None,
    }


def _around(votes: Votes, element: int) -> tuple[Votes, int]:
    """The part of one long sequence that an element hears from, and where it begins; all of it where pieces overlap.

    Every vote that is taken away costs one inference, so that a night at 64 Hz would take a minute.
    """
    first, last = max(0, element - _HEARD), element + _HEARD
    if votes.lengths[0] <= 2 * _HEARD or any(not isinstance(one, Element) for one in votes.resolutions):
        return votes, 0
    last = min(last, int(votes.lengths[0]))
    return take_stretches(votes, np.array([0]), np.array([first]), np.array([last])), first


# --- sources -------------------------------------------------------------------------------------------------------
def source_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """All sources: what they vote, and how good they are by estimate and by measurement."""
    votes, scored = snapshot.votes, snapshot.material.gold
    summary = votes.summary(scored)
    learned = {one.name: one for one in snapshot.model.summary(votes, scored).sources}
    seconds = {one["name"]: one for one in snapshot.outcome.get("report", {}).get("sources", ())}
    rows = []
    for place, one in enumerate(summary.sources):
        about, voter = learned.get(one.name), snapshot.voters[place]
        rows.append(
            {
                "name": one.name,
                "resolution": one.resolution,
                "lane": voter.lane,
                "tasks": one.n_tasks,
                **{name: number(getattr(one, name)) for name in ("coverage", "overlaps", "conflicts")},
                "accuracy": None if about is None else number(about.accuracy),
                "measured": number(one.accuracy),
                "n_measured": (one.correct or 0) + (one.incorrect or 0),
                "polarity": list(one.words),
                "classes": [
                    {"label": part.label, "right": number(part.right), "measured": number(part.empirical)}
                    | {"interval": number(part.interval)}
                    for part in (() if about is None else about.classes)
                ],
                "votes": vote_counts(voter, snapshot.codes[place]),
                "faults": sum(fault.source == one.name for fault in votes.faults),
                "seconds": number(seconds.get(one.name, {}).get("seconds")),
            }
        )
    return rows


def vote_counts(voter: VoterInfo, codes: AnyArray) -> dict[str, int]:
    """How often a source votes what, in its own words."""
    found, counts = np.unique(codes, return_counts=True)
    return {voter.codes[code]: n for code, n in zip(found.tolist(), counts.tolist(), strict=True)}


def source_details(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """What to look at in one source: where it raised, what changed, whom it contradicts, what nobody believes."""
    votes = snapshot.votes
    if name not in votes.source_names:
        return {"trouble": [], "flips": [], "conflict_with": [], "examples": []}
    place = votes.index(name)
    return {
        "trouble": [trouble(one, snapshot) for one in votes.faults if one.source == name][:MOST_SHOWN],
        "flips": vote_flips(snapshot, name) + label_flips(snapshot),
        "conflict_with": _against(snapshot, place),
        "examples": _unbelieved(snapshot, place),
    }


def trouble(fault: Any, snapshot: Snapshot, resolution: Resolution | None = None) -> dict[str, Any]:
    """One task on which a source raised."""
    votes, place = snapshot.votes, snapshot.places.get(str(fault.sequence))
    where: dict[str, int | None] = {"start": None, "stop": None}
    if fault.task is not None and place is not None:
        resolution = resolution or votes.sources[votes.index(fault.source)].resolution
        with suppress(IndexError):  # the data have changed
            where |= task_span(votes, place, resolution, fault.task)
    about = {"sequence": str(fault.sequence), "task": fault.task}
    return {**about, **where, "text": fault.error, "trace": fault.traceback}


def vote_flips(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    """Votes of a source that the last fit changed, some from each sequence."""
    before = snapshot.votes_before
    if before is None or name not in before.source_names:
        return []
    now, old = snapshot.votes, before.sources[before.index(name)]
    source = now.sources[now.index(name)]
    if old.resolution != source.resolution:
        return []
    column, former = now.column(name), before.column(name)
    there = {str(one): place for place, one in enumerate(before.sequence_ids.tolist())}
    found: list[dict[str, Any]] = []
    for place, one in enumerate(snapshot.ids):
        if one not in there or len(found) >= MOST_SHOWN:
            continue
        rows = now.layout(source.resolution).rows(place)
        then = before.layout(old.resolution).rows(there[one])
        if then.stop - then.start != rows.stop - rows.start:
            continue
        for task in np.flatnonzero(column[rows] != former[then])[:5].tolist():
            words = [code_name(now, int(side), source.resolution) for side in (former[then][task], column[rows][task])]
            bounds = task_span(now, place, source.resolution, task)
            found.append({"sequence": one, **bounds, "before": words[0], "after": words[1], "kind": "vote"})
    return found[:MOST_SHOWN]


def label_flips(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Stretches of labels that the last fit changed, the longest first."""
    found = []
    for place in np.flatnonzero(np.nan_to_num(snapshot.change) > 0).tolist():
        rows, name = snapshot.elements(place), snapshot.ids[place]
        found += flips_of(snapshot, name, snapshot.before[name], snapshot.material.chosen[rows])
    return sorted(found, key=lambda one: one["start"] - one["stop"])[:MOST_SHOWN]


def flips_of(snapshot: Snapshot, name: str, before: IntArray, after: IntArray) -> list[dict[str, Any]]:
    """Runs of elements with another label than before."""
    key = np.where(before == after, -1, before * len(snapshot.classes) + after)
    edges = np.flatnonzero(np.diff(key, prepend=-2, append=-2))
    runs = [(int(a), int(b)) for a, b in pairwise(edges) if key[a] >= 0]
    names = snapshot.classes
    return [
        {"sequence": name, "start": a, "stop": b, "before": names[before[a]], "after": names[after[a]], "kind": "label"}
        for a, b in runs
    ]


def _against(snapshot: Snapshot, place: int) -> list[dict[str, Any]]:
    """Sources of the same resolution that vote otherwise, and how often of the times that both vote."""
    votes = snapshot.votes
    mine, found = votes.columns[place], []
    for other, source in enumerate(votes.sources):
        if other == place or source.resolution != votes.sources[place].resolution:
            continue
        both = spoken(mine) & spoken(votes.columns[other])
        if both.any():
            share = float((mine[both] != votes.columns[other][both]).mean())
            found.append({"source": source.name, "share": number(share)})
    return sorted(found, key=lambda one: -(one["share"] or 0.0))


def _unbelieved(snapshot: Snapshot, place: int) -> list[dict[str, Any]]:
    """Votes for a class of which the model is least convinced."""
    votes, source = snapshot.votes, snapshot.votes.sources[place]
    law = snapshot.material.probabilities[source.resolution]
    codes = snapshot.codes[place].astype(np.int64)
    voted = np.flatnonzero(codes < law.shape[1])
    belief = law[voted, codes[voted]]
    chosen = voted[np.argsort(belief, kind="stable")[: MOST_SHOWN // 2]]
    offsets = votes.layout(source.resolution).offsets
    owners = np.searchsorted(offsets, chosen, side="right") - 1
    found = []
    for row, owner in zip(chosen.tolist(), owners.tolist(), strict=True):
        task = row - int(offsets[owner])
        where = {"sequence": snapshot.ids[owner], **task_span(votes, owner, source.resolution, task)}
        word = snapshot.voters[place].codes[codes[row]]
        found.append({**where, "vote": word, "probability": number(law[row, codes[row]])})
    return found


def measured(snapshot: Snapshot, resolution: Resolution, rows: IntArray, votes: Int8Array) -> float | None:
    """How often votes on some tasks are right, by known labels."""
    if snapshot.material.gold is None:
        return None
    truth = gold_at(snapshot.votes, snapshot.material.gold, resolution)[rows]
    known = (truth != 0) & spoken(votes)
    return float((truth[known] == votes[known]).mean()) if known.any() else None


# --- the model -----------------------------------------------------------------------------------------------------
def model_page(snapshot: Snapshot) -> dict[str, Any]:
    """What is believed, what was learned, and what changed."""
    model, outcome = snapshot.model, snapshot.outcome
    summary, prior = model.summary(), make_prior(snapshot.material)
    now, old = snapshot.material.chosen, np.concatenate([*snapshot.before.values()]) if snapshot.before else None

    def _shares(labels: IntArray) -> list[float | None]:
        counts = np.bincount(labels, minlength=len(snapshot.classes))
        return list(number(counts / max(len(labels), 1)))

    return {
        "fit": snapshot.number,
        "prior": {"words": prior.words, "learned": prior.learned}
        | {name: number(getattr(prior, name)) for name in ("share", "transition", "bouts")},
        "dependencies": [
            {"a": a, "b": b, "words": f"{a} repeats itself" if a == b else f"{a} and {b} make the same mistakes"}
            for a, b in summary.dependencies
        ],
        "estimator": str(model.estimator),
        "notes": [{"kind": one.kind, "where": one.where, "text": one.text} for one in model.diagnostics_.notes],
        "findings": list(outcome.get("findings", ())),
        "changes": list(outcome.get("changes", ())),
        "sources": [
            {
                "name": one.name,
                "resolution": one.resolution,
                "accuracy": number(one.accuracy),
                "before": number(snapshot.accuracies_before.get(one.name)),
            }
            for one in summary.sources
        ],
        "comparison": _comparison(outcome.get("comparison")),
        "shares": {"now": _shares(now), "before": None if old is None else _shares(old)},
        "flipped": int(snapshot.changed.sum()),
        "report": "/api/report",
    }


def _comparison(plain: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Methods on known labels, as the run compared them."""
    if plain is None:
        return None
    rows = [
        {"method": name, **{score: one["scores"][score]["value"] for score in _SCORES if score in one["scores"]}}
        for name, one in plain["methods"].items()
    ]
    return {"verdict": plain["verdict"], "better": plain["better"], "rows": rows}

"""The socket: events for the page, and sources that are tried while they are typed.

Tries are numbered; of several that wait only the last one is answered, so that the screen never shows an older text.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from dugong.codec import parse
from dugong.exceptions import DugongError
from dugong.report.material import label_names
from dugong.report.track import VoterInfo, code_classes, code_names, code_places
from dugong.studio.bench import Tried
from dugong.studio.editing import EditError
from dugong.studio.pages import MOST_SHOWN, flips_of, measured, number, trouble
from dugong.studio.snapshot import Snapshot, spoken
from dugong.studio.state import Studio, plain_error
from dugong.studio.tracks import (
    CodeCounts,
    SequenceTracks,
    Stretch,
    label_bins,
    label_codes,
    law_bins,
    law_curves,
    packed,
    vote_bins,
)
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

_LARGEST = 2_000_000
_LIMITS = (0.2, 600.0)


async def live(studio: Studio, socket: WebSocket) -> None:
    """One page that listens and tries."""
    await socket.accept()
    queue, waiting = studio.listen(), _Last()
    tasks = [asyncio.create_task(_speak(socket, queue)), asyncio.create_task(_try(studio, socket, waiting))]
    try:
        while True:
            await _hear(studio, socket, waiting, await socket.receive_text())
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        studio.leave(queue)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


class _Last:
    """The last thing that was put in."""

    def __init__(self) -> None:
        self._item: dict[str, Any] | None = None
        self._there = asyncio.Event()

    def put(self, item: dict[str, Any]) -> None:
        self._item = item
        self._there.set()

    async def get(self) -> dict[str, Any]:
        await self._there.wait()
        self._there.clear()
        assert self._item is not None
        return self._item


async def _hear(studio: Studio, socket: WebSocket, waiting: _Last, text: str) -> None:
    try:
        plain = parse(text) if len(text) <= _LARGEST else None
    except (DugongError, ValueError, RecursionError):
        plain = None
    message: dict[str, Any] = plain if isinstance(plain, dict) else {}
    operation = message.get("op")
    if operation == "try" and _is_try(message):
        waiting.put(message)
    elif operation == "limit" and isinstance(message.get("seconds"), int | float):
        studio.limit = min(max(float(message["seconds"]), _LIMITS[0]), _LIMITS[1])
    elif operation == "ping":
        await _send(socket, {"op": "pong"})
    else:
        await _send(socket, {"op": "error", "error": {"kind": "bad", "text": "not understood.", "trace": None}})


def _is_try(message: Mapping[str, Any]) -> bool:
    words = all(isinstance(message.get(name), str) for name in ("source", "text", "sequence"))
    numbers = [message.get(name, 0) for name in ("n", "others", "from", "to", "px")]
    return words and all(isinstance(one, int) and not isinstance(one, bool) for one in numbers)


async def _send(socket: WebSocket, plain: dict[str, Any]) -> None:
    """JSON in ASCII, as every answer of ours."""
    await socket.send_text(json.dumps(plain, allow_nan=False, separators=(",", ":")))


async def _speak(socket: WebSocket, queue: asyncio.Queue[dict[str, Any]]) -> None:
    while True:
        await _send(socket, await queue.get())


async def _try(studio: Studio, socket: WebSocket, waiting: _Last) -> None:
    while True:
        message = await waiting.get()
        await _send(socket, await to_thread.run_sync(attempt, studio, message))


def attempt(studio: Studio, message: Mapping[str, Any]) -> dict[str, Any]:
    """Let an edited source vote on the sequence that is looked at and some others."""
    begin = perf_counter()
    head = {"op": "tried", "n": message.get("n"), "source": message["source"]}
    try:
        found = _attempt(studio, message)
    except EditError as error:
        plain = {"kind": "syntax", "text": str(error), "trace": None, "line": error.line, "column": error.column}
        return {**head, "ok": False, "error": plain, "printed": ""}
    except Exception as error:
        return {**head, "ok": False, "error": plain_error(error), "printed": getattr(error, "printed", "")}
    return {**head, "ok": True, "seconds": round(perf_counter() - begin, 4), **found}


def _attempt(studio: Studio, message: Mapping[str, Any]) -> dict[str, Any]:
    snapshot, name = studio.shown(), message["sequence"]
    place = studio.place(name)
    length = int(snapshot.votes.lengths[place])
    _, function = studio.source_file().with_function(message["source"], message["text"])
    sequences = others(snapshot, name, min(max(message.get("others", 10), 0), 100))
    tried: Tried = studio.ask(
        "attempt",
        limit=studio.limit,
        source=function.name,
        text=function.text,
        line=function.first,
        sequences=sequences,
    )
    begin = min(max(message.get("from", 0), 0), length)
    end = min(max(message.get("to", length), begin), length)
    stretch = Stretch(begin=begin, end=end, px=min(max(message.get("px", 1000), 50), 8000))
    return preview(snapshot, tried, studio.tracks(snapshot, place), stretch)


# --- what an edited source would do -----------------------------------------------------------------------------------
# In: a `Snapshot`, and the votes of one source on a few sequences (`Tried`). Out: plain data for the page. The law is
# that of the last fit; only saving fits anew, as `dugong run` would.
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
    codes = code_places(votes, resolution, tried.votes[0].votes[0], len(voter.codes))
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
    names = code_names(snapshot.votes, resolution, len(label_names(snapshot.votes, resolution)) + 1)
    return VoterInfo(
        name=tried.info.name,
        lane=lanes.index(resolution) if resolution in lanes else 0,
        codes=names,
        classes=code_classes(snapshot.votes, resolution, len(names)),
        evidence=None,
        parents=(),
    )


def _summary(
    snapshot: Snapshot, tried: Tried, places: list[int], new: _New | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Numbers over all tried sequences, and what is labelled otherwise than by the last fit."""
    column = np.concatenate([one.votes[0] for one in tried.votes])
    voter = _voter(snapshot, tried)
    codes, counts = np.unique(
        code_places(snapshot.votes, tried.info.resolution, column, len(voter.codes)), return_counts=True
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

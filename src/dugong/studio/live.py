"""The socket: events for the page, and sources that are tried while they are typed.

Tries are numbered; of several that wait only the last one is answered, so that the screen never shows an older text.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from dugong.codec import parse
from dugong.exceptions import DugongError
from dugong.report.material import label_names
from dugong.report.track import VoterInfo, code_classes, code_names, code_places
from dugong.studio import plain_error
from dugong.studio.bench import Tried
from dugong.studio.describing import in_ascii
from dugong.studio.pages import MOST_SHOWN, flips_of, measured, number, trouble, vote_counts
from dugong.studio.snapshot import Snapshot, spoken
from dugong.studio.state import Studio
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
from dugong.types import FloatArray
from dugong.votes import Votes

_LARGEST = 2_000_000
_LIMITS = (0.2, 600.0)
Queue = asyncio.Queue[dict[str, Any]]


async def live(studio: Studio, socket: WebSocket) -> None:
    """One page that listens and tries."""
    await socket.accept()
    queue, waiting = studio.listen(), Queue()
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


async def _hear(studio: Studio, socket: WebSocket, waiting: Queue, text: str) -> None:
    try:
        plain = parse(text) if len(text) <= _LARGEST else None
    except (DugongError, ValueError, RecursionError):
        plain = None
    message: dict[str, Any] = plain if isinstance(plain, dict) else {}
    operation = message.get("op")
    if operation == "try" and _is_try(message):
        while not waiting.empty():  # only the last of those that wait is answered
            waiting.get_nowait()
        waiting.put_nowait(message)
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
    await socket.send_text(in_ascii(plain))


async def _speak(socket: WebSocket, queue: Queue) -> None:
    while True:
        await _send(socket, await queue.get())


async def _try(studio: Studio, socket: WebSocket, waiting: Queue) -> None:
    while True:
        message = await waiting.get()
        await _send(socket, await to_thread.run_sync(attempt, studio, message))


def attempt(studio: Studio, message: Mapping[str, Any]) -> dict[str, Any]:
    """Let an edited source vote on the sequence that is looked at and some others."""
    begin = perf_counter()
    head = {"op": "tried", "n": message.get("n"), "source": message["source"]}
    try:
        found = _attempt(studio, message)
    except Exception as error:
        return {**head, "ok": False, "error": plain_error(error), "printed": getattr(error, "printed", "")}
    return {**head, "ok": True, "seconds": round(perf_counter() - begin, 4), **found}


def _attempt(studio: Studio, message: Mapping[str, Any]) -> dict[str, Any]:
    name = message["sequence"]
    snapshot, place, length = studio.find(name)
    _, function = studio.source_file().with_function(message["source"], message["text"])
    sequences = others(snapshot, name, _within(message, "others", 10, 0, 100))
    edited = {"source": function.name, "text": function.text, "line": function.first}
    tried: Tried = studio.ask("attempt", limit=studio.limit, sequences=sequences, **edited)
    begin = _within(message, "from", 0, 0, length)
    end, px = _within(message, "to", length, begin, length), _within(message, "px", 1000, 50, 8000)
    stretch = Stretch(begin=begin, end=end, px=px)
    return preview(snapshot, tried, studio.tracks(snapshot, place), stretch)


def _within(message: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    return min(max(int(message.get(name, default)), low), high)


# --- what an edited source would do -----------------------------------------------------------------------------------
# In: a `Snapshot`, and the votes of one source on a few sequences (`Tried`). Out: plain data for the page. The law is
# that of the last fit; only saving fits anew, as `dugong run` would.
Law = Mapping[Resolution, FloatArray]


def others(snapshot: Snapshot, name: str, n: int) -> list[str]:
    """The sequence that is looked at, and the most uncertain others."""
    order = np.argsort(-np.nan_to_num(snapshot.interest.uncertainty), kind="stable").tolist()
    return [name, *[snapshot.ids[place] for place in order if snapshot.ids[place] != name][:n]]


def preview(snapshot: Snapshot, tried: Tried, tracks: SequenceTracks, stretch: Stretch) -> dict[str, Any]:
    """The answer to a try; the first of the tried sequences is the one on the screen."""
    resolution, lanes = tried.info.resolution, snapshot.lanes
    places = [snapshot.places[str(one.id)] for one in tried.votes]
    some, voter = snapshot.votes[places], _voter(snapshot, tried)
    law, why = _labelled(snapshot, tried, places, some)
    summary, flips = _summary(snapshot, tried, voter, places, law)
    bins = [lane.bins(stretch) for lane in tracks.lanes]
    found: dict[str, Any] = {"vote": None, "probability": None, "labels": None, "why": why}
    if resolution in lanes:
        codes = code_places(snapshot.votes, resolution, tried.votes[0].votes[0], len(voter.codes))
        own = bins[lanes.index(resolution)]
        found["vote"] = {**vote_bins(CodeCounts(codes, len(voter.codes)), voter, own), "faults": []}
    if law is not None:
        first = [law[one][some.layout(one).rows(0)] for one in lanes]
        found["probability"] = [law_bins(law_curves(one), own) for one, own in zip(first, bins, strict=True)]
        chosen = label_codes(first[0].argmax(axis=1), len(snapshot.classes))
        found["labels"] = packed(label_bins(chosen, bins[0]), "u1")
    faults = [fault for one in tried.votes for fault in one.faults]
    troubles = [trouble(one, snapshot, resolution) for one in faults[:MOST_SHOWN]]
    return {**found, "printed": tried.printed, "trouble": troubles, "summary": summary, "flips": flips[:MOST_SHOWN]}


def _labelled(snapshot: Snapshot, tried: Tried, places: list[int], some: Votes) -> tuple[Law | None, str | None]:
    """Labels of some sequences, with the new votes under the old law; None and the reason where that cannot be."""
    votes, name = snapshot.votes, tried.info.name
    if name not in votes.source_names:
        return None, f"{name} is new to the model: save it to see what labels become."
    place = votes.index(name)
    if votes.sources[place].resolution != tried.info.resolution:
        return None, f"{name} votes at another resolution than before: save it to see what labels become."
    if any((name in one.scores) != (name in votes.scores) for one in tried.votes):
        return None, f"{name} votes or gives scores, and did the other before: save it to see what labels become."
    if [one.length for one in tried.votes] != some.lengths.tolist():
        return None, "the data have changed since the last fit: run it again."
    columns, scores = list(some.columns), dict(some.scores)
    columns[place] = np.concatenate([one.votes[0] for one in tried.votes])
    if name in scores:
        scores[name] = np.concatenate([one.scores[name] for one in tried.votes])
    new = replace(some, columns=tuple(columns), scores=scores, faults=())
    known = snapshot.trained
    if known is not None:
        known = np.concatenate([known[snapshot.elements(one)] for one in places])
    return snapshot.model._probabilities(new, tuple(snapshot.lanes), known), None  # noqa: SLF001  (our own)


def _voter(snapshot: Snapshot, tried: Tried) -> VoterInfo:
    name, resolution, lanes = tried.info.name, tried.info.resolution, snapshot.lanes
    for source, voter in zip(snapshot.votes.sources, snapshot.voters, strict=True):
        if (source.name, source.resolution) == (name, resolution):
            return voter
    names = code_names(snapshot.votes, resolution, len(label_names(snapshot.votes, resolution)) + 1)
    return VoterInfo(
        name=name,
        lane=lanes.index(resolution) if resolution in lanes else 0,
        codes=names,
        classes=code_classes(snapshot.votes, resolution, len(names)),
        evidence=None,
        parents=(),
    )


def _summary(
    snapshot: Snapshot, tried: Tried, voter: VoterInfo, places: list[int], law: Law | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Numbers over all tried sequences, and what is labelled otherwise than by the last fit."""
    votes, resolution = snapshot.votes, tried.info.resolution
    column = np.concatenate([one.votes[0] for one in tried.votes])
    summary: dict[str, Any] = {
        "sequences": len(tried.votes),
        "tasks": len(column),
        "coverage": number(spoken(column).mean()) if len(column) else None,
        "votes": vote_counts(voter, code_places(votes, resolution, column, len(voter.codes))),
        **dict.fromkeys(("changed", "flipped", "measured")),
    }
    if law is None:
        return summary, []
    layout = votes.layout(resolution)
    rows = np.concatenate([np.arange(*layout.rows(place).indices(layout.n_tasks)) for place in places])
    summary["changed"] = int((votes.column(tried.info.name)[rows] != column).sum())
    summary["measured"] = number(measured(snapshot, resolution, rows, column))
    after = np.split(law[Element()].argmax(axis=1), np.cumsum(votes.lengths[places])[:-1])
    flips = []
    for place, now in zip(places, after, strict=True):
        flips += flips_of(snapshot, snapshot.ids[place], snapshot.material.chosen[snapshot.elements(place)], now)
    summary["flipped"] = sum(one["stop"] - one["start"] for one in flips)
    return summary, flips

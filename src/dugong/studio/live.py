"""The socket: events for the page, and sources that are tried while they are typed.

Tries are numbered; of several that wait only the last one is answered, so that the screen never shows an older text.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from dugong.codec import parse
from dugong.exceptions import DugongError
from dugong.studio.bench import Tried, TriedError
from dugong.studio.editing import EditError
from dugong.studio.state import Studio, plain_error
from dugong.studio.tracks import Stretch
from dugong.studio.trying import others, preview

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
    except TriedError as error:
        return {**head, "ok": False, "error": plain_error(error), "printed": error.printed}
    except DugongError as error:
        return {**head, "ok": False, "error": plain_error(error), "printed": ""}
    except Exception as error:
        return {**head, "ok": False, "error": plain_error(error), "printed": ""}
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

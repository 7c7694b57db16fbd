"""The life of a worker process: read items, answer each, end when the parent is gone.

Messages come in through the standard input and leave through the standard output; both are taken away from
user code first (what it prints goes to the standard error). The first message is the function, all others
are items.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from dugong.engines.marks import mark, open_slot
from dugong.exceptions import DugongError

_LENGTH = struct.Struct("<Q")


def serve(slot: str) -> None:
    """Answer items until the standard input ends; `slot` is the file for marks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    inbound, outbound = take_pipes()
    open_slot(Path(slot))
    with inbound, outbound:
        function, problem = _receive_function(read_frame(inbound))
        write_frame(outbound, pickle.dumps((problem is None, problem)))
        if function is not None:
            _answer_all(function, inbound, outbound)


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent, out of reach of what user code reads, prints and forks."""
    inbound, outbound = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # a copy must not hold the pipes: their end tells the parent of the worker's
        os.register_at_fork(after_in_child=lambda: [os.dup2(nothing, one.fileno()) for one in (inbound, outbound)])
    return inbound, outbound


def _receive_function(payload: bytes | None) -> tuple[Callable[[Any], Any] | None, Exception | None]:
    try:
        return pickle.loads(payload or b""), None
    except Exception as error:
        return None, portable(error)


def _answer_all(function: Callable[[Any], Any], inbound: BinaryIO, outbound: BinaryIO) -> None:
    items: SimpleQueue[bytes | None] = SimpleQueue()
    idle = threading.Event()
    idle.set()
    threading.Thread(target=_listen, args=(inbound, items, idle), daemon=True).start()
    while (payload := items.get()) is not None:
        answer = _answer(function, payload)
        idle.set()
        write_frame(outbound, answer)


def _listen(inbound: BinaryIO, items: SimpleQueue[bytes | None], idle: threading.Event) -> None:
    """Hand on what arrives; if the parent goes away in the middle of work, end at once."""
    while (payload := read_frame(inbound)) is not None:
        idle.clear()
        items.put(payload)
    if not idle.is_set():
        os._exit(1)
    items.put(None)


def _answer(function: Callable[[Any], Any], payload: bytes) -> bytes:
    try:
        return pickle.dumps((True, function(pickle.loads(payload))), protocol=5)
    except BaseException as error:  # a worker that dies without an answer says less than any answer
        return pickle.dumps((False, portable(error)), protocol=5)
    finally:
        mark("")
        with contextlib.suppress(OSError, ValueError):  # user code may have closed it
            sys.stdout.flush()


def portable(error: BaseException) -> Exception:
    """The same error if it survives pickling, else its words; with the worker's traceback as a note."""
    text = "".join(traceback.format_exception(error)).rstrip()
    if not isinstance(error, DugongError):
        error.add_note(f"It was raised in a worker process:\n{text}")
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if isinstance(copy, Exception):
        return copy
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    plain.add_note(f"It was raised in a worker process:\n{text}")
    return plain


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Send one message."""
    stream.write(_LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Receive one message; None if the other side is gone, also in the middle of a message."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    payload = stream.read(length)
    return payload if len(payload) == length else None

"""What a worker is doing right now, readable even after it has died.

A worker writes a line into a small memory-mapped file; no system call, so it may be done often. If the
interpreter ends without a word (``os._exit``, a crash in native code, the out-of-memory killer), the file
still holds the line. Workers of a cluster leave it in the temporary folder of their machine.
"""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = 512


class _Slots(threading.local):
    """Of this thread: none outside a worker, one inside."""

    def __init__(self) -> None:
        self.open: list[mmap.mmap] = []


_slots = _Slots()


def create_slot(path: Path) -> None:
    """Make an empty slot, before the worker that writes into it starts."""
    path.write_bytes(bytes(SIZE))


def open_slot(path: Path) -> None:
    """Let `mark` write into this slot from now on."""
    with path.open("r+b") as file:
        _slots.open[:] = [mmap.mmap(file.fileno(), SIZE)]


def mark(step: str) -> None:
    """Leave word of the current step; outside a worker this does nothing."""
    for slot in _slots.open:
        slot[:] = step.encode("utf-8", errors="replace")[:SIZE].ljust(SIZE, b"\0")


def in_worker() -> bool:
    """Whether this is a worker: its end is seen by another process, and Ctrl-C does not reach it."""
    return bool(_slots.open)


def read_slot(path: Path) -> str:
    """The last step that was marked."""
    return path.read_bytes().rstrip(b"\0").decode("utf-8", errors="ignore")


# --- workers that others start -------------------------------------------------------------------------------------
@contextmanager
def leaving_word(name: str) -> Iterator[None]:
    """Let `mark` write into a slot of that name, which outlives the block only if the process dies in it."""
    path = _path(name)
    create_slot(path)
    open_slot(path)
    try:
        yield
    finally:
        while _slots.open:
            _slots.open.pop().close()
        path.unlink(missing_ok=True)


def last_word(name: str) -> str:
    """The last step of a worker of this machine that died, which is forgotten then; empty if there is none."""
    try:
        step = read_slot(_path(name))
    except FileNotFoundError:
        return ""
    _path(name).unlink(missing_ok=True)
    return step


def _path(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"dugong-word-{name}"

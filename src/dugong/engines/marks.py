"""What a worker is doing right now, readable even after it has died.

A worker writes a line into a small memory-mapped file; no system call, so it may be done often. If the
interpreter ends without a word (``os._exit``, a crash in native code, the out-of-memory killer), the file
still holds the line.
"""

from __future__ import annotations

import mmap
from pathlib import Path

SIZE = 512
_slots: list[mmap.mmap] = []  # of this process: none outside a worker, one inside


def create_slot(path: Path) -> None:
    """Make an empty slot, before the worker that writes into it starts."""
    path.write_bytes(bytes(SIZE))


def open_slot(path: Path) -> None:
    """Let `mark` write into this slot from now on."""
    with path.open("r+b") as file:
        _slots[:] = [mmap.mmap(file.fileno(), SIZE)]


def mark(step: str) -> None:
    """Leave word of the current step; outside a worker this does nothing."""
    for slot in _slots:
        slot[:] = step.encode("utf-8", errors="replace")[:SIZE].ljust(SIZE, b"\0")


def read_slot(path: Path) -> str:
    """The last step that was marked."""
    return path.read_bytes().rstrip(b"\0").decode("utf-8", errors="ignore")

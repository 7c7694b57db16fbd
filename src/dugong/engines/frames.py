"""Messages over a pipe: eight bytes of length, then the bytes."""

from __future__ import annotations

import struct
from typing import BinaryIO

_LENGTH = struct.Struct("<Q")


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

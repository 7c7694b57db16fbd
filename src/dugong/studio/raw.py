"""What can be seen of a raw sequence: signals, words or pictures, whatever its loader gives.

In: a sequence of the user. Out: plain arrays of bounded size that travel to the server. A signal of many samples
arrives as the smallest and largest of every few of them, which is all that a screen can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import SourceError
from dugong.sources.judge import png
from dugong.sources.loaders.annotated import Epochs
from dugong.sources.loaders.blocks import Blocks
from dugong.sources.loaders.media import Audio, Video
from dugong.sources.loaders.rows import Rows
from dugong.types import AnyArray, FloatArray

MOST_POINTS = 4_000_000
MOST_SIGNALS = 64
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """One curve: smallest and largest value of every bin, and how many elements a bin is long."""

    name: str
    low: FloatArray
    high: FloatArray
    per: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Raw:
    """A sequence as it can be drawn; `kind` is signals, audio, tokens, video or other."""

    kind: str
    length: int
    signals: tuple[Signal, ...] = ()
    tokens: tuple[str, ...] = ()
    n_frames: int = 0


def look_at(sequence: Any) -> Raw:
    """Find out what a sequence is, and take what can be drawn."""
    length = len(sequence)
    if isinstance(sequence, Video) or _is_picture(sequence):
        return Raw(kind="video", length=length, n_frames=length)
    if isinstance(sequence, Audio):
        return Raw(kind="audio", length=length, signals=(_sound(sequence),))
    columns = _columns(sequence, length)
    if columns:
        signals = tuple(_signal(name, values, length) for name, values in list(columns.items())[:MOST_SIGNALS])
        return Raw(kind="signals", length=length, signals=signals)
    words = _words(sequence)
    if words is not None:
        return Raw(kind="tokens", length=length, tokens=words)
    return Raw(kind="other", length=length)


def _is_picture(sequence: Any) -> bool:
    """Whether elements are pictures: grey (height, width) or colours (height, width, 3 or 4)."""
    if isinstance(sequence, Rows | Blocks | Epochs | Mapping | Audio) or not len(sequence):
        return False
    shape = sequence.shape[1:] if isinstance(sequence, np.ndarray) else _shape_of_first(sequence)
    return (len(shape) == 3 and shape[2] in (1, 3, 4)) or (len(shape) == 2 and min(shape) >= 8)


def _shape_of_first(sequence: Any) -> tuple[int, ...]:
    first = None if hasattr(sequence, "columns") or hasattr(sequence, "iloc") else sequence[0]
    return first.shape if isinstance(first, np.ndarray) else ()


def _columns(sequence: Any, length: int) -> dict[str, AnyArray]:
    """Numbers by name; their lengths may differ from that of the sequence (samples per epoch)."""
    if isinstance(sequence, Blocks):
        rows = sequence.rows[int(sequence.offsets[0]) : int(sequence.offsets[-1])]
        return _columns(rows, length)
    if isinstance(sequence, Epochs):
        found: dict[str, Any] = dict(sequence.channels)
    elif isinstance(sequence, Rows):
        found = dict(sequence.columns)
    elif hasattr(sequence, "iloc") and hasattr(sequence, "columns"):
        found = {str(name): sequence[name].to_numpy() for name in sequence.columns}
    elif isinstance(sequence, np.ndarray) and sequence.dtype.names:
        found = {name: sequence[name] for name in sequence.dtype.names}
    elif isinstance(sequence, np.ndarray):
        found = {"value": sequence} if sequence.ndim == 1 else {}
        if sequence.ndim == 2:
            found = {f"column {place}": sequence[:, place] for place in range(min(sequence.shape[1], MOST_SIGNALS))}
    elif length and all(isinstance(sequence[place], int | float | np.number) for place in range(min(length, 5))):
        found = {"value": np.asarray(list(sequence), dtype=np.float64)}
    else:
        found = {}
    return {name: column for name, column in found.items() if column.ndim == 1 and column.dtype.kind in "biuf"}


def _words(sequence: Any) -> tuple[str, ...] | None:
    if isinstance(sequence, Rows):
        texts = [name for name, column in sequence.columns.items() if column.dtype.kind in "OU"]
        return tuple(map(str, sequence.columns[texts[0]].tolist())) if texts else None
    if isinstance(sequence, list | tuple):
        return tuple(str(getattr(one, "text", one))[:200] for one in sequence)
    return None


def _signal(name: str, values: AnyArray, length: int) -> Signal:
    step = max(1, -(-len(values) // MOST_POINTS))
    low, high = peaks(np.asarray(values, dtype=np.float32), step)
    return Signal(name=name, low=low, high=high, per=step * length / max(len(values), 1))


def peaks(values: FloatArray, step: int) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest of every `step` values; NaN where all are missing."""
    if step == 1:
        return values, values
    rest = -len(values) % step
    padded = np.concatenate([values, np.full(rest, np.nan, dtype=values.dtype)]).reshape(-1, step)
    low, high = np.fmin.reduce(padded, axis=1), np.fmax.reduce(padded, axis=1)
    return low, high


def _sound(sequence: Audio) -> Signal:
    """Read a sound piece by piece: an hour of it need not fit into memory."""
    samples_per_element = sequence.sample_rate / sequence.rate
    total = len(sequence) * samples_per_element
    step = max(1, round(total / MOST_POINTS * 4))
    at_once = max(1, int(_PIECE / samples_per_element))
    lows, highs = [], []
    left: FloatArray = np.zeros(0, dtype=np.float32)
    for first in range(0, len(sequence), at_once):
        samples = sequence[first : first + at_once].samples
        mono = np.asarray(samples if samples.ndim == 1 else samples.mean(axis=1), dtype=np.float32)
        whole = np.concatenate([left, mono])
        n_full = len(whole) // step * step
        low, high = peaks(whole[:n_full], step)
        lows.append(low)
        highs.append(high)
        left = whole[n_full:]
    low, high = peaks(left, max(step, 1)) if len(left) else (left, left)
    return Signal(
        name="sound",
        low=np.concatenate([*lows, low]),
        high=np.concatenate([*highs, high]),
        per=step / samples_per_element,
    )


# --- pictures ------------------------------------------------------------------------------------------------------
def picture(sequence: Any, element: int, px: int) -> bytes:
    """One element as a PNG, at most about `px` pixels wide."""
    if not isinstance(sequence, Video) and not _is_picture(sequence):
        raise SourceError("elements of this sequence are no pictures.")
    frame = np.asarray(sequence[element])
    grey = frame.ndim == 2 or frame.shape[2] == 1
    frame = frame.reshape(frame.shape[:2]) if grey else frame[..., :3]
    step = max(1, frame.shape[1] // max(px, 16))
    return png(_bytes(frame[::step, ::step]))


def _bytes(frame: AnyArray) -> AnyArray:
    if frame.dtype == np.uint8:
        return frame
    numbers = np.nan_to_num(frame.astype(np.float64))
    if frame.dtype.kind == "f" and numbers.size and numbers.min() >= 0 and numbers.max() <= 1:
        numbers = numbers * 255
    return np.clip(numbers, 0, 255).astype(np.uint8)

"""The data beside the labels: words, small pictures or signals of the sequences that a report shows.

In: sequences as the sources saw them, and how many bytes of a page they may take. Out: `Words`, `Frames` or `Signals`
of one sequence; None where elements are nothing that can be drawn, or do not fit. Pictures are kept as brightness and
colour of 6 bits, so that they need neither a library to write them nor permission of the page to load an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import SourceError
from dugong.sources.inputs import length_of, loaded, pairs_of
from dugong.sources.judge import png
from dugong.sources.loaders import Audio, Blocks, Epochs, Rows, Video
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray, read_only

MISSING_BIN = 63  # code of a stretch of a signal without any number; 0 to 62 are values
_WIDEST = 64  # pixels of a picture
_LONGEST = 40  # characters of a word
_MOST_CHANNELS = 6
_MOST_BINS = 4000
_FEWEST_BINS = 16
_CHANNELS_NOT_SAMPLES = 16  # an array of so many numbers per element is that many channels; a longer one are samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """The word, or the beginning of the text, of every element that is shown."""

    words: tuple[str, ...]

    @property
    def n_bytes(self) -> int:
        """What they take in a page, about."""
        return sum(len(word.encode()) + 3 for word in self.words)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """Small pictures of some elements.

    Attributes
    ----------
    places : (n,) elements that they show, counted from the first that is shown
    width, height : pixels, both even
    images : (n, 1.5 width height) brightness of all pixels, then two colours of every second one in both directions;
        0 to 63
    """

    places: IntArray
    width: int
    height: int
    images: AnyArray

    @property
    def n_bytes(self) -> int:
        """What they take in a page, about."""
        return self.images.size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignalTrack:
    """One signal: the smallest and largest value of equal stretches of time.

    Attributes
    ----------
    low, high : (n_bins,) 0 to 62 between `bottom` and `top`, 63 where there is no number
    """

    name: str
    low: Int8Array
    high: Int8Array
    bottom: float
    top: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals:
    """Channels of a recording over the elements that are shown."""

    channels: tuple[SignalTrack, ...]

    @property
    def n_bytes(self) -> int:
        """What they take in a page, about."""
        return sum(2 * len(one.low) for one in self.channels)


Media = Words | Frames | Signals


def find_media(media: Any, names: Sequence[str]) -> dict[str, Any]:
    """The sequences that are shown, by the text of their ids; those of a loader are read when they are drawn."""
    found = {str(name): sequence for name, sequence in pairs_of(media)[0] if str(name) in set(names)}
    if names and not found:
        raise SourceError(
            f"media= must hold the sequences that were voted on, by id; there is none of {', '.join(names[:3])}."
        )
    return found


def show(sequence: Any, name: str, length: int, part: slice, size: float) -> Media | None:
    """What can be seen of the elements `part` of a sequence within `size` bytes."""
    whole = loaded(sequence, name)
    if length_of(whole, name) != length:
        raise SourceError(
            f"media= must hold the sequences that were voted on; {name!r} has {len(whole)} elements, and {length} in "
            "the votes.\n  Load it as for `apply`, with the same every=."
        )
    shown = getattr(whole, "iloc", whole)[part]  # a data frame goes by position
    first = getattr(shown, "iloc", shown)[0]
    if isinstance(first, str):
        return _words(shown, size)
    if _is_picture(first):
        return _frames(shown, size)
    return _signals(dict(_channels(shown, first)), len(shown), size)


def _words(part: Iterable[str], size: float) -> Words | None:
    words = tuple(word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…" for word in map(str, part))
    found = Words(words=words)
    return found if found.n_bytes <= size else None


# --- pictures ------------------------------------------------------------------------------------------------------
def _is_picture(element: Any) -> bool:
    """Numbers, grey (height, width) or colours (height, width, 1, 3 or 4), of eight pixels on a side at least."""
    if not isinstance(element, np.ndarray) or element.dtype.kind not in "buif":
        return False
    colours = element.ndim == 3 and element.shape[2] in (1, 3, 4)
    return bool(colours or element.ndim == 2) and min(element.shape[:2]) >= 8


def _frames(part: Any, size: float) -> Frames | None:
    height, width = part[0].shape[:2]
    scale = min(1.0, _WIDEST / max(height, width))
    height, width = (max(2, int(side * scale) // 2 * 2) for side in (height, width))
    n_shown = min(len(part), int(size / (1.5 * height * width)))
    if not n_shown:
        return None
    places = np.arange(n_shown) * len(part) // n_shown
    images = np.stack([_small(part[place], height, width) for place in places.tolist()])
    return Frames(places=read_only(places), width=width, height=height, images=read_only(images))


def _small(picture: AnyArray, height: int, width: int) -> AnyArray:
    """A picture as brightness and two colours, each 0 to 63, the colours at half the size."""
    bright = 255.0 if picture.dtype.kind == "b" or (picture.dtype.kind == "f" and picture.max() <= 1) else 1.0
    pixels = np.atleast_3d(picture).astype(np.float64) * bright
    rgb = [0, 1, 2] if pixels.shape[2] >= 3 else [0, 0, 0]  # a grey picture has one value for all
    red, green, blue = np.moveaxis(_averaged(pixels, height, width)[..., rgb], 2, 0)
    light = 0.299 * red + 0.587 * green + 0.114 * blue
    colours = [128 + 0.564 * (blue - light), 128 + 0.713 * (red - light)]
    halves = [one.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)) for one in colours]
    flat = np.concatenate([light.ravel(), *(one.ravel() for one in halves)])
    return np.clip(flat / 4, 0, 63).astype(np.uint8)


def _averaged(pixels: FloatArray, height: int, width: int) -> FloatArray:
    """Means over rectangles of pixels, (height, width, colours)."""
    for axis, size in enumerate((height, width)):
        edges = np.arange(size) * pixels.shape[axis] // size
        counts = np.diff(np.append(edges, pixels.shape[axis]))
        pixels = np.add.reduceat(pixels, edges, axis=axis) / np.expand_dims(counts, tuple({0, 1, 2} - {axis}))
    return pixels


# --- signals -------------------------------------------------------------------------------------------------------
def _channels(part: Any, first: Any) -> Iterator[tuple[str, tuple[AnyArray, AnyArray]]]:
    """Every signal by name: its numbers, and where each lies, in elements from the first that is shown."""
    n, named = len(part), _named(part)
    if isinstance(part, Audio):
        yield "sound", _evenly(_mono(part.samples), n)
    elif isinstance(part, Blocks):
        sizes, rows = np.diff(part.offsets), slice(int(part.offsets[0]), int(part.offsets[-1]))
        inside = np.arange(rows.stop - rows.start) - np.repeat(part.offsets[:-1] - rows.start, sizes)
        places = np.repeat(np.arange(n), sizes) + inside / np.repeat(sizes, sizes)
        yield from ((name, (column[rows], places)) for name, column in part.rows.columns.items())
    elif named is not None:
        yield from ((name, _evenly(samples, n)) for name, samples in named.items())
    elif isinstance(first, Mapping):
        yield from ((str(name), _evenly(np.array([one[name] for one in part]), n)) for name in first)
    else:
        yield from _plain(part, first)


def _plain(part: Any, first: Any) -> Iterator[tuple[str, tuple[AnyArray, AnyArray]]]:
    """Signals of numbers, and of arrays of numbers."""
    n = len(part)
    if np.ndim(first) == 0:
        yield "signal", _evenly(np.array([*part]), n)
    elif np.ndim(first) == 1 and len(first) <= _CHANNELS_NOT_SAMPLES and len({len(one) for one in part}) == 1:
        columns = np.array([np.asarray(one) for one in part])
        yield from ((str(place), _evenly(column, n)) for place, column in enumerate(columns.T))
    elif np.ndim(first) == 1:
        pieces = [np.asarray(one) for one in part]
        places = [place + np.arange(len(one)) / max(1, len(one)) for place, one in enumerate(pieces)]
        yield "signal", (np.concatenate(pieces), np.concatenate(places))


def _named(sequence: Any) -> dict[str, AnyArray] | None:
    """The columns of what has names for them; there may be several samples per element."""
    if isinstance(sequence, Epochs):
        return dict(sequence.channels)
    if isinstance(sequence, Rows):
        return dict(sequence.columns)
    if hasattr(sequence, "iloc") and hasattr(sequence, "columns"):
        return {str(name): sequence[name].to_numpy() for name in sequence.columns}
    return None


def _mono(samples: AnyArray) -> AnyArray:
    return samples if samples.ndim == 1 else samples.mean(axis=1)


def _evenly(samples: AnyArray, n_elements: int) -> tuple[AnyArray, AnyArray]:
    return samples, np.arange(len(samples)) * (n_elements / max(1, len(samples)))


def _signals(found: Mapping[str, tuple[AnyArray, AnyArray]], n_elements: int, size: float) -> Signals | None:
    drawn = {name: one for name, one in found.items() if _can_be_drawn(one[0])}
    chosen = list(drawn)[:_MOST_CHANNELS]
    if not chosen:
        return None
    n_bins = min(_MOST_BINS, max(len(drawn[name][0]) for name in chosen), int(size / (2 * len(chosen))))
    if n_bins < min(_FEWEST_BINS, n_elements):
        return None
    return Signals(
        channels=tuple(_channel(name, *drawn[name], n_elements, min(n_bins, len(drawn[name][0]))) for name in chosen)
    )


def _can_be_drawn(values: AnyArray) -> bool:
    """Numbers that are no clock: a column that only rises says nothing that the axis does not say."""
    if values.ndim != 1 or values.dtype.kind not in "buif" or not np.isfinite(values).any():
        return False
    with np.errstate(invalid="ignore"):  # between two infinities
        return len(values) < 3 or not bool((np.diff(values.astype(np.float64)) > 0).all())


def _channel(name: str, values: AnyArray, places: AnyArray, n_elements: int, n_bins: int) -> SignalTrack:
    n_bins = min(n_bins, len(values))  # no more than one per sample: a slow channel has no gaps
    numbers = np.where(np.isfinite(values), values, np.nan).astype(np.float64)
    owner = np.minimum((places * (n_bins / n_elements)).astype(np.int64), n_bins - 1)
    edges = np.searchsorted(owner, np.arange(n_bins + 1))
    low, high = np.full(n_bins, np.nan), np.full(n_bins, np.nan)
    filled = np.diff(edges) > 0
    low[filled] = np.fmin.reduceat(numbers, edges[:-1][filled])
    high[filled] = np.fmax.reduceat(numbers, edges[:-1][filled])
    bottom, top = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    step = (top - bottom) / (MISSING_BIN - 1) or 1.0
    codes = [
        np.where(np.isnan(one), MISSING_BIN, np.rint((one - bottom) / step)).astype(np.int8) for one in (low, high)
    ]
    return SignalTrack(name=name, low=read_only(codes[0]), high=read_only(codes[1]), bottom=bottom, top=top)


# --- a whole sequence as the studio draws it: signals, words or pictures, whatever its loader gives -------------------
# In: a sequence of the user. Out: plain arrays of bounded size that travel to the server. A signal of many samples
# arrives as the smallest and largest of every few of them, which is all that a screen can show.
MOST_POINTS = 4_000_000
MOST_SIGNALS = 64
_PIECE = 1 << 20
_Number = int | float | np.number


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
    if isinstance(sequence, Video) or _has_pictures(sequence):
        return Raw(kind="video", length=length, n_frames=length)
    if isinstance(sequence, Audio):
        return Raw(kind="audio", length=length, signals=(_sound(sequence),))
    columns = _columns(sequence, length)
    if columns:
        signals = tuple(_signal(name, values, length) for name, values in list(columns.items())[:MOST_SIGNALS])
        return Raw(kind="signals", length=length, signals=signals)
    words = _tokens(sequence)
    if words is not None:
        return Raw(kind="tokens", length=length, tokens=words)
    return Raw(kind="other", length=length)


def _has_pictures(sequence: Any) -> bool:
    """Whether elements are pictures."""
    if isinstance(sequence, Rows | Blocks | Epochs | Mapping | Audio) or not len(sequence):
        return False
    return not hasattr(sequence, "columns") and not hasattr(sequence, "iloc") and _is_picture(sequence[0])


def _columns(sequence: Any, length: int) -> dict[str, AnyArray]:
    """Numbers by name; their lengths may differ from that of the sequence (samples per epoch)."""
    if isinstance(sequence, Blocks):
        sequence = sequence.rows[int(sequence.offsets[0]) : int(sequence.offsets[-1])]
    named = _named(sequence)
    found = named or {}
    if isinstance(sequence, np.ndarray) and sequence.dtype.names:
        found = {name: sequence[name] for name in sequence.dtype.names}
    elif isinstance(sequence, np.ndarray) and sequence.ndim == 2:
        found = {f"column {place}": column for place, column in enumerate(sequence.T[:MOST_SIGNALS])}
    elif isinstance(sequence, np.ndarray):
        found = {"value": sequence}
    elif named is None and length and all(isinstance(sequence[at], _Number) for at in range(min(length, 5))):
        found = {"value": np.asarray(list(sequence), dtype=np.float64)}
    return {name: column for name, column in found.items() if column.ndim == 1 and column.dtype.kind in "biuf"}


def _tokens(sequence: Any) -> tuple[str, ...] | None:
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
        mono = np.asarray(_mono(sequence[first : first + at_once].samples), dtype=np.float32)
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
    if not isinstance(sequence, Video) and not _has_pictures(sequence):
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

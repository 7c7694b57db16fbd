"""Video and audio files as sequences: frames or pieces of sound, decoded when they are asked for.

In: a folder of files that PyAV (extra `video`) or soundfile (extra `audio`) can read. Out: sequences with len(),
integer and slice indexing, and a clock. Nothing is kept in memory but the place in the file (unless `keep` is
called): a source that walks through a video decodes every frame once, a jump goes to the last key frame before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from dugong.contract import typed
from dugong.exceptions import LoaderError, import_extra
from dugong.sources.loaders.arrow import in_file
from dugong.sources.loaders.blocks import read_duration
from dugong.sources.loaders.folders import Folder, find_files
from dugong.types import AnyArray, FloatArray

VIDEO_ENDINGS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")
AUDIO_ENDINGS = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")
# Decoding on costs less than a jump to a key frame and decoding from there, up to about so many frames.
_DECODE_ON = 48


class _Kept:
    """Elements by place that were decoded before, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._found: dict[int, AnyArray] = {}

    def element(self, place: int, read: Callable[[int], AnyArray]) -> AnyArray:
        """An array that the caller may change, as one that was decoded anew."""
        if place in self._found:
            return self._found[place].copy()
        found = read(place)
        if found.nbytes <= self._left:
            self._left -= found.nbytes
            self._found[place] = found.copy()
        return found


class _Timed(ABC):
    """What video and audio share: a path, a range of elements, and a clock."""

    def __init__(self, path: Path, rate: float, first: int, last: int) -> None:
        self.path, self.rate = path, rate
        self._first, self._last = first, last
        self.kept: _Kept | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: neither what is open nor what was kept."""
        return {name: None if name in ("kept", "_decoder") else value for name, value in vars(self).items()}

    def keep(self, n_bytes: int) -> None:
        """Keep elements, also those of pieces, when they are decoded: for sources that look again and again."""
        self.kept = _Kept(n_bytes)

    @property
    def clock(self) -> tuple[float, float]:
        """Start in seconds, and elements per second."""
        return self._first / self.rate, self.rate

    def __len__(self) -> int:
        return self._last - self._first

    def _part(self, first: int, last: int) -> Self:
        """The elements `first` to `last`, counted in the file, from the same open file and what is kept of it."""
        part = object.__new__(type(self))
        vars(part).update(vars(self), _first=first, _last=last)
        return part

    @abstractmethod
    def _element(self, place: int) -> AnyArray:
        """One element, by its place in the file."""

    @overload
    def __getitem__(self, key: int) -> AnyArray: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: int | slice) -> AnyArray | Self:
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step != 1:
                raise IndexError("pieces of video and audio are cut in steps of 1")
            return self._part(self._first + first, self._first + max(first, last))
        if not -len(self) <= key < len(self):
            raise IndexError(f"element {key} of {self.path.name}, which has {len(self)}")
        place = self._first + int(key) % len(self)
        return self._element(place) if self.kept is None else self.kept.element(place, self._element)

    def __iter__(self) -> Iterator[AnyArray]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path.name}: {len(self)} elements, {self.rate:g} per second)"


class _Decoder:
    """An open video and where decoding stands; made anew in every process."""

    def __init__(self, path: Path, size: int | None) -> None:
        av = import_extra("av", "video", "reading videos")
        try:
            self.file = av.open(str(path))
            self.stream = self.file.streams.video[0]
        except (OSError, ValueError, IndexError) as error:
            raise in_file(path, f"cannot be read as a video: {error}") from error
        self.path, self.size = path, size
        self.frame_rate = float(self.stream.average_rate or self.stream.guessed_rate or 0)
        if self.frame_rate <= 0:
            raise in_file(path, "does not say how many frames it has per second; convert it first.")
        self._convert = av.video.reformatter.VideoReformatter()
        self._origin = self.stream.start_time or 0
        self._frames: Iterator[Any] = iter(())
        self._next, self._held = -1, None

    @property
    def seconds(self) -> float:
        """How long the video is."""
        if self.stream.duration is not None:
            return float(self.stream.duration * self.stream.time_base)
        if self.file.duration is not None:
            return float(self.file.duration) / 1e6
        return float(self.stream.frames) / self.frame_rate

    def frame(self, number: int) -> AnyArray:
        """Frame `number` as bytes, (height, width, 3), red first; the last one stands for those that are missing."""
        if self._held is None or not self._next - 1 <= number < self._next + _DECODE_ON:
            self._seek(number)
        while self._next <= number:
            frame = next(self._frames, None)
            if frame is None:
                break
            self._held, self._next = frame, self._number(frame) + 1
        if self._held is None:
            raise in_file(self.path, f"has no frame {number}.")
        options = {"width": self.size, "height": self.size, "format": "rgb24"}
        try:  # one thread: handing small pictures to others takes longer than the work, the more so on a busy machine
            found = self._convert.reformat(self._held, threads=1, **options)
        except TypeError:  # earlier versions of PyAV have one
            found = self._convert.reformat(self._held, **options)
        return np.asarray(found.to_ndarray())

    def _seek(self, number: int) -> None:
        stamp = int(number / self.frame_rate / self.stream.time_base) + self._origin
        self.file.seek(max(stamp, self._origin), stream=self.stream)
        self._frames, self._next, self._held = self.file.decode(self.stream), -1, None

    def _number(self, frame: Any) -> int:
        return round(float((frame.pts - self._origin) * self.stream.time_base) * self.frame_rate)


class Video(_Timed):
    """Frames of a video file, as bytes (height, width, 3), red first; make it with `video_folder`."""

    def __init__(
        self, path: Path, rate: float, first: int, last: int, size: int | None = None, decoder: _Decoder | None = None
    ) -> None:
        super().__init__(path, rate, first, last)
        self.size = size
        self._decoder = decoder

    def _part(self, first: int, last: int) -> Self:
        self._opened()
        return super()._part(first, last)

    def _opened(self) -> _Decoder:
        if self._decoder is None:
            self._decoder = _Decoder(self.path, self.size)
        return self._decoder

    def _element(self, place: int) -> AnyArray:
        decoder = self._opened()
        # Rounded first: 1 s at 25 frames per second is frame 25, also where 1 / rate is a hair less.
        return decoder.frame(int(place / self.rate * decoder.frame_rate + 1e-6))


class Audio(_Timed):
    """Pieces of sound, as floats (samples,) or (samples, channels); make it with `audio_folder`.

    Attributes
    ----------
    sample_rate : int
    """

    def __init__(self, path: Path, rate: float, first: int, last: int, sample_rate: int, *, mono: bool = True) -> None:
        super().__init__(path, rate, first, last)
        self.sample_rate = sample_rate
        self._mono = mono

    def _element(self, place: int) -> AnyArray:
        return self._samples(place, place + 1)

    @property
    def samples(self) -> FloatArray:
        """All samples of these pieces in one array."""
        return self._samples(self._first, self._last)

    def _samples(self, first: int, last: int) -> FloatArray:
        start, stop = (round(place / self.rate * self.sample_rate) for place in (first, last))
        soundfile = import_extra("soundfile", "audio", "reading sound files")
        found, _ = soundfile.read(str(self.path), start=start, stop=stop, dtype="float32", always_2d=True)
        return np.asarray(found.mean(axis=1) if self._mono else found)

    def peaks(self, n_bins: int) -> AnyArray:
        """Smallest and largest sample of `n_bins` stretches of time, (n_bins, 2): what a picture of the sound needs."""
        samples = self.samples if self._mono else self.samples.mean(axis=1)
        edges = np.linspace(0, len(samples), n_bins + 1).astype(np.int64)
        pieces = [samples[a:b] for a, b in pairwise(edges)]
        pairs = [(piece.min(), piece.max()) if len(piece) else (0.0, 0.0) for piece in pieces]
        return np.array(pairs, dtype=np.float32).reshape(n_bins, 2)


@typed(LoaderError)
def video_folder(
    path: str | Path, *, every: str | float | None = None, size: int | None = None, pattern: str = "*"
) -> Folder:
    """Load a folder of videos, one sequence of frames each.

    Parameters
    ----------
    path : folder
    every : str or float, optional
        Time between two elements, ``"0.5s"``; every frame by default.
    size : int, optional
        Frames are scaled to a square of so many pixels.
    pattern : str
        Which of the files.
    """
    files = find_files(path, pattern, VIDEO_ENDINGS)
    rate = _Decoder(next(iter(files.values())), size).frame_rate if every is None else 1 / read_duration(every)
    read = partial(_read_video, rate=rate, every=every, size=size)
    return Folder(files=files, read=read, rate=rate, settings=[every, size])


def _read_video(path: Path, *, rate: float, every: str | float | None, size: int | None) -> Video:
    decoder = _Decoder(path, size)
    if every is None and abs(decoder.frame_rate - rate) > 1e-3 * rate:
        raise in_file(
            path,
            f"videos must have one frame rate; the first has {rate:g}, this one {decoder.frame_rate:g} per second.\n"
            '  Choose elements by time: video_folder(..., every="0.5s").',
        )
    n_elements = max(1, int(np.floor(decoder.seconds * rate + 1e-6)))
    return Video(path, rate, 0, n_elements, size, decoder)


@typed(LoaderError)
def audio_folder(path: str | Path, *, every: str | float = "1s", mono: bool = True, pattern: str = "*") -> Folder:
    """Load a folder of sound files, one sequence each; an element is a piece of sound.

    Parameters
    ----------
    path : folder
    every : str or float
        Length of an element.
    mono : bool
        Average the channels; otherwise an element is (samples, channels).
    pattern : str
        Which of the files.
    """
    files = find_files(path, pattern, AUDIO_ENDINGS)
    rate = 1 / read_duration(every)
    read = partial(_read_audio, rate=rate, mono=mono)
    return Folder(files=files, read=read, rate=rate, settings=[every, mono])


def _read_audio(path: Path, *, rate: float, mono: bool) -> Audio:
    soundfile = import_extra("soundfile", "audio", "reading sound files")
    try:
        info = soundfile.info(str(path))
    except (OSError, RuntimeError) as error:
        raise in_file(path, f"cannot be read as sound: {error}") from error
    # A rest shorter than a hundredth of an element is rounding, not an element of its own.
    return Audio(path, rate, 0, int(np.ceil(info.frames / info.samplerate * rate - 0.01)), info.samplerate, mono=mono)

"""Pictures and videos in files, read and written with PyAV (extra `video`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dugong.exceptions import LoaderError, MissingExtraError
from dugong.types import AnyArray


def _av() -> Any:
    try:
        import av
    except ModuleNotFoundError as error:
        raise MissingExtraError("av", "video", "reading and writing videos") from error
    return av


def read_picture(path: Path, size: int | None = None) -> AnyArray:
    """One picture (jpg, png) as bytes, (height, width, 3), scaled to a square of `size` if it is given."""
    return np.asarray(read_frames(path, 0, 1, size)[0])


def read_frames(path: Path, start: int, count: int, size: int | None = None) -> AnyArray:
    """Frames `start` to `start + count` of a video as bytes, (count, height, width, 3), red first.

    Decoding begins at the last key frame before `start`, so a clip from the middle of a movie is quickly read.
    """
    av = _av()
    try:
        with av.open(str(path)) as file:
            convert = av.video.reformatter.VideoReformatter()
            found = [_pixels(frame, size, convert) for frame in islice(_from(file, start), count)]
    except (OSError, ValueError) as error:
        raise LoaderError(f"{path}: cannot be read as a video: {error}") from error
    if len(found) < count:
        raise LoaderError(f"{path}: must hold {start + count} frames or more; found {start + len(found)}.")
    return np.stack(found)


def _from(file: Any, start: int) -> Iterable[Any]:
    """Decoded frames from number `start` on."""
    stream = file.streams.video[0]
    if start == 0 or not stream.average_rate:
        return islice(file.decode(stream), start, None)
    step = 1 / (stream.average_rate * stream.time_base)
    origin = stream.start_time or 0
    file.seek(int(start * step) + origin, stream=stream)
    return (frame for frame in file.decode(stream) if round((frame.pts - origin) / step) >= start)


def _pixels(frame: Any, size: int | None, convert: Any) -> AnyArray:
    """One converter serves all frames: making one takes longer than using it."""
    return np.asarray(convert.reformat(frame, size, size, format="rgb24").to_ndarray())


def write_video(path: Path, frames: AnyArray, *, rate: int = 24, key_every: int = 80) -> None:
    """Encode frames, (n, height, width, 3) bytes, as MPEG-4 with a key frame every `key_every` frames at least."""
    av = _av()
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=rate, options={"qscale": "4"})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = key_every
        stream.codec_context.qmax = 5
        for picture in frames:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")))
        file.mux(stream.encode())

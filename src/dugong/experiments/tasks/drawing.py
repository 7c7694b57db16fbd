"""Small pictures: soft shapes painted over each other, seen through a camera.

For the generators of the tasks on images. Places and lengths are shares of the picture (0 to 1, y downwards), so that
one scene is drawn at any size; colours are red, green, blue from 0 to 1. A `Camera` belongs to a video or a patient:
its blur and light are the same in all frames, and so are the errors that follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from dugong.exceptions import LoaderError, import_extra
from dugong.types import AnyArray, FloatArray, IntArray

Colour = tuple[float, float, float]


@lru_cache(maxsize=8)
def grid(size: int) -> tuple[FloatArray, FloatArray]:
    """The y and x of every pixel's centre."""
    middle = (np.arange(size) + 0.5) / size
    y, x = np.meshgrid(middle, middle, indexing="ij")
    return y, x


def ellipse(size: int, x: float, y: float, width: float, height: float, angle: float = 0.0) -> FloatArray:
    """A mask of an ellipse with the given half axes, turned by `angle`; its edge is one pixel soft."""
    down, right = grid(size)
    along = (right - x) * np.cos(angle) + (down - y) * np.sin(angle)
    across = (down - y) * np.cos(angle) - (right - x) * np.sin(angle)
    distance = np.sqrt((along / width) ** 2 + (across / height) ** 2)
    return np.asarray(np.clip((1 - distance) * min(width, height) * size + 0.5, 0, 1))


def box(size: int, left: float, top: float, right: float, bottom: float) -> FloatArray:
    """A mask of an upright rectangle."""
    down, across = grid(size)
    inside = np.minimum(np.minimum(across - left, right - across), np.minimum(down - top, bottom - down))
    return np.asarray(np.clip(inside * size + 0.5, 0, 1))


def plain(size: int, colour: Colour) -> FloatArray:
    """A picture of one colour."""
    return np.full((size, size, 3), colour)


def paint(picture: FloatArray, mask: FloatArray, colour: Colour) -> FloatArray:
    """The picture with a shape of one colour on top."""
    return picture + mask[..., np.newaxis] * (np.array(colour) - picture)


def cloud(rng: np.random.Generator, size: int, cells: int = 4) -> FloatArray:
    """Smooth noise around 0, (size, size): crowds, grass, anatomy."""
    between = _between(size, cells)
    return np.asarray(between @ rng.normal(size=(cells, cells)) @ between.T)


@lru_cache(maxsize=8)
def _between(size: int, cells: int) -> FloatArray:
    """Weights of linear interpolation from cells to pixels, (size, cells)."""
    place = np.clip((np.arange(size) + 0.5) / size * cells - 0.5, 0, cells - 1)
    return np.asarray(np.clip(1 - np.abs(place[:, np.newaxis] - np.arange(cells)), 0, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """How a scene becomes pixels.

    Attributes
    ----------
    light : factor of all colours
    tint : three float
        Factor of each colour.
    blur : standard deviation, as a share of the picture
    noise : standard deviation per pixel
    """

    light: float
    tint: Colour
    blur: float
    noise: float

    @classmethod
    def draw(cls, rng: np.random.Generator, *, blur: float = 0.012, noise: float = 0.03) -> Camera:
        """A camera, some of them bad."""
        return cls(
            light=float(rng.uniform(0.6, 1.15)),
            tint=tuple(rng.normal(1, 0.06, 3).tolist()),
            blur=float(rng.exponential(blur)),
            noise=float(rng.uniform(0.5, 1.5) * noise),
        )

    def shoot(self, picture: FloatArray, rng: np.random.Generator) -> AnyArray:
        """The picture as bytes, of any number of channels up to three."""
        radius = self.blur * len(picture)
        soft = gaussian_filter(picture, (radius, radius, 0), truncate=2) if radius > 0.3 else picture
        lit = soft * self.light * np.array(self.tint[: picture.shape[2]])
        bright = 255 * (lit + rng.normal(0, self.noise, picture.shape))
        return np.asarray(np.clip(bright, 0, 255), dtype=np.uint8)


# --- files, and movies that are drawn for them ------------------------------------------------------------------------
# Read and written with PyAV (extra `video`).
def _av() -> Any:
    return import_extra("av", "video", "reading and writing videos")


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
            # One converter serves all frames: making one takes longer than using it
            found = [
                np.asarray(convert.reformat(frame, size, size, format="rgb24").to_ndarray())
                for frame in islice(_from(file, start), count)
            ]
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


_PLAYED = {"libx264": {"crf": "24", "preset": "veryfast"}, "libvpx-vp9": {"crf": "24", "b:v": "0"}}


def write_video(path: Path, frames: AnyArray, *, rate: int = 24, key_every: int = 80, played: bool = False) -> None:
    """Encode frames, (n, height, width, 3) bytes, as MPEG-4 with a key frame every `key_every` frames at least.

    `played`: as what browsers play, H.264 or else VP9, if this build of PyAV can write it.
    """
    av = _av()
    known = [name for name in _PLAYED if played and name in av.codecs_available]
    codec, options = (known[0], _PLAYED[known[0]]) if known else ("mpeg4", {"qscale": "4"})
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=rate, options=options)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = key_every
        if codec == "mpeg4":
            stream.codec_context.qmax = 5
            stream.codec_context.thread_count = 1  # threads cut pictures into slices: other bytes on other machines
        for picture in frames:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")))
        file.mux(stream.encode())


SHORTEST, MEAN = 60, 150  # frames of a shot
DISSOLVE = 8
MARGIN = 0.25  # by which a scene is larger than the picture, on each side
SKIN = (0.85, 0.6, 0.48)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What the shots of a movie have in common.

    Attributes
    ----------
    palette : colour that all scenes lean to
    variety : how far they lean away from it
    flashes, shakes : shares of frames with a flash, and of shots with a shaking camera
    grain : noise
    """

    palette: Colour
    variety: float
    flashes: float
    shakes: float
    grain: float


def draw_style(rng: np.random.Generator) -> Style:
    """A movie's style; one in four is full of flashes, one in three was filmed by hand."""
    red, green, blue = rng.uniform(0.2, 0.6, 3).tolist()
    return Style(
        palette=(red, green, blue),
        variety=float(rng.uniform(0.03, 0.2)),
        flashes=0.02 if rng.random() < 0.25 else 0.002,
        shakes=0.7 if rng.random() < 0.3 else 0.05,
        grain=float(rng.uniform(0.01, 0.04)),
    )


def draw_movie(rng: np.random.Generator, n_frames: int, side: int) -> tuple[AnyArray, IntArray]:
    """Frames as bytes, (n_frames, side, side, 3), and the numbers of the frames that begin a shot (but the first)."""
    style, cuts = draw_style(rng), _cuts(rng, n_frames)
    frames = np.empty((n_frames, side, side, 3))
    for start, stop in zip([0, *cuts], [*cuts, n_frames], strict=True):
        lead = min(start, DISSOLVE // 2 if rng.random() < 0.1 else 0)
        shot = _shot(rng, style, stop - start + lead, side)
        frames[start:stop] = shot[lead:]
        # Mix the new shot into the last frames of the one before, in place: both are parts of one new array
        if lead:
            share = (np.arange(lead) + 1)[:, np.newaxis, np.newaxis, np.newaxis] / (lead + 1)
            frames[start - lead : start] += share * (shot[:lead] - frames[start - lead : start])
    flash = np.where(rng.random(n_frames) < style.flashes, rng.uniform(1.2, 1.45, n_frames), 1.0)
    grain = rng.normal(0, style.grain, (16, side, side, 3))[rng.integers(16, size=n_frames)]
    bright = 255 * (frames * flash[:, np.newaxis, np.newaxis, np.newaxis] + grain)
    return np.clip(bright, 0, 255).astype(np.uint8), cuts


def write_movie(path: Path, rng: np.random.Generator, n_frames: int, side: int) -> IntArray:
    """Draw and encode a movie; the frames that begin a shot."""
    frames, cuts = draw_movie(rng, n_frames, side)
    write_video(path, frames)
    return cuts


def _cuts(rng: np.random.Generator, n_frames: int) -> IntArray:
    lengths = SHORTEST + rng.exponential(MEAN - SHORTEST, size=2 + n_frames // SHORTEST)
    first = rng.uniform(0, lengths[0])  # the movie begins somewhere in a shot
    cuts = (first + np.concatenate([[0], np.cumsum(lengths[1:])])).astype(np.int64)
    return np.asarray(cuts[(cuts > DISSOLVE) & (cuts < n_frames - DISSOLVE)])


def _shot(rng: np.random.Generator, style: Style, n_frames: int, side: int) -> FloatArray:
    scene = _scene(rng, style, round(side * (1 + 2 * MARGIN)))
    path = rng.uniform(0.5, 1.5, 2) + np.arange(n_frames)[:, np.newaxis] * rng.normal(0, 0.003, 2)
    if rng.random() < style.shakes:
        path = path + np.repeat(rng.normal(0, 0.25, (n_frames // 3 + 1, 2)), 3, axis=0)[:n_frames]
    return _pan(scene, np.clip(path * MARGIN * side, 0, len(scene) - side - 1.001), side)


def _pan(scene: FloatArray, corners: FloatArray, side: int) -> FloatArray:
    """The part of a scene below and right of every corner, between pixels as well."""
    windows = np.lib.stride_tricks.sliding_window_view(scene, (side, side), axis=(0, 1))
    low = corners.astype(np.int64)
    down, right = (corners - low).T[:, :, np.newaxis, np.newaxis, np.newaxis]
    (y, x), found = low.T, np.zeros((len(corners), scene.shape[2], side, side))
    for step_y, share_y in ((0, 1 - down), (1, down)):
        for step_x, share_x in ((0, 1 - right), (1, right)):
            found = found + share_y * share_x * windows[y + step_y, x + step_x]
    return np.asarray(np.moveaxis(found, 1, 3))


def _scene(rng: np.random.Generator, style: Style, side: int) -> FloatArray:
    """A place: two colours near the palette of the movie, texture, and up to two faces."""
    first, second = np.clip(np.array(style.palette) + rng.normal(0, style.variety, (2, 3)), 0.05, 0.9)
    mix = 1 / (1 + np.exp(-3 * cloud(rng, side, 3)))[..., np.newaxis]
    picture = plain(side, (0, 0, 0)) + first + mix * (second - first) + 0.06 * cloud(rng, side, 12)[..., np.newaxis]
    for _ in range(int(rng.choice(3, p=[0.3, 0.45, 0.25]))):
        x, y, size = rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7), rng.uniform(0.07, 0.12)
        picture = paint(picture, ellipse(side, x, y - 0.25 * size, 1.15 * size, 1.3 * size), (0.2, 0.13, 0.1))
        picture = paint(picture, ellipse(side, x, y, 0.85 * size, 1.1 * size), SKIN)
    return np.asarray(picture * rng.uniform(0.75, 1.1))

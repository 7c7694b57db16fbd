"""Small pictures: soft shapes painted over each other, seen through a camera.

For the generators of the tasks on images. Places and lengths are shares of the picture (0 to 1, y downwards), so that
one scene is drawn at any size; colours are red, green, blue from 0 to 1. A `Camera` belongs to a video or a patient:
its blur and light are the same in all frames, and so are the errors that follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.ndimage import gaussian_filter

from dugong.types import AnyArray, FloatArray

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
    light : float
        Factor of all colours.
    tint : three float
        Factor of each colour.
    blur : float
        Standard deviation, as a share of the picture.
    noise : float
        Standard deviation per pixel.
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

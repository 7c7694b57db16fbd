"""Shot boundaries in movies: elements are windows of 16 frames, sequences 80 frames of a video file.

Three sources look for outliers among the frame-to-frame differences of a whole sequence: of hue and saturation, of red,
green and blue, and of optical flow. Two look at faces every twelve frames: as many as before, and where they were. All
of them read frames that PyAV decodes from a file (extra `video`), of real movies or of those that `movies` encodes.

Differs from the paper: its table counts the first three as votes on sequences. They read a sequence, but an outlier is
a frame, so here they vote on the element that holds it; a vote on five elements at once could not place a cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import find_objects, gaussian_filter, label

from dugong.exceptions import LoaderError
from dugong.experiments.recipe import EndModel, Facts, Part, Recipe, Size
from dugong.experiments.tasks.drawing import read_frames, write_movie
from dugong.experiments.tasks.examples import Example, as_material, read_part, read_table, sizes_of
from dugong.priors import Prior, from_labels
from dugong.sources import WindowView, source
from dugong.tasks import Window
from dugong.types import ABSTAIN, NEGATIVE, POSITIVE, AnyArray, FloatArray, Int8Array, IntArray

if TYPE_CHECKING:
    from torch import nn

SHARE = 0.1
N_ELEMENTS, PER_ELEMENT = 5, 16
N_FRAMES = N_ELEMENTS * PER_ELEMENT
DETECT_EVERY = 12  # twice a second at 24 frames per second
PER_MOVIE = 5  # sequences
SMALL, FULL = 32, 112
PAPER_DEV = 363  # sequences in the paper's dev set, of which a pattern needed six
N_BLOCKS = 4  # along each side
DAMPING = 3e-4  # blocks without texture do not move
SPEEDS = np.array([0.2, 0.6, 1.5])  # edges of the bins of speed, pixels per frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """80 frames of a video file, as a sequence of five elements; decoded when they are read."""

    path: Path
    start: int

    def __len__(self) -> int:
        return N_ELEMENTS

    def __getitem__(self, place: Any) -> AnyArray:
        return np.asarray(decode(self)[place])


def decode(clip: Clip, size: int | None = None) -> AnyArray:
    """The frames of a clip by element, (5, 16, height, width, 3) bytes."""
    frames = read_frames(clip.path, clip.start, N_FRAMES, size)
    return frames.reshape(N_ELEMENTS, PER_ELEMENT, *frames.shape[1:])


# --- sources ----------------------------------------------------------------------------------------------------------
def hue_change(elements: AnyArray) -> FloatArray:
    """Change of the histogram of hue and saturation at every frame, (5, 16)."""
    pixels = elements.reshape(N_FRAMES, -1, 3) / 255
    red, green, blue = np.moveaxis(pixels, 2, 0)
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    hue = np.arctan2(np.sqrt(3) * (green - blue), 2 * red - green - blue) / (2 * np.pi) + 0.5
    saturation = (high - low) / np.maximum(high, 1e-6)
    return _change(_histograms([hue, saturation], bins=8))


def colour_change(elements: AnyArray) -> FloatArray:
    """Change of the histograms of red, green and blue at every frame, (5, 16)."""
    pixels = elements.reshape(N_FRAMES, -1, 3) / 255
    return _change(_histograms(list(np.moveaxis(pixels, 2, 0)), bins=8))


def flow_change(elements: AnyArray) -> FloatArray:
    """Change of the histogram of optical flow at every frame, (5, 16)."""
    grey = elements.reshape(N_FRAMES, *elements.shape[2:]).mean(axis=3) / 255
    found = flow_histograms(grey)
    return _change(np.concatenate([found[:1], found]))


def _histograms(channels: list[FloatArray], bins: int) -> FloatArray:
    """Shares of the pixels by bin, the channels one after another, (80, bins x channels)."""
    found = []
    for values in channels:
        codes = np.minimum((values * bins).astype(np.int64), bins - 1) + bins * np.arange(N_FRAMES)[:, np.newaxis]
        found.append(np.bincount(codes.ravel(), minlength=bins * N_FRAMES).reshape(N_FRAMES, bins) / values.shape[1])
    return np.concatenate(found, axis=1)


def _change(histograms: FloatArray) -> FloatArray:
    difference = np.abs(np.diff(histograms, axis=0)).sum(axis=1)
    return np.concatenate([[0.0], difference]).reshape(N_ELEMENTS, PER_ELEMENT)


def outliers(change: FloatArray, least: float) -> Int8Array:
    """+1 for elements with a frame that changes far more than the sequence does otherwise, else -1."""
    usual = np.median(change)
    spread = np.median(np.abs(change - usual))
    far = change.max(axis=1) > max(usual + 8 * spread, least)
    return np.where(far, POSITIVE, NEGATIVE).astype(np.int8)


@source(pre=[decode, hue_change], vectorized=True)
def hue_jumps(change: FloatArray) -> Int8Array:
    """Hue and saturation jump."""
    return outliers(change, 0.4)


@source(pre=[decode, colour_change], vectorized=True)
def colour_jumps(change: FloatArray) -> Int8Array:
    """Red, green and blue jump."""
    return outliers(change, 1.0)


@source(pre=[decode, flow_change], vectorized=True)
def flow_jumps(change: FloatArray) -> Int8Array:
    """Optical flow jumps."""
    return outliers(change, 0.65)


def find_faces(elements: AnyArray) -> list[list[FloatArray]]:
    """Faces by element: one (n, 2) array of y and x, 0 to 1, for every frame that was looked at."""
    frames = elements.reshape(N_FRAMES, *elements.shape[2:])
    found: list[list[FloatArray]] = [[] for _ in range(N_ELEMENTS)]
    for number in range(0, N_FRAMES, DETECT_EVERY):
        found[number // PER_ELEMENT].append(_skin_blobs(frames[number] / 255))
    return found


def _skin_blobs(frame: FloatArray) -> FloatArray:
    """Middles of regions that have the colour, the size and the shape of faces."""
    red, green, blue = np.moveaxis(frame, 2, 0)
    skin = (red > 0.4) & (red > 1.2 * green) & (green > 1.05 * blue) & (red < 2.4 * blue)
    regions, _ = label(skin)
    middles = []
    for place, (rows, columns) in enumerate(find_objects(regions), start=1):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        filled = (regions[rows, columns] == place).mean()
        if min(height, width) > 0.08 * len(frame) and 0.5 < height / width < 2.2 and filled > 0.5:
            middles.append([(rows.start + rows.stop) / 2, (columns.start + columns.stop) / 2])
    return np.array(middles).reshape(-1, 2) / len(frame)


TWO_ELEMENTS = Window(size=2, stride=1, link="any")


@source(resolution=TWO_ELEMENTS, pre=[decode, find_faces])
def same_faces(window: WindowView) -> int:
    """As many faces as before: no cut."""
    counts = {len(faces) for element in window for faces in element}
    return NEGATIVE if len(counts) == 1 and counts != {0} else ABSTAIN


@source(resolution=TWO_ELEMENTS, pre=[decode, find_faces])
def moved_faces(window: WindowView) -> int:
    """Faces are elsewhere than at the detection before: a cut."""
    seen = [faces for element in window for faces in element]
    moves = [_move(before, after) for before, after in pairwise(seen) if len(before) and len(after)]
    if not moves:
        return ABSTAIN
    return POSITIVE if max(moves) > 0.15 else NEGATIVE


def _move(before: FloatArray, after: FloatArray) -> float:
    """How far the face that moved most is from where one was."""
    distance = np.hypot(*np.moveaxis(after[:, np.newaxis] - before[np.newaxis], 2, 0))
    return float(distance.min(axis=1).max())


def user_prior(dev: Sequence[Int8Array]) -> Prior:
    """Patterns of the dev set; rare ones are impossible, by the paper's rule scaled to the size of the dev set."""
    least = max(1, round(6 * len(dev) / PAPER_DEV))
    return from_labels(dev, kind="patterns", length=N_ELEMENTS, min_count=least)


# --- simulated movies -------------------------------------------------------------------------------------------------
@as_material("simulated")
def generate(size: Size, seed: int, folder: Path) -> Iterator[Example]:
    """Encode movies of five sequences each into the folder."""
    rng = np.random.default_rng([seed, 16])
    for part, number in sizes_of(size):
        for place in range(-(-number // PER_MOVIE)):
            count = min(PER_MOVIE, number - place * PER_MOVIE)
            path = folder / f"{part}-{place:05d}.mp4"
            cuts = write_movie(path, rng, count * N_FRAMES, SMALL if size.small else FULL)
            for start in range(0, count * N_FRAMES, N_FRAMES):
                yield _example(path, start, part, cuts)


def _example(path: Path, start: int, part: Part, cuts: IntArray) -> Example:
    inside = cuts[(cuts >= start) & (cuts < start + N_FRAMES)] - start
    gold = np.full(N_ELEMENTS, NEGATIVE, dtype=np.int8)
    gold[inside // PER_ELEMENT] = POSITIVE
    return Example(f"{path.stem}-{start:07d}", part, path.stem, Clip(path=path, start=start), gold)


# --- real movies ------------------------------------------------------------------------------------------------------
@as_material("movies")
def load(folder: Path) -> Iterator[Example]:
    """Movies from a folder: clips.csv, boundaries.csv and movies/<movie>."""
    table = folder / "clips.csv"
    clips = read_table(table, ("movie", "start", "stop", "part"))
    cuts: dict[str, list[int]] = {}
    for row in read_table(folder / "boundaries.csv", ("movie", "frame")):
        cuts.setdefault(row["movie"], []).append(int(row["frame"]))
    for row in clips:
        path = folder / "movies" / row["movie"]
        if not path.is_file():
            raise LoaderError(f"{path}: there must be a video; there is no such file.")
        part = read_part(row, table)
        known = np.array(cuts.get(row["movie"], []), dtype=np.int64)
        for start in range(int(row["start"]), int(row["stop"]) - N_FRAMES + 1, N_FRAMES):
            one = _example(path, start, part, known)
            yield one._replace(gold=np.zeros(N_ELEMENTS, dtype=np.int8)) if part == "train" else one


# --- the recipe -------------------------------------------------------------------------------------------------------
def network(small: bool) -> nn.Module:  # noqa: FBT001  the contract of a recipe
    """3-D ResNet-18, or one with half the layers and a sixteenth of the channels on grey frames."""
    from dugong.endmodels.networks import ResNet, resnet3d18
    from dugong.endmodels.networks.convolutional import BasicBlock

    if not small:
        return resnet3d18(2)
    return ResNet(3, BasicBlock, (1, 1, 1, 1), n_classes=2, in_channels=1, stem_stride=(1, 2, 2), shortcut="A", width=4)


def inputs(clip: Clip, small: bool) -> AnyArray:  # noqa: FBT001  the contract of a recipe
    """Colours of 16 frames, (5, 3, 16, 112, 112); small: grey, (5, 1, 16, 16, 16)."""
    elements = np.moveaxis(decode(clip, SMALL // 2 if small else FULL), 4, 1)
    pixels = elements.mean(axis=1, keepdims=True) if small else elements
    return np.asarray(pixels / np.float32(255) - np.float32(0.4), dtype=np.float32)


RECIPE = Recipe(
    name="shot",
    title="shot boundaries in movies",
    facts=Facts(
        n_elements=N_ELEMENTS,
        size=Size(train=35_376, dev=363, test=369),
        positive=SHARE,
        sources=(0, 2, 3),
        network="C3D ConvNet (3-D ResNet-18)",
    ),
    quick=Size(train=400, dev=40, test=100, small=True),
    sources=(same_faces, moved_faces, hue_jumps, colour_jumps, flow_jumps),
    # None is declared: with the flow depending on its own past the labels were worse when tried, for reasons that
    # were not looked into. No third source on windows would tell the two on faces apart.
    dependencies=(),
    user_prior=user_prior,
    generate=generate,
    end_model=EndModel(
        network=network,
        inputs=inputs,
        options={"epochs": 10, "batch_size": 16, "learning_rate": 1e-3},
        small_options={"epochs": 5, "batch_size": 16, "learning_rate": 3e-3},
    ),
    load=load,
    real_data=(
        "Movies that you own, and annotations of cuts in some stretches of them: movies/<movie> with video files that "
        "FFmpeg reads, clips.csv with the columns movie (file name), start, stop (frames), part (train, dev, test), "
        "and boundaries.csv with the columns movie, frame (the first of a new shot). Stretches of the part train need "
        "no annotation."
    ),
)


def block_flow(grey: FloatArray) -> FloatArray:
    """Motion of every block from one frame to the next, pixels down and right, (n_frames - 1, 4, 4, 2).

    It is the shift that best explains how brightness changes; `grey` is (n_frames, height, width), 0 to 1.
    """
    even = grey / np.maximum(grey.mean(axis=(1, 2), keepdims=True), 1e-3) / 2  # a flash is no motion
    grey = gaussian_filter(even, (0, 1, 1))  # grain has gradients, but no motion
    middle = (grey[1:] + grey[:-1]) / 2
    down, right, change = np.gradient(middle, axis=1), np.gradient(middle, axis=2), np.diff(grey, axis=0)
    dd, rr, dr = _sums(down * down) + DAMPING, _sums(right * right) + DAMPING, _sums(down * right)
    dc, rc = _sums(down * change), _sums(right * change)
    determinant = dd * rr - dr * dr
    return np.stack([(dr * rc - rr * dc) / determinant, (dr * dc - dd * rc) / determinant], axis=3)


def flow_histograms(grey: FloatArray) -> FloatArray:
    """Shares of the blocks by speed, (n_frames - 1, 4)."""
    speed = np.hypot(*np.moveaxis(block_flow(grey), 3, 0)).reshape(len(grey) - 1, -1)
    bins = np.searchsorted(SPEEDS, speed)
    return np.asarray((bins[..., np.newaxis] == np.arange(len(SPEEDS) + 1)).mean(axis=1))


def _sums(values: FloatArray) -> FloatArray:
    """Means over blocks, (n, 4, 4); rows and columns that do not fill one are left out."""
    number, height, width = values.shape
    high, wide = height // N_BLOCKS, width // N_BLOCKS
    cut = values[:, : high * N_BLOCKS, : wide * N_BLOCKS].reshape(number, N_BLOCKS, high, N_BLOCKS, wide)
    return np.asarray(cut.mean(axis=(2, 4)))

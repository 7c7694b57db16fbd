"""Bicuspid aortic valves in MRI: five frames of the opened valve, five sources on its shape, one label per patient.

The paper uses flow MRI of UK Biobank (Fries and others 2019). The valve is segmented by its intensity; the sources read
area, perimeter, eccentricity, mean intensity and the ratio of area and perimeter of the segment. Here series are drawn:
a normal valve opens to a rounded triangle, a bicuspid one to the narrower mouth of a fish with a turbulent, darker jet.
Patients differ in size, slice and signal, which stay the same from frame to frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.ndimage import binary_erosion, gaussian_filter, label

from dugong.exceptions import LoaderError
from dugong.experiments.recipe import EndModel, Facts, Recipe, Size
from dugong.experiments.tasks.drawing import Camera, cloud, grid
from dugong.experiments.tasks.examples import Example, as_material, choose, read_label, read_part, read_table, sizes_of
from dugong.graph import temporal
from dugong.priors import Markov, Prior
from dugong.sources import source
from dugong.types import NEGATIVE, POSITIVE, AnyArray, BoolArray, FloatArray, Int8Array

if TYPE_CHECKING:
    from torch import nn

SHARE = 0.07
INCIDENCE = 0.015
N_ELEMENTS = 5
SIDE = 32
SMALL = 20


# --- sources ----------------------------------------------------------------------------------------------------------
class HeartSegment(NamedTuple):
    """The opened valve in one frame; lengths as shares of the picture's side."""

    area: float
    perimeter: float
    eccentricity: float
    intensity: float


def segment(series: AnyArray) -> list[HeartSegment]:
    """Find the valve in every frame: the bright region nearest to the middle."""
    return [_measure(frame / 255, _bright_region(frame / 255)) for frame in series]


def _bright_region(frame: FloatArray) -> BoolArray:
    smooth = gaussian_filter(frame, 0.6)
    low, high = np.percentile(smooth, [20, 97])
    regions, number = label(smooth > (low + high) / 2)
    if number == 0:
        return np.ones(frame.shape, dtype=bool)
    y, x = grid(len(frame))
    distance = (y - 0.5) ** 2 + (x - 0.5) ** 2
    nearest = regions[regions > 0][np.argmin(distance[regions > 0])]
    return np.asarray(regions == nearest)


def _measure(frame: FloatArray, inside: BoolArray) -> HeartSegment:
    side = len(frame)
    y, x = (axis[inside] for axis in grid(side))
    edge = inside & ~binary_erosion(inside)
    spread = np.cov(np.stack([x, y])) if len(x) > 2 else np.eye(2)
    narrow, wide = np.maximum(np.linalg.eigvalsh(spread), 1e-6)
    return HeartSegment(
        area=float(inside.sum() / side**2),
        perimeter=float(edge.sum() / side),
        eccentricity=float(np.sqrt(1 - narrow / wide)),
        intensity=float(frame[inside].mean()),
    )


@source(pre=[segment])
def area(valve: HeartSegment) -> int:
    """A bicuspid valve does not open fully."""
    return POSITIVE if valve.area < 0.085 else NEGATIVE


@source(pre=[segment])
def perimeter(valve: HeartSegment) -> int:
    """Its edge is short."""
    return POSITIVE if valve.perimeter < 0.9 else NEGATIVE


@source(pre=[segment])
def ratio(valve: HeartSegment) -> int:
    """It has little area for its edge."""
    return POSITIVE if valve.area / valve.perimeter < 0.092 else NEGATIVE


@source(pre=[segment])
def eccentricity(valve: HeartSegment) -> int:
    """It is long and narrow."""
    return POSITIVE if valve.eccentricity > 0.68 else NEGATIVE


@source(pre=[segment])
def intensity(valve: HeartSegment) -> int:
    """Turbulent flow is dark."""
    return POSITIVE if valve.intensity < 0.64 else NEGATIVE


def user_prior(dev: Sequence[Int8Array]) -> Prior:  # noqa: ARG001  the incidence in the population, not in the dev set
    """One to two per cent of the population, and all frames of a patient alike."""
    return Markov(positive=INCIDENCE, stay=1.0)


# --- simulated series -------------------------------------------------------------------------------------------------
def draw_series(rng: np.random.Generator, side: int, *, bicuspid: bool) -> AnyArray:
    """Five frames of one patient, (5, side, side) bytes."""
    camera = replace(Camera.draw(rng, blur=0.02, noise=0.05), light=1.0, tint=(1.0, 1.0, 1.0))
    size = 0.205 * np.exp(rng.normal(0, 0.08)) * (0.9 if bicuspid else 1.0)
    oblique = float(np.exp(-abs(rng.normal(0, 0.08))))  # a slice that is not at right angles narrows everything
    narrow = oblique * (rng.uniform(0.5, 0.75) if bicuspid else rng.uniform(0.88, 1.0))
    signal = 0.78 * np.exp(rng.normal(0, 0.06)) * (0.82 if bicuspid else 1.0)
    angle, wall = rng.uniform(0, np.pi), 0.3 + 0.06 * cloud(rng, side, 6)
    frames = []
    for opened in (0.85, 0.95, 1.0, 0.95, 0.85):
        radius = size * opened * np.exp(rng.normal(0, 0.05))
        mouth = _mouth(side, rng.normal(0.5, 0.02, 2), radius, narrow * np.exp(rng.normal(0, 0.1)), angle)
        lit = signal * np.exp(rng.normal(0, 0.1)) + 0.05 * cloud(rng, side, 8)
        frames.append(camera.shoot((wall + mouth * (lit - wall))[..., np.newaxis], rng)[..., 0])
    return np.stack(frames)


def _mouth(side: int, middle: AnyArray, radius: float, narrow: float, angle: float) -> FloatArray:
    """A mask: a rounded triangle, pressed together across `angle`."""
    y, x = grid(side)
    along = (x - middle[0]) * np.cos(angle) + (y - middle[1]) * np.sin(angle)
    across = ((y - middle[1]) * np.cos(angle) - (x - middle[0]) * np.sin(angle)) / narrow
    edge = radius * (1 + 0.1 * narrow * np.cos(3 * np.arctan2(across, along)))
    return np.asarray(np.clip((edge - np.hypot(along, across)) * side + 0.5, 0, 1))


@as_material("simulated")
def generate(size: Size, seed: int, folder: Path) -> Iterator[Example]:  # noqa: ARG001  series stay in memory
    """Patients with one series each, 7 % of them with a bicuspid valve."""
    rng = np.random.default_rng([seed, 7])
    for part, number in sizes_of(size):
        for place, bicuspid in enumerate(choose(rng, number, SHARE)):
            name = f"{part}-{place:05d}"
            series = draw_series(rng, SMALL if size.small else SIDE, bicuspid=bicuspid)
            yield Example(name, part, name, series, _gold(POSITIVE if bicuspid else NEGATIVE))


def _gold(value: int) -> Int8Array:
    return np.full(N_ELEMENTS, value, dtype=np.int8)


# --- real series ------------------------------------------------------------------------------------------------------
@as_material("UK Biobank")
def load(folder: Path) -> Iterator[Example]:
    """Series from a folder: labels.csv and series/<series>.npy."""
    table = folder / "labels.csv"
    for row in read_table(table, ("series", "part", "label")):
        path = folder / "series" / f"{row['series']}.npy"
        try:
            series = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise LoaderError(f"{path}: must hold an array of {N_ELEMENTS} frames: {error}") from error
        if series.ndim != 3 or len(series) != N_ELEMENTS or series.shape[1] != series.shape[2]:
            raise LoaderError(f"{path}: must have the shape ({N_ELEMENTS}, side, side); found {series.shape}.")
        scaled = np.clip(255 * (series / max(float(np.percentile(series, 99.5)), 1e-9)), 0, 255).astype(np.uint8)
        yield Example(row["series"], read_part(row, table), row["series"], scaled, _gold(read_label(row, table)))


# --- the recipe -------------------------------------------------------------------------------------------------------
def network(small: bool) -> nn.Module:  # noqa: FBT001  the contract of a recipe
    """DenseNet-40 per frame, LSTM and attention over frames; or the same with DenseNet-7."""
    from dugong.endmodels.networks import DenseNet, FrameSequenceNet, cnn_lstm

    if not small:
        return cnn_lstm(2, in_channels=1)
    encoder = DenseNet(7, growth=6, n_classes=None, in_channels=1)
    return FrameSequenceNet(encoder, encoder.n_features, 2, hidden=16)


def inputs(series: AnyArray, small: bool) -> AnyArray:  # noqa: ARG001, FBT001  the contract of a recipe
    """All frames, (5, 1, side, side)."""
    return np.asarray(series[:, np.newaxis] / np.float32(255) - np.float32(0.4))


RECIPE = Recipe(
    name="bav",
    title="bicuspid aortic valves in MRI series",
    facts=Facts(
        n_elements=N_ELEMENTS,
        size=Size(train=4329, dev=106, test=94),
        positive=SHARE,
        sources=(5, 0, 0),
        network="CNN-LSTM",
    ),
    quick=Size(train=500, dev=45, test=200, small=True),
    sources=(area, perimeter, eccentricity, intensity, ratio),
    dependencies=(("area", "perimeter"), ("area", "ratio"), ("perimeter", "ratio"), temporal("intensity")),
    user_prior=user_prior,
    generate=generate,
    end_model=EndModel(
        network=network,
        inputs=inputs,
        unit="sequence",
        options={"epochs": 20, "batch_size": 16, "learning_rate": 1e-3},
        small_options={"epochs": 5, "batch_size": 16, "learning_rate": 3e-3},
    ),
    load=load,
    real_data=(
        "UK Biobank, https://www.ukbiobank.ac.uk (on application), phase-contrast MRI of the aortic valve, magnitude "
        "series cut to a square around the valve: labels.csv with the columns series, part (train, dev, test), label "
        "(-1, 1, or 0 for unknown), and series/<series>.npy with the five frames around the peak of flow, "
        "(5, side, side)."
    ),
)

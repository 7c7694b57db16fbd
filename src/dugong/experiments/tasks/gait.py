"""Gait: which seconds of a walk are a freezing of gait, from accelerometers on ankle, upper leg and trunk.

Five sources after the paper's: the freeze index of ankle and trunk and the amplitude of the swing second by second,
the arrhythmicity of strides and the variance of the upper leg over five seconds. Thresholds are those of the literature
or come from the development patient, never from others. The paper gives T = 5 in one table and 3 in another, and
sequence-level sources that read 4 and 11 elements, which fit neither. Here T = 5 elements of one second, and both
coarse sources read windows of 5: whole simulated sequences, successive pieces of the longer real ones. Between its two
thresholds a source says nothing, and how often it does differs from patient to patient: that is not evidence, so it
counts as not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import find_peaks

from dugong.endmodels import context_windows
from dugong.experiments.recipe import EndModel, Facts, Part, Recipe, Size, TaskMaterial, find_folder
from dugong.experiments.tasks.examples import Example, material, sizes_of
from dugong.graph import temporal
from dugong.priors import Markov, Prior
from dugong.sources import WindowView, source
from dugong.tasks import Window
from dugong.types import MISSING, NEGATIVE, POSITIVE, AnyArray, FloatArray, Int8Array, IntArray

if TYPE_CHECKING:
    from torch import nn

ANKLE, LEG, TRUNK = range(3)
FREEZING = 3.0  # freeze index: trembling (3 to 8 Hz) over walking (.5 to 3 Hz), in power
RATE = 64
WALK, STAND, SHUFFLE, FREEZE = range(4)
# From second to second; the stationary law has one freezing second in three, as the paper's dev set.
MOVES = np.array([
    [0.84, 0.05, 0.02, 0.09],
    [0.20, 0.66, 0.02, 0.12],
    [0.30, 0.02, 0.50, 0.18],
    [0.16, 0.04, 0.02, 0.78],
])  # fmt: skip
# By what is done: amplitude of the stride and of the trembling at the ankle, in thousandths of g.
STRIDE = np.array([600.0, 5.0, 300.0, 90.0])
TREMBLE = np.array([60.0, 5.0, 140.0, 330.0])
# How much of both arrives at each channel.
STRIDE_AT = np.array([1.0, 0.6, 0.5, 0.8, 0.4, 0.35, 0.2, 0.3, 0.15])
TREMBLE_AT = np.array([0.8, 0.6, 0.5, 1.1, 0.7, 0.6, 0.8, 0.6, 0.6])
# Errors that last: the share of freezes that a place does not show; a tremor of one place, begin and end by second.
HIDDEN, TREMOR_BEGINS, TREMOR_ENDS = 0.15, 0.06, 0.25
# Errors of a second: a place pauses in a freeze, a place is knocked, a step is longer or shorter.
PAUSE, KNOCK, UNEVEN = 0.35, 0.15, 0.5
# Harmonics of a stride: the heel strikes, so that walking itself has much power above 3 Hz.
HEEL = (0.7, 0.5, 0.5, 0.5, 0.4, 0.35, 0.3, 0.2)
GRAVITY = np.array([-150, 1000, 200, -50, 970, 130, 100, 970, 50])
# Patients of the real data by part: one for development, two for testing, and the one who freezes most for training.
REAL_PARTS: dict[str, Part] = {"S01": "dev", "S02": "train", "S03": "test", "S06": "train", "S07": "test"}
# The publication of the real recordings counts 237 freezes in more than eight hours; 7.3 seconds each and 8 h 20 min
# are quoted from memory.
PUBLISHED = Markov(positive=237 * 7.3 / 30_000, bout=7.3)
SHORTEST = 11  # seconds; pieces of the real recordings that are shorter are left out


def motion(sequence: AnyArray) -> FloatArray:
    """Amplitude of walking and of trembling in each second, (seconds, 3 places, 2 bands).

    Seen over three seconds around the second, as one alone does not resolve half a hertz.
    """
    n_seconds, span = len(sequence), 3 * RATE
    padded = np.pad(sequence.reshape(-1, 9).astype(float), ((RATE, RATE), (0, 0)), mode="reflect")
    frames = padded[(np.arange(n_seconds) * RATE)[:, None] + np.arange(span)]
    shape = np.hanning(span)[:, None]
    power = np.abs(np.fft.rfft((frames - frames.mean(axis=1, keepdims=True)) * shape, axis=1)) ** 2
    power = power.reshape(*power.shape[:2], 3, 3).sum(axis=3) / ((shape**2).sum() * span / 2)
    hertz = np.fft.rfftfreq(span, 1 / RATE)
    bands = [(hertz >= 0.5) & (hertz < 3), (hertz >= 3) & (hertz <= 8)]
    return np.asarray(np.sqrt(np.stack([power[:, band].sum(axis=1) for band in bands], axis=2)))


def freezes(walking: float, trembling: float, *, still: float, above: float, below: float) -> int:
    """The freeze index of one place; who stands still does not freeze."""
    if walking + trembling < still:
        return NEGATIVE
    index = (trembling / walking) ** 2
    return POSITIVE if index > above else NEGATIVE if index < below else MISSING


@source(pre=[motion])
def ankle_trembles(second: FloatArray) -> int:
    """Freeze index of the ankle; the literature cuts at about 2."""
    return freezes(*second[ANKLE], still=0.08, above=FREEZING, below=1.5)


@source(pre=[motion])
def trunk_trembles(second: FloatArray) -> int:
    """Freeze index of the trunk, which is larger in every walk."""
    return freezes(*second[TRUNK], still=0.12, above=5.0, below=3.0)


@source(pre=[motion])
def small_swing(second: FloatArray) -> int:
    """The upper leg swings far, or little although it moves, or stands."""
    swing, trembling = second[LEG]
    if swing + trembling == 0:  # the sensor is dead: was not asked
        return MISSING
    if swing > 0.2 or swing + trembling < 0.12:
        return NEGATIVE
    return POSITIVE if swing < 0.15 else MISSING


def strides(window: WindowView) -> FloatArray:
    """Seconds that the strides in a window take, by the swings of the ankle below 1.5 Hz."""
    flat = window.elements.reshape(-1, 9)[:, :3].astype(float)
    spectrum, hertz = np.fft.rfft(flat, axis=0), np.fft.rfftfreq(len(flat), 1 / RATE)
    spectrum[(hertz < 0.5) | (hertz > 1.5)] = 0
    slow = np.fft.irfft(spectrum, len(flat), axis=0)
    swing = slow[:, np.argmax(slow.var(axis=0))]
    peaks, _ = find_peaks(swing, distance=int(0.7 * RATE), height=max(0.01, swing.std() / 2))
    return np.asarray(np.diff(peaks) / RATE)


@source(resolution=Window(size=5, link="majority"))
def arrhythmic(window: WindowView) -> int:
    """Coefficient of variation of the times of successive strides."""
    times = strides(window)
    if len(times) < 2:
        return MISSING
    variation = times.std() / times.mean()
    return POSITIVE if variation > 0.25 else NEGATIVE if variation < 0.15 else MISSING


@source(resolution=Window(size=5, link="any"), pre=[motion])
def leg_varies(window: WindowView) -> int:
    """Variance of the upper leg: too small to walk, mostly slow all through, or mostly fast at some time."""
    walking, trembling = window.elements[:, LEG].T
    if not walking.any():  # the sensor is dead: was not asked
        return MISSING
    index = (trembling / walking) ** 2
    if trembling.max() < 0.1 or index.max() < 2.5:
        return NEGATIVE
    return POSITIVE if (index[trembling > 0.1] > 5).any() else MISSING


# Each of them reads three seconds, two of which the next one reads as well: what misleads it once does so again.
REPEATING = tuple(temporal(one.name) for one in (ankle_trembles, trunk_trembles, small_swing))


def expert(dev: Sequence[Int8Array]) -> Prior:
    """The share of freezes on the dev set; freezing and walking do not alternate from second to second."""
    labels = np.concatenate(dev)
    return Markov(positive=float((labels > 0).sum() / (labels != 0).sum()), bout=6.0)


def network(small: bool) -> nn.Module:  # noqa: FBT001  the contract of an end model
    """Bidirectional LSTM with attention; 300 units on raw samples as in the paper, or 24 on quarters of a second."""
    from dugong.endmodels import WindowLSTM

    return WindowLSTM(18, hidden=24) if small else WindowLSTM(9, hidden=300)


def inputs(sequence: AnyArray, small: bool) -> AnyArray:  # noqa: FBT001
    """For each second itself, three before and one after, (seconds, steps, features); zeros beyond the ends.

    Steps are samples, in units of three vigorous seconds. For small networks, which have no time to learn what a
    wave is, they are quarters of a second: deviation and mean change from sample to sample, by channel.
    """
    signal = 3 * sequence
    if small:
        quarters = signal.reshape(len(signal), 4, RATE // 4, 9)
        rough = np.abs(np.diff(quarters, axis=2)).mean(axis=2)
        signal = np.concatenate([quarters.std(axis=2), rough], axis=2)
    windows = context_windows(signal.reshape(len(signal), -1)).values
    return np.array(windows).reshape(len(signal), -1, signal.shape[2])


def simulate(size: Size, seed: int, folder: Path, n_seconds: int = 5) -> TaskMaterial:  # noqa: ARG001  no files
    """Sessions of `n_seconds`; patients belong to one part only, thirty sequences each."""
    rng, examples = np.random.default_rng(seed), []
    for part, count in sizes_of(size):
        for number in range(count):
            if number % 30 == 0:
                patient, habits = f"{part}-{number // 30}", _habits(rng)
            doing = _doing(rng, n_seconds)
            session, gold = _session(rng, doing, habits), np.where(doing == FREEZE, 1, -1).astype(np.int8)
            examples.append(Example(f"{patient}-{number % 30}", part, patient, session, gold))
    return _calibrated_material(examples, "simulated")


def _habits(rng: np.random.Generator) -> dict[str, float]:
    """One patient: strides per second, trembling per second, how large both are, how unsteady the stride is."""
    return {
        "cadence": rng.uniform(0.75, 1.05),
        "tremor": rng.uniform(3.5, 6.5),
        "stride": float(np.exp(rng.normal(0, 0.25))),
        "tremble": float(np.exp(rng.normal(0, 0.35))),
        "unsteady": rng.uniform(0.02, 0.08),
    }


def _doing(rng: np.random.Generator, n_seconds: int) -> IntArray:
    """What is done in each second, a stationary chain."""
    law = np.linalg.matrix_power(MOVES, 200)[0]
    doing = [int(rng.choice(4, p=law))]
    while len(doing) < n_seconds:
        doing.append(int(rng.choice(4, p=MOVES[doing[-1]])))
    return np.array(doing)


def _session(rng: np.random.Generator, doing: IntArray, habits: dict[str, float]) -> AnyArray:
    """Acceleration while doing this: strides with harmonics, trembling, and noise that differs by place."""
    n_samples = len(doing) * RATE
    uneven = np.where(np.isin(doing, (SHUFFLE, FREEZE)), 0.35, habits["unsteady"])
    speed = habits["cadence"] * (1 + np.repeat(uneven * rng.normal(size=len(doing)), RATE))
    phase = rng.uniform(0, 2 * np.pi) + 2 * np.pi * np.cumsum(speed) / RATE
    shake = 2 * np.pi * np.cumsum(habits["tremor"] + rng.normal(0, 3, n_samples)) / RATE
    lag = rng.uniform(0, 2 * np.pi, 9)
    step = 1.0 + (np.arange(9) >= 6)  # the trunk moves with every step, the legs with every second one
    turns = np.outer(phase, step) + lag
    waves = sum(share * np.sin(k * turns) for k, share in enumerate(HEEL, start=1))
    # How well a sensor sits, and how long each step is.
    fit = np.exp(rng.normal(0, 0.3, 3) + rng.normal(0, UNEVEN, (len(doing), 3)))
    stride = _by_sample(STRIDE[doing][:, None] * fit * habits["stride"])
    tremble = _by_sample(_trembling(rng, doing) * habits["tremble"])
    moved = stride * STRIDE_AT * waves + tremble * TREMBLE_AT * np.sin(shake[:, None] + lag)
    moved += rng.normal(0, 8 + 0.08 * stride)
    samples: AnyArray = np.rint(GRAVITY + moved).astype(np.int16)
    return samples.reshape(len(doing), RATE, 9)


def _trembling(rng: np.random.Generator, doing: IntArray) -> FloatArray:
    """Amplitude by second and place: bursts of a freeze, tremors and knocks that only one place has."""
    shape = (len(doing), 3)
    freezes = (doing == FREEZE)[:, None]
    pauses = freezes & ((rng.random(3) < HIDDEN) | (rng.random(shape) < PAUSE))
    tremor = np.zeros(shape, dtype=bool)
    tremor[0] = rng.random(3) < TREMOR_BEGINS / (TREMOR_BEGINS + TREMOR_ENDS)
    for second in range(1, len(doing)):
        draw = rng.random(3)
        tremor[second] = np.where(tremor[second - 1], draw > TREMOR_ENDS, draw < TREMOR_BEGINS)
    shaken = tremor | (rng.random(shape) < KNOCK)
    shown = np.where(pauses, TREMBLE[WALK], TREMBLE[doing][:, None])
    return np.where(shaken, np.maximum(shown, TREMBLE[FREEZE]), shown)


def _by_sample(by_second: FloatArray) -> FloatArray:
    """(seconds, 3 places) to (samples, 9 channels): nobody stops or starts within a sample."""
    kernel = np.full(RATE // 2 + 1, 1 / (RATE // 2 + 1))
    padded = np.pad(np.repeat(by_second, RATE, axis=0), ((RATE // 4, RATE // 4), (0, 0)), mode="edge")
    places = [np.convolve(column, kernel, mode="valid") for column in padded.T]
    return np.repeat(np.stack(places, axis=1), 3, axis=1)


def _calibrated_material(examples: list[Example], origin: str) -> TaskMaterial:
    found = material(examples, origin)
    return replace(found, sequences=calibrated(found.sequences, found.groups))


def calibrated(sequences: Mapping[str, AnyArray], groups: Mapping[str, str]) -> dict[str, AnyArray]:
    """The same, each place of each patient in units of its own vigorous second (90th percentile of its deviations).

    Sensors sit differently and patients walk differently; thresholds of one patient then mean something for another.
    """
    scales = {}
    for patient in dict.fromkeys(groups.values()):
        own = [sequence for name, sequence in sequences.items() if groups[name] == patient]
        vigour = np.concatenate([sequence.std(axis=1).reshape(-1, 3, 3).sum(axis=2) for sequence in own])
        scales[patient] = np.repeat(np.maximum(np.quantile(vigour, 0.9, axis=0), 1.0), 3)
    return {
        name: ((sequence - np.median(sequence, axis=(0, 1))) / scales[groups[name]]).astype(np.float32)
        for name, sequence in sequences.items()
    }


def load_daphnet(folder: Path) -> TaskMaterial:
    """Uninterrupted pieces of the experiments in ``recordings.npz``, cut into seconds; most of a second decides."""
    examples = []
    with np.load(find_folder(folder, "gait-daphnet", ("recordings.npz",)) / "recordings.npz") as stored:
        for recording in sorted({key.split("/")[0] for key in stored.files}):
            patient = recording.partition("R")[0]
            acceleration, annotation = stored[f"{recording}/acceleration"], stored[f"{recording}/annotation"]
            inside = np.concatenate([[False], annotation > 0, [False]])
            edges = np.flatnonzero(np.diff(inside.astype(np.int8))).reshape(-1, 2)
            for piece, (start, stop) in enumerate(edges):
                seconds = int(stop - start) // RATE
                if seconds >= SHORTEST:
                    rows, part = slice(start, start + seconds * RATE), REAL_PARTS.get(patient, "train")
                    frozen = (annotation[rows].reshape(seconds, RATE) == 2).mean(axis=1) > 0.5
                    walk, gold = acceleration[rows].reshape(seconds, RATE, 9), np.where(frozen, 1, -1).astype(np.int8)
                    examples.append(Example(f"{recording}-{piece}", part, patient, walk, gold))
    return _calibrated_material(examples, "Daphnet")


RECIPE = Recipe(
    name="gait",
    title="freezing of gait, seconds of accelerometer streams",
    facts=Facts(
        n_elements=5,
        size=Size(train=1793, dev=630, test=1014),
        positive=0.33,
        sources=(3, 0, 2),
        network="LSTM",
    ),
    quick=Size(train=500, dev=45, test=200, small=True),
    sources=(ankle_trembles, trunk_trembles, small_swing, arrhythmic, leg_varies),
    dependencies=(),  # three sources on elements cannot tell a pair; self-dependence lowered F1 when it was tried
    user_prior=expert,
    generate=simulate,
    end_model=EndModel(
        network=network,
        inputs=inputs,
        options={"epochs": 20, "batch_size": 32, "learning_rate": 1e-3},
        small_options={"epochs": 10, "learning_rate": 5e-3},
    ),
    load=load_daphnet,
    real_data=(
        "The paper's recordings are not public. The Daphnet data set (UCI repository, number 245, CC BY 4.0) is of the "
        "same kind: gait-daphnet/recordings.npz with, for each recording SxxRyy, SxxRyy/acceleration (samples, 9) and "
        "SxxRyy/annotation (0 outside the experiment, 1 no freeze, 2 freeze) at 64 Hz. Parts are by patient: S01 is "
        "the dev set, S03 and S07 the test set, all others are for training."
    ),
)

"""Accelerometers on ankle, upper leg and trunk: simulated sessions, and the recordings of the Daphnet data set.

A sequence is an int16 array (seconds, 64 samples, 9 channels) in thousandths of g, for each place forward, vertical and
lateral. In simulated sessions people walk, stand, shuffle and freeze; every patient has a stride, a trembling and an
amplitude of their own. Shuffling looks like freezing, a freeze may not reach one of the places, a tremor may shake one
place for some seconds and a knock for one: the errors of the sources. Nothing here knows how they decide.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dugong.experiments.recipe import PARTS, Material, Part, Size
from dugong.experiments.tasks.finding import find_folder
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray

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
SHORTEST = 11  # seconds; pieces of the real recordings that are shorter are left out


def simulate(size: Size, seed: int, folder: Path, n_seconds: int = 5) -> Material:  # noqa: ARG001  no files
    """Sessions of `n_seconds`; patients belong to one part only, thirty sequences each."""
    rng = np.random.default_rng(seed)
    sequences, gold, parts, groups = {}, {}, {}, {}
    for part in PARTS:
        for number in range(getattr(size, part)):
            if number % 30 == 0:
                patient, habits = f"{part}-{number // 30}", _habits(rng)
            name = f"{patient}-{number % 30}"
            doing = _doing(rng, n_seconds)
            sequences[name] = _session(rng, doing, habits)
            gold[name] = np.where(doing == FREEZE, 1, -1).astype(np.int8)
            parts[name], groups[name] = part, patient
    return Material(sequences=calibrated(sequences, groups), gold=gold, parts=parts, groups=groups, origin="simulated")


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


def calibrated(sequences: dict[str, AnyArray], groups: dict[str, str]) -> dict[str, AnyArray]:
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


def load_daphnet(folder: Path) -> Material:
    """Uninterrupted pieces of the experiments in ``recordings.npz``, cut into seconds; most of a second decides."""
    sequences: dict[str, AnyArray] = {}
    gold: dict[str, Int8Array] = {}
    with np.load(find_folder(folder, "gait-daphnet", ("recordings.npz",)) / "recordings.npz") as stored:
        for recording in sorted({key.split("/")[0] for key in stored.files}):
            acceleration, annotation = stored[f"{recording}/acceleration"], stored[f"{recording}/annotation"]
            inside = np.concatenate([[False], annotation > 0, [False]])
            edges = np.flatnonzero(np.diff(inside.astype(np.int8))).reshape(-1, 2)
            for piece, (start, stop) in enumerate(edges):
                seconds = int(stop - start) // RATE
                if seconds >= SHORTEST:
                    rows, name = slice(start, start + seconds * RATE), f"{recording}-{piece}"
                    sequences[name] = acceleration[rows].reshape(seconds, RATE, 9)
                    frozen = (annotation[rows].reshape(seconds, RATE) == 2).mean(axis=1) > 0.5
                    gold[name] = np.where(frozen, 1, -1).astype(np.int8)
    groups = {name: name.split("R")[0] for name in sequences}
    parts = {name: REAL_PARTS.get(patient, "train") for name, patient in groups.items()}
    return Material(sequences=calibrated(sequences, groups), gold=gold, parts=parts, groups=groups, origin="Daphnet")

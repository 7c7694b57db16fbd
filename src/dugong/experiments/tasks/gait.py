"""Gait: which seconds of a walk are a freezing of gait, from accelerometers on ankle, upper leg and trunk.

Five sources after the paper's: the freeze index of ankle and trunk and the amplitude of the swing second by second,
the arrhythmicity of strides and the variance of the upper leg over five seconds. Thresholds are those of the literature
or come from the development patient, never from others. The paper gives T = 5 in one table and 3 in another, and
sequence-level sources that read 4 and 11 elements, which fit neither. Here T = 5 elements of one second, and both
coarse sources read windows of 5: whole simulated sequences, successive pieces of the longer real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import find_peaks

from dugong.endmodels import context_windows
from dugong.experiments.recipe import EndModel, Facts, Recipe, Size
from dugong.experiments.tasks.gait_data import RATE, load_daphnet, simulate
from dugong.priors import Markov, Prior
from dugong.sources import WindowView, source
from dugong.tasks import Window
from dugong.types import ABSTAIN, MISSING, NEGATIVE, POSITIVE, AnyArray, FloatArray, Int8Array

if TYPE_CHECKING:
    from torch import nn

ANKLE, LEG, TRUNK = range(3)
FREEZING = 3.0  # freeze index: trembling (3 to 8 Hz) over walking (.5 to 3 Hz), in power


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
    return POSITIVE if index > above else NEGATIVE if index < below else ABSTAIN


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
    return POSITIVE if swing < 0.15 else ABSTAIN


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
        return ABSTAIN
    variation = times.std() / times.mean()
    return POSITIVE if variation > 0.25 else NEGATIVE if variation < 0.15 else ABSTAIN


@source(resolution=Window(size=5, link="any"), pre=[motion])
def leg_varies(window: WindowView) -> int:
    """Variance of the upper leg: too small to walk, mostly slow all through, or mostly fast at some time."""
    walking, trembling = window.elements[:, LEG].T
    if not walking.any():  # the sensor is dead: was not asked
        return MISSING
    index = (trembling / walking) ** 2
    if trembling.max() < 0.1 or index.max() < 2.5:
        return NEGATIVE
    return POSITIVE if (index[trembling > 0.1] > 5).any() else ABSTAIN


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

"""Freezing of gait from raw accelerometers: one element per second, five sources, no labels used for fitting.

Run it from the root of the project: ``python examples/gait.py [FOLDER]``; the folder holds ``recordings.npz`` of the
Daphnet data set (``../shared/data/gait-daphnet`` by default). Three sources look at single seconds, two at windows of
four and of eleven seconds, as in the Gait task of the paper. Gold labels are used for scoring only, by patient.

Elements are seconds of the experiment; seconds outside of it are cut away, so a recording may become several sequences.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dugong as dg

RATE = 64
FOLDER = Path(__file__).parents[2] / "shared" / "data" / "gait-daphnet"
ANKLE, LEG, TRUNK = 0, 4, 7  # forward, vertical, vertical
STILL = 16.0  # log power below which nobody walks or tries to


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Sequences of seconds, each (seconds, 64 samples, 9 channels), and their gold labels, -1 or +1."""
    sequences: dict[str, np.ndarray] = {}
    gold: dict[str, np.ndarray] = {}
    with np.load(folder / "recordings.npz") as stored:
        for name in sorted({key.split("/")[0] for key in stored.files}):
            annotation = stored[f"{name}/annotation"]
            inside = np.concatenate([[False], annotation > 0, [False]])
            edges = np.flatnonzero(np.diff(inside.astype(np.int8)))
            for part, (start, stop) in enumerate(edges.reshape(-1, 2)):
                seconds = (stop - start) // RATE
                if seconds >= 11:
                    rows = slice(start, start + seconds * RATE)
                    sequences[f"{name}-{part}"] = stored[f"{name}/acceleration"][rows].reshape(seconds, RATE, 9)
                    frozen = (annotation[rows].reshape(seconds, RATE) == 2).mean(axis=1) > 0.5
                    gold[f"{name}-{part}"] = np.where(frozen, 1, -1).astype(np.int8)
    return sequences, gold


def bands(sequence: np.ndarray) -> np.ndarray:
    """Log power in the locomotor band (.5 to 3 Hz) and the freeze band (3 to 8 Hz), (seconds, 3 places, 2 bands).

    Each second is seen with the three around it: one second alone does not resolve half a hertz.
    """
    signal = sequence[:, :, [ANKLE, LEG, TRUNK]].astype(float)
    padded = np.concatenate([signal[:1], signal[:1], signal, signal[-1:]])
    frames = np.concatenate([padded[k : k + len(signal)] for k in range(4)], axis=1)
    shape = np.hanning(4 * RATE)[:, np.newaxis]
    power = np.abs(np.fft.rfft((frames - frames.mean(axis=1, keepdims=True)) * shape, axis=1)) ** 2
    hertz = np.fft.rfftfreq(4 * RATE, 1 / RATE)
    walk = power[:, (hertz >= 0.5) & (hertz < 3)].sum(axis=1)
    freeze = power[:, (hertz >= 3) & (hertz <= 8)].sum(axis=1)
    return np.log1p(np.stack([walk, freeze], axis=2))


def freezes(walk: float, freeze: float) -> int:
    """The freeze index of one place: trembling without walking, walking, or standing still."""
    if max(walk, freeze) < STILL:
        return dg.NEGATIVE
    if freeze - walk > 1.0:
        return dg.POSITIVE
    return dg.NEGATIVE if freeze - walk < 0.4 else dg.ABSTAIN


@dg.source(pre=[bands])
def ankle_trembles(second: np.ndarray) -> int:
    """Freeze index of the ankle."""
    return freezes(*second[0])


@dg.source(pre=[bands])
def leg_trembles(second: np.ndarray) -> int:
    """Freeze index of the upper leg."""
    return freezes(*second[1])


@dg.source(pre=[bands])
def trunk_trembles(second: np.ndarray) -> int:
    """Freeze index of the trunk."""
    return freezes(*second[2])


@dg.source(resolution=dg.Window(size=4, link="majority"), pre=[bands])
def strides_alike(window: list[np.ndarray]) -> int:
    """Four seconds of walking with the same strength are walking."""
    walk = np.array([second[0, 0] for second in window])
    return dg.NEGATIVE if walk.min() > 19.5 and np.ptp(walk) < 1.0 else dg.ABSTAIN


@dg.source(resolution=dg.Window(size=11, link="any"), pre=[bands])
def bursts(window: list[np.ndarray]) -> int:
    """Within eleven seconds leg and ankle both tremble strongly at once, or the leg never does."""
    index = np.array([second[:2, 1] - second[:2, 0] for second in window])
    power = np.array([second[1, 1] for second in window])
    if (index.min(axis=1) > 1.3).any() and power.max() > STILL:
        return dg.POSITIVE
    return dg.NEGATIVE if index[:, 1].max() < 0.8 else dg.ABSTAIN


def main(folder: Path = FOLDER) -> dg.metrics.Comparison:
    """Apply the sources, fit, and compare with majority vote, patient by patient."""
    sequences, gold = load(folder)
    sources = [ankle_trembles, leg_trembles, trunk_trembles, strides_alike, bursts]
    votes = dg.apply(sources, sequences, progress=False)
    patients = [name.split("R")[0] for name in sequences]
    prior = dg.priors.Markov(positive=0.1, bout=8.0)
    labels = {
        "majority vote": dg.MajorityVote().fit(votes).predict_proba(votes),
        "learned": dg.LabelModel().fit(votes, groups=patients).predict_proba(votes),
        "prior given": dg.LabelModel(prior=prior, dependencies=()).fit(votes, groups=patients).predict_proba(votes),
    }
    print(votes.summary(gold=list(gold.values())))
    comparison = dg.compare(labels, np.concatenate(list(gold.values())), lengths=votes.lengths, groups=patients)
    print(comparison)
    return comparison


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))

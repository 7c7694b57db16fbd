"""Do the losses do what they are for? A small sequence problem with known truth and noisy sources.

The state of a machine changes rarely; two sensors see it dimly, so an end model must look at the context. Sources
of very different accuracy vote, and often abstain. Their exact posterior (element by element) is the label.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from dugong.endmodels import (
    FrameSequenceNet,
    Padded,
    WindowLSTM,
    context_windows,
    networks,
    pad_sequences,
    predict,
    train,
    train_seeds,
)

ACCURACIES = (0.9, 0.55)
COVERAGES = (0.2, 0.95)
LENGTH = 20


def machine(n_sequences: int, seed: int) -> tuple[Padded, np.ndarray, np.ndarray]:
    """Windows of readings, probabilities of the running state, and the truth."""
    rng = np.random.default_rng(seed)
    changes = np.where(rng.random((n_sequences, LENGTH)) < 0.1, -1, 1)
    gold = (np.cumprod(changes, axis=1) * rng.choice([-1, 1], size=(n_sequences, 1))).reshape(-1)
    readings = 0.6 * gold[:, None] + rng.normal(size=(len(gold), 2))
    odds = np.zeros(len(gold))
    for accuracy, coverage in zip(ACCURACIES, COVERAGES, strict=True):
        vote = np.where(rng.random(len(gold)) < accuracy, gold, -gold) * (rng.random(len(gold)) < coverage)
        odds += vote * np.log(accuracy / (1 - accuracy))
    positive = 1 / (1 + np.exp(-odds))
    return (
        context_windows(readings, lengths=[LENGTH] * n_sequences, before=3, after=1),
        np.column_stack([1 - positive, positive]),
        gold,
    )


def mean_accuracies() -> dict[str, float]:
    """Accuracy of a small network by loss, over four worlds."""
    found: dict[str, list[float]] = {"soft": [], "hard": [], "confidence": []}
    for world in range(4):
        windows, probabilities, _ = machine(30, seed=10 + world)
        test, _, gold = machine(100, seed=50 + world)
        for loss, accuracies in found.items():
            summary = train_seeds(
                lambda: nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2)),
                windows.values.reshape(len(windows), -1),
                probabilities,
                test=(test.values.reshape(len(test), -1), gold),
                seeds=(world,),
                loss=loss,
                epochs=15,
                batch_size=64,
                learning_rate=0.01,
            )
            accuracies.append(summary["accuracy"].mean)
    return {loss: float(np.mean(accuracies)) for loss, accuracies in found.items()}


def test_probabilities_teach_more_than_their_most_probable_class():
    """Most labels are little better than a coin; soft labels and confidence say which."""
    accuracy = mean_accuracies()
    assert accuracy["soft"] > accuracy["hard"] + 0.01
    assert accuracy["confidence"] > accuracy["hard"] + 0.03


def test_the_window_network_uses_its_context_and_stops_early():
    windows, probabilities, gold = machine(40, seed=1)
    test, _, truth = machine(100, seed=2)
    dev, _, known = machine(10, seed=3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = WindowLSTM(2, hidden=8)
    training = train(
        network,
        windows,
        probabilities,
        loss="confidence",
        dev=(dev, known),
        patience=3,
        epochs=60,
        batch_size=64,
        learning_rate=0.02,
    )
    assert training.stopped == "patience"
    assert len(training.history) == training.best_epoch + 3 < 60
    right = (predict(training.model, test)[:, 1] > 0.5) == (truth > 0)
    alone = (test.values[:, 3].sum(axis=-1) > 0) == (truth > 0)  # the best that one element can say
    labels = (probabilities[:, 1] > 0.5) == (gold > 0)
    assert right.mean() > alone.mean() + 0.04
    assert right.mean() > labels.mean() + 0.15


def fades(n_sequences: int, seed: int) -> tuple[Padded, np.ndarray]:
    """A spot that grows brighter or darker: no single frame tells, nor all of them without their order."""
    rng = np.random.default_rng(seed)
    rises = rng.integers(0, 2, size=n_sequences)
    sequences = []
    for rising in rises:
        frames = 0.1 * rng.random((rng.integers(3, 6), 1, 8, 8))
        brightness = np.linspace(0.2, 1.0, len(frames))
        row, column = rng.integers(0, 6, size=2)
        frames[:, 0, row : row + 2, column : column + 2] += brightness[:: 1 if rising else -1, None, None]
        sequences.append(frames)
    return pad_sequences(sequences), 2 * rises - 1


def test_the_frame_network_learns_an_order():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = networks.DenseNet(7, growth=6, n_classes=None, in_channels=1)
        network = FrameSequenceNet(encoder, encoder.n_features, hidden=8)
    training = train(network, *fades(80, seed=1), epochs=10, batch_size=16, learning_rate=0.02)
    test, gold = fades(100, seed=2)
    assert np.mean(predict(training.model, test).argmax(axis=1) == (gold > 0)) > 0.9

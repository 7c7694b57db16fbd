"""The votes of `make bench-public`: made on other sequences, of every kind, and scored as the page says."""

import numpy as np
import pytest
from benchmarks.public import KINDS, Table, build, scores, smoothed, verdict
from benchmarks.public_sets import Data


def three_classes(rng: np.random.Generator) -> Data:
    labels = np.repeat(rng.integers(0, 3, 60), 10)
    features = labels[:, None] * [1.0, -1.0, 0.5, 0.0] + rng.normal(size=(600, 4))
    return Data(features=features, labels=labels, lengths=np.full(60, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_sources_beat_chance_on_sequences_they_were_not_made_on(kind, rng):
    votes, other = build(three_classes(rng), kind, rng)
    spoken = votes >= 0
    assert len(votes) == other.lengths.sum() <= 360
    assert (votes < 3).all()
    assert (votes == other.labels[:, None])[spoken].mean() > 0.4
    assert (votes == -2).any() == (kind == "crowd")


def test_smoothing_stays_inside_a_sequence():
    values = np.array([[0.0], [3.0], [6.0], [100.0]])
    assert smoothed(values, np.array([3, 1]), 3).ravel().tolist() == [1.5, 3.0, 4.5, 100.0]


def test_scores_and_cells():
    gold = np.array([0, 1, 1, 0])
    table = Table(text="", votes=gold[:, None], lengths=np.array([4]), gold=gold, n_classes=2)
    right, half = scores(table, np.eye(2)[gold]), scores(table, np.array([[0.6, 0.4]] * 4))
    assert right.tolist() == pytest.approx([1, 1, 0, 0])
    assert half.tolist() == pytest.approx([0.5, 0, 0.52, -(np.log(0.6) + np.log(0.4)) / 2])
    others = np.stack([right, half])[None]
    assert verdict(half[None], others, np.array([True]))[1:4] == ("100%", "100%", "-0.5000")
    assert verdict(right[None], others, np.array([True]))[-1] == "1 + 1 + 1 (100%)"

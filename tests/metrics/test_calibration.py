"""The reliability curve and the expected calibration error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.metrics import evaluate


def test_curve_by_hand():
    positive = np.array([0.05, 0.15, 0.15, 0.5, 0.75, 1.0])
    gold = [-1, -1, 1, 1, 1, 1]
    curve = evaluate(np.column_stack([1 - positive, positive]), gold, n_bins=4).calibration
    assert curve is not None
    np.testing.assert_array_equal(curve.edges, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(curve.counts, [3, 0, 1, 2])
    np.testing.assert_allclose(curve.mean_probability, [0.35 / 3, np.nan, 0.5, 0.875], rtol=1e-12, atol=0)
    np.testing.assert_allclose(curve.frequency, [1 / 3, np.nan, 1, 1], rtol=1e-12, atol=0)
    assert curve.ece == pytest.approx((0.65 + 0.5 + 0.25) / 6, rel=1e-12)
    assert curve.largest_gap == pytest.approx(0.5, rel=1e-12)
    assert curve.of == "P(+1)"
    assert not curve.counts.flags.writeable


def test_many_classes_use_the_chosen_class():
    probabilities = [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]
    curve = evaluate(probabilities, [1, 1, 3], n_bins=1).calibration
    assert curve is not None
    assert curve.of == "P(chosen class)"
    assert curve.ece == pytest.approx(abs(2.0 / 3 - 2 / 3), abs=1e-12)
    assert curve.frequency[0] == pytest.approx(2 / 3, rel=1e-12)


def test_many_classes_with_a_positive_class_use_its_probability():
    probabilities = [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]
    curve = evaluate(probabilities, [1, 1, 3], n_bins=1, positive=3).calibration
    assert curve is not None
    assert curve.of == "P(3)"
    assert curve.mean_probability[0] == pytest.approx(0.8 / 3, rel=1e-12)
    assert curve.frequency[0] == pytest.approx(1 / 3, rel=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 80), st.integers(2, 5), st.integers(1, 20))
def test_error_lies_between_0_and_1_and_equals_a_loop(seed, n, n_classes, n_bins):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    columns = rng.integers(0, n_classes, n)
    gold = 2 * columns - 1 if n_classes == 2 else columns + 1
    result = evaluate(probabilities, gold, classes=[-1, 1] if n_classes == 2 else None, n_bins=n_bins)
    expected, edges = 0.0, np.linspace(0, 1, n_bins + 1)
    top = probabilities[:, 1] if n_classes == 2 else probabilities.max(axis=1)
    happened = gold == 1 if n_classes == 2 else columns == probabilities.argmax(axis=1)
    for b in range(n_bins):
        last = b == n_bins - 1
        inside = (top >= edges[b]) & ((top < edges[b + 1]) | last)
        if inside.any():
            expected += inside.mean() * abs(top[inside].mean() - happened[inside].mean())
    assert 0.0 <= result.ece <= 1.0
    assert result.ece == pytest.approx(expected, abs=1e-12)
    assert result.calibration.ece == pytest.approx(result.ece, abs=1e-12)


def test_honest_probabilities_have_a_small_error(rng):
    positive = rng.random(200_000)
    gold = np.where(rng.random(200_000) < positive, 1, -1)
    honest = evaluate(np.column_stack([1 - positive, positive]), gold)
    sharper = np.where(positive > 0.5, 0.99, 0.01)
    loud = evaluate(np.column_stack([1 - sharper, sharper]), gold)
    assert honest.ece < 0.01
    assert 0.2 < loud.ece < 0.3  # promised .99, happened .75 on average

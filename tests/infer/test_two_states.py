"""The forward-backward loop of two states, beside all paths of a short sequence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dugong.infer.grouped._kernels import smooth_two


def all_paths(steps: np.ndarray) -> tuple[np.ndarray, float]:
    """Probabilities of neighbouring states, and the logarithm of the sum of all paths; row 0 is the beginning."""
    pairs = np.zeros(steps.shape)
    for path in product((0, 1), repeat=len(steps)):
        before = (0, *path[:-1])
        weight = np.prod([steps[t, before[t], path[t]] for t in range(len(steps))])
        for t in range(len(steps)):
            pairs[t, before[t], path[t]] += weight
    return pairs / pairs[0].sum(), float(np.log(pairs[0].sum()))


@pytest.mark.parametrize("size", [1.0, 1e-60, 1e60], ids=["near one", "tiny", "huge"])
def test_pairs_and_sums_are_those_of_all_paths(size: float) -> None:
    rng = np.random.default_rng(5)
    spans = np.array([[0, 4], [4, 9], [9, 10], [10, 14]])
    steps = rng.uniform(0.1, 1.0, (14, 2, 2)) * size
    active = np.array([True, True, True, False])
    alpha, pairs, logs = np.full((14, 2), np.nan), np.full((14, 2, 2), np.nan), np.full(4, np.nan)
    assert smooth_two(steps, spans, active, alpha, pairs, logs) == -1
    for begin, end in spans[:3]:
        expected, log = all_paths(steps[begin:end] / size)
        np.testing.assert_allclose(pairs[begin:end], expected, rtol=1e-12, atol=1e-15)
        place = int(np.flatnonzero(spans[:, 0] == begin)[0])
        np.testing.assert_allclose(logs[place], log + (end - begin) * np.log(size), rtol=1e-12)
        np.testing.assert_allclose(alpha[begin:end].sum(axis=1), 1.0, rtol=1e-12)
    assert np.isnan(pairs[10:]).all()
    assert np.isnan(logs[3])


def test_a_sequence_without_any_path_is_named() -> None:
    steps = np.full((6, 2, 2), 0.5)
    steps[4] = 0.0
    alpha, pairs, logs = np.zeros((6, 2)), np.zeros((6, 2, 2)), np.zeros(2)
    assert smooth_two(steps, np.array([[0, 3], [3, 6]]), np.ones(2, dtype=np.bool_), alpha, pairs, logs) == 1

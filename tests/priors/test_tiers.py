"""Interpreted and compiled kernels give the same numbers, and the change from one to the other is not seen."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.priors import Markov, _kernels, pair_sums
from dugong.tasks import Element, Sequence, Window

LENGTHS, COUNTS = np.array([0, 3, 7, 12]), np.array([1, 4, 2, 3])
PAIRS = (
    ("same", Element(), Element(), 2),
    ("same", Window(size=4, stride=2), Window(size=4, stride=2), 1),
    ("inside", Element(), Window(size=3), 0),
    ("inside", Window(size=3), Sequence(), 0),
)


def everything() -> list[np.ndarray]:
    prior = Markov(positive=0.3, stay=0.8)
    found = list(prior.count_moments(LENGTHS))
    for kind, first, second, lag in PAIRS:
        found.append(pair_sums(prior, kind, first, second, LENGTHS, COUNTS, lag=lag).means())
    found.append(pair_sums(prior, "same", Element(), Element(), LENGTHS, COUNTS, by_position=True, lag=1).means())
    return found


def test_interpreted_and_compiled_kernels_agree_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernels, "ENOUGH", 1 << 60)
    interpreted = everything()
    monkeypatch.setattr(_kernels, "ENOUGH", -1)
    for first, second in zip(interpreted, everything(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_kernel_is_compiled_once_it_has_had_enough_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []
    monkeypatch.setattr(_kernels, "njit", lambda **_: lambda _function: lambda *_arguments: ways.append("compiled"))
    monkeypatch.setattr(_kernels, "ENOUGH", 10)
    kernel = _kernels.interpreted_first(lambda work: work)(lambda _work: ways.append("interpreted"))
    for work in (4, 6, 1, 1):
        kernel(work)
    assert ways == ["interpreted", "interpreted", "compiled", "compiled"]

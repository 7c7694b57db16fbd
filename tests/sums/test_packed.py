"""Counting from bit planes, beside counting one task after the other."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.sums._kernels import count_packed_pairs, pack_votes
from dugong.types import MISSING


@pytest.mark.parametrize("unasked", [0.0, 0.3], ids=["all asked", "some not"])
@pytest.mark.parametrize("words", [(0, 4), (1, 3)], ids=["all words", "some words"])
def test_cells_of_pairs_are_those_of_a_loop(unasked: float, words: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    votes = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(3, 256), p=[0.5, 0.2, 0.3])
    votes[:2][rng.random((2, 256)) < unasked] = MISSING  # the third is always asked: margins of both kinds
    planes, asked = np.zeros((3, 3, 4), dtype=np.uint64), np.zeros(3, dtype=np.bool_)
    for source in range(3):
        asked[source] = pack_votes(votes[source], planes[source])
    assert asked.tolist() == [unasked == 0, unasked == 0, True]
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 2])
    counts = np.ones((4, 3, 3), dtype=np.int64)  # what is there is added to
    count_packed_pairs(planes, asked, *words, first, second, counts)
    expected = np.ones((4, 3, 3), dtype=np.int64)
    column = {-1: 0, 1: 1, 0: 2}
    some = votes[:, 64 * words[0] : 64 * words[1]]
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        for one, two in zip(some[a], some[b], strict=True):
            if MISSING not in (one, two):
                expected[pair, column[int(one)], column[int(two)]] += 1
    np.testing.assert_array_equal(counts, expected)

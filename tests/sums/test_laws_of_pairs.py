"""Laws of two labels from their moments: exact where there is one, and always a law; counts that nobody changes."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.sums import MomentRow, Plan, Slot, count
from dugong.sums.laws import PairMoments
from dugong.votes import SourceInfo, Votes


def test_the_law_of_a_pair_has_its_moments() -> None:
    law = np.array([[[0.4, 0.1], [0.2, 0.3]], [[0.25, 0.25], [0.25, 0.25]]])
    signs = np.array([-1.0, 1.0])
    first, second = law.sum(axis=2) @ signs, law.sum(axis=1) @ signs
    covariance = np.einsum("pab,a,b->p", law, signs, signs) - first * second
    found = PairMoments(first=first, second=second, covariance=covariance).law()
    np.testing.assert_allclose(found, law, rtol=0, atol=1e-15)


def test_moments_of_no_law_give_the_nearest_one() -> None:
    """A rare label that is said to vary as much as a frequent one."""
    found = PairMoments(first=np.array([-0.9]), second=np.array([0.5]), covariance=np.array([0.9])).law()
    assert found.min() == 0.0
    np.testing.assert_allclose(found.sum(axis=(-2, -1)), 1.0, rtol=1e-15)
    np.testing.assert_allclose(found[0], np.array([[0.4625, 0.4875], [0.0, 0.2625]]) / 1.2125, rtol=1e-12)


def test_counts_are_read_only() -> None:
    votes = Votes.from_dense(np.ones((30, 4, 1), dtype=np.int8))
    row = MomentRow(slots=(Slot(source=votes.source_names[0]),))
    moments = count(votes, Plan(rows=(row,)))
    with pytest.raises(ValueError, match="read-only"):
        moments.counts[0][0] = 7


def test_a_slot_before_its_anchor_reads_nothing_of_the_sequence_before() -> None:
    """Three slots, two of them earlier: the first two elements of every sequence have no such anchor."""
    rng = np.random.default_rng(2)
    columns = tuple(rng.choice(np.array([-1, 1], dtype=np.int8), 40) for _ in range(2))
    sources = (SourceInfo(name="a"), SourceInfo(name="b"))
    votes = Votes(sources=sources, columns=columns, lengths=np.full(8, 5))
    row = MomentRow(slots=(Slot(source="a"), Slot(source="b", offset=-1), Slot(source="a", offset=-2)))
    found = count(votes, Plan(rows=(row,))).table(row)
    a, b = (((column.reshape(8, 5) + 1) // 2) for column in columns)
    expected = np.zeros((2, 2, 2))
    np.add.at(expected, (a[:, 2:], b[:, 1:-1], a[:, :-2]), 1)
    np.testing.assert_array_equal(found[:2, :2, :2], expected)
    assert found.sum() == expected.sum()

"""Majority vote: shares, ties, background, coarse votes and coarse labels."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.baselines import MajorityVote


def test_shares_of_the_votes() -> None:
    votes = dg.Votes.from_dense(np.array([[1, 1, -1], [0, 0, 0], [-1, 0, -1]]), lengths=[3])
    shares = MajorityVote().fit(votes).predict_proba(votes)
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3], [0.5, 0.5], [1, 0]], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("ties", "expected"), [("first", -1), ("last", 1)])
def test_ties_go_by_the_named_rule(ties, expected) -> None:
    votes = dg.Votes.from_dense(np.array([[1, -1]]), lengths=[1])
    assert MajorityVote(ties=ties).fit(votes).predict(votes).tolist() == [expected]


def test_random_ties_are_reproducible() -> None:
    votes = dg.Votes.from_dense(np.tile([[1, -1]], (50, 1)), lengths=[50])
    model = MajorityVote(ties="random", seed=3).fit(votes)
    first = model.predict(votes)
    assert set(first.tolist()) == {-1, 1}
    np.testing.assert_array_equal(first, model.predict(votes))


def test_silence_is_background() -> None:
    votes = dg.Votes.from_classes(np.array([[1, 2], [-1, -1]]), n_classes=3, lengths=[2])
    model = MajorityVote().fit(votes)
    assert model.background_ == 1
    np.testing.assert_allclose(model.predict_proba(votes), [[0, 0.5, 0.5], [1, 0, 0]], rtol=0, atol=1e-12)


def coarse_votes() -> dg.Votes:
    return dg.Votes.from_tasks(
        {"face": np.array([1, 0, -1, -1]), "caption": np.array([1, -1])},
        lengths=[4],
        resolutions={"caption": dg.Window(size=2, link="any")},
    )


def test_a_window_vote_counts_for_its_elements() -> None:
    votes = coarse_votes()
    shares = MajorityVote().fit(votes).predict_proba(votes)
    np.testing.assert_allclose(shares[:, 1], [1, 1, 0, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("link", "expected"), [("any", [1, 0.5]), ("all", [0.5, 0]), ("majority", [0.75, 0.25])])
def test_coarser_labels_from_shares(link, expected) -> None:
    votes = dg.Votes.from_dense(np.array([[1, 1], [1, -1], [1, -1], [-1, -1]]), lengths=[4])
    shares = MajorityVote().fit(votes).predict_proba(votes, dg.Window(size=2, link=link))
    np.testing.assert_allclose(shares[:, 1], expected, rtol=0, atol=1e-12)


def test_score_needs_known_labels() -> None:
    votes = coarse_votes()
    model = MajorityVote().fit(votes)
    assert model.score(votes, np.array([1, 0, -1, 1])) == pytest.approx(2 / 3)
    with pytest.raises(dg.LabelError, match="at least one known gold label"):
        model.score(votes, np.zeros(4))


def test_predicting_before_fitting_says_so() -> None:
    with pytest.raises(dg.NotFittedError, match="call fit"):
        MajorityVote().predict_proba(coarse_votes())

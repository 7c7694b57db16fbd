"""Which sequences people should look at: uncertain ones, and not the same thing twice."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LabelError
from dugong.review import choose


def flat(lengths: list[int]) -> dg.Votes:
    return dg.Votes.from_tasks({"s": np.zeros(sum(lengths), np.int8)}, lengths)


def test_the_most_uncertain_come_first() -> None:
    votes = flat([2, 2, 2, 0])
    shares = np.array([0.9, 0.9, 0.5, 0.6, 0.99, 1.0])
    found = choose(votes, np.stack([1 - shares, shares], axis=1), 10, "entropy")
    assert found.ids == (1, 0, 2)
    assert found.worth[0] == pytest.approx(1 + 0.9709505944546686)
    assert "entropy" in str(found)
    assert found.to_dict()["sequences"] == [1, 0, 2]


def test_twins_are_not_chosen_twice() -> None:
    """Two groups of equal sequences: the second choice is from the other group, though it is less uncertain."""
    columns = np.repeat([[1] * 4, [1] * 4, [1] * 4, [-1] * 4], 1, axis=0).ravel().astype(np.int8)
    votes = dg.Votes.from_tasks({"s": columns}, [4] * 4)
    shares = np.repeat([0.55, 0.55, 0.55, 0.3], 4)
    found = choose(votes, np.stack([1 - shares, shares], axis=1), 2, "entropy")
    assert found.ids[0] == 0
    assert found.ids[1] == 3


def test_what_cannot_be_asked() -> None:
    votes = flat([2])
    with pytest.raises(LabelError, match="chosen by 'entropy'; found by='luck'"):
        choose(votes, np.full((2, 2), 0.5), 1, "luck")
    with pytest.raises(LabelError, match="at least 1; found 0"):
        choose(votes, np.full((2, 2), 0.5), 0, "entropy")


def test_a_model_chooses() -> None:
    rng = np.random.default_rng(0)
    votes = dg.Votes.from_dense(rng.choice([-1, 1], (8, 5, 3)))
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.8), dependencies=()).fit(votes)
    found = model.review(votes, budget=3)
    assert len(found) == 3
    shares = model.predict_proba(votes)
    bits = -(shares * np.log2(shares)).sum(axis=1).reshape(8, 5).sum(axis=1)
    assert found.places[0] == int(np.argmax(bits))

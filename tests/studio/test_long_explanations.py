"""Explanations of very long sequences look at a part of them, and say the same."""

from __future__ import annotations

import numpy as np

from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.studio.pages import _around
from dugong.tasks import Sequence
from dugong.votes import Votes


def long_votes(n: int = 50_000) -> Votes:
    rng = np.random.default_rng(3)
    labels = np.where(np.repeat(rng.random(n // 50) < 0.3, 50), 1, -1)
    columns = {f"s{k}": np.where(rng.random(n) < 0.8, labels, -labels) for k in range(4)}
    return Votes.from_tasks(columns, lengths=[n])


def test_a_part_of_a_long_sequence_explains_as_the_whole_does():
    votes = long_votes()
    model = LabelModel(prior=Markov(positive=0.3, stay=0.98), dependencies=()).fit(votes)
    for task in (0, 100, 25_050, 49_999):
        near, first = _around(votes, task)
        assert near.n_elements <= 40_000
        part, whole = model.explain(near, 0, task - first), model.explain(votes, 0, task)
        np.testing.assert_allclose(part.log_odds, whole.log_odds, rtol=0, atol=1e-9)
        np.testing.assert_allclose(part.neighbours, whole.neighbours, rtol=0, atol=1e-9)
        assert [(one.source, one.vote) for one in part.own_votes] == [(one.source, one.vote) for one in whole.own_votes]


def test_sequences_with_larger_pieces_are_looked_at_whole():
    votes = long_votes()
    columns = {**dict(zip(votes.source_names, votes.columns, strict=True)), "all": np.array([1], dtype=np.int8)}
    mixed = Votes.from_tasks(columns, lengths=[50_000], resolutions={"all": Sequence(link="any")})
    assert _around(mixed, 100) == (mixed, 0)

"""Sources that name one class only: whether they speak is all that they say."""

from __future__ import annotations

import numpy as np

import dugong as dg


def lexicons(n: int = 20_000, heard: float = 0.45):
    """Lists that find one class each and hardly overlap, among many words that a list of stopwords rules out."""
    rng = np.random.default_rng(0)
    gold = np.where(rng.random(n) < 0.06, 1, -1)
    own = rng.integers(0, 4, n)
    votes = {
        f"list{k}": np.where((gold == 1) & (own == k) & (rng.random(n) < 0.8) | (rng.random(n) < 0.001), 1, 0)
        for k in range(4)
    }
    votes["all"] = np.where((gold == 1) & (rng.random(n) < 0.3), 1, 0)
    votes["stopwords"] = np.where((gold == -1) & (rng.random(n) < heard), -1, 0)
    return dg.Votes.from_tasks(votes, lengths=np.full(n // 40, 40)), gold


def test_the_silence_of_others_does_not_outvote_a_source_that_speaks_alone() -> None:
    votes, gold = lexicons()
    labels = dg.LabelModel().fit(votes).predict(votes)
    alone = np.stack([column == 1 for column in votes.columns]).sum(axis=0) == 1
    voted = np.stack([column != 0 for column in votes.columns]).any(axis=0)
    assert (gold[alone] == 1).mean() > 0.9
    assert (labels[alone] == 1).mean() > 0.95
    assert (labels[voted] == gold[voted]).mean() > 0.99
    assert (labels[~voted] == -1).all()  # nobody speaks: the first class, as in majority vote


def test_why_no_model_was_tested_is_said() -> None:
    votes, _ = lexicons(n=4_000, heard=0.1)
    assert "(most elements have no vote)" in dg.LabelModel().fit(votes).diagnostics_.notes[0].text

"""Rare classes keep their place where votes are discounted."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg


def shared_difficulty(seed: int, n: int = 6_000, positive: float = 0.12, m: int = 7):
    """Rare positives; where an element is hard, all sources are bad at it together."""
    rng = np.random.default_rng(seed)
    labels, hard = rng.random(n) < positive, rng.random(n) < 0.4
    recall = np.where(hard, 0.35, 0.85)[:, np.newaxis] + rng.normal(0, 0.05, m)
    alarm = np.where(hard, 0.12, 0.03)[:, np.newaxis] + rng.uniform(0, 0.03, m)
    said = rng.random((n, m)) < np.where(labels[:, np.newaxis], recall, alarm)
    return dg.Votes.from_dense(np.where(said, 1, -1).reshape(-1, 10, m)), labels


def f1(found: np.ndarray, labels: np.ndarray) -> float:
    return float(2 * (found & labels).sum() / (found.sum() + labels.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_discounted_votes_do_not_lose_to_the_balance(seed: int) -> None:
    votes, labels = shared_difficulty(seed)
    model, vote = dg.LabelModel().fit(votes), dg.MajorityVote().fit(votes)
    assert model.diagnostics_.learned["trust"] < 0.5, "the case is about sources that share errors"
    ours, plain = (f1(one.predict_proba(votes)[:, 1] > 0.5, labels) for one in (model, vote))
    assert ours >= plain - 0.01

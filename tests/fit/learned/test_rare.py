"""Rare classes keep their place where votes are discounted, and make nobody a variant of another."""

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


def honest_and_opposite(seed: int, n: int = 3_000, positive: float = 0.08, m: int = 12):
    """Detectors of a rare event that look at the same noisy signal, and two that say the opposite."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < positive
    signal = 1.6 * labels + 0.5 * rng.normal(size=n)
    seen = signal[:, np.newaxis] + rng.normal(0, 0.6, (n, m + 2))
    said = np.where(seen > 1.2 + rng.uniform(-0.2, 0.2, m + 2), 1, -1)
    said[:, m:] *= -1
    return dg.Votes.from_dense(said.reshape(-1, 10, m + 2)), labels


def f1(found: np.ndarray, labels: np.ndarray) -> float:
    return float(2 * (found & labels).sum() / (found.sum() + labels.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_discounted_votes_do_not_lose_to_the_balance(seed: int) -> None:
    votes, labels = shared_difficulty(seed)
    model, vote = dg.LabelModel().fit(votes), dg.MajorityVote().fit(votes)
    assert model.diagnostics_.learned["trust"] < 0.9, "the case is about sources that share errors"
    ours, plain = (f1(one.predict_proba(votes)[:, 1] > 0.5, labels) for one in (model, vote))
    assert ours >= plain - 0.01


@pytest.mark.parametrize("seed", range(4))
def test_who_agrees_on_the_frequent_class_is_no_family(seed: int) -> None:
    """Counted down as one, twelve honest detectors would lose to two that say the opposite.

    Half of their noise is common, and what all of them see looks like a label: some hundredths may be lost to it.
    """
    votes, labels = honest_and_opposite(seed)
    model, vote = dg.LabelModel().fit(votes), dg.MajorityVote().fit(votes)
    ours, plain = (((one.predict_proba(votes)[:, 1] > 0.5) == labels).mean() for one in (model, vote))
    assert ours > plain - 0.05

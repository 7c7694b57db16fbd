"""The scores of plain voting on real votes equal those that are published for the same votes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dugong.metrics import evaluate

pytestmark = pytest.mark.data


def vote_shares(votes: np.ndarray, n_classes: int, silent: int | None = None) -> np.ndarray:
    """Return the share of votes per class; where nobody votes all classes alike, or the `silent` one."""
    counts = np.stack([(votes == k).sum(axis=1) for k in range(n_classes)], axis=1).astype(float)
    total = counts.sum(axis=1, keepdims=True)
    nobody = np.full(n_classes, 1 / n_classes) if silent is None else np.eye(n_classes)[silent]
    return np.where(total > 0, counts / np.maximum(total, 1), nobody)


def test_tennis(shared_data):
    with np.load(shared_data / "tennis" / "votes.npz") as data:
        votes, gold, lengths = data["votes"], data["gold"], data["lengths"]
    gold = np.where(gold < 0, 0, 2 * gold.astype(int) - 1)
    result = evaluate(vote_shares(votes, 2), gold, lengths=lengths)
    found = [round(value, 3) for value in (result.accuracy, result.f1, result.brier, result.log_loss)]
    assert found == [0.883, 0.852, 0.213, 1.036]
    assert result.interval("accuracy") is None  # gold lies in one sequence alone


def test_sleep(shared_data):
    with np.load(shared_data / "sleep-dodh" / "votes.npz") as data:
        votes, gold, lengths = data["votes"][:, :6], data["gold"].astype(int), data["lengths"]
    result = evaluate(vote_shares(votes, 5), gold + 1, lengths=lengths)
    assert [round(value, 3) for value in (result.accuracy, result.brier, result.log_loss)] == [
        0.905,
        0.156,
        0.458,
    ]
    assert result.n_unknown == 516
    low, high = result.interval("accuracy")
    assert 0.02 < high - low < 0.05  # 25 nights, not 24,149 epochs (which would give .007)


def test_tags(shared_data):
    folder = shared_data / "ner-bc5cdr"
    meta = json.loads((folder / "meta.json").read_text())
    with np.load(folder / "votes.npz") as data:
        test = data["split"] == 2
        rows = np.repeat(test, data["lengths"])
        columns = [meta["sources"].index(name) for name in meta["recommended_sources"]]
        votes, gold = data["votes"][rows][:, columns], data["gold"][rows].astype(int)
        lengths = data["lengths"][test]
    result = evaluate(vote_shares(votes, 5, silent=0), gold + 1, lengths=lengths, classes=meta["classes"])
    found = (result.accuracy, result.f1, result.span_f1, result.brier, result.log_loss)
    assert [round(value, 3) for value in found] == [0.964, 0.813, 0.806, 0.068, 0.46]

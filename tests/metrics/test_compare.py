"""Paired comparison of methods, and the sentence that sums it up."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from dugong.metrics import compare, evaluate


@pytest.fixture
def world(rng):
    """Forty sequences with gold; a fair method, a copy with rare slips, and a good one."""
    lengths = np.full(40, 50)
    difficulty = np.repeat(rng.beta(8, 2, 40), lengths)
    gold = rng.choice([-1, 1], len(difficulty), p=[0.7, 0.3])

    def method(accuracy: np.ndarray, sure: float) -> np.ndarray:
        label = np.where(rng.random(len(gold)) < accuracy, gold, -gold)
        positive = np.where(label == 1, sure, 1 - sure)
        return np.column_stack([1 - positive, positive])

    return gold, lengths, method, difficulty


def test_a_better_method_is_called_better(world):
    gold, lengths, method, difficulty = world
    result = compare(
        {"majority": method(difficulty, 0.9), "model": method(np.sqrt(difficulty), 0.9)},
        gold,
        lengths=lengths,
    )
    assert result.better is True
    assert result.verdict.startswith("model is better than majority on these labels: accuracy +0.")
    assert result.difference("accuracy").finding == "better"
    assert result.difference("brier").finding == "better"
    assert result.difference("brier").value < 0


def test_the_reverse_is_called_worse(world):
    gold, lengths, method, difficulty = world
    good, fair = method(np.sqrt(difficulty), 0.9), method(difficulty, 0.9)
    result = compare({"majority": good, "model": fair}, gold, lengths=lengths)
    assert result.better is False
    assert result.verdict.startswith("model is worse than majority on these labels: accuracy -0.")
    forward = compare({"majority": fair, "model": good}, gold, lengths=lengths)
    for one, other in zip(result.differences, forward.differences, strict=True):
        assert one.value == -other.value
        if one.interval is not None:
            np.testing.assert_allclose(one.interval, [-other.interval[1], -other.interval[0]], rtol=1e-9, atol=1e-12)


def test_a_method_of_the_same_quality_is_not_better(world):
    gold, lengths, method, difficulty = world
    result = compare({"majority": method(difficulty, 0.8), "model": method(difficulty, 0.8)}, gold, lengths=lengths)
    assert result.better is False
    assert result.verdict.startswith("model is not better than majority on these labels: accuracy ")
    assert {result.difference(name).finding for name in ("accuracy", "f1", "brier", "log_loss")} == {"level"}


def test_the_same_labels_are_equal(world):
    gold, lengths, method, difficulty = world
    one = method(difficulty, 0.8)
    result = compare({"majority": one, "model": one}, gold, lengths=lengths)
    assert {difference.finding for difference in result.differences} == {"equal"}
    assert result.better is False
    assert "model is not better than majority" in result.verdict


def test_better_in_one_respect_and_worse_in_another_is_said(world):
    gold, lengths, method, difficulty = world
    fair = method(difficulty, 0.8)
    loud = method(np.sqrt(difficulty), 0.9999)  # more often right, but far too sure
    result = compare({"majority": fair, "model": loud}, gold, lengths=lengths)
    assert result.better is False
    assert "better than majority on these labels in some respects and worse in others" in result.verdict
    assert "worse in log loss +" in result.verdict


def test_paired_interval_of_accuracy_is_that_of_paired_sequence_means(world):
    gold, lengths, method, difficulty = world
    one, other = method(difficulty, 0.8), method(difficulty**0.8, 0.8)
    result = compare({"a": one, "b": other}, gold, lengths=lengths, confidence=0.9)
    hits = [(np.where(p[:, 1] > 0.5, 1, -1) == gold).reshape(40, 50).mean(axis=1) for p in (one, other)]
    gap = hits[1] - hits[0]
    expected = stats.t.interval(0.9, 39, loc=gap.mean(), scale=stats.sem(gap))
    np.testing.assert_allclose(result.difference("accuracy").interval, expected, rtol=1e-9, atol=1e-12)
    unpaired = np.ptp(result["a"].interval("accuracy"))
    shared = compare({"a": one, "b": np.where(np.arange(2000)[:, None] < 40, other, one)}, gold, lengths=lengths)
    assert np.ptp(shared.difference("accuracy").interval) < unpaired / 5


def test_one_sequence_cannot_decide(world):
    gold, _, method, difficulty = world
    methods = {"majority": method(difficulty, 0.8), "model": method(difficulty, 0.9)}
    result = compare(methods, gold, lengths=[2000])
    assert result.better is None
    assert "it cannot be told whether model is better than majority" in result.verdict
    assert "only one group with known gold" in result.verdict
    ungrouped = compare(methods, gold)
    assert "neither lengths nor groups were given" in ungrouped.verdict


def test_rows_equal_single_evaluations_and_the_last_meets_the_first(world):
    gold, lengths, method, difficulty = world
    methods = {name: method(difficulty, 0.8) for name in ("majority", "other", "model")}
    result = compare(methods, gold, lengths=lengths)
    for name, labels in methods.items():
        assert result[name].to_dict() == evaluate(labels, gold, lengths=lengths).to_dict()
    expected = result["model"].accuracy - result["majority"].accuracy
    assert result.difference("accuracy").value == pytest.approx(expected, rel=1e-12)
    table = str(result)
    assert all(name in table for name in ("majority", "other", "model", "model - majority", result.verdict))


def test_hard_labels_are_compared_in_what_both_have(world):
    gold, lengths, method, difficulty = world
    soft = method(difficulty, 0.8)
    result = compare({"hard": np.where(soft[:, 1] > 0.5, 1, -1), "soft": soft}, gold, lengths=lengths)
    assert "brier" not in [one.name for one in result.differences]
    assert result.difference("event_f1").finding == "equal"
    with pytest.raises(KeyError, match="not in both methods"):
        result.difference("brier")


def test_plain_data_survives_json(world):
    gold, lengths, method, difficulty = world
    data = compare({"a": method(difficulty, 0.8), "b": method(difficulty, 0.8)}, gold, lengths=lengths).to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["first"], data["last"]) == ("a", "b")
    assert {row["name"] for row in data["differences"]} >= {"accuracy", "f1", "brier", "log_loss", "event_f1"}

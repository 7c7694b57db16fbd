"""Intervals by jackknife over sequences or groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dugong.metrics import evaluate
from dugong.metrics.scores import jackknife, why_no_interval


def make_world(rng: np.random.Generator, n_sequences: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities, gold and lengths of sequences that differ in accuracy and prevalence."""
    lengths = rng.integers(20, 120, n_sequences)
    prevalence = np.repeat(rng.beta(2, 6, n_sequences), lengths)
    accuracy = np.repeat(rng.beta(18, 2, n_sequences), lengths)
    n = len(prevalence)
    gold = np.where(rng.random(n) < prevalence, 1, -1)
    label = np.where(rng.random(n) < accuracy, gold, -gold)
    sure = rng.beta(8, 2, n)
    positive = np.where(label == 1, 0.5 + sure / 2, 0.5 - sure / 2)
    return np.column_stack([1 - positive, positive]), gold, lengths


def test_intervals_equal_leaving_each_sequence_out_by_hand(rng):
    probabilities, gold, lengths = make_world(rng, 7)
    result = evaluate(probabilities, gold, lengths=lengths, confidence=0.9)
    sequence = np.repeat(np.arange(7), lengths)
    without = [
        evaluate(probabilities[sequence != g], gold[sequence != g], lengths=np.delete(lengths, g)) for g in range(7)
    ]
    for name in ("accuracy", "f1", "event_f1", "brier", "log_loss", "ece", "onset_error"):
        to, back = (np.log, np.exp)
        if name in ("accuracy", "f1", "event_f1"):
            to, back = (lambda x: np.log(x / (1 - x))), (lambda x: 1 / (1 + np.exp(-x)))
        values = to(np.array([one[name].value for one in without]))
        error = np.sqrt(6 / 7 * ((values - values.mean()) ** 2).sum())
        centre, radius = to(result[name].value), stats.t.ppf(0.95, 6) * error
        expected = back(np.array([centre - radius, centre + radius]))
        np.testing.assert_allclose(result.interval(name), expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_interval_of_a_mean_is_the_textbook_interval(rng):
    # For equally long groups and the plain scale the jackknife is the t interval of the group means.
    means = rng.normal(size=12)
    without = (means.sum() - means) / 11
    ours = jackknife(means.mean(), without, confidence=0.95, scale="plain")
    theirs = stats.t.interval(0.95, 11, loc=means.mean(), scale=stats.sem(means))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=0)


def test_coverage_is_near_nominal():
    rng = np.random.default_rng(7)
    truth = evaluate(*make_world(rng, 20_000)[:2])
    names, n_worlds = ("accuracy", "f1", "log_loss"), 400
    covered = dict.fromkeys(names, 0)
    for _ in range(n_worlds):
        probabilities, gold, lengths = make_world(rng, 12)
        result = evaluate(probabilities, gold, lengths=lengths)
        for name in names:
            low, high = result.interval(name)
            covered[name] += low <= truth[name].value <= high
    for name in names:
        assert 0.91 <= covered[name] / n_worlds <= 0.98, (name, covered[name] / n_worlds)


def test_intervals_widen_when_sequences_are_grouped(rng):
    # Ten patients with twenty sequences each: patients differ, sequences of one patient do not.
    accuracy = np.repeat(rng.beta(6, 2, 10), 20 * 30)
    gold = rng.choice([-1, 1], len(accuracy))
    labels = np.where(rng.random(len(accuracy)) < accuracy, gold, -gold)
    lengths = np.full(200, 30)
    by_sequence = evaluate(labels, gold, lengths=lengths)
    by_patient = evaluate(labels, gold, lengths=lengths, groups=np.repeat([f"p{i}" for i in range(10)], 20))
    per_element = evaluate(labels, gold, lengths=lengths, groups=np.repeat(np.arange(10), 600))
    assert (by_sequence.n_groups, by_patient.n_groups) == (200, 10)
    assert np.ptp(by_patient.interval("accuracy")) > 2 * np.ptp(by_sequence.interval("accuracy"))
    assert per_element.interval("accuracy") == by_patient.interval("accuracy")


def test_groups_without_lengths_give_intervals_but_no_events():
    result = evaluate([1, -1, 1, 1, -1, -1], [1, -1, -1, 1, -1, 1], groups=["a", "a", "b", "b", "c", "c"])
    assert result.interval("accuracy") is not None
    assert result.event_f1 is None


def test_sequences_without_known_gold_do_not_count(rng):
    probabilities, gold, lengths = make_world(rng, 6)
    extra = np.full((50, 2), 0.5)
    padded = evaluate(
        np.vstack([probabilities, extra]),
        np.append(gold, np.zeros(50, dtype=int)),
        lengths=[*lengths, 20, 30, 0],
    )
    plain = evaluate(probabilities, gold, lengths=lengths)
    assert padded.n_groups == plain.n_groups == 6
    assert padded.interval("f1") == plain.interval("f1")


def test_one_sequence_has_no_interval_and_the_table_says_why():
    result = evaluate([1, -1], [1, 1], lengths=[2], classes=[-1, 1])
    assert result.interval("accuracy") is None
    assert "there is only one group with known gold (all scores)" in str(result)


def test_no_lengths_have_no_interval_and_the_table_says_why():
    result = evaluate([1, -1], [1, -1])
    assert result.interval("accuracy") is None
    assert result.n_groups is None
    assert "no intervals: give lengths" in str(result)


def test_perfect_labels_have_no_spread_and_so_no_interval():
    result = evaluate([1, -1, 1, -1], [1, -1, 1, -1], lengths=[2, 2])
    assert result.interval("accuracy") is None
    assert "all groups agree exactly" in str(result)


def test_a_score_that_hangs_on_one_group_has_no_interval():
    result = evaluate([1, -1, -1, -1, 1], [1, -1, -1, -1, -1], lengths=[2, 2, 1])
    assert result.recall == 1.0
    assert result.interval("recall") is None
    assert "undefined when one of the groups is left out (recall" in str(result)


def test_limits_stay_in_range():
    near_one = np.array([0.97, 1.0, 1.0])
    low, high = jackknife(0.98, near_one, confidence=0.95, scale="unit")
    assert high == 1.0
    assert 0.0 <= low < 0.98
    low, high = jackknife(0.98, np.array([0.95, 0.99, 0.995]), confidence=0.95, scale="unit")
    assert 0.0 < low < 0.98 < high < 1.0
    low, high = jackknife(0.01, np.array([0.0, 0.02]), confidence=0.95, scale="loss")
    assert low == 0.0


@pytest.mark.parametrize(
    ("value", "without", "reason"),
    [
        (np.nan, [0.1, 0.2], "the score is undefined"),
        (0.1, [0.1], "only one group"),
        (0.1, [0.1, np.nan], "undefined when one"),
        (0.1, [0.1, 0.1], "agree exactly"),
    ],
)
def test_reasons(value, without, reason):
    assert reason in why_no_interval(value, np.array(without))
    assert why_no_interval(0.1, np.array([0.1, 0.2])) is None

"""Accuracy, precision, recall, F1, Brier score and log loss, by hand and against scikit-learn."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from dugong.metrics import LOG_LOSS_CLIP, evaluate

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def random_case(seed: int, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities, gold values, and the class values."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    values = np.array([-1, 1]) if n_classes == 2 else np.arange(1, n_classes + 1)
    return probabilities, values[rng.integers(0, n_classes, n)], values


cases = st.builds(random_case, st.integers(0, 10_000), st.integers(1, 60), st.integers(2, 6))


def test_two_classes_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3], [0.5, 0.5]])
    gold = [-1, 1, -1, 1, 0]
    result = evaluate(probabilities, gold)
    assert (result.accuracy, result.precision, result.recall, result.f1) == (0.5, 0.5, 0.5, 0.5)
    assert (result.n_known, result.n_unknown) == (4, 1)
    np.testing.assert_allclose(result.brier, (0.02 + 0.08 + 0.72 + 0.98) / 4, **EXACT)
    np.testing.assert_allclose(result.log_loss, -np.log([0.9, 0.8, 0.4, 0.3]).mean(), **EXACT)
    assert result.macro_f1 is None


def test_three_classes_by_hand_pool_all_but_the_background():
    labels = [1, 2, 2, 3, 1, 3, 1]
    gold = [1, 2, 3, 3, 2, 1, 1]
    result = evaluate(labels, gold, classes=["rest", "walk", "run"], background="rest")
    # walk: 1 hit, 2 labelled, 2 gold; run: 1 hit, 2 labelled, 2 gold
    assert (result.precision, result.recall, result.f1, result.macro_f1) == (0.5, 0.5, 0.5, 0.5)
    assert result.accuracy == 4 / 7
    assert [one.n_gold for one in result.classes] == [3, 2, 2]
    assert result.classes[0].recall == pytest.approx(2 / 3, rel=1e-12)
    assert "all classes but rest" in str(result)


def test_positive_may_be_any_class():
    labels, gold = [1, 2, 2, 3], [1, 2, 3, 3]
    result = evaluate(labels, gold, positive=2, classes=["a", "b", "c"])
    assert (result.precision, result.recall) == (0.5, 1.0)
    flipped = evaluate([1, 1, -1], [1, -1, -1], positive=-1)
    assert (flipped.precision, flipped.recall) == (1.0, 0.5)
    same = evaluate([1, 1, -1], [1, -1, -1], background=1)
    assert (same.precision, same.recall) == (1.0, 0.5)


@given(cases)
def test_element_scores_equal_scikit_learn(case):
    probabilities, gold, values = case
    chosen = values[probabilities.argmax(axis=1)]
    result = evaluate(probabilities, gold, classes=values)
    assert result.accuracy == pytest.approx(sk.accuracy_score(gold, chosen), rel=1e-12)
    by_class = sk.precision_recall_fscore_support(gold, chosen, labels=values, zero_division=np.nan)
    ours = np.array([[one.precision, one.recall, one.f1, one.n_gold] for one in result.classes]).T
    # F1 is tested below: with NaN for 0/0, scikit-learn's is undefined wherever precision is.
    np.testing.assert_allclose(ours[[0, 1, 3]], np.array(by_class)[[0, 1, 3]], **EXACT)
    average, classes = ("binary", None) if len(values) == 2 else ("micro", values)
    options = {"average": average, "zero_division": 0.0} | ({} if classes is None else {"labels": classes})
    for name, function in (
        ("precision", sk.precision_score),
        ("recall", sk.recall_score),
        ("f1", sk.f1_score),
    ):
        ours_one = getattr(result, name)
        theirs = function(gold, chosen, **options)
        assert (theirs == 0.0) if math.isnan(ours_one) else ours_one == pytest.approx(theirs, rel=1e-12)


@given(cases)
def test_f1_by_class_and_macro_equal_scikit_learn(case):
    probabilities, gold, values = case
    chosen = values[probabilities.argmax(axis=1)]
    result = evaluate(probabilities, gold, classes=values)
    theirs = sk.f1_score(gold, chosen, labels=values, average=None, zero_division=0.0)
    np.testing.assert_allclose(np.nan_to_num([one.f1 for one in result.classes]), theirs, **EXACT)
    if len(values) > 2:
        assert result.macro_f1 == pytest.approx(
            sk.f1_score(gold, chosen, average="macro", zero_division=0.0), rel=1e-12
        )
        assert result["macro_precision"].value == pytest.approx(
            sk.precision_score(gold, chosen, average="macro", zero_division=0.0), rel=1e-12
        )


@given(cases)
def test_probability_scores_equal_scikit_learn(case):
    probabilities, gold, values = case
    result = evaluate(probabilities, gold, classes=values)
    np.testing.assert_allclose(
        result.brier, sk.brier_score_loss(gold, probabilities, labels=values, scale_by_half=False), **EXACT
    )
    if probabilities.min() > LOG_LOSS_CLIP:
        np.testing.assert_allclose(result.log_loss, sk.log_loss(gold, probabilities, labels=values), **EXACT)


def test_log_loss_of_a_certain_mistake_is_clipped():
    result = evaluate([[1.0, 0.0], [0.0, 1.0]], [1, -1])
    assert result.log_loss == pytest.approx(-math.log(LOG_LOSS_CLIP), rel=1e-12)
    assert result.brier == 2.0


def test_a_label_that_abstains_is_wrong_and_no_label():
    result = evaluate([1, 0, -1, 0], [1, 1, -1, -1])
    assert (result.accuracy, result.precision, result.recall) == (0.5, 1.0, 0.5)
    assert result.n_abstained == 2
    assert "2 labels abstain (0)" in str(result)


def test_a_class_that_never_occurs_is_undefined_not_zero():
    result = evaluate([-1, -1], [-1, -1])
    assert result.accuracy == 1.0
    assert all(math.isnan(value) for value in (result.precision, result.recall, result.f1))
    assert result.to_dict()["scores"]["f1"]["value"] is None
    missed = evaluate([-1, -1], [-1, 1])
    assert math.isnan(missed.precision)
    assert (missed.recall, missed.f1) == (0.0, 0.0)


def test_macro_leaves_out_classes_that_nobody_uses():
    result = evaluate([1, 2, 2], [1, 2, 1], classes=["a", "b", "c"])
    assert result.macro_f1 == pytest.approx((2 / 3 + 2 / 3) / 2, rel=1e-12)
    assert math.isnan(result.classes[2].f1)


def test_equal_probabilities_go_to_the_first_class_and_are_counted():
    result = evaluate([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]], [-1, 1, 1])
    assert result.accuracy == pytest.approx(2 / 3, rel=1e-12)
    assert "2 elements have equally probable classes" in str(result)


def test_hard_labels_have_no_probability_scores_and_the_table_says_why():
    result = evaluate([1, -1], [1, -1])
    assert result.brier is None
    assert result.log_loss is None
    assert result.ece is None
    assert result.calibration is None
    assert "they need probabilities" in str(result)
    with pytest.raises(KeyError, match="'brier' was not measured"):
        result["brier"]


def test_arguments_are_left_as_they_were(rng):
    probabilities = rng.dirichlet(np.ones(3), size=20)
    gold = rng.integers(0, 4, 20)
    copies = probabilities.copy(), gold.copy()
    evaluate(probabilities, gold, lengths=[12, 8])
    np.testing.assert_array_equal(probabilities, copies[0])
    np.testing.assert_array_equal(gold, copies[1])


def test_plain_data_survives_json(rng):
    result = evaluate(rng.dirichlet(np.ones(3), size=30), rng.integers(0, 4, 30), lengths=[10, 0, 20])
    data = result.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["scores"]["accuracy"]["value"] == result.accuracy
    assert data["n_sequences"] == 3


def test_the_table_prints_every_score():
    result = evaluate([[0.2, 0.8], [0.6, 0.4], [0.3, 0.7]], [1, -1, -1], lengths=[2, 1])
    table = str(result)
    assert repr(result) == table
    for score in result.scores:
        assert any(line.split()[:1] == [score.name] for line in table.splitlines())
    assert "accuracy" in table
    assert "0.6667" in table

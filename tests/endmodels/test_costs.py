"""Labels and the table of costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dugong.endmodels.costs import make_costs, read_labels
from dugong.exceptions import LabelError

TWO = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def costs(labels, *, n_classes=2, classes=None, **options):
    return make_costs(read_labels(labels, n_classes=n_classes, classes=classes), **options)


def test_soft_costs_are_the_probabilities():
    np.testing.assert_allclose(costs(TWO).table, TWO, **CLOSE)


def test_hard_costs_split_ties():
    np.testing.assert_allclose(costs(TWO, loss="hard").table, [[1, 0], [0, 1], [0.5, 0.5]], **CLOSE)


def test_confidence_is_how_far_a_label_is_above_chance():
    found = costs(TWO, loss="confidence")
    # |2p - 1| is 0.8 and 0.2, a uniform label teaches nothing, and the mean cost is 1
    np.testing.assert_allclose(found.table, [[1.6, 0], [0, 0.4], [0, 0]], **CLOSE)
    assert found.rows.tolist() == [0, 1]
    three = costs(np.array([[0.6, 0.2, 0.2], [1.0, 0.0, 0.0]]), n_classes=3, loss="confidence")
    np.testing.assert_allclose(three.table[:, 0], [0.8 / 1.4, 2.0 / 1.4], **CLOSE)


def test_class_weights_multiply_columns():
    found = costs(TWO, class_weights=[1.0, 3.0]).table
    np.testing.assert_allclose(found[:, 1] / found[:, 0], 3 * TWO[:, 1] / TWO[:, 0], **CLOSE)
    np.testing.assert_allclose(found.sum(), 3.0, **CLOSE)


def test_balanced_classes_cost_the_same():
    table = costs(np.array([-1, -1, -1, 1]), class_weights="balanced").table
    np.testing.assert_allclose(table.sum(axis=0), [2.0, 2.0], **CLOSE)


def test_weights_multiply_rows():
    found = costs(TWO, weights=[2.0, 0.0, 1.0])
    assert found.rows.tolist() == [0, 2]
    np.testing.assert_allclose(found.table.sum(axis=1), [4 / 3, 0, 2 / 3], **CLOSE)


def test_labels_of_elements_have_one_cost_each():
    values = np.array([[1, -1, 0], [0, 0, 0]])
    found = costs(values)
    assert found.table.shape == (2, 3, 2)
    assert found.rows.tolist() == [0]
    # three labels in the used row, of which two are known: the mean cost per label is 1
    np.testing.assert_allclose(found.table[0], [[0, 1.5], [1.5, 0], [0, 0]], **CLOSE)


@given(st.integers(0, 1000), st.integers(2, 5), st.sampled_from(["soft", "hard", "confidence"]))
def test_the_mean_cost_is_one(seed, n_classes, loss):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(n_classes), size=9)
    found = costs(
        table, n_classes=n_classes, loss=loss, class_weights=rng.random(n_classes) + 0.1, weights=rng.random(9)
    )
    np.testing.assert_allclose(found.table[found.rows].sum(axis=-1).mean(), 1.0, rtol=1e-9)
    assert np.all(found.table >= 0)


@pytest.mark.parametrize("loss", ["soft", "hard", "confidence"])
def test_certain_labels_are_the_same_under_every_loss(loss):
    gold = np.array([1, -1, -1, 0, 1])
    np.testing.assert_allclose(costs(gold, loss=loss).table, costs(gold).table, **CLOSE)


def test_codings():
    binary = read_labels([-1, 1, 0], n_classes=2)
    assert binary.known.tolist() == [True, True, False]
    assert binary.values().tolist() == [-1, 1, 0]
    assert read_labels([0, 1, 1], n_classes=2, classes=(0, 1)).values().tolist() == [-1, 1, 1]
    assert read_labels([3, 1, 0], n_classes=3).values().tolist() == [3, 1, 0]
    assert read_labels([2, 0, 1], n_classes=3, classes=range(3)).values().tolist() == [3, 1, 2]
    tensor = torch.tensor(TWO, dtype=torch.float32, requires_grad=True)
    np.testing.assert_allclose(read_labels(tensor, n_classes=2).probabilities, TWO, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: costs([0, 1, 1]),
            r"0 means unknown.*\n.*pass classes=range\(2\); if it is unknown, classes=\(-1, 1\)",
        ),
        (lambda: costs([0, 1, 2], n_classes=3), r"labels run from 0 to 2.*\n.*classes=range\(3\)"),
        (lambda: costs([1, 2, -1]), r"must be -1, 1, or 0 for unknown; 1 are not, the first at \(1,\): 2"),
        (lambda: costs([1, 2], classes=(1, 2, 3)), "classes must be 2 different values"),
        (lambda: costs([0.2, 0.8]), r"column p of positive probabilities becomes np.column_stack"),
        (lambda: costs([True, False]), "must be probabilities .* or class values"),
        (lambda: costs([]), "at least one label"),
        (lambda: costs(TWO, n_classes=3), "has 3 classes, .* found 2"),
        (lambda: costs([[0.5, 0.5], [0.5, 0.6]]), r"add up to 1; 1 do not, the first at \(1,\)"),
        (lambda: costs([[np.nan, 0.5]]), "add up to 1; 1 do not"),
        (lambda: costs([[1.5, -0.5]]), "must be 0 or more"),
        (lambda: costs([0, 0, 0]), "all 3 examples are unknown"),
        (lambda: costs([[0.5, 0.5]], loss="confidence"), "unknown, weightless or uniform"),
        (lambda: costs(TWO, loss="squared"), "must be one of soft, hard, confidence; found 'squared'"),
        (lambda: costs(TWO, weights=[1, 2]), r"shape \(3,\); found shape \(2,\)"),
        (lambda: costs(TWO, weights=[1, -2, 1]), r"not negative; found -2.0 at \(1,\)"),
        (lambda: costs(TWO, class_weights=[1, 2, 3]), "2 finite numbers"),
        (lambda: costs(TWO, class_weights=[0, 0]), "not all 0"),
        (lambda: costs(TWO, class_weights="equal"), "'balanced' or one number per class; found 'equal'"),
        (lambda: costs([1, 1], class_weights="balanced"), "there are none in column 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(LabelError, match=message):
        call()

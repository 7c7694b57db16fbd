"""Traditional supervision: only labelled rows are seen, any classifier, honest errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import dugong as dg
from dugong.baselines import Supervised


def make_data(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 1], n_rows)
    return rng.normal(size=(n_rows, 3)) + labels[:, None] * [1.0, 0.5, 0.0], labels


class Recorder:
    """A classifier that remembers what it was given."""

    def fit(self, rows, labels):
        self.seen, self.classes_ = (rows, labels), np.unique(labels)
        return self

    def predict(self, rows):
        return np.where(np.asarray(rows)[:, 0] > 0, 1, -1)


def test_only_labelled_rows_are_seen_and_the_given_classifier_is_left_alone() -> None:
    data, labels = make_data()
    gold = np.where(np.arange(len(labels)) < 40, labels, 0)
    given = Recorder()
    model = Supervised(classifier=given).fit(data, gold)
    assert not hasattr(given, "seen")
    np.testing.assert_array_equal(model.classifier_.seen[0], data[:40])
    np.testing.assert_array_equal(model.classifier_.seen[1], labels[:40])
    assert model.n_labels_ == 40
    np.testing.assert_array_equal(model.predict_proba(data)[:, 1], data[:, 0] > 0)


@pytest.mark.parametrize("shape", [np.asarray, csr_matrix, pd.DataFrame, list])
def test_data_of_any_form(shape) -> None:
    data, labels = make_data()
    gold = np.where(np.arange(len(labels)) % 4 == 0, labels, 0)
    model = Supervised(classifier=LogisticRegression()).fit(shape(data), gold)
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(shape(data), labels) > 0.8
    assert model.predict(shape(data), threshold=1.0).max() == -1


def test_three_classes_and_classifiers_without_probabilities() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(1, 4, 300)
    data = np.eye(3)[labels - 1] + 0.3 * rng.normal(size=(300, 3))
    model = Supervised(classifier=RidgeClassifier()).fit(data, labels)
    assert model.predict_proba(data).shape == (300, 3)
    assert model.score(data, labels) > 0.9


def test_errors_say_what_is_wrong() -> None:
    data, labels = make_data(10)
    model = Supervised(classifier=LogisticRegression())
    with pytest.raises(dg.LabelError, match="10 rows and labels of shape"):
        model.fit(data, labels[:5])
    with pytest.raises(dg.LabelError, match="at least two classes"):
        model.fit(data, np.zeros(10))
    with pytest.raises(dg.NotFittedError, match="call fit"):
        model.predict(data)

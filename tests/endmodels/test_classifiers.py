"""Scikit-learn classifiers on probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dugong.endmodels import EndModelError, train_sklearn
from dugong.exceptions import LabelError
from endmodels.small import blobs, soften

X, GOLD = blobs(80, seed=1)
RNG = np.random.default_rng(0)
P = np.clip(soften(GOLD, 0.85)[:, 1] + RNG.uniform(-0.1, 0.1, size=80), 0, 1)
SOFT = np.column_stack([1 - P, P])


def test_the_copies_minimise_the_expected_loss():
    """The gradient of the expected loss is 0 at the fitted weights."""
    fitted = train_sklearn(LogisticRegression(C=1e6, tol=1e-10, max_iter=10_000), X, SOFT)
    error = fitted.predict_proba(X)[:, 1] - P
    np.testing.assert_allclose(X.T @ error / len(X), 0.0, atol=1e-5)
    np.testing.assert_allclose(error.mean(), 0.0, atol=1e-5)


def test_gaussian_means_are_weighted_by_the_probabilities():
    fitted = train_sklearn(GaussianNB(), X, SOFT)
    np.testing.assert_allclose(fitted.theta_[1], P @ X / P.sum(), rtol=1e-9)
    np.testing.assert_allclose(fitted.class_prior_, SOFT.mean(axis=0), rtol=1e-9)


def test_hard_and_confident_labels():
    hard = train_sklearn(GaussianNB(), X, SOFT, loss="hard")
    plain = GaussianNB().fit(X, np.where(P > 0.5, 1, -1))
    np.testing.assert_allclose(hard.theta_, plain.theta_, rtol=1e-9)
    sure = train_sklearn(GaussianNB(), X, SOFT, loss="confidence")
    weighted = GaussianNB().fit(X, np.where(P > 0.5, 1, -1), sample_weight=np.abs(2 * P - 1))
    np.testing.assert_allclose(sure.theta_, weighted.theta_, rtol=1e-9)


def test_weights_and_class_weights():
    fitted = train_sklearn(GaussianNB(), X, SOFT, class_weights="balanced", weights=np.arange(80.0))
    np.testing.assert_allclose(fitted.class_prior_, [0.5, 0.5], rtol=1e-9)
    w = P * np.arange(80)
    np.testing.assert_allclose(fitted.theta_[1], w @ X / w.sum(), rtol=1e-9)


def test_the_given_classifier_stays():
    classifier = RandomForestClassifier(n_estimators=5, random_state=0)
    fitted = train_sklearn(classifier, X, SOFT)
    assert not hasattr(classifier, "classes_")
    assert fitted.classes_.tolist() == [-1, 1]
    assert np.mean(fitted.predict(X) == GOLD) > 0.8


def test_pipelines_frames_sparse_matrices_and_lists():
    plain = train_sklearn(LogisticRegression(), X, SOFT).predict_proba(X)
    for form in (pd.DataFrame(X), sparse.coo_matrix(X), X.tolist()):
        fitted = train_sklearn(LogisticRegression(), form, SOFT)
        np.testing.assert_allclose(fitted.predict_proba(form), plain, rtol=1e-4)
    pipeline = train_sklearn(make_pipeline(StandardScaler(), LogisticRegression()), X, SOFT)
    assert np.mean(pipeline.predict(X) == GOLD) > 0.9


def test_more_classes_and_their_names():
    table = RNG.dirichlet(np.ones(3), size=80)
    fitted = train_sklearn(GaussianNB(), X, table)
    assert fitted.classes_.tolist() == [1, 2, 3]
    np.testing.assert_allclose(fitted.theta_[2], table[:, 2] @ X / table[:, 2].sum(), rtol=1e-9)
    assert train_sklearn(GaussianNB(), X, table, classes=(0, 1, 2)).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: train_sklearn(KNeighborsClassifier(), X, SOFT),
            EndModelError,
            "which KNeighborsClassifier.fit does not",
        ),
        (lambda: train_sklearn(object(), X, SOFT), EndModelError, "object has no fit"),
        (lambda: train_sklearn(GaussianNB(), X[:5], SOFT), EndModelError, "found 5 and 80 labels"),
        (lambda: train_sklearn(GaussianNB(), X, P), LabelError, r"shape \(n, K\); found float64 of shape \(80,\)"),
        (lambda: train_sklearn(GaussianNB(), X, SOFT, classes=(1, 1)), LabelError, "2 different values"),
        (lambda: train_sklearn(GaussianNB(), X, SOFT * 2), LabelError, "add up to 1; 80 do not"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()

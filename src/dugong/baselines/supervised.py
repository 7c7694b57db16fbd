"""Traditional supervision (TS): an end model that sees the hand-labelled development set and nothing else.

In: raw data of the elements, their gold labels (0 = unlabelled) and any classifier with ``fit(X, y)``. Out: a model
with the same ``predict_proba``, ``predict`` and ``score`` as the others, on data instead of votes. The paper's first
baseline (section 4.2).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np

from dugong.contract import Configured
from dugong.exceptions import LabelError
from dugong.types import AnyArray, FloatArray, IntArray
from dugong.votes.gold import accuracy_on


class Supervised(Configured):
    """A classifier trained on the elements whose label is known.

    Parameters
    ----------
    classifier : object with ``fit(X, y)`` and ``predict_proba(X)`` or ``predict(X)``
        Any scikit-learn classifier or pipeline, or a network behind that interface. A copy of it is trained.

    Attributes
    ----------
    classifier_ : the trained copy
    classes_ : the labels that it was trained on, in the order of the columns of `predict_proba`
    n_labels_ : number of labels that it was trained on

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> model = Supervised(classifier=LogisticRegression()).fit(data, [-1, -1, 0, 1, 1])
    >>> model.n_labels_, model.predict(data[:1]).tolist()
    (4, [-1])
    """

    def __init__(self, *, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, data: Any, gold: AnyArray) -> Self:
        """Train on the rows of `data` whose `gold` label is known (not 0).

        Parameters
        ----------
        data : array, sparse matrix, data frame or list with one row per element
        gold : (n_elements,) class values, 0 = unlabelled
        """
        labels = np.asarray(gold)
        if labels.ndim != 1 or n_rows_of(data) != len(labels):
            raise LabelError(
                f"there must be one label per row of data (0 = unlabelled); found {n_rows_of(data)} rows and labels of "
                f"shape {labels.shape}."
            )
        rows = np.flatnonzero(labels != 0)
        found = np.unique(labels[rows])
        if len(found) < 2:
            raise LabelError(
                f"supervised training needs labels of at least two classes; found {found.tolist()} on {len(rows)} "
                "labelled rows (0 means unlabelled).\n  Label more elements of the development set."
            )
        self.classifier_ = deepcopy(self.classifier)
        self.classifier_.fit(take_rows(data, rows), labels[rows])
        self.classes_ = np.asarray(getattr(self.classifier_, "classes_", found))
        self.n_labels_ = len(rows)
        return self

    def predict_proba(self, data: Any) -> FloatArray:
        """P(class), shape (n_elements, n_classes); certainty where the classifier gives classes only."""
        self._check_fitted()
        if hasattr(self.classifier_, "predict_proba"):
            return np.asarray(self.classifier_.predict_proba(data), dtype=np.float64)
        said = np.asarray(self.classifier_.predict(data))
        return np.asarray(said[:, np.newaxis] == self.classes_, dtype=np.float64)

    def predict(self, data: Any, threshold: float = 0.5) -> AnyArray:
        """The likelier class; with two classes the second where its probability exceeds `threshold`."""
        probabilities = self.predict_proba(data)
        if probabilities.shape[1] == 2:
            return np.asarray(self.classes_[(probabilities[:, 1] > threshold).astype(int)])
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def score(self, data: Any, gold: AnyArray) -> float:
        """Accuracy on the elements whose gold label is known (not 0)."""
        return accuracy_on(self.predict(data), gold)


def n_rows_of(data: Any) -> int:
    """How many rows an array, a sparse matrix, a data frame or a list has."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def take_rows(data: Any, rows: IntArray) -> Any:
    """Some of the rows of an array, a sparse matrix, a data frame or a list."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "tocsr"):
        return data.tocsr()[rows]
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows]

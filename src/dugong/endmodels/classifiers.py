"""Train scikit-learn classifiers on probabilistic labels.

They take one class per row and a weight, not probabilities. So every example is repeated once per class, with the
probability as its weight: the weighted loss of the copies is the expected loss under the label model. Needs no
extra beyond the classifier itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dugong.baselines.supervised import n_rows_of, take_rows
from dugong.endmodels.costs import ClassWeights, Loss, make_costs, read_labels
from dugong.exceptions import EndModelError, LabelError
from dugong.types import class_values

ClassifierT = TypeVar("ClassifierT")


def train_sklearn(
    classifier: ClassifierT,
    X: Any,
    probabilities: ArrayLike,
    *,
    loss: Loss = "soft",
    class_weights: ClassWeights = None,
    weights: ArrayLike | None = None,
    classes: Sequence[int] | None = None,
) -> ClassifierT:
    """Fit a copy of a classifier to probabilities.

    Parameters
    ----------
    classifier : object with fit(X, y, sample_weight)
        Or a scikit-learn pipeline whose last step is one. It is not changed.
    X : array, sparse matrix, data frame or list, n rows
    probabilities : array, shape (n, K)
        As `LabelModel.predict_proba` gives them.
    loss, class_weights, weights :
        As for `train`.
    classes : sequence of int, optional
        The class values in column order, which the classifier will predict. Default: -1, +1 or 1..K.

    Returns
    -------
    classifier
        A fitted copy. Its `classes_` are the values that have any weight.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = train_sklearn(LogisticRegression(), X, [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.1, 0.9]])
    >>> fitted.predict([[0.0], [3.0]]).tolist()
    [-1, 1]
    """
    keyword = _weight_keyword(classifier)
    table = np.asarray(probabilities)
    if table.ndim != 2 or table.dtype.kind != "f":
        raise LabelError(f"probabilities must be floats of shape (n, K); found {table.dtype} of shape {table.shape}.")
    n_rows, n_classes = table.shape
    if n_rows_of(X) != n_rows:
        raise EndModelError(f"there must be one row of X per label; found {n_rows_of(X):,} and {n_rows:,} labels.")
    values = np.array(class_values(n_classes) if classes is None else tuple(classes))
    if len(set(values.tolist())) != n_classes:
        raise LabelError(f"classes must be {n_classes} different values; found {values.tolist()}.")
    labels = read_labels(table, n_classes=n_classes)
    costs = make_costs(labels, loss=loss, class_weights=class_weights, weights=weights)
    rows, columns = np.nonzero(costs.table)
    fitted: Any = deepcopy(classifier)
    fitted.fit(take_rows(X, rows), values[columns], **{keyword: costs.table[rows, columns]})
    result: ClassifierT = fitted
    return result


def _weight_keyword(classifier: Any) -> str:
    """How `fit` is given weights: a pipeline passes them to its last step by name."""
    steps = getattr(classifier, "steps", None)
    name, last = steps[-1] if steps else ("", classifier)
    if not callable(getattr(last, "fit", None)):
        raise EndModelError(f"a classifier must have fit(X, y, sample_weight); {type(last).__name__} has no fit.")
    if "sample_weight" not in inspect.signature(last.fit).parameters:
        raise EndModelError(
            f"probabilities are passed on as sample weights, which {type(last).__name__}.fit does not take.\n"
            "  Choose a classifier that does, or train on model.predict(votes) without them."
        )
    return f"{name}__sample_weight" if name else "sample_weight"

"""What training pays for: labels (class values or probabilities) in, a table of costs out.

Class values follow the library's coding: -1 and +1 when there are two classes, 1..K when there are more, and 0 for
unknown. Labels may have any shape, one per example or one per element of every example; probabilities have one axis
more, the classes. Codings that could mean two things are refused.

Every loss is one table: cost[i, k] multiplies -log q(k), where q is what the end model says about label i.

- soft: cost = p, the probabilities of the label model (cross-entropy; the paper's noise-aware loss)
- hard: cost = 1 for the most probable class; classes that tie share it
- confidence: as hard, times (K max p - 1) / (K - 1), which is 0 for a uniform p and 1 for a certain one

Class weights multiply columns, weights of labels rows. The table is scaled to a mean cost of 1 per label, so
neither changes what a learning rate means. The same table gives scikit-learn classifiers their sample weights.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from dugong.baselines.elements import n_rows_of, take_rows
from dugong.exceptions import EndModelError, LabelError
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray, class_values, read_only

Loss = Literal["soft", "hard", "confidence"]
ClassWeights = Literal["balanced"] | Sequence[float] | FloatArray | None

TIE = 1e-9
"""Probabilities that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Costs:
    """The table of costs, (n, ..., K), made with class weights (K,).

    `rows` are the examples with any cost; the others (unknown labels, weight or confidence 0) teach nothing.
    """

    table: FloatArray
    rows: IntArray
    class_weights: FloatArray


def make_costs(
    labels: KnownLabels, *, loss: Loss = "soft", class_weights: ClassWeights = None, weights: ArrayLike | None = None
) -> Costs:
    """Turn labels into the table of costs of one loss."""
    table = _targets(labels.probabilities, loss) * labels.known[..., None]
    if weights is not None:
        table = table * _read_weights(weights, labels.known.shape)[..., None]
    by_class = _read_class_weights(class_weights, table)
    table = table * by_class
    rows = np.flatnonzero(table.reshape(len(table), -1).any(axis=1))
    if not len(rows):
        raise LabelError(
            f"there must be a label to learn from; all {len(table):,} examples are unknown, weightless or uniform."
        )
    n_labels = table[rows][..., 0].size
    return Costs(
        table=read_only(table * (n_labels / table.sum())), rows=read_only(rows), class_weights=read_only(by_class)
    )


def _targets(probabilities: FloatArray, loss: Loss) -> FloatArray:
    if loss not in get_args(Loss):
        raise LabelError(f"loss must be one of {', '.join(get_args(Loss))}; found {loss!r}.")
    if loss == "soft":
        return probabilities
    largest = probabilities.max(axis=-1, keepdims=True)
    top = probabilities >= largest - TIE
    hard: FloatArray = top / top.sum(axis=-1, keepdims=True)
    if loss == "hard":
        return hard
    n_classes = probabilities.shape[-1]
    confidence: FloatArray = np.maximum((n_classes * largest - 1.0) / (n_classes - 1.0), 0.0)
    return hard * confidence


def _read_weights(weights: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != shape:
        raise LabelError(f"weights must have one entry per label, shape {shape}; found shape {array.shape}.")
    wrong = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise LabelError(f"weights must be finite and not negative; found {array[place]} at {place}.")
    return array


def _read_class_weights(class_weights: ClassWeights, table: FloatArray) -> FloatArray:
    n_classes = table.shape[-1]
    if class_weights is None:
        return np.ones(n_classes)
    if isinstance(class_weights, str):
        return _balanced(class_weights, table.reshape(-1, n_classes).sum(axis=0))
    array = np.asarray(class_weights, dtype=np.float64)
    if array.shape != (n_classes,) or not np.all(np.isfinite(array)) or np.any(array < 0) or not array.any():
        raise LabelError(
            f"class_weights must be 'balanced' or {n_classes} finite numbers, not negative and not all 0, "
            f"in the order of the columns; found {class_weights!r}."
        )
    return array


def _balanced(word: Any, mass: FloatArray) -> FloatArray:
    """Weights under which all classes cost the same in total."""
    if word != "balanced":
        raise LabelError(f"class_weights must be 'balanced' or one number per class; found {word!r}.")
    if np.any(mass == 0):
        empty = np.flatnonzero(mass == 0).tolist()
        raise LabelError(
            f"class_weights='balanced' needs labels of every class; there are none in column {empty[0]}.\n"
            "  Give one number per class instead."
        )
    weights: FloatArray = mass.sum() / (len(mass) * mass)
    return weights


SUM_TOLERANCE = 1e-4
"""How far the probabilities of a label may be from adding up to 1 (float32 tables come from outside)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownLabels:
    """Labels as probabilities, (n, ..., K); those with the class value 0 are not `known`, (n, ...)."""

    probabilities: FloatArray
    known: BoolArray

    def values(self) -> IntArray:
        """The most probable class (the first of equals) as a class value, 0 where it is unknown."""
        classes = np.array(class_values(self.probabilities.shape[-1]))
        return np.where(self.known, classes[self.probabilities.argmax(axis=-1)], 0)


def read_labels(labels: Any, *, n_classes: int, classes: Sequence[int] | None = None) -> KnownLabels:
    """Check labels, class values (int) or probabilities (float, as many columns as the end model), and make them alike.

    `classes` are the class values in column order, by default the library's coding; other values than these (and 0, if
    it is none of them) are refused.
    """
    # Tensors come from any device.
    array = np.asarray(labels.detach().cpu().numpy() if hasattr(labels, "detach") else labels)
    if array.ndim == 0 or not len(array):
        raise LabelError(f"there must be at least one label; found an array of shape {array.shape}.")
    if array.dtype.kind in "iu":
        return _from_values(array, n_classes, classes)
    if array.dtype.kind == "f" and array.ndim > 1:
        return _from_probabilities(array.astype(np.float64), n_classes)
    raise LabelError(
        "labels must be probabilities (floats, one column per class) or class values (integers); "
        f"found {array.dtype} of shape {array.shape}.\n"
        "  A column p of positive probabilities becomes np.column_stack([1 - p, p])."
    )


def _from_probabilities(table: FloatArray, n_classes: int) -> KnownLabels:
    if table.shape[-1] != n_classes:
        raise LabelError(
            f"the end model has {n_classes} classes, so probabilities must have as many columns; "
            f"found {table.shape[-1]}."
        )
    total = table.sum(axis=-1)
    right = np.all(table >= -SUM_TOLERANCE, axis=-1) & (np.abs(total - 1.0) <= SUM_TOLERANCE)
    wrong = np.argwhere(~right)
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise LabelError(
            f"the probabilities of a label must be 0 or more and add up to 1; {len(wrong):,} do not, "
            f"the first at {place}: {table[place].tolist()}."
        )
    clean = np.maximum(table, 0.0)
    return KnownLabels(
        probabilities=clean / clean.sum(axis=-1, keepdims=True), known=np.ones(table.shape[:-1], dtype=np.bool_)
    )


def _from_values(values: AnyArray, n_classes: int, classes: Sequence[int] | None) -> KnownLabels:
    if classes is None:
        _refuse_other_codings(values, n_classes)
    order = class_values(n_classes) if classes is None else tuple(classes)
    if len(set(order)) != n_classes:
        raise LabelError(f"classes must be {n_classes} different values, as the end model has; found {order}.")
    hit = values[..., None] == np.array(order)
    known = hit.any(axis=-1)
    wrong = np.argwhere(~known & (values != 0))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise LabelError(
            f"labels must be {', '.join(map(str, order))}, or 0 for unknown; {len(wrong):,} are not, "
            f"the first at {place}: {values[place]}.\n"
            "  If these are other classes, name them in the order of the columns: classes=(...)."
        )
    uniform = np.full(n_classes, 1.0 / n_classes)
    return KnownLabels(probabilities=np.where(known[..., None], hit, uniform).astype(np.float64), known=known)


def _refuse_other_codings(values: AnyArray, n_classes: int) -> None:
    """0..K-1 looks like the library's coding with unknown labels, and means something else."""
    last = class_values(n_classes)[-1]
    first_missing = n_classes == 2 and not np.any(values < 0) and np.any(values == last)
    last_missing = n_classes > 2 and not np.any(values == last) and np.any(values == n_classes - 1)
    if np.any(values == 0) and (first_missing or last_missing):
        house = ", ".join(map(str, class_values(n_classes)))
        raise LabelError(
            f"labels run from 0 to {int(values.max())}, and here 0 means unknown; the classes are {house}.\n"
            f"  If 0 is a class, pass classes=range({n_classes}); if it is unknown, classes=({house})."
        )


# --- scikit-learn classifiers -----------------------------------------------------------------------------------------
# They take one class per row and a weight, not probabilities. So every example is repeated once per class, with the
# probability as its weight: the weighted loss of the copies is the expected loss under the label model.
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

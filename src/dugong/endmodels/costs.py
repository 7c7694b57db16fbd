"""What training pays for: labels in, a table of costs out.

Every loss is one table: cost[i, k] multiplies -log q(k), where q is what the end model says about label i.

- soft: cost = p, the probabilities of the label model (cross-entropy; the paper's noise-aware loss)
- hard: cost = 1 for the most probable class; classes that tie share it
- confidence: as hard, times (K max p - 1) / (K - 1), which is 0 for a uniform p and 1 for a certain one

Class weights multiply columns, weights of labels rows. The table is scaled to a mean cost of 1 per label, so
neither changes what a learning rate means. The same table gives scikit-learn classifiers their sample weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dugong.endmodels.labels import KnownLabels
from dugong.exceptions import LabelError
from dugong.types import FloatArray, IntArray, read_only

__all__ = ["ClassWeights", "Costs", "Loss", "make_costs"]

Loss = Literal["soft", "hard", "confidence"]
ClassWeights = Literal["balanced"] | Sequence[float] | FloatArray | None

TIE = 1e-9
"""Probabilities that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Costs:
    """The table of costs.

    Attributes
    ----------
    table : array, shape (n, ..., K)
    rows : array of int
        Examples with any cost; the others (unknown labels, weight or confidence 0) teach nothing.
    class_weights : array, shape (K,)
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

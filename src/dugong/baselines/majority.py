"""Majority vote: the baseline that every label model has to beat.

In: votes. Out: vote shares. A vote on a window, span or sequence counts for each of its elements, as in the paper's
non-sequential baseline (section 4.2). Elements about which no source speaks belong to the background class if there is
one, and are split evenly over the classes otherwise.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from dugong.baselines.elements import accuracy_on, inner_elements
from dugong.contract import Configured, typed
from dugong.exceptions import LabelError, VoteError
from dugong.tasks import Element, Resolution, find_resolution
from dugong.types import AnyArray, FloatArray, Int8Array
from dugong.votes import Votes, class_indices, implied_background
from dugong.votes.codes import positive_class

Ties = Literal["first", "last", "random"]


class MajorityVote(Configured):
    """Vote shares as probabilities.

    Parameters
    ----------
    ties : {"first", "last", "random"}
        Which of the classes with most votes `predict` returns: the first or the last in the order of `classes_`, or
        one drawn with `seed`. Probabilities always split ties evenly.
    seed : int
        For ``ties="random"``.
    """

    def __init__(self, *, ties: Ties = "first", seed: int = 0) -> None:
        self.ties = ties
        self.seed = seed

    @typed(VoteError)
    def fit(self, votes: Votes, gold: object = None, groups: object = None) -> Self:  # noqa: ARG002  same contract
        """Take note of the classes; there is nothing to estimate."""
        self.classes_ = np.array(votes.classes)
        self.class_names_ = votes.class_names
        self.background_ = implied_background(votes)
        return self

    @typed(LabelError)
    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """Share of the votes for each class, shape (n_tasks, n_classes)."""
        self._check_fitted()
        found = find_resolution(resolution, votes.resolutions) if isinstance(resolution, str) else resolution
        elements = self._element_shares(votes)
        if isinstance(found, Element):
            return elements
        return _coarse_shares(votes, found, elements)

    @typed(LabelError)
    def predict(self, votes: Votes, resolution: str | Resolution = "element", threshold: float = 0.5) -> Int8Array:
        """The class with most votes; binary: +1 where its share exceeds `threshold`, ties by the named rule."""
        shares = self.predict_proba(votes, resolution)
        classes = np.array((-1, 1) if shares.shape[1] == 2 else votes.classes, dtype=np.int8)
        if shares.shape[1] == 2 and threshold != 0.5:
            return np.where(shares[:, 1] > threshold, 1, -1).astype(np.int8)
        return np.asarray(classes[self._winner(shares)])

    @typed(LabelError)
    def score(self, votes: Votes, gold: AnyArray) -> float:
        """Accuracy on the elements whose gold label is known (not 0)."""
        return accuracy_on(self.predict(votes), gold)

    def _winner(self, shares: FloatArray) -> AnyArray:
        best = shares >= shares.max(axis=1, keepdims=True) - 1e-12
        if self.ties == "first":
            return np.asarray(np.argmax(best, axis=1))
        if self.ties == "last":
            return np.asarray(best.shape[1] - 1 - np.argmax(best[:, ::-1], axis=1))
        draws = np.random.default_rng(self.seed).random(best.shape)
        return np.asarray(np.argmax(np.where(best, draws, -1.0), axis=1))

    def _element_shares(self, votes: Votes) -> FloatArray:
        counts = np.zeros((votes.n_elements, votes.n_classes))
        for source, column in zip(votes.sources, votes.columns, strict=True):
            if isinstance(source.resolution, Element):
                _add_element_votes(votes, column, counts)
            else:
                _add_coarse_votes(votes, source.resolution, column, counts)
        total = counts.sum(axis=1, keepdims=True)
        empty = np.full(votes.n_classes, 1 / votes.n_classes)
        if self.background_ is not None:
            empty = (np.array(votes.classes) == self.background_).astype(np.float64)
        return np.where(total > 0, counts / np.where(total > 0, total, 1), empty)


def _add_element_votes(votes: Votes, column: Int8Array, counts: FloatArray) -> None:
    codes = class_indices(votes, column, votes.n_classes)
    for place in range(votes.n_classes):
        counts[:, place] += codes == place
    for place, classes in enumerate(votes.partial.values()):
        spoken = codes == votes.n_classes + 1 + place
        for one in classes:
            counts[spoken, votes.classes.index(one)] += 1 / len(classes)


def _add_coarse_votes(votes: Votes, resolution: Resolution, column: Int8Array, counts: FloatArray) -> None:
    inner, sizes = inner_elements(votes, resolution)
    spread = np.repeat(column, sizes)
    positive = _positive(votes, resolution)
    np.add.at(counts, (inner[spread == 1], positive), 1.0)
    if votes.n_classes == 2:
        np.add.at(counts, (inner[spread == -1], 0), 1.0)


def _positive(votes: Votes, resolution: Resolution) -> int:
    """The column of the class that makes an element count as positive."""
    return 1 if votes.n_classes == 2 or resolution.of is None else positive_class(votes, resolution) - 1


def _coarse_shares(votes: Votes, resolution: Resolution, elements: FloatArray) -> FloatArray:
    """Any: the largest share inside; all: the smallest; otherwise the mean."""
    places, sizes = inner_elements(votes, resolution)
    inner = elements[places, _positive(votes, resolution)]
    edges = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    if not len(edges):
        return np.zeros((0, 2))
    if resolution.link in ("any", "all"):
        reduce = np.maximum if resolution.link == "any" else np.minimum
        positive = reduce.reduceat(inner, edges)
    else:
        positive = np.add.reduceat(inner, edges) / sizes
    return np.stack([1 - positive, positive], axis=1)

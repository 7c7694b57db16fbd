"""Baselines element by element: what they share, and the majority vote.

The paper's baselines know no resolutions: a vote on a window, span or sequence counts as a vote on each of its
elements (section 4.2). Where several tasks of one source cover an element, most of their votes win, and a tie is an
abstain. With more than two classes a coarse +1 is a vote for the class that the resolution names, and a coarse -1,
which names none, an abstain. Underspecified votes are left out; the majority vote splits them over their classes.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from dugong.contract import Configured, typed
from dugong.exceptions import LabelError, VoteError
from dugong.infer.engine import posterior
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Prior
from dugong.tasks import Element, Resolution
from dugong.tasks.layout import ranges
from dugong.types import ABSTAIN, MISSING, AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, class_indices, implied_background
from dugong.votes.codes import positive_class
from dugong.votes.gold import accuracy_on, likeliest


class ElementBaseline(Configured):
    """A model of votes on elements that is fitted when it has tables, `parameters_` of them, and `prior_`."""

    classes_: AnyArray
    parameters_: Parameters
    prior_: Prior

    def _keep(self, votes: Votes, tables: dict[str, FloatArray], prior: Prior) -> None:
        self.classes_, self.class_names_ = np.array(votes.classes), votes.class_names
        self.accuracies_, self.prior_ = tables, prior
        self.parameters_ = parameters_of(tables, votes.n_classes)

    @typed(LabelError)
    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | votes forced onto elements), shape (n_tasks, n_classes), exact under what was learned."""
        self._check_fitted()
        found = votes.resolution(resolution)
        forced = replace(on_elements(votes), spans=votes.spans)
        threads = getattr(self, "n_threads", None)
        answer = posterior(forced, self.parameters_, self.prior_, resolutions=(found,), n_threads=threads)
        return answer.probabilities[found]

    def predict(self, votes: Votes, resolution: str | Resolution = "element", threshold: float = 0.5) -> Int8Array:
        """The likelier class; with two classes +1 where P(+1) exceeds `threshold`."""
        return likeliest(self.predict_proba(votes, resolution), self.classes_, threshold)

    def score(self, votes: Votes, gold: AnyArray) -> float:
        """Accuracy on the elements whose gold label is known (not 0)."""
        return accuracy_on(self.predict(votes), gold)


def on_elements(votes: Votes) -> Votes:
    """The same votes, all of them on elements."""
    columns = []
    for info, column in zip(votes.sources, votes.columns, strict=True):
        if not isinstance(info.resolution, Element):
            columns.append(_forced(votes, info, column))
        else:
            vague = np.isin(column, list(votes.partial))
            columns.append(np.where(vague, MISSING, column).astype(np.int8) if votes.partial else column)
    sources = tuple(SourceInfo(name=info.name) for info in votes.sources)
    return replace(votes, sources=sources, columns=tuple(columns), partial={}, scores={}, spans={}, faults=())


def _forced(votes: Votes, info: SourceInfo, column: Int8Array) -> Int8Array:
    inner, sizes = inner_elements(votes, info.resolution)
    spread = np.repeat(column, sizes)
    asked = spread != MISSING
    balance = np.bincount(inner[asked], spread[asked], votes.n_elements)
    covered = np.bincount(inner[asked], minlength=votes.n_elements) > 0
    spoken = np.sign(balance)
    if votes.n_classes > 2:
        spoken = np.where(spoken > 0, positive_class(votes, info.resolution), ABSTAIN)
    return np.where(covered, spoken, MISSING).astype(np.int8)


def inner_elements(votes: Votes, resolution: Resolution) -> tuple[IntArray, IntArray]:
    """The elements inside each task, one task after another, and how many there are in each."""
    layout = votes.layout(resolution)
    starts, stops = layout.bounds()
    shift = votes.layout("element").offsets[layout.owners()]
    return ranges(starts + shift, stops - starts), stops - starts


def element_codes(votes: Votes) -> Int8Array:
    """Votes on elements as table columns, (n_elements, n_sources): classes, abstain, -1 for not asked."""
    codes = [class_indices(votes, column, votes.n_classes) for column in votes.columns]
    return np.ascontiguousarray(np.stack(codes, axis=1)) if codes else np.zeros((votes.n_elements, 0), dtype=np.int8)


def parameters_of(tables: dict[str, FloatArray], n_classes: int) -> Parameters:
    """Independent sources on elements, from P(vote | label) of each."""
    factors = tuple(Conditional(source=name, resolution=Element(), table=table) for name, table in tables.items())
    return Parameters(n_classes=n_classes, factors=factors)


# --- majority vote: the baseline that every label model has to beat --------------------------------------------------
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
        found = votes.resolution(resolution)
        elements = self._element_shares(votes)
        if isinstance(found, Element):
            return elements
        return _coarse_shares(votes, found, elements)

    @typed(LabelError)
    def predict(self, votes: Votes, resolution: str | Resolution = "element", threshold: float = 0.5) -> Int8Array:
        """The class with most votes; binary: +1 where its share exceeds `threshold`, ties by the named rule."""
        shares = self.predict_proba(votes, resolution)
        if shares.shape[1] == 2 and threshold != 0.5:
            return likeliest(shares, self.classes_, threshold)
        classes = np.array((-1, 1) if shares.shape[1] == 2 else votes.classes, dtype=np.int8)
        return np.asarray(classes[self.winner(shares)])

    @typed(LabelError)
    def score(self, votes: Votes, gold: AnyArray) -> float:
        """Accuracy on the elements whose gold label is known (not 0)."""
        return accuracy_on(self.predict(votes), gold)

    def winner(self, shares: FloatArray) -> IntArray:
        """The place of the class with most votes in every row of shares, ties by the named rule."""
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


# --- Traditional supervision (TS): an end model that sees the hand-labelled development set and nothing else ----------
# In: raw data of the elements, their gold labels (0 = unlabelled) and any classifier with ``fit(X, y)``. Out: a model
# with the same ``predict_proba``, ``predict`` and ``score`` as the others, on data instead of votes. The paper's first
# baseline (section 4.2).
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

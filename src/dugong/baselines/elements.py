"""What element-wise baselines share: votes forced onto elements, and labels from the law of such votes.

The paper's baselines know no resolutions: a vote on a window, span or sequence counts as a vote on each of its
elements (section 4.2). Where several tasks of one source cover an element, most of their votes win, and a tie is an
abstain. With more than two classes a coarse +1 is a vote for the class that the resolution names, and a coarse -1,
which names none, an abstain. Underspecified votes are left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dugong.contract import Configured
from dugong.exceptions import LabelError
from dugong.infer.engine import posterior
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Prior
from dugong.tasks import Element, Resolution, find_resolution
from dugong.tasks.layout import ranges
from dugong.types import ABSTAIN, MISSING, AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, class_indices
from dugong.votes.codes import positive_class


class ElementBaseline(Configured):
    """A model of votes on elements that is fitted when it has tables, `parameters_` of them, and `prior_`."""

    classes_: AnyArray
    parameters_: Parameters
    prior_: Prior

    def _keep(self, votes: Votes, tables: dict[str, FloatArray], prior: Prior) -> None:
        self.classes_, self.class_names_ = np.array(votes.classes), votes.class_names
        self.accuracies_, self.prior_ = tables, prior
        self.parameters_ = parameters_of(tables, votes.n_classes)

    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | votes forced onto elements), shape (n_tasks, n_classes), exact under what was learned."""
        self._check_fitted()
        found = find_resolution(resolution, votes.resolutions) if isinstance(resolution, str) else resolution
        forced = replace(on_elements(votes), spans=votes.spans)
        threads = getattr(self, "n_threads", None)
        answer = posterior(forced, self.parameters_, self.prior_, resolutions=(found,), n_threads=threads)
        return answer.probabilities[found]

    def predict(self, votes: Votes, resolution: str | Resolution = "element", threshold: float = 0.5) -> Int8Array:
        """The likelier class; with two classes +1 where P(+1) exceeds `threshold`."""
        probabilities = self.predict_proba(votes, resolution)
        if probabilities.shape[1] == 2:
            return np.where(probabilities[:, 1] > threshold, 1, -1).astype(np.int8)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)], dtype=np.int8)

    def score(self, votes: Votes, gold: AnyArray) -> float:
        """Accuracy on the elements whose gold label is known (not 0)."""
        return accuracy_on(self.predict(votes), gold)


def on_elements(votes: Votes) -> Votes:
    """The same votes, all of them on elements."""
    columns = [
        _whole_classes(votes, column) if isinstance(info.resolution, Element) else _forced(votes, info, column)
        for info, column in zip(votes.sources, votes.columns, strict=True)
    ]
    sources = tuple(SourceInfo(name=info.name) for info in votes.sources)
    return replace(votes, sources=sources, columns=tuple(columns), partial={}, scores={}, spans={}, faults=())


def _whole_classes(votes: Votes, column: Int8Array) -> Int8Array:
    vague = np.isin(column, list(votes.partial)) if votes.partial else None
    return column if vague is None else np.where(vague, MISSING, column).astype(np.int8)


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


def accuracy_on(predicted: AnyArray, gold: AnyArray) -> float:
    """Share of right labels among those that are known (not 0)."""
    known = np.asarray(gold) != 0
    if not known.any():
        raise LabelError("score needs at least one known gold label; found none (0 means unknown).")
    return float((np.asarray(predicted)[known] == np.asarray(gold)[known]).mean())

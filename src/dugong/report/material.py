"""What every section of a report reads: the votes, the model, and what the model says about the votes, worked out once.

In: a fitted `LabelModel`, votes and, if there are any, known labels. Out: `Material`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.baselines import MajorityVote
from dugong.exceptions import PriorError, TaskError
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes, class_indices, gold_at

if TYPE_CHECKING:
    from dugong.model import LabelModel

WHOLE = "the most likely labels of a whole sequence"
SINGLE = "the likelier class of every element"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Everything that the sections of a report are made from.

    Attributes
    ----------
    probabilities : (n_tasks, K) by resolution, elements first
    shares : (n_elements, K) vote shares of the majority vote
    chosen, majority, decoded : (n_elements,) places of classes: the likelier class, majority vote, whole sequences
    how_decoded : what `decoded` is, in words
    gold : (n_elements,) class values, 0 = unknown; None without
    """

    model: LabelModel
    votes: Votes
    probabilities: Mapping[Resolution, FloatArray]
    shares: FloatArray
    chosen: IntArray
    majority: IntArray
    decoded: IntArray
    how_decoded: str
    gold: Int8Array | None

    @property
    def elements(self) -> FloatArray:
        """P(class) of every element."""
        return self.probabilities[Element()]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes of elements."""
        return label_names(self.votes, Element())

    def gold_places(self) -> IntArray | None:
        """Places of the known classes, -1 where unknown."""
        return None if self.gold is None else places_of(self.gold, self.votes)


def gather(model: LabelModel, votes: Votes, gold: Any = None, known: Int8Array | None = None) -> Material:
    """Label the votes at all their resolutions, with the model and with majority vote; `known` labels are certain."""
    votes = model.law_.read(votes)  # what the model goes by, where a score decides what counts as a vote
    found = model._probabilities(votes, votes.resolutions, known)  # noqa: SLF001  (our own)
    elements = found[Element()]
    voting = MajorityVote().fit(votes)
    shares = voting.predict_proba(votes)
    decoded, how = _decode(model, votes, elements, known)
    return Material(
        model=model,
        votes=votes,
        probabilities=found,
        shares=shares,
        chosen=elements.argmax(axis=1),
        majority=_first_best(shares),
        decoded=decoded,
        how_decoded=how,
        gold=None if gold is None else gold_at(votes, gold, Element()),
    )


def is_averaged(model: LabelModel) -> bool:
    """Whether labels are an average of the exact model and a more cautious answer, be it only the class balance."""
    return model.law_.tempering is not None


def label_names(votes: Votes, resolution: Resolution) -> tuple[str, ...]:
    """Names of the labels of a resolution, in the order of table rows."""
    if isinstance(resolution, Element) or votes.n_classes == 2:
        if votes.class_names is not None:
            return votes.class_names
        return ("-1", "+1") if votes.n_classes == 2 else tuple(map(str, votes.classes))
    of = resolution.of if isinstance(resolution.of, str) or votes.class_names is None else None
    word = of if of is not None else _class_word(votes, resolution.of)
    return (f"not {word}", str(word))


def _class_word(votes: Votes, value: object) -> str:
    names = votes.class_names or tuple(map(str, votes.classes))
    return names[value - 1] if isinstance(value, int) and 1 <= value <= len(names) else "+1"


def places_of(labels: Int8Array, votes: Votes) -> IntArray:
    """Class values of elements as places 0..K-1, -1 where unknown (0)."""
    places = class_indices(votes, labels, votes.n_classes).astype(np.int64)
    return np.where((places < 0) | (places >= votes.n_classes), -1, places)


def _first_best(shares: FloatArray) -> IntArray:
    """As `MajorityVote.predict`: the first of the classes with most votes."""
    return np.asarray((shares >= shares.max(axis=1, keepdims=True) - 1e-12).argmax(axis=1), dtype=np.int64)


def _decode(model: LabelModel, votes: Votes, elements: FloatArray, known: Int8Array | None) -> tuple[IntArray, str]:
    """What `LabelModel.decode` says; the labels themselves where a prior has no best path, or one too costly."""
    try:
        return places_of(model.decode(votes, known=known), votes), WHOLE
    except (PriorError, TaskError):
        return elements.argmax(axis=1), SINGLE

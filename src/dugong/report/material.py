"""What every section of a report reads: the votes, the model, and what the model says about the votes, worked out once.

In: a fitted `LabelModel`, votes and, if there are any, known labels. Out: `Material`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.baselines import MajorityVote
from dugong.exceptions import PriorError, TaskError
from dugong.infer.potentials import sum_by_sequence
from dugong.metrics.elements import ratio
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
        majority=voting.winner(shares),
        decoded=decoded,
        how_decoded=how,
        gold=None if gold is None else gold_at(votes, gold, Element()),
    )


def label_names(votes: Votes, resolution: Resolution) -> tuple[str, ...]:
    """Names of the labels of a resolution, in the order of table rows."""
    names = votes.class_names or (("-1", "+1") if votes.n_classes == 2 else tuple(map(str, votes.classes)))
    if isinstance(resolution, Element) or votes.n_classes == 2:
        return names
    of = "+1" if resolution.of is None else resolution.of
    if isinstance(of, int):
        of = names[of - 1] if 1 <= of <= len(names) else str(of)
    return (f"not {of}", of)


def places_of(labels: Int8Array, votes: Votes) -> IntArray:
    """Class values of elements as places 0..K-1, -1 where unknown (0)."""
    places = class_indices(votes, labels, votes.n_classes).astype(np.int64)
    return np.where((places < 0) | (places >= votes.n_classes), -1, places)


def _decode(model: LabelModel, votes: Votes, elements: FloatArray, known: Int8Array | None) -> tuple[IntArray, str]:
    """What `LabelModel.decode` says; the labels themselves where a prior has no best path, or one too costly."""
    try:
        return places_of(model.decode(votes, known=known), votes), WHOLE
    except (PriorError, TaskError):
        return elements.argmax(axis=1), SINGLE


# --- which sequences are worth a human's look -------------------------------------------------------------------------
# Three numbers by sequence, and the sequences in the order in which a report takes them, from the top of each list in
# turn. Uncertainty: mean entropy of the element labels, as a share of the largest possible. Disagreement between
# resolutions: the share of votes on windows, spans and sequences that the model expects to be wrong, given everything
# that is said about the elements inside; None where no coarse source votes. Difference: share of elements that majority
# vote labels differently.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interest:
    """Numbers by which sequences are sorted, (n_sequences,) each; NaN where one does not apply."""

    uncertainty: FloatArray
    disagreement: FloatArray
    difference: FloatArray
    wrong: FloatArray
    wrong_path: FloatArray


def measure(material: Material) -> Interest:
    """Work out what makes each sequence interesting."""
    votes = material.votes
    offsets = votes.layout("element").offsets
    entropy = element_entropy(material.elements)
    differs = (material.majority != material.chosen).astype(np.float64)
    lengths = votes.lengths.astype(np.float64)
    return Interest(
        uncertainty=ratio(sum_by_sequence(entropy, offsets), lengths),
        disagreement=_disagreement(material),
        difference=ratio(sum_by_sequence(differs, offsets), lengths),
        wrong=_wrong(material, material.chosen),
        wrong_path=_wrong(material, material.decoded),
    )


def _wrong(material: Material, labels: IntArray) -> FloatArray:
    """Share of the known labels of every sequence that these labels miss, NaN where none is known."""
    gold, offsets = material.gold_places(), material.votes.layout("element").offsets
    if gold is None:
        return np.full(material.votes.n_sequences, np.nan)
    known = sum_by_sequence((gold >= 0).astype(np.float64), offsets)
    return ratio(sum_by_sequence(((gold >= 0) & (gold != labels)).astype(np.float64), offsets), known)


def element_entropy(probabilities: FloatArray) -> FloatArray:
    """Entropy of every row as a share of the largest possible, (n,)."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    return np.asarray(-(probabilities * np.log(safe)).sum(axis=1) / np.log(probabilities.shape[1]))


def take_in_turn(interest: Interest, *, first: IntArray) -> IntArray:
    """All sequences, the `first` ones first, then from the top of each list in turn."""
    lists = [
        np.argsort(-values, kind="stable")[: int(np.count_nonzero(~np.isnan(values)))]
        for values in (interest.uncertainty, interest.disagreement, interest.difference)
    ]
    longest = max((len(one) for one in lists), default=0)
    turns = np.full((longest, len(lists)), -1, dtype=np.int64)
    for place, one in enumerate(lists):
        turns[: len(one), place] = one
    flat = np.concatenate([first, turns.reshape(-1), np.arange(len(interest.uncertainty))])
    flat = flat[flat >= 0]
    _, earliest = np.unique(flat, return_index=True)
    return np.asarray(flat[np.sort(earliest)])


def find_sequences(votes: Votes, wanted: Iterable[object]) -> IntArray:
    """Places of sequences by id."""
    ids = {str(one): place for place, one in enumerate(votes.sequence_ids.tolist())}
    found = []
    for one in wanted:
        if str(one) not in ids:
            raise TaskError(
                f"there is no sequence {str(one)!r} in these votes; known are {', '.join(list(ids)[:5])}"
                f"{', ...' if len(ids) > 5 else ''}."
            )
        found.append(ids[str(one)])
    return np.array(found, dtype=np.int64)


def _disagreement(material: Material) -> FloatArray:
    votes = material.votes
    wrong, spoken = np.zeros(votes.n_sequences), np.zeros(votes.n_sequences)
    for source, column in zip(votes.sources, votes.columns, strict=True):
        if isinstance(source.resolution, Element):
            continue
        offsets = votes.layout(source.resolution).offsets
        places = class_indices(votes, column, 2)
        law = material.probabilities[source.resolution]
        for place in (0, 1):
            mine = (places == place).astype(np.float64)
            spoken += sum_by_sequence(mine, offsets)
            wrong += sum_by_sequence(mine * law[:, 1 - place], offsets)
    return ratio(wrong, spoken)

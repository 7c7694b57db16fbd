"""Which sequences are worth a human's look.

In: `Material`. Out: three numbers per sequence, and the sequences in the order in which a report takes them.

- *uncertainty*: mean entropy of the element labels, as a share of the largest possible;
- *disagreement* between resolutions: the share of votes on windows, spans and sequences that the model expects to be
  wrong, given everything that is said about the elements inside; None where no coarse source votes;
- *difference*: share of elements that majority vote labels differently.

Sequences are taken from the top of each of these lists in turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer.potentials import sum_by_sequence
from dugong.report.material import Material
from dugong.tasks import Element
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes, class_indices


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
        uncertainty=_ratio(sum_by_sequence(entropy, offsets), lengths),
        disagreement=_disagreement(material),
        difference=_ratio(sum_by_sequence(differs, offsets), lengths),
        wrong=_wrong(material, material.chosen),
        wrong_path=_wrong(material, material.decoded),
    )


def _wrong(material: Material, labels: IntArray) -> FloatArray:
    """Share of the known labels of every sequence that these labels miss, NaN where none is known."""
    gold, offsets = material.gold_places(), material.votes.layout("element").offsets
    if gold is None:
        return np.full(material.votes.n_sequences, np.nan)
    known = sum_by_sequence((gold >= 0).astype(np.float64), offsets)
    return _ratio(sum_by_sequence(((gold >= 0) & (gold != labels)).astype(np.float64), offsets), known)


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
    return _ratio(wrong, spoken)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0))

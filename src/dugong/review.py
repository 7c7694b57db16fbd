"""Which sequences a person should look at first: those that teach most, and not the same thing twice.

In: votes and the probabilities of their elements. Out: the ids of some sequences, the most useful first. A sequence is
worth the uncertainty that is left in it, in bits; one that looks like a sequence chosen before counts less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import LabelError
from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING, FloatArray, IntArray
from dugong.votes import Votes

__all__ = ["Review", "choose"]

_TWIN = 0.1  # what a sequence counts that looks exactly like one that was chosen before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Review:
    """Sequences to look at, the most useful first.

    Attributes
    ----------
    ids : ids of the sequences
    places : (n,) their places in the votes
    worth : (n,) what looking at each was worth when it was chosen
    by : what worth means
    """

    ids: tuple[Any, ...]
    places: IntArray
    worth: FloatArray
    by: str

    def __len__(self) -> int:
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"by": self.by, "sequences": list(self.ids), "worth": self.worth.tolist()}

    def __str__(self) -> str:
        lines = [f"{'sequence':<24}  {self.by}"]
        lines += [f"{one!s:<24}  {worth:8.2f}" for one, worth in zip(self.ids, self.worth.tolist(), strict=True)]
        return "\n".join(lines)


def entropy(votes: Votes, probabilities: FloatArray) -> FloatArray:
    """Bits of uncertainty that are left in the labels of every sequence, (n_sequences,)."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    bits = -(probabilities * np.log2(safe)).sum(axis=1)
    return _sums(bits, votes)


# What a sequence can be worth; each takes votes and probabilities of their elements.
WORTHS: dict[str, Callable[[Votes, FloatArray], FloatArray]] = {"entropy": entropy}


def choose(votes: Votes, probabilities: FloatArray, budget: int, by: str) -> Review:
    """Choose at most `budget` sequences, one after the other."""
    if by not in WORTHS:
        raise LabelError(f"sequences are chosen by {' or '.join(map(repr, WORTHS))}; found by={by!r}.")
    if budget < 1:
        raise LabelError(f"the budget is a number of sequences, at least 1; found {budget}.")
    worth = np.where(votes.lengths > 0, WORTHS[by](votes, probabilities), -np.inf)
    looks = _looks(votes, probabilities)
    scale = float(np.median(np.linalg.norm(looks - looks.mean(axis=0), axis=1))) or 1.0
    near = np.full(votes.n_sequences, np.inf)
    places: list[int] = []
    gains: list[float] = []
    for _ in range(min(budget, int((votes.lengths > 0).sum()))):
        gain = worth * (_TWIN + (1 - _TWIN) * np.minimum(near / scale, 1.0))
        gain[places] = -np.inf
        best = int(np.argmax(gain))
        places.append(best)
        gains.append(float(gain[best]))
        near = np.minimum(near, np.linalg.norm(looks - looks[best], axis=1))
    ids = votes.sequence_ids.tolist()
    return Review(ids=tuple(ids[place] for place in places), places=np.array(places), worth=np.array(gains), by=by)


def _looks(votes: Votes, probabilities: FloatArray) -> FloatArray:
    """What a sequence looks like: shares of classes and, by source, of each vote; (n_sequences, n_features)."""
    size = np.maximum(votes.lengths, 1)
    features = [_sums(column, votes) / size for column in probabilities.T]
    for source, column in zip(votes.sources, votes.columns, strict=True):
        layout = votes.layout(source.resolution)
        count = np.maximum(np.diff(layout.offsets), 1)
        for code in [one for one in np.unique(column).tolist() if one not in (ABSTAIN, MISSING)]:
            hits = np.concatenate([[0], np.cumsum(column == code)])
            features.append(np.diff(hits[layout.offsets]) / count)
    return np.stack(features, axis=1)


def _sums(values: FloatArray, votes: Votes) -> FloatArray:
    """Sums of a value of elements, by sequence."""
    return np.asarray(np.diff(np.concatenate([[0.0], np.cumsum(values)])[votes.layout(Element()).offsets]))

"""What known labels are worth: the model fitted with them against the model fitted without, on other sequences.

In: votes, labels to fit with, and labels to compare with if there are any. Without these, half of the sequences with
known labels is fitted with, the other half is compared on, and the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.cli.annotations import held_out
from dugong.exceptions import LabelError
from dugong.tasks import Element

if TYPE_CHECKING:
    from dugong.metrics import Comparison
    from dugong.model import LabelModel
    from dugong.types import BoolArray, FloatArray, Int8Array
    from dugong.votes import Votes

WITHOUT, WITH = "without", "with known labels"


def worth_of(votes: Votes, train: Int8Array, gold: Int8Array | None, model: LabelModel) -> tuple[Comparison, str]:
    """Compare fits without and with known labels, and say on what."""
    from dugong.cli.steps import class_options
    from dugong.metrics import compare

    without = _anew(model).fit(votes).predict_proba(votes)
    if gold is not None:
        known, where = held_out(gold, train, votes), "on sequences that the model was not fitted with"
        answers = _anew(model).fit(votes, train).predict_proba(votes)
    else:
        known, where = train, "each half of the known sequences labelled by a model fitted with the other half"
        answers = _halves(votes, train, model)
    if not known.any():
        raise LabelError("there is nothing to compare on: every sequence with known labels was fitted with.")
    methods = {WITHOUT: without, WITH: answers}
    return compare(methods, known, lengths=votes.lengths, **class_options(votes)), where


def _halves(votes: Votes, train: Int8Array, model: LabelModel) -> FloatArray:
    """Probabilities of every sequence under a model that was not fitted with its known labels."""
    offsets = votes.layout(Element()).offsets
    known = np.flatnonzero(np.diff(np.concatenate([[0], np.cumsum(train != 0)])[offsets]) > 0)
    if len(known) < 2:
        raise LabelError(
            f"known labels of at least two sequences are needed to say what they are worth; found {len(known)}."
        )
    half = np.zeros(votes.n_sequences, dtype=np.bool_)
    half[known[::2]] = True
    answers = [
        _anew(model).fit(votes, np.where(_spread(rows, votes), train, 0)).predict_proba(votes) for rows in (~half, half)
    ]
    return np.where(_spread(half, votes)[:, None], answers[0], answers[1])


def _spread(sequences: BoolArray, votes: Votes) -> BoolArray:
    return np.repeat(sequences, votes.lengths)


def _anew(model: Any) -> LabelModel:
    """A model with the same settings, not fitted yet."""
    return type(model)(**model.get_params())  # type: ignore[no-any-return]

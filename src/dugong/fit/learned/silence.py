"""What it means that nobody speaks, where no class is the background.

In: the labels of elements about which somebody speaks. Out: the evidence of silence. Sources that each name one class
are silent on the others, so an element without votes belongs rather to a class whose sources speak rarely. Only the
labels of the silent elements are iterated. Where many more are silent than independent sources leave, the others were
not asked, and their silence says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dugong.codec import Numbers
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.settings import PSEUDO_VOTES, ROUNDS_SILENCE
from dugong.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Silence:
    """Evidence of silent elements.

    Attributes
    ----------
    logs : (m, K) log P(silent | label) of every source
    shift : (K,) log of the class balance of all elements over that of the elements with votes
    share : how many of the silent elements are so by chance, 0 to 1; the others are as the elements with votes
    """

    logs: FloatArray
    shift: FloatArray
    share: Annotated[float, Numbers(low=0, high=1)]

    @classmethod
    def none(cls, n_sources: int, n_classes: int) -> Silence:
        """Silence says nothing."""
        return cls(logs=np.zeros((n_sources, n_classes)), shift=np.zeros(n_classes), share=0.0)


def learn_silence(folded: Folded, weights: FloatArray, use: BoolArray) -> Silence:
    """From soft labels of rows (n_rows, K), summed over their elements; rows not in `use` are silent."""
    rows, m, n_classes = folded.rows, folded.rows.n_sources, weights.shape[1]
    quiet = np.flatnonzero(~use)
    if not len(quiet) or not use.any():
        return Silence.none(m, n_classes)
    heard = np.where(use[:, np.newaxis], weights, 0.0)
    asked = (rows.codes >= 0).T @ heard
    silent = (rows.codes == rows.coding.silent).T @ heard
    size = folded.sizes[quiet]
    here = size @ (rows.codes[quiet] == rows.coding.silent)
    balance = (heard.sum(axis=0) + 1) / (heard.sum() + n_classes)
    labels, n_heard, n_quiet = balance, heard.sum(), size.sum()
    usual = (silent.sum(axis=1) + here + 1) / (asked.sum(axis=1) + here + 2)
    for _ in range(ROUNDS_SILENCE):
        again = here[:, np.newaxis] * labels
        chance = (silent + again + PSEUDO_VOTES * usual[:, np.newaxis]) / (asked + again + PSEUDO_VOTES)
        whole = (heard.sum(axis=0) + n_quiet * labels + 1) / (n_heard + n_quiet + n_classes)
        logs = np.log(chance)
        joint = whole * np.exp((here / n_quiet) @ logs)
        labels = joint / joint.sum()
    share = min(1.0, float(joint.sum() * (n_heard + n_quiet) / n_quiet))
    return Silence(logs=logs, shift=np.log(whole / balance), share=share)

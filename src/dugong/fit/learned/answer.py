"""The answer from votes on elements: one log-linear formula with five exponents.

    q(y) ~ exp( b0 balance + b1 share + b2 votes + b3 silence + b4 neighbours )

In: a case. Out: an `ElementAnswer`, a function from votes to P(label). The features are those of `views`; the exponents
lean to a belief and are learned from how well peers predict each other (`peers`). The neighbours count as far as labels
last longer than errors do. An error that all sources share at one element is invisible to all of this: a little of
every answer is therefore left to the class balance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from dugong.codec import Numbers
from dugong.exceptions import FileError
from dugong.fit.learned.folded import fold
from dugong.fit.learned.panel import Coding, Panel
from dugong.fit.learned.settings import BELIEF, DOUBT, ROOM
from dugong.fit.learned.tables import softmax
from dugong.fit.learned.views import (
    BALANCE,
    NEIGHBOURS,
    VOTES,
    Constraints,
    LabelLaw,
    Sayings,
    View,
    learn_sayings,
    learn_steps,
    view,
)
from dugong.types import BoolArray, FloatArray
from dugong.votes import SourceInfo

_HAIR = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElementAnswer:
    """P(label) of elements as a function of the votes on their sequence.

    Attributes
    ----------
    sources : the sources on elements, in the order of the tables
    coding : what their codes say
    sayings : what their votes tell
    law : balance and transitions of the labels
    exponents : (5,) of balance, share, votes, silence and neighbours
    kept : share of the log-odds that is not taken back for errors that all sources share
    """

    sources: tuple[SourceInfo, ...]
    coding: Coding
    sayings: Sayings
    law: LabelLaw
    exponents: FloatArray
    kept: Annotated[float, Numbers(low=0, high=1)] = 0.75

    def __post_init__(self) -> None:
        m, k = len(self.sources), self.coding.n_classes
        wanted = (
            ("sayings.weights", self.sayings.weights, (m,)),
            ("sayings.tables", self.sayings.tables, (m, k, self.coding.n_columns)),
            ("sayings.silences", self.sayings.silences, (m, k)),
            ("law.balance", self.law.balance, (k,)),
            ("law.initial", self.law.initial, (k,)),
            ("law.transition", self.law.transition, (k, k)),
            ("exponents", self.exponents, (5,)),
        )
        # The kernels read these without looking at their bounds.
        for name, array, shape in wanted:
            if array.shape != shape:
                raise FileError(f"{name} must have the shape {shape}; found {array.shape}")
        if self.sayings.background is not None and not 0 <= self.sayings.background < k:
            raise FileError(f"sayings.background must be one of {k} classes; found {self.sayings.background}")

    def look(self, panel: Panel) -> FloatArray:
        """P(label) of every element of a panel of these sources, (n, K)."""
        seen = view(fold(panel), self.sayings, self.law)
        return answer(seen, self.exponents, self.kept)


def answer(seen: View, exponents: FloatArray, kept: float) -> FloatArray:
    """The formula, and the room for errors that all sources share."""
    which, rows = seen.folded.which, seen.folded.rows
    logs = np.einsum("rfk,f->rk", seen.rows, exponents[:NEIGHBOURS]).take(which, axis=0)
    if exponents[NEIGHBOURS] > 0:
        logs += exponents[NEIGHBOURS] * seen.messages(exponents)
    logs *= kept
    # A tie goes to the first class, as in majority vote, and not to rounding errors.
    logs[:, 0] += seen.tie[which] + _HAIR
    labels = softmax(logs)
    labels += DOUBT * (seen.base.take(which, axis=0) - labels)
    known = rows.known[which]
    labels[known >= 0] = np.eye(labels.shape[1])[known[known >= 0]]
    return labels


def first_answer(
    panel: Panel,
    sources: tuple[SourceInfo, ...],
    weights: FloatArray,
    background: int | None,
    fixed: Constraints,
) -> tuple[ElementAnswer, float]:
    """Tables and law from the vote, with exponents as they are believed; and how far labels outlast errors.

    Parameters
    ----------
    panel : the votes on elements
    weights : (m,) what each source counts
    background : class index of elements about which nobody speaks, or None
    fixed : what is not to be learned
    """
    folded, belief = fold(panel), np.array(BELIEF)
    sayings, law = learn_sayings(folded, weights, background, fixed)
    if background is None:
        # Balance and votes are discounted together: a posterior that is tempered whole keeps its border. Votes that are
        # discounted alone lose to the balance, and rare classes with them.
        belief[BALANCE] = belief[VOTES] / sayings.effect
    lasting = outlasting(view(folded, sayings, law), panel, belief)
    found = ElementAnswer(sources=sources, coding=panel.coding, sayings=sayings, law=law, exponents=belief)
    return found, lasting


def finish_answer(
    first: ElementAnswer, panel: Panel, exponents: FloatArray, lasting: float, fixed: Constraints, agreement: float
) -> ElementAnswer:
    """The same with other exponents, transitions learned with them, and room for errors by how far sources agree.

    What all sources get wrong together looks like agreement beyond chance. Where there is much of that, a little of it
    may be errors; where there is hardly any, all of it: half of the log-odds are kept there, at most four fifths.
    """
    exponents = np.where(np.arange(5) == NEIGHBOURS, lasting * exponents, exponents)
    law = learn_steps(view(fold(panel), first.sayings, first.law), exponents, fixed).law
    return replace(first, exponents=exponents, law=law, kept=(agreement + ROOM) / (agreement + 2 * ROOM))


def outlasting(seen: View, panel: Panel, exponents: FloatArray) -> float:
    """How far labels outlast errors, from 0 to 1: one minus the ratio of their correlations with the element before.

    Where errors last as long as labels, neighbours repeat what is known already, and say nothing.
    """
    if not seen.folded.linked:
        return 0.0
    labels = softmax(np.einsum("rfk,f->rk", seen.rows, exponents[:NEIGHBOURS])).take(seen.folded.which, axis=0)
    of_labels = _label_memory(labels, ~panel.starts[1:])
    return float(max(0.0, 1 - _error_memory(panel, labels) / of_labels)) if of_labels > 0 else 0.0


def _label_memory(labels: FloatArray, follows: BoolArray) -> float:
    """Largest correlation of a function of one label with a function of the next (two classes: the correlation).

    What noise would show, two standard errors, is taken off its square.
    """
    joint = labels[:-1][follows].T @ labels[1:][follows] + 1e-9
    joint = (joint + joint.T) / (2 * joint.sum())
    margin = np.sqrt(joint.sum(axis=0))
    values = np.linalg.svd(joint / np.outer(margin, margin), compute_uv=False)
    noise = 4 / max(int(follows.sum()), 1)
    return float(np.sqrt(np.clip(values[1] ** 2 - noise, 0.0, 1.0))) if len(values) > 1 else 0.0


def _error_memory(panel: Panel, labels: FloatArray) -> float:
    """Correlation of the error of a vote with that of the same source on the element before."""
    product = squares = 0.0
    n_classes = labels.shape[1]
    for source in range(panel.n_sources):
        codes = panel.codes[:, source]
        named = (codes >= 0) & (codes < n_classes)
        pairs = named[1:] & named[:-1] & ~panel.starts[1:]
        if pairs.sum() < 10:
            continue
        error = 1 - labels[np.arange(len(codes)), np.where(named, codes, 0)]
        error -= error[named].mean()
        now, before = error[1:][pairs], error[:-1][pairs]
        product += float(now @ before)
        squares += float(now @ now + before @ before) / 2
    return max(product / squares, 0.0) if squares > 0 else 0.0

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
from dugong.fit.learned.folded import Folded
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
    learn_sayings,
    learn_steps,
    view,
)
from dugong.types import FloatArray
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

    def look(self, folded: Folded) -> FloatArray:
        """P(label) of every element, (n, K), from votes of these sources: the formula, and room for shared errors."""
        which, seen = folded.which, view(folded, self.sayings, self.law)
        logs = np.einsum("rfk,f->rk", seen.rows, self.exponents[:NEIGHBOURS]).take(which, axis=0)
        if self.exponents[NEIGHBOURS] > 0:
            logs += self.exponents[NEIGHBOURS] * seen.messages(self.exponents)
        logs *= self.kept
        # A tie goes to the first class, as in majority vote, and not to rounding errors.
        logs[:, 0] += seen.tie[which] + _HAIR
        labels = softmax(logs)
        labels += DOUBT * (seen.base.take(which, axis=0) - labels)
        known = folded.rows.known[which]
        labels[known >= 0] = np.eye(labels.shape[1])[known[known >= 0]]
        return labels


def first_answer(
    folded: Folded,
    sources: tuple[SourceInfo, ...],
    weights: FloatArray,
    background: int | None,
    fixed: Constraints,
) -> ElementAnswer:
    """Tables and law from the vote, with exponents as they are believed.

    Parameters
    ----------
    folded : the votes on elements
    weights : (m,) what each source counts
    background : class index of elements about which nobody speaks, or None
    fixed : what is not to be learned
    """
    belief = np.array(BELIEF)
    sayings, law = learn_sayings(folded, weights, background, fixed)
    if background is None:
        # Balance and votes are discounted together: a posterior that is tempered whole keeps its border. Votes that are
        # discounted alone lose to the balance, and rare classes with them.
        belief[BALANCE] = belief[VOTES] / sayings.effect
    return ElementAnswer(sources=sources, coding=folded.panel.coding, sayings=sayings, law=law, exponents=belief)


def finish_answer(
    first: ElementAnswer, folded: Folded, exponents: FloatArray, lasting: float, fixed: Constraints, agreement: float
) -> ElementAnswer:
    """The same with other exponents, transitions learned with them, and room for errors by how far sources agree.

    What all sources get wrong together looks like agreement beyond chance. Where there is much of that, a little of it
    may be errors; where there is hardly any, all of it: half of the log-odds are kept there, at most four fifths.
    """
    exponents = np.where(np.arange(5) == NEIGHBOURS, lasting * exponents, exponents)
    law = learn_steps(view(folded, first.sayings, first.law), exponents, fixed).law
    return replace(first, exponents=exponents, law=law, kept=(agreement + ROOM) / (agreement + 2 * ROOM))


def outlasting(first: ElementAnswer, folded: Folded) -> float:
    """How far labels outlast errors, from 0 to 1: one minus the ratio of their correlations with the element before.

    Where errors last as long as labels, neighbours repeat what is known already, and say nothing. That of labels is the
    largest correlation of a function of one label with a function of the next (two classes: the correlation).
    """
    if not folded.linked:
        return 0.0
    rows, follows = view(folded, first.sayings, first.law).rows, ~folded.panel.starts[1:]
    labels = softmax(np.einsum("rfk,f->rk", rows, first.exponents[:NEIGHBOURS])).take(folded.which, axis=0)
    joint = labels[:-1][follows].T @ labels[1:][follows] + 1e-9
    joint = (joint + joint.T) / (2 * joint.sum())
    margin = np.sqrt(joint.sum(axis=0))
    values = np.linalg.svd(joint / np.outer(margin, margin), compute_uv=False)
    # What noise would show, two standard errors, is taken off its square.
    square = float(values[1] ** 2 - 4 / max(int(follows.sum()), 1)) if len(values) > 1 else 0.0
    errors = _error_memory(folded.panel, labels)
    return float(max(0.0, 1 - errors / np.sqrt(min(square, 1.0)))) if square > 0 else 0.0


def _error_memory(panel: Panel, labels: FloatArray) -> float:
    """Correlation of the error of a vote with that of the same source on the element before."""
    product = squares = 0.0
    n_classes = labels.shape[1]
    for codes in panel.codes.T:
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

"""Data programming with Gibbs sampling, the baseline of the paper (Ratner and others, NeurIPS 2016).

In: votes, each of them forced onto elements. Out: element-wise labels; the sequence is not modelled. A factor graph
has two factors per source, ``accuracy * 1[vote = y] + propensity * 1[vote is no abstain]``. Their weights climb the
likelihood of the votes along ``E[factor | votes] - E[factor]``, both means from Gibbs sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np

from dugong.baselines._kernels import train_epoch
from dugong.baselines.elements import ElementBaseline, element_codes, on_elements
from dugong.contract import typed
from dugong.exceptions import LabelError, PriorError, VoteError
from dugong.priors import Markov
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array
from dugong.votes import Votes, class_indices
from dugong.votes.gold import gold_at

# Weights are log-odds: beyond this a source is as good as certain.
_BOUND = 12.0
# Steps shrink with the root of the epochs, counted in tens: steps that stay long can throw the weights into the mirror
# image of the labels after many good epochs.
_STEADY = 10
# Few elements are divided into at least this many batches, so that an epoch is not one step.
_FEWEST_BATCHES = 20


class DataProgramming(ElementBaseline):
    """Accuracies of independent sources by maximum likelihood, with Gibbs sampling for the gradients.

    Parameters
    ----------
    n_epochs : int
        Passes over the elements. The weights are averaged over the second half: after 200 epochs the noise of sampling
        is about a tenth of the error that the votes themselves leave, and it falls with the root of their number.
    step_size : float
        Of the weights (log-odds), per batch, in the first epoch; about a fifth of it after two hundred.
    batch_size : int
        Elements per step, and free chains that run beside them; fewer where there are few elements.
    balance : sequence of float, optional
        P(class) in the order of `classes_`; even by default, as in the paper.
    seed : int

    Attributes
    ----------
    classes_, class_names_
    accuracies_ : P(vote | label) by source, (K, K + 1): a source errs evenly and abstains whatever the label is
    weights_ : (accuracy, propensity) by source, log-odds
    """

    def __init__(
        self,
        *,
        n_epochs: int = 200,
        step_size: float = 0.3,
        batch_size: int = 256,
        balance: Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_epochs = n_epochs
        self.step_size = step_size
        self.batch_size = batch_size
        self.balance = balance
        self.seed = seed

    @typed(VoteError)
    def fit(self, votes: Votes, gold: AnyArray | None = None, groups: object = None) -> Self:  # noqa: ARG002
        """Learn the weights; elements whose `gold` label is known (not 0) are not sampled."""
        if self.n_epochs < 1 or self.batch_size < 1 or self.step_size <= 0:
            raise VoteError(
                "data programming needs n_epochs >= 1, batch_size >= 1 and step_size > 0; found "
                f"{self.n_epochs}, {self.batch_size} and {self.step_size}."
            )
        forced, balance = on_elements(votes), self._balance(votes)
        accuracy, propensity = self._climb(element_codes(forced), _known(votes, gold), balance)
        weights = zip(accuracy.tolist(), propensity.tolist(), strict=True)
        self.weights_ = dict(zip(votes.source_names, weights, strict=True))
        tables = {name: vote_table(votes.n_classes, *both) for name, both in self.weights_.items()}
        self._keep(votes, tables, Markov(initial=balance, transition=np.tile(balance, (len(balance), 1))))
        return self

    def _balance(self, votes: Votes) -> FloatArray:
        if self.balance is None:
            return np.full(votes.n_classes, 1 / votes.n_classes)
        balance = np.asarray(self.balance, dtype=np.float64)
        valid = balance.shape == (votes.n_classes,) and (balance > 0).all() and abs(balance.sum() - 1) < 1e-6
        if not valid:
            raise PriorError(
                f"balance must hold {votes.n_classes} positive probabilities that sum to one; found {self.balance}."
            )
        return balance

    def _climb(self, codes: Int8Array, known: Int8Array, balance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stochastic gradient ascent; the mean of the weights over the second half of the epochs."""
        rng, n_sources = np.random.default_rng(self.seed), codes.shape[1]
        accuracy = np.ones(n_sources)
        propensity = _propensity(codes, len(balance))
        size = max(1, min(self.batch_size, len(codes) // _FEWEST_BATCHES))
        chains = rng.integers(0, len(balance) + 1, (size, n_sources)).astype(np.int8)
        state = rng.integers(0, 2**63, 1).astype(np.uint64)
        means = [np.zeros(n_sources), np.zeros(n_sources)]
        first = self.n_epochs // 2
        for epoch in range(self.n_epochs):
            if epoch == first:
                means = [np.zeros(n_sources), np.zeros(n_sources)]
            train_epoch(
                codes,
                known,
                rng.permutation(len(codes)),
                chains,
                accuracy,
                propensity,
                balance,
                self.step_size / np.sqrt(1 + epoch / _STEADY),
                _BOUND,
                means[0],
                means[1],
                state,
            )
        return means[0] / (self.n_epochs - first), means[1] / (self.n_epochs - first)

    @typed(LabelError)
    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | votes), shape (n_tasks, n_classes); elements are independent of each other."""
        # Where no source speaks the classes are even: the last digits must not decide.
        return np.asarray(np.round(super().predict_proba(votes, resolution), 12))


def vote_table(n_classes: int, accuracy: float, propensity: float) -> FloatArray:
    """P(vote | label) of a source from its two weights, (K, K + 1)."""
    speak = np.exp(propensity)
    table = np.full((n_classes, n_classes + 1), speak)
    table[np.arange(n_classes), np.arange(n_classes)] *= np.exp(accuracy)
    table[:, -1] = 1.0
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _propensity(codes: Int8Array, n_classes: int) -> FloatArray:
    """Weights under which sources speak as often as they do, for accuracy weights of 1.

    From weights of 0, sparse sources seem to vote far too often, which drives their accuracies below zero, into the
    mirror image of the labels, before the propensities have come down.
    """
    spoken, asked = ((codes >= 0) & (codes < n_classes)).sum(axis=0), (codes >= 0).sum(axis=0)
    return np.asarray(np.log((spoken + 0.5) / (asked - spoken + 0.5)) - np.log(math.e + n_classes - 1))


def _known(votes: Votes, gold: AnyArray | None) -> Int8Array:
    """Class index of every element whose label is known, else -1."""
    if gold is None:
        return np.full(votes.n_elements, -1, dtype=np.int8)
    labels = gold_at(votes, gold, Element())
    return np.where(labels == 0, np.int8(-1), class_indices(votes, labels, votes.n_classes))

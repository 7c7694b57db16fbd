"""Hidden Markov model by EM with independent sources: what peers do.

In: votes, each of them forced onto elements. Out: labels from a first-order chain whose initial law, transitions and
emission tables P(vote | label) are all learned by expectation-maximisation (Baum-Welch, exact), from a start that the
votes or a seed give. Resolutions, dependencies and the closed form's start are what it lacks beside `LabelModel`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np

from dugong.baselines._kernels import train_epoch
from dugong.baselines.elements import ElementBaseline, MajorityVote, element_codes, on_elements, parameters_of
from dugong.contract import typed
from dugong.exceptions import LabelError, PriorError, VoteError
from dugong.fit.em import EM, EMResult, expectation_maximisation
from dugong.fit.passes import InMemory
from dugong.infer import engine
from dugong.law import Law
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Markov
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array
from dugong.votes import Votes, class_indices
from dugong.votes.gold import gold_at

Start = Literal["votes", "random"]


class HiddenMarkov(ElementBaseline):
    """A hidden Markov model of the elements.

    Parameters
    ----------
    start : {"votes", "random"}
        "votes": tables and transitions of the majority vote. "random": tables and transitions drawn with `seed`;
        afterwards the states are named after the classes that they are voted most.
    n_starts : int
        Random starts, of which the likeliest end is kept; one is enough with ``start="votes"``.
    max_iter : int
        Most EM steps.
    tolerance : float
        Stop when the log-likelihood per vote gains less than this.
    pseudo_votes : float
        Weight of the start in votes per row of a table, so that no vote is impossible.
    seed, n_threads : int

    Attributes
    ----------
    classes_, class_names_
    accuracies_ : P(vote | label) by source, (K, K + 1)
    prior_ : the learned Markov chain
    log_likelihoods_ : (n_steps,) penalised log-likelihood before every step and at the end
    converged_ : bool
    """

    def __init__(
        self,
        *,
        start: Start = "votes",
        n_starts: int = 1,
        max_iter: int = 100,
        tolerance: float = 1e-6,
        pseudo_votes: float = 1.0,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.start = start
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.pseudo_votes = pseudo_votes
        self.seed = seed
        self.n_threads = n_threads

    @typed(VoteError)
    def fit(self, votes: Votes, gold: AnyArray | None = None, groups: object = None) -> Self:  # noqa: ARG002
        """Learn tables and transitions; known labels (`gold`, 0 = unknown) are evidence."""
        if self.start not in ("votes", "random") or self.n_starts < 1:
            raise VoteError(
                f'a hidden Markov model needs start="votes" or "random" and n_starts >= 1; found {self.start!r} and '
                f"{self.n_starts}."
            )
        forced = on_elements(votes)
        evidence = None if gold is None else gold_at(votes, gold, Element())
        rng = np.random.default_rng(self.seed)
        n_runs = self.n_starts if self.start == "random" else 1
        ends = [self._climb(forced, *self._begin(votes, forced, rng), evidence) for _ in range(n_runs)]
        best = max(ends, key=lambda end: end.objective[-1])
        tables = {one.source: one.table for one in best.law.parameters.factors if isinstance(one, Conditional)}
        prior = best.law.prior
        assert isinstance(prior, Markov)
        if self.start == "random" and evidence is None:
            tables, prior = named_states(tables, prior)
        self._keep(votes, tables, prior)
        self.log_likelihoods_ = np.array(best.objective)
        self.converged_ = best.converged
        return self

    def _begin(self, votes: Votes, forced: Votes, rng: np.random.Generator) -> tuple[Parameters, Markov]:
        if self.start == "random":
            return _random_start(forced, rng)
        return _voted_start(forced, MajorityVote().fit(votes).predict_proba(votes))

    def _climb(self, forced: Votes, start: Parameters, prior: Markov, evidence: Int8Array | None) -> EMResult:
        settings = EM(
            max_iter=self.max_iter, tolerance=self.tolerance, pseudo_votes=self.pseudo_votes, learn_prior=True
        )
        data = InMemory(votes=forced, evidence=evidence, n_threads=self.n_threads)
        return expectation_maximisation(data, Law(parameters=start, prior=prior), settings)

    def decode(self, votes: Votes) -> Int8Array:
        """The most likely label sequence of every sequence (Viterbi), flat over elements."""
        self._check_fitted()
        return engine.decode(on_elements(votes), self.parameters_, self.prior_, n_threads=self.n_threads)


def _voted_start(forced: Votes, shares: FloatArray) -> tuple[Parameters, Markov]:
    """Tables and transitions as if the shares of the votes were the labels, with one vote more in every cell."""
    n_classes, codes = forced.n_classes, element_codes(forced)
    tables = {}
    for place, name in enumerate(forced.source_names):
        counts = np.ones((n_classes, n_classes + 1))
        for vote in range(n_classes + 1):
            counts[:, vote] += shares[codes[:, place] == vote].sum(axis=0)
        tables[name] = counts / counts.sum(axis=1, keepdims=True)
    offsets = forced.layout("element").offsets
    first = offsets[:-1][forced.lengths > 0]
    later = np.ones(len(shares), dtype=np.bool_)
    later[first] = False
    places = np.flatnonzero(later)
    steps = 1 + shares[places - 1].T @ shares[places]
    initial = 1 + shares[first].sum(axis=0)
    return parameters_of(tables, n_classes), Markov(
        initial=initial / initial.sum(), transition=steps / steps.sum(axis=1, keepdims=True)
    )


def _random_start(forced: Votes, rng: np.random.Generator) -> tuple[Parameters, Markov]:
    n_classes = forced.n_classes
    tables = {name: rng.dirichlet(np.ones(n_classes + 1), size=n_classes) for name in forced.source_names}
    transition = rng.dirichlet(np.ones(n_classes), size=n_classes)
    return parameters_of(tables, n_classes), Markov(initial=rng.dirichlet(np.ones(n_classes)), transition=transition)


def named_states(tables: dict[str, FloatArray], prior: Markov) -> tuple[dict[str, FloatArray], Markov]:
    """Put the states in the order of the classes: the order in which the sources agree with them most."""
    # Imported here: loading it takes longer than everything else that a majority vote, in the same folder, needs.
    from scipy.optimize import linear_sum_assignment

    n_classes = prior.n_classes
    agreement = np.sum([table[:, :n_classes] for table in tables.values()], axis=0)
    states = linear_sum_assignment(agreement.T, maximize=True)[1]
    initial, transition = np.asarray(prior.initial), np.asarray(prior.transition)
    renamed = Markov(initial=initial[states], transition=transition[np.ix_(states, states)])
    return {name: table[states] for name, table in tables.items()}, renamed


# --- Data programming with Gibbs sampling, the baseline of the paper (Ratner and others, NeurIPS 2016) ----------------
# In: votes, each of them forced onto elements. Out: element-wise labels; the sequence is not modelled. A factor graph
# has two factors per source, ``accuracy * 1[vote = y] + propensity * 1[vote is no abstain]``. Their weights climb the
# likelihood of the votes along ``E[factor | votes] - E[factor]``, both means from Gibbs sampling.
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

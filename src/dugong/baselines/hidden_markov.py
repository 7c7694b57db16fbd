"""Hidden Markov model by EM with independent sources: what peers do.

In: votes, each of them forced onto elements. Out: labels from a first-order chain whose initial law, transitions and
emission tables P(vote | label) are all learned by expectation-maximisation (Baum-Welch, exact), from a start that the
votes or a seed give. Resolutions, dependencies and the closed form's start are what it lacks beside `LabelModel`.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from dugong.baselines.elements import ElementBaseline, MajorityVote, element_codes, on_elements, parameters_of
from dugong.contract import typed
from dugong.exceptions import LabelError, VoteError
from dugong.fit.em import EM, EMResult, expectation_maximisation
from dugong.fit.passes import InMemory
from dugong.infer import engine
from dugong.law import Law
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Markov
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array
from dugong.votes import Votes
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

    @typed(LabelError)
    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | all votes of the sequence), shape (n_tasks, n_classes)."""
        return super().predict_proba(votes, resolution)

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

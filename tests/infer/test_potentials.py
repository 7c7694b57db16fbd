"""Soft evidence: log-potentials of elements, alone and beside votes, through every engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import LabelError
from dugong.infer import engine
from dugong.infer.explain import explain
from dugong.law import Law
from dugong.law.parameters import Parameters
from dugong.priors import Joint
from dugong.tasks import Element, Sequence, Window

from . import oracle
from .cases import DEPENDENCIES, KINDS, conditional, random_case, random_votes

seeds = st.integers(0, 10**6)


def compare(case, potentials, resolutions) -> None:
    found = engine.posterior(case.votes, case.parameters, case.prior, resolutions=resolutions, potentials=potentials)
    expected, likelihood = oracle.marginals(case.votes, case.parameters, case.prior, resolutions, potentials=potentials)
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=0, atol=1e-9)
    for resolution in resolutions:
        own = expected[resolution].reshape(found.probabilities[resolution].shape)
        np.testing.assert_allclose(found.probabilities[resolution], own, rtol=0, atol=1e-10)


@given(
    seed=seeds,
    kind=st.sampled_from(KINDS),
    dependency=st.sampled_from(DEPENDENCIES),
    n_classes=st.sampled_from([2, 3]),
    plain=st.booleans(),
)
def test_beside_votes(seed, kind, dependency, n_classes, plain) -> None:
    case = random_case(seed, n_classes, kind, dependency, longest=5)
    potentials = np.random.default_rng(seed).normal(size=(case.votes.n_elements, n_classes)) * 3
    compare(case, potentials, [Element()] if plain else list(case.votes.resolutions))
    labels = engine.decode(case.votes, case.parameters, case.prior, potentials=potentials)
    best = engine.posterior(
        case.votes, case.parameters, case.prior, potentials=potentials, evidence=labels, resolutions=["element"]
    ).log_likelihood
    for sequence in range(case.votes.n_sequences):
        patterns = oracle.enumerate_patterns(
            case.votes, case.parameters, case.prior, sequence, [], potentials=potentials
        )
        top = max(pattern.probability for pattern in patterns)
        np.testing.assert_allclose(best[sequence], np.log(top), rtol=0, atol=1e-9)


@given(seed=seeds, n_classes=st.sampled_from([2, 3]), kind=st.sampled_from(KINDS))
def test_without_any_vote(seed, n_classes, kind) -> None:
    """A chain and potentials answer at any resolution, with parameters None: sources of the votes are not read."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, n_classes, kind, "none", longest=5)
    potentials = rng.normal(size=(case.votes.n_elements, n_classes)) * 3
    of = None if n_classes == 2 else 2
    wanted = [Element(), Window(size=2, link="majority", of=of), Sequence(link="any", of=of)]
    found = engine.posterior(case.votes, None, case.prior, resolutions=wanted, potentials=potentials)
    nobody = Parameters(n_classes=n_classes, factors=())
    expected, likelihood = oracle.marginals(case.votes, nobody, case.prior, wanted, potentials=potentials)
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=0, atol=1e-9)
    for resolution in wanted:
        np.testing.assert_allclose(found[resolution], expected[resolution], rtol=0, atol=1e-10)


@given(seed=seeds)
def test_with_a_joint_prior(seed) -> None:
    rng = np.random.default_rng(seed)
    prior = Joint([("element", t) for t in range(3)], rng.dirichlet(np.full(8, 0.5)).reshape(2, 2, 2))
    votes = random_votes(rng, {"a": Element()}, [3] * 4, 2, {}, missing=0.1)
    parameters = conditional(rng, "a", Element(), 2)
    case = random_case(seed, 2, "markov", "none", longest=3)
    case.votes, case.prior = votes, prior
    case.parameters = Parameters(n_classes=2, factors=(parameters,))
    compare(case, rng.normal(size=(12, 2)), [Element(), Sequence(link="any")])


@given(seed=seeds, dependency=st.sampled_from(["none", "lag 1"]))
def test_counts_follow_groups(seed, dependency) -> None:
    """Counts by group are those of the sequences of a group alone, potentials included."""
    case = random_case(seed, 2, "markov", dependency, longest=5)
    rng = np.random.default_rng(seed)
    potentials = rng.normal(size=(case.votes.n_elements, 2))
    groups = rng.integers(0, 2, case.votes.n_sequences)
    both = engine.expected_counts(
        case.votes, case.parameters, case.prior, groups=groups, n_groups=2, potentials=potentials
    )
    offsets = case.votes.layout("element").offsets
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        rows = np.concatenate([np.arange(offsets[s], offsets[s + 1]) for s in members])
        alone = engine.expected_counts(
            case.votes[members], case.parameters, case.prior, potentials=potentials[rows.astype(np.int64)]
        )
        np.testing.assert_allclose(both.transitions[group], alone.transitions, rtol=0, atol=1e-10)
        np.testing.assert_allclose(both.factors["a"]["table"][group], alone.factors["a"]["table"], rtol=0, atol=1e-10)


def test_samples_follow_the_potentials() -> None:
    rng = np.random.default_rng(4)
    case = random_case(5, 2, "markov", "none", longest=5)
    potentials = rng.normal(size=(case.votes.n_elements, 2)) * 2
    draws = engine.sample(case.votes, None, case.prior, rng, 20_000, potentials=potentials)
    found = engine.posterior(case.votes, None, case.prior, resolutions=["element"], potentials=potentials)["element"]
    np.testing.assert_allclose((draws == 1).mean(axis=0), found[:, 1], rtol=0, atol=0.02)


def test_explanations_put_them_into_the_prior() -> None:
    case = random_case(5, 2, "markov", "none", longest=5)
    potentials = np.random.default_rng(4).normal(size=(case.votes.n_elements, 2)) * 2
    said = explain(Law(parameters=case.parameters, prior=case.prior), case.votes, 0, 0, potentials=potentials)
    shown = engine.posterior(case.votes, case.parameters, case.prior, potentials=potentials)["element"][0, 1]
    assert said.probability == pytest.approx(shown, abs=1e-12)
    total = said.prior + sum(vote.log_odds for vote in said.own_votes) + said.neighbours
    assert total == pytest.approx(said.log_odds, abs=1e-9)


def test_what_is_wrong_is_said() -> None:
    case = random_case(5, 2, "markov", "none", longest=5)
    question = case.votes, case.parameters, case.prior
    with pytest.raises(LabelError, match="one number per element and class, shape"):
        engine.posterior(*question, potentials=np.zeros((2, 2)))
    holes = np.zeros((case.votes.n_elements, 2))
    holes[1, 0] = np.nan
    with pytest.raises(LabelError, match="1 rows that are not, the first at element 1"):
        engine.decode(*question, potentials=holes)

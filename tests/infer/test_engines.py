"""The other engines and the other questions: packed, enumeration, decoding, sampling, counts."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.infer import engine
from dugong.infer import packed as packed_engine
from dugong.infer.factors import flatten
from dugong.law.parameters import FullTable, Parameters
from dugong.priors import Joint
from dugong.tasks import Element, Sequence, Window

from . import oracle
from .cases import DEPENDENCIES, KINDS, Case, conditional, law, random_case, random_chain, random_votes

seeds = st.integers(0, 10**6)


def compare(case: Case, resolutions) -> None:
    found = engine.posterior(case.votes, case.parameters, case.prior, resolutions=resolutions)
    expected, likelihood = oracle.marginals(case.votes, case.parameters, case.prior, resolutions)
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=0, atol=1e-10)
    for resolution in resolutions:
        own = expected[resolution].reshape(found.probabilities[resolution].shape)
        np.testing.assert_allclose(found.probabilities[resolution], own, rtol=0, atol=1e-10)


def element_case(seed: int, n_classes: int, n_sources: int, kind: str = "markov") -> Case:
    """Element sources only, some of them correlated, as the packed engine wants it."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(n_sources)]
    parents = [names[max(0, i - 2) : i] if rng.random() < 0.4 else [] for i in range(n_sources)]
    factors = [
        conditional(rng, name, Element(), n_classes, parents=own) for name, own in zip(names, parents, strict=True)
    ]
    lengths = [int(rng.integers(1, 7)), 0, int(rng.integers(1, 5))]
    votes = random_votes(rng, dict.fromkeys(names, Element()), lengths, n_classes, {}, missing=0.1)
    parameters = Parameters(n_classes=n_classes, factors=tuple(factors))
    return Case(votes=votes, parameters=parameters, prior=random_chain(rng, n_classes, kind))


@given(seed=seeds, n_classes=st.sampled_from([2, 3]), n_sources=st.integers(1, 9))
def test_packed(seed, n_classes, n_sources) -> None:
    case = element_case(seed, n_classes, n_sources)
    assert packed_engine.fits(flatten(case.votes, case.parameters), case.prior, (Element(),))
    compare(case, [Element()])


@given(seed=seeds, n_classes=st.sampled_from([2, 3]), n_sources=st.integers(6, 12))
def test_many_sources_on_the_chain(seed, n_classes, n_sources) -> None:
    """One label per sequence is not for the packed engine; many sources need several look-ups."""
    case = element_case(seed, n_classes, n_sources, "stay")
    assert not packed_engine.fits(flatten(case.votes, case.parameters), case.prior, (Element(),))
    compare(case, [Element()])
    check_counts(case)
    check_cells(case)


@given(seed=seeds, full=st.booleans())
def test_joint_prior(seed, full) -> None:
    rng = np.random.default_rng(seed)
    free, linked = Window(size=2, link="joint"), Window(size=3, link="any")
    tasks = [("element", 0), ("element", 1), ("element", 2), (free, 0), (free, 1)]
    prior = Joint(tasks, rng.dirichlet(np.full(32, 0.5)).reshape((2,) * 5))
    sources = {"a": Element(), "b": Element(), "c": free, "d": linked}
    votes = random_votes(rng, sources, [3] * 5, 2, {}, missing=0.1)
    last = FullTable(source="d", resolution=linked, n_tasks=1, table=law(rng, 2, 3))
    factors = (
        conditional(rng, "a", Element(), 2),
        FullTable(source="b", resolution=Element(), n_tasks=3, table=law(rng, 8, 27))
        if full
        else conditional(rng, "b", Element(), 2, parents=("a",)),
        conditional(rng, "c", free, 2),
        last,
    )
    case = Case(votes=votes, parameters=Parameters(n_classes=2, factors=factors), prior=prior)
    compare(case, [Element(), free, linked, Sequence(link="majority")])
    check_decoded(case)
    check_counts(case)


@given(seed=seeds, kind=st.sampled_from(KINDS))
def test_full_table_with_a_chain(seed, kind) -> None:
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, {"a": Element()}, [2] * 6, 3, {}, missing=0.2)
    factor = FullTable(source="a", resolution=Element(), n_tasks=2, table=law(rng, 9, 16))
    case = Case(
        votes=votes,
        parameters=Parameters(n_classes=3, factors=(factor,)),
        prior=random_chain(rng, 3, kind),
    )
    compare(case, [Element(), Sequence(link="any", of=2)])


def check_decoded(case: Case) -> None:
    """The decoded labels are as probable as the best pattern; ties may go either way."""
    labels = engine.decode(case.votes, case.parameters, case.prior)
    for sequence in range(case.votes.n_sequences):
        law_of = pattern_law(case, sequence)
        rows = case.votes.layout("element").rows(sequence)
        chosen = tuple(case.votes.classes.index(label) for label in labels[rows].tolist())
        assert law_of[chosen] >= max(law_of.values()) * (1 - 1e-9)


def pattern_law(case: Case, sequence: int) -> dict[tuple[int, ...], float]:
    """Probability of every pattern of element labels."""
    found: dict[tuple[int, ...], float] = {}
    patterns = oracle.enumerate_patterns(case.votes, case.parameters, case.prior, sequence, [])
    total = sum(pattern.probability for pattern in patterns)
    for pattern in patterns:
        found[pattern.elements] = found.get(pattern.elements, 0.0) + pattern.probability / total
    return found


@given(
    seed=seeds,
    kind=st.sampled_from(KINDS),
    dependency=st.sampled_from(DEPENDENCIES),
    n_classes=st.sampled_from([2, 3]),
)
def test_decode(seed, kind, dependency, n_classes) -> None:
    check_decoded(random_case(seed, n_classes, kind, dependency, longest=5))


@pytest.mark.parametrize(("dependency", "seed"), [("none", 3), ("lag 1", 5), ("crossed", 8)])
def test_sample_frequencies(dependency, seed) -> None:
    case = random_case(seed, 2, "markov", dependency, longest=4)
    n_draws = 20_000
    draws = engine.sample(case.votes, case.parameters, case.prior, np.random.default_rng(1), n_draws)
    assert draws.shape == (n_draws, case.votes.n_elements)
    for sequence in range(case.votes.n_sequences):
        rows = case.votes.layout("element").rows(sequence)
        for pattern, probability in pattern_law(case, sequence).items():
            wanted = np.array([case.votes.classes[place] for place in pattern])
            frequency = (draws[:, rows] == wanted).all(axis=1).mean()
            error = np.sqrt(probability * (1 - probability) / n_draws)
            assert abs(frequency - probability) <= 5 * error + 1e-4


def test_sample_from_a_joint_prior(rng) -> None:
    prior = Joint([("element", 0), ("element", 1)], [[0.1, 0.4], [0.3, 0.2]])
    votes = random_votes(rng, {"a": Element()}, [2], 2, {}, missing=0.0)
    parameters = Parameters(n_classes=2, factors=(conditional(rng, "a", Element(), 2),))
    case = Case(votes=votes, parameters=parameters, prior=prior)
    draws = engine.sample(votes, parameters, prior, rng, 20_000)
    for pattern, probability in pattern_law(case, 0).items():
        wanted = np.array([votes.classes[place] for place in pattern])
        assert abs((draws == wanted).all(axis=1).mean() - probability) < 0.02


def check_counts(case: Case) -> None:
    """Expected counts equal the posterior sums over patterns, and the derivative of the log-likelihood."""
    found = engine.expected_counts(case.votes, case.parameters, case.prior)
    n_classes = case.votes.n_classes
    initial, transitions = np.zeros(n_classes), np.zeros((n_classes, n_classes))
    likelihood = 0.0
    for sequence in np.flatnonzero(case.votes.lengths):
        patterns = oracle.enumerate_patterns(case.votes, case.parameters, case.prior, sequence, [])
        total = sum(pattern.probability for pattern in patterns)
        likelihood += np.log(total)
        for pattern in patterns:
            weight = pattern.probability / total
            initial[pattern.elements[0]] += weight
            for pair in zip(pattern.elements[:-1], pattern.elements[1:], strict=True):
                transitions[pair] += weight
    np.testing.assert_allclose(found.initial, initial, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.transitions, transitions, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=0, atol=1e-9)
    assert set(found.factors) == set(case.votes.source_names)


@given(
    seed=seeds,
    kind=st.sampled_from(KINDS),
    dependency=st.sampled_from(DEPENDENCIES),
    n_classes=st.sampled_from([2, 3]),
)
def test_counts(seed, kind, dependency, n_classes) -> None:
    case = random_case(seed, n_classes, kind, dependency, longest=5)
    check_counts(case)
    check_cells(case)


@given(seed=seeds, n_classes=st.sampled_from([2, 3]), n_sources=st.integers(1, 7))
def test_packed_counts(seed, n_classes, n_sources) -> None:
    case = element_case(seed, n_classes, n_sources)
    check_counts(case)
    check_cells(case)


def check_cells(case: Case) -> None:
    """d log P(votes) / d log(cell) is weight times the expected count of the cell (Fisher's identity)."""
    found = engine.expected_counts(case.votes, case.parameters, case.prior)
    rng = np.random.default_rng(0)
    for factor in case.parameters.factors:
        if factor.source not in case.votes.source_names:
            continue
        for name, counts in found.factors[factor.source].items():
            table = getattr(factor, name)
            if table is None:
                continue
            assert counts.shape == table.shape
            cell = np.unravel_index(int(rng.integers(table.size)), table.shape)
            slope = _slope(case, factor, name, cell)
            assert slope == pytest.approx(factor.weight * counts[cell], abs=2e-5)


def _slope(case, factor, name, cell) -> float:
    """Central difference of the log-likelihood in the log of one cell."""
    step, values = 1e-5, []
    for sign in (1, -1):
        table = getattr(factor, name).copy()
        table[cell] *= np.exp(sign * step)
        changed = _unchecked(factor, name, table)
        factors = tuple(changed if one is factor else one for one in case.parameters.factors)
        parameters = Parameters(n_classes=case.votes.n_classes, factors=factors)
        values.append(engine.log_likelihood(case.votes, parameters, case.prior).sum())
    return float(values[0] - values[1]) / (2 * step)


def _unchecked(factor, name, table):
    """A copy of a factor whose table need not sum to one."""
    copy = object.__new__(type(factor))
    for field in fields(factor):
        object.__setattr__(copy, field.name, table if field.name == name else getattr(factor, field.name))
    return copy


def test_counts_by_group() -> None:
    case = random_case(4, 2, "markov", "pair", longest=6)
    groups = np.array([1, 0, 1, 1])
    whole = engine.expected_counts(case.votes, case.parameters, case.prior)
    parts = engine.expected_counts(case.votes, case.parameters, case.prior, groups=groups)
    np.testing.assert_allclose(parts.transitions.sum(axis=0), whole.transitions, rtol=0, atol=1e-10)
    np.testing.assert_allclose(parts.log_likelihood.sum(), whole.log_likelihood, rtol=0, atol=1e-10)
    for source, tables in whole.factors.items():
        for name, counts in tables.items():
            assert parts.factors[source][name].shape == (2, *counts.shape)
            np.testing.assert_allclose(parts.factors[source][name].sum(axis=0), counts, rtol=0, atol=1e-10)

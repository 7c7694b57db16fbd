"""The variance of a sample's own class balance equals enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import label_oracles as oracle
from dugong.exceptions import PriorError
from dugong.priors import Markov, Uniform, sample_balance_covariance, sample_balance_variance


def brute(prior, lengths, counts):
    total = np.dot(lengths, counts)
    spread = np.zeros((prior.n_classes, prior.n_classes))
    for length, count in zip(lengths, counts, strict=True):
        patterns = oracle.patterns(prior.n_classes, length)
        law = np.array([prior.probability(p) for p in patterns])
        values = oracle.class_values(prior.n_classes)
        numbers = np.array([[p.count(v) for v in values] for p in patterns], dtype=float)
        mean = law @ numbers
        spread += count * (numbers.T @ (law[:, None] * numbers) - np.outer(mean, mean))
    return spread / total**2


@given(
    prior=st.one_of(oracle.chain_priors(), oracle.chain_priors(n_classes=3)),
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=3),
)
def test_covariance_of_class_shares(prior, lengths):
    lengths, counts = [*lengths, 3], [2] * len(lengths) + [1]
    expected = brute(prior, lengths, counts)
    found = sample_balance_covariance(prior, np.array(lengths), np.array(counts))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert sample_balance_variance(prior, np.array(lengths), np.array(counts)) == pytest.approx(
        4 * expected[1, 1], abs=1e-12
    )


@given(prior=oracle.joint_priors())
def test_joint_tables(prior):
    found = sample_balance_covariance(prior, np.array([3, 3]))
    np.testing.assert_allclose(found, brute(prior, [3], [2]), rtol=0, atol=1e-12)


def test_independent_elements_have_the_usual_variance():
    assert sample_balance_variance(Uniform(), np.array([10, 90])) == pytest.approx(1 / 100)


def test_one_label_per_sequence_counts_as_one_element():
    prior = Markov(positive=0.5, stay=1)
    assert sample_balance_variance(prior, np.array([1000]), np.array([4])) == pytest.approx(1 / 4)


def test_nothing_to_average():
    with pytest.raises(PriorError, match="at least one element"):
        sample_balance_variance(Uniform(), np.array([0]))

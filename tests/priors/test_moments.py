"""Exact moments equal enumeration over all label patterns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import label_oracles as oracle
from dugong.exceptions import PriorError, TaskError
from dugong.priors import Markov, Patterns, Uniform
from dugong.tasks import Element, Sequence, Spans, Window

EXACT = {"rtol": 0, "atol": 1e-12}
SIGNS = np.array([-1.0, 1.0])


def tasks(draw, n_classes, length, n_tasks):
    chosen = []
    for _ in range(n_tasks):
        resolution = draw(oracle.resolutions(n_classes))
        index = draw(st.integers(0, len(oracle.bounds(resolution, length)) - 1))
        chosen.append((resolution, index))
    return chosen


@given(data=st.data(), length=st.integers(1, 7))
def test_covariance_equals_enumeration(data, length):
    prior = data.draw(oracle.chain_priors())
    a, b = tasks(data.draw, 2, length, 2)
    law = oracle.law(prior, [a, b], length)
    mean_a, mean_b = law.sum(axis=1) @ SIGNS, law.sum(axis=0) @ SIGNS
    np.testing.assert_allclose(prior.mean(a, length), mean_a, **EXACT)
    np.testing.assert_allclose(prior.mean(b, length), mean_b, **EXACT)
    np.testing.assert_allclose(prior.cov(a, b, length), SIGNS @ law @ SIGNS - mean_a * mean_b, **EXACT)
    np.testing.assert_allclose(prior.cov(b, a, length), prior.cov(a, b, length), **EXACT)


@given(data=st.data(), length=st.integers(1, 5), n_tasks=st.integers(1, 4))
def test_joint_laws_of_several_tasks_with_three_classes(data, length, n_tasks):
    prior = data.draw(oracle.chain_priors(n_classes=3))
    chosen = tasks(data.draw, 3, length, n_tasks)
    expected = oracle.law(prior, chosen, length)
    np.testing.assert_allclose(prior.joint_law(chosen, length), expected, **EXACT)


@given(data=st.data())
def test_joint_tables_equal_enumeration(data):
    prior = data.draw(oracle.joint_priors())
    a, b = tasks(data.draw, 2, 3, 2)
    law = oracle.law(prior, [a, b], 3)
    expected = SIGNS @ law @ SIGNS - (law.sum(axis=1) @ SIGNS) * (law.sum(axis=0) @ SIGNS)
    np.testing.assert_allclose(prior.cov(a, b, 3), expected, **EXACT)


@given(data=st.data(), length=st.integers(2, 7), link=st.sampled_from(oracle.LINKS))
def test_spans_equal_enumeration(data, length, link):
    prior = data.draw(oracle.chain_priors())
    spans = {"shot": data.draw(oracle.span_lists(length).filter(bool))}
    a, b = (Spans("shot", link), len(spans["shot"]) - 1), (Element(), length - 1)
    np.testing.assert_allclose(
        prior.joint_law([a, b], length, spans), oracle.law(prior, [a, b], length, spans), **EXACT
    )


def test_elements_of_a_chain_far_apart():
    prior = Markov(positive=0.3, stay=0.8)
    correlation = 1 - 0.2 - 0.3 * 0.2 / 0.7
    expected = 4 * 0.3 * 0.7 * correlation**50
    assert prior.cov(("element", 1000), ("element", 1050), 10_000) == pytest.approx(expected, rel=1e-9)


def test_long_majority_is_exact_for_independent_elements():
    from scipy.stats import binom

    mean = Uniform().mean((Sequence("majority"), 0), 1001)
    assert mean == pytest.approx(0.0, abs=1e-12)
    even = Uniform().mean((Sequence("majority"), 0), 1000)
    assert even == pytest.approx(-binom.pmf(500, 1000, 0.5), rel=1e-9)


def test_elements_with_three_classes_need_the_class_that_counts():
    prior = Markov(initial=[0.5, 0.3, 0.2], transition=np.eye(3))
    with pytest.raises(PriorError, match=r"third entry: \('element', 0, class\)"):
        prior.mean(("element", 0), 2)
    assert prior.mean(("element", 1, 3), 2) == pytest.approx(-0.6)
    assert prior.cov(("element", 0, 3), ("element", 1, 3), 2) == pytest.approx(4 * 0.2 * 0.8)


def test_tasks_that_do_not_exist():
    with pytest.raises(TaskError, match=r"no task 2 at window3.*in a sequence of 5 elements"):
        Uniform().mean((Window(3), 2), 5)
    with pytest.raises(TaskError, match=r"resolution as an object.*'window3'"):
        Uniform().mean(("window3", 0), 5)
    with pytest.raises(TaskError, match=r"only through a priors\.Joint table"):
        Uniform().mean((Window(3, link="joint"), 0), 5)
    with pytest.raises(TaskError, match="must say which class counts; found of=None"):
        Uniform(n_classes=3).mean((Window(3), 0), 5)


def test_a_class_may_be_named():
    prior = Markov(initial=[0.5, 0.3, 0.2], transition=np.eye(3))
    law = prior.joint_law([(Sequence("any", of="REM"), 0)], 4, class_names=("W", "N", "REM"))
    np.testing.assert_allclose(law, [0.8, 0.2], **EXACT)


def test_patterns_as_the_paper_uses_them():
    prior = Patterns({(1, 1, 1): 0.2, (-1, -1, -1): 0.7, (-1, 1, 1): 0.1})
    assert prior.mean((Sequence("all"), 0), 3) == pytest.approx(-0.6)
    assert prior.mean((Sequence("any"), 0), 3) == pytest.approx(-0.4)
    assert prior.mean(("element", 0), 1) == pytest.approx(-0.6)

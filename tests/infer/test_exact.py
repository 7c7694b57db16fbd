"""Equal to brute force over all label patterns: every link, resolution mix, dependency and prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.infer import engine
from dugong.tasks import Element, Sequence, Window

from . import oracle
from .cases import DEPENDENCIES, KINDS, random_case

seeds = st.integers(0, 10**6)


def check(case, resolutions, evidence=None) -> None:
    found = engine.posterior(case.votes, case.parameters, case.prior, resolutions=resolutions, evidence=evidence)
    expected, likelihood = oracle.marginals(case.votes, case.parameters, case.prior, resolutions, evidence)
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=0, atol=1e-10)
    for resolution in resolutions:
        own = expected[resolution].reshape(found.probabilities[resolution].shape)
        np.testing.assert_allclose(found.probabilities[resolution], own, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dependency", DEPENDENCIES)
@given(seed=seeds, kind=st.sampled_from(KINDS))
def test_two_classes(dependency, seed, kind) -> None:
    case = random_case(seed, 2, kind, dependency, longest=8)
    wanted = [*case.votes.resolutions, Sequence(link="majority"), Window(size=3, stride=1, link="any")]
    check(case, list(dict.fromkeys(wanted)))


@pytest.mark.parametrize("dependency", DEPENDENCIES)
@given(seed=seeds, kind=st.sampled_from(KINDS))
def test_three_classes(dependency, seed, kind) -> None:
    case = random_case(seed, 3, kind, dependency, longest=5)
    check(case, list(dict.fromkeys([*case.votes.resolutions, Window(size=2, link="all", of=3)])))


@given(seed=seeds, dependency=st.sampled_from(DEPENDENCIES), n_classes=st.sampled_from([2, 3]))
def test_known_labels(seed, dependency, n_classes) -> None:
    case = random_case(seed, n_classes, "markov", dependency, longest=5)
    rng = np.random.default_rng(seed)
    known = rng.choice(case.votes.classes, size=case.votes.n_elements)
    evidence = np.where(rng.random(len(known)) < 0.4, known, 0).astype(np.int8)
    check(case, list(case.votes.resolutions), evidence)
    certain = engine.posterior(case.votes, case.parameters, case.prior, evidence=evidence).probabilities[Element()]
    where = np.flatnonzero(evidence)
    places = [case.votes.classes.index(label) for label in evidence[where]]
    np.testing.assert_allclose(certain[where, places], 1.0, rtol=0, atol=1e-12)

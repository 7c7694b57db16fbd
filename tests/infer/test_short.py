"""All patterns of a few elements at once: the same answers as the product of automata, in numbers and in logarithms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dugong.exceptions import PriorError
from dugong.infer import chain, runs
from dugong.infer.choice import choose_smoother
from dugong.infer.factors import flatten
from dugong.infer.prepare import prepare
from dugong.infer.short import ShortEngine
from dugong.tasks import Element, Window
from dugong.worlds import multiresolution

from .cases import DEPENDENCIES, KINDS, random_case


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    dependency=st.sampled_from(DEPENDENCIES),
    n_classes=st.sampled_from([2, 3]),
    spread=st.sampled_from([0.0, 3.0, 2000.0]),
)
def test_short_sequences_agree_with_the_product(seed, kind, dependency, n_classes, spread) -> None:
    case = random_case(seed, n_classes, kind, dependency, longest=5 if n_classes == 2 else 3)
    potentials = np.random.default_rng(seed).normal(0, spread, (case.votes.n_elements, n_classes)) if spread else None
    wanted = tuple(dict.fromkeys([*case.votes.resolutions, Window(size=2, stride=1, link="majority", of=1)]))
    made = prepare(case.votes, flatten(case.votes, case.parameters), case.prior, wanted, potentials)
    assume(ShortEngine.fits(case.votes, made.resolutions))
    short, product = ShortEngine(prepared=made, block_size=3), chain.build(made)
    (found, likelihood), (expected, whole) = (runs.smooth(one, wanted) for one in (short, product))
    np.testing.assert_allclose(likelihood, whole, rtol=1e-12, atol=1e-10)
    for resolution in wanted:
        np.testing.assert_allclose(found[resolution], expected[resolution], rtol=0, atol=1e-10)
    owners = np.arange(case.votes.n_sequences) % 2
    (cells, sums), (other, total) = (runs.count(one, owners, 2) for one in (short, product))
    for own, one in zip(cells, other, strict=True):
        np.testing.assert_allclose(own, one, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sums.transitions, total.transitions, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sums.initial, total.initial, rtol=0, atol=1e-10)


def test_several_resolutions_of_short_sequences_are_theirs_and_impossible_ones_are_named() -> None:
    world = multiresolution()
    votes, _ = world.sample(20, rng=1)
    made = prepare(votes, flatten(votes, world.parameters()), world.prior.chain(), votes.resolutions)
    assert isinstance(choose_smoother(made), ShortEngine)
    potentials = np.zeros((votes.n_elements, 2))
    potentials[37] = -np.inf
    with pytest.raises(PriorError, match="those of sequence '7' have probability zero"):
        runs.smooth(ShortEngine(prepared=replace(made, potentials=potentials)), (Element(),))

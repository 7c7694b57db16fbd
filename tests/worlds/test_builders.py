"""Tables that mean what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from dugong import worlds
from dugong.exceptions import GraphError, PriorError

EXACT = {"rtol": 0, "atol": 1e-12}
TABLE = worlds.accurate(0.8, 0.7, 0.1, 0.3)


def test_accurate():
    np.testing.assert_allclose(TABLE, [[0.49, 0.21, 0.3], [0.18, 0.72, 0.1]], **EXACT)
    np.testing.assert_allclose(worlds.accurate(0.9), [[0.9, 0.1, 0], [0.1, 0.9, 0]], **EXACT)
    with pytest.raises(PriorError, match=r"between 0 and 1; found 1\.2"):
        worlds.accurate(1.2)


def test_confusion():
    table = worlds.confusion(3, [0.8, 0.6, 1.0], 0.5)
    np.testing.assert_allclose(table.sum(axis=1), 1, **EXACT)
    np.testing.assert_allclose(table[1], [0.1, 0.3, 0.1, 0.5], **EXACT)


def test_one_sided_flipped_and_silent():
    np.testing.assert_allclose(worlds.unipolar(0.6, 0.1), [[0, 0.1, 0.9], [0, 0.6, 0.4]], **EXACT)
    np.testing.assert_allclose(worlds.unipolar(0.6, 0.1, vote=-1), [[0.6, 0, 0.4], [0.1, 0, 0.9]], **EXACT)
    np.testing.assert_allclose(worlds.flipped(TABLE)[:, 0], TABLE[:, 1], **EXACT)
    assert (worlds.silent(4)[:, -1] == 1).all()
    with pytest.raises(GraphError, match="two classes can be flipped"):
        worlds.flipped(worlds.silent(4))
    with pytest.raises(GraphError, match=r"votes -1 or \+1; found 0"):
        worlds.unipolar(0.6, 0.1, vote=0)


def test_a_copy_agrees_and_keeps_its_margins():
    joint = worlds.copying_pair(TABLE, 0.7)
    np.testing.assert_allclose(joint.sum(axis=2), TABLE, **EXACT)
    np.testing.assert_allclose(joint.sum(axis=1), TABLE, **EXACT)
    agree = np.trace(joint, axis1=1, axis2=2)
    np.testing.assert_allclose(agree, 0.7 + 0.3 * (TABLE**2).sum(axis=1), **EXACT)


def test_a_path_is_a_chain_of_copies():
    joint = worlds.copying_path([TABLE] * 3, 0.7)
    ends, middle = joint.sum(axis=2), joint.sum(axis=(1, 3))
    np.testing.assert_allclose(middle, TABLE, **EXACT)
    # Given the middle vote the ends are independent.
    product = joint.sum(axis=3)[:, :, :, None] * joint.sum(axis=1)[:, None] / middle[:, None, :, None]
    np.testing.assert_allclose(joint, product, **EXACT)
    assert not np.allclose(ends, TABLE[:, :, None] * TABLE[:, None, :], atol=1e-3)


def test_a_common_cause_makes_all_agree():
    joint = worlds.common_cause([TABLE, TABLE, TABLE], 0.4)
    assert joint.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(joint.sum(axis=(2, 3)), TABLE, **EXACT)
    np.testing.assert_allclose(joint[1, 0, 1, 2], 0.6 * np.prod(TABLE[1]), **EXACT)


def test_ising_is_symmetric_and_has_no_abstains_unless_asked():
    names = ("a", "b", "c", "d")
    edges = worlds.couplings(names, worlds.cycle(names), 0.3)
    assert edges == {(0, 1): 0.3, (1, 2): 0.3, (2, 3): 0.3, (3, 0): 0.3}
    joint = worlds.ising([0.5, 0.6, 0.7, 0.8], edges)
    np.testing.assert_allclose(joint.sum(axis=(1, 2, 3, 4)), 1, **EXACT)
    assert joint[:, 2].sum() == 0
    np.testing.assert_allclose(joint[0, :2, :2, :2, :2], joint[1, 1::-1, 1::-1, 1::-1, 1::-1], **EXACT)
    with_abstains = worlds.ising([0.5, 0.6], {(0, 1): 0.3}, abstain=[0.2, 0.0])
    np.testing.assert_allclose(with_abstains[:, 2].sum(axis=1), 0.2, **EXACT)
    plain = worlds.ising([0.5, 0.6], {(0, 1): 0.3})
    np.testing.assert_allclose(with_abstains[:, 0, 1], 0.8 * plain[:, 0, 1], **EXACT)


def test_single_ising_source_has_the_logistic_accuracy():
    table = worlds.ising([0.5])
    assert table[1, 1] == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_edges_by_name():
    assert worlds.path(("a", "b", "c")) == (("a", "b"), ("b", "c"))
    assert worlds.cycle(("a", "b", "c")) == (("a", "b"), ("b", "c"), ("c", "a"))


def test_temporal_repeats_or_votes_afresh():
    first, step = worlds.temporal(TABLE, 0.6)
    np.testing.assert_allclose(first, TABLE, **EXACT)
    np.testing.assert_allclose(step.sum(axis=-1), 1, **EXACT)
    np.testing.assert_allclose(step[0, 1, 2], 0.6 * np.eye(3)[2] + 0.4 * TABLE[1], **EXACT)

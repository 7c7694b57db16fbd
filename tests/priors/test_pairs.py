"""Mean laws over all pairs of all sequences equal the sum over single pairs by enumeration."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import label_oracles as oracle
from dugong.exceptions import PriorError, TaskError
from dugong.priors import Joint, Markov, Patterns, Uniform, pair_law, pair_sums
from dugong.tasks import Element, Sequence, Spans, SpanTable, Window

EXACT = {"rtol": 0, "atol": 1e-12}
lengths_lists = st.lists(st.integers(0, 7), min_size=1, max_size=5)


def brute(prior, kind, a, b, lag, lengths, counts, spans=None):
    """Sums by position of the anchor, and the number of pairs there."""
    shape = [prior.n_classes if isinstance(r, Element) else 2 for r in (a, b)]
    own = [None if spans is None else {"shot": spans[n]} for n in range(len(lengths))]
    n_positions = max(len(oracle.bounds(a, t, s)) for t, s in zip(lengths, own, strict=True))
    table, n_pairs = np.zeros((n_positions, *shape)), np.zeros(n_positions)
    for length, count, given_spans in zip(lengths, counts, own, strict=True):
        for i, w in oracle.pairs(kind, a, b, lag, length, given_spans):
            table[i] += count * oracle.law(prior, [(a, i), (b, w)], length, given_spans)
            n_pairs[i] += count
    return table, n_pairs


def check(prior, kind, a, b, lag, lengths, counts):
    table, n_pairs = brute(prior, kind, a, b, lag, lengths, counts)
    sums = pair_sums(prior, kind, a, b, np.array(lengths), np.array(counts), lag=lag)
    np.testing.assert_allclose(sums.table, table.sum(axis=0), rtol=0, atol=1e-11)
    np.testing.assert_allclose(sums.n_pairs, n_pairs.sum(), rtol=1e-12)
    placed = pair_sums(prior, kind, a, b, np.array(lengths), np.array(counts), by_position=True, lag=lag)
    np.testing.assert_allclose(placed.table, table, rtol=0, atol=1e-11)
    np.testing.assert_allclose(placed.n_pairs, n_pairs, rtol=1e-12)
    if n_pairs.sum():
        law = pair_law(prior, kind, a, b, np.array(lengths), np.array(counts), lag=lag)
        np.testing.assert_allclose(law, table.sum(axis=0) / n_pairs.sum(), **EXACT)


@given(data=st.data(), lengths=lengths_lists, lag=st.integers(-3, 3))
def test_pairs_at_one_resolution(data, lengths, lag):
    prior, resolution = data.draw(oracle.chain_priors()), data.draw(oracle.resolutions())
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(lengths), max_size=len(lengths)))
    check(prior, "same", resolution, resolution, lag, lengths, counts)


@given(data=st.data(), lengths=lengths_lists)
def test_pairs_inside(data, lengths):
    prior = data.draw(oracle.chain_priors())
    fine, coarse = data.draw(oracle.resolutions()), data.draw(oracle.resolutions())
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(lengths), max_size=len(lengths)))
    check(prior, "inside", fine, coarse, 0, lengths, counts)


@given(
    data=st.data(),
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    kind=st.sampled_from(["same", "inside"]),
)
def test_three_classes(data, lengths, kind):
    prior = data.draw(oracle.chain_priors(n_classes=3))
    fine = data.draw(oracle.resolutions(n_classes=3))
    coarse = fine if kind == "same" else data.draw(oracle.resolutions(n_classes=3))
    check(prior, kind, fine, coarse, 1 if kind == "same" else 0, lengths, [1] * len(lengths))


@given(
    data=st.data(),
    lengths=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    kind=st.sampled_from(["same", "inside"]),
)
def test_given_spans(data, lengths, kind):
    prior = data.draw(oracle.chain_priors())
    spans = [data.draw(oracle.span_lists(length)) for length in lengths]
    shots = Spans("shot", data.draw(st.sampled_from(oracle.LINKS)))
    other = data.draw(oracle.resolutions())
    a, b, lag = (
        (shots, shots, 1) if kind == "same" else (*data.draw(st.sampled_from([(shots, other), (other, shots)])), 0)
    )
    counts = [1] * len(lengths)
    table, n_pairs = brute(prior, kind, a, b, lag, lengths, counts, spans)
    given_spans = {"shot": SpanTable.from_lists(spans)}
    sums = pair_sums(prior, kind, a, b, np.array(lengths), lag=lag, spans=given_spans)
    np.testing.assert_allclose(sums.table, table.sum(axis=0), rtol=0, atol=1e-11)
    placed = pair_sums(prior, kind, a, b, np.array(lengths), by_position=True, lag=lag, spans=given_spans)
    np.testing.assert_allclose(placed.table, table, rtol=0, atol=1e-11)
    np.testing.assert_allclose(placed.n_pairs, n_pairs, **EXACT)


@given(data=st.data(), kind=st.sampled_from(["same", "inside"]))
def test_joint_tables(data, kind):
    prior = data.draw(oracle.joint_priors())
    fine = data.draw(oracle.resolutions())
    coarse = fine if kind == "same" else data.draw(oracle.resolutions())
    check(prior, kind, fine, coarse, 0, [3], [5])


def test_a_joint_link_has_its_own_labels():
    window = Window(2, link="joint")
    table = np.zeros((2, 2, 2))
    table[0, 0, 0], table[1, 1, 1], table[0, 1, 1], table[1, 0, 0] = 0.4, 0.3, 0.2, 0.1
    prior = Joint([("element", 0), ("element", 1), (window, 0)], table)
    law = pair_law(prior, "inside", Element(), window, np.array([2]))
    np.testing.assert_allclose(law, (table.sum(axis=1) + table.sum(axis=0)) / 2, **EXACT)


def test_errors_say_what_is_wrong():
    with pytest.raises(TaskError, match="no same pair of element and element at lag 7"):
        pair_law(Uniform(), "same", Element(), Element(), np.array([5]), lag=7)
    with pytest.raises(TaskError, match='"same" are at one resolution; found element and sequence'):
        pair_law(Uniform(), "same", Element(), Sequence(), np.array([5]))
    with pytest.raises(TaskError, match="majority over 30000 elements"):
        pair_law(Uniform(), "inside", Element(), Sequence("majority"), np.array([30_000]))
    with pytest.raises(PriorError, match="sequences of 1 elements; found one of 2"):
        pair_law(Joint([("element", 0)], [0.5, 0.5]), "same", Element(), Element(), np.array([2]))


def test_many_lengths_and_long_sequences_are_quick():
    prior = Markov(initial=[0.9, 0.1], transition=[[0.95, 0.05], [0.3, 0.7]])
    lengths, counts = np.arange(10, 501), np.full(491, 200)
    questions = [
        ("same", Element(), Element(), 1),
        ("same", Window(30, 10, "any"), Window(30, 10, "any"), 1),
        ("inside", Element(), Window(30, 10, "all"), 0),
        ("inside", Element(), Sequence("any"), 0),
        ("inside", Window(30, 10, "any"), Sequence("any"), 0),
        ("inside", Window(5, 5, "any"), Window(30, 10, "majority"), 0),
    ]

    def ask(many_lengths, many_counts):
        return [pair_law(prior, k, a, b, many_lengths, many_counts, lag=lag) for k, a, b, lag in questions]

    ask(np.array([40]), np.array([1]))  # compile
    began = time.perf_counter()
    laws = ask(lengths, counts)
    assert time.perf_counter() - began < 10
    for law in laws:
        assert law.sum() == pytest.approx(1, abs=1e-9)
    began = time.perf_counter()
    laws = ask(np.array([1_000_000]), np.array([1]))
    assert time.perf_counter() - began < 20
    for law in laws:
        assert law.sum() == pytest.approx(1, abs=1e-9)
    stationary = np.array([6 / 7, 1 / 7])
    np.testing.assert_allclose(laws[0].sum(axis=1), stationary, rtol=0, atol=1e-5)


def test_pattern_priors_pool_too():
    prior = Patterns({(1, 1, 1): 0.2, (-1, -1, -1): 0.6, (-1, 1, 1): 0.1, (1, -1, -1): 0.1})
    law = pair_law(prior, "same", Element(), Element(), np.array([200_000]), lag=1)
    assert law.sum() == pytest.approx(1, abs=1e-9)

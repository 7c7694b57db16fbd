"""Priors from labelled sequences."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.exceptions import PriorError
from dugong.priors import Markov, Patterns, from_labels


def test_markov_counts():
    prior = from_labels([[1, 1, -1, -1], [-1, -1, -1]], smoothing=0)
    assert prior == Markov(initial=[0.5, 0.5], transition=[[1, 0], [0.5, 0.5]])
    smoothed = from_labels([[1, 1, -1, -1], [-1, -1, -1]])
    assert smoothed == Markov(initial=[0.5, 0.5], transition=[[4 / 5, 1 / 5], [2 / 4, 2 / 4]])


def test_unknown_labels_break_the_count_but_not_the_sequence():
    prior = from_labels([[0, 1, 1, 0, -1, -1]], smoothing=1)
    assert prior == Markov(initial=[0.5, 0.5], transition=[[2 / 3, 1 / 3], [1 / 3, 2 / 3]])


def test_classes_that_were_never_seen():
    prior = from_labels([[1, 1, 3]], n_classes=4, smoothing=0)
    np.testing.assert_allclose(prior.transition[1], [0, 1, 0, 0], rtol=0, atol=0)
    assert from_labels([[1, 3]]).n_classes == 3


def test_patterns_seen_five_times_or_fewer_become_impossible():
    rows = [[1, 1]] * 6 + [[-1, -1]] * 18 + [[1, -1]] * 5
    prior = from_labels(rows, kind="patterns", length=2)
    assert prior == Patterns({(1, 1): 0.25, (-1, -1): 0.75})
    kept = from_labels(rows, kind="patterns", length=2, min_count=5, smoothing=1)
    assert kept.probability((1, -1)) == pytest.approx(6 / 32)


def test_patterns_come_from_every_place():
    prior = from_labels([[1, 1, -1, 1]], kind="patterns", length=2, min_count=1)
    assert prior.patterns == ((-1, 1), (1, -1), (1, 1))


def test_a_learned_chain_recovers_its_truth(rng):
    truth = Markov(positive=0.3, stay=0.8)
    rows = truth.sample_lengths(np.full(4000, 20), rng).reshape(4000, 20)
    learned = from_labels(rows)
    np.testing.assert_allclose(learned.transition, truth.transition, rtol=0, atol=0.015)
    np.testing.assert_allclose(learned.initial, truth.initial, rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "at least one labelled element"),
        ([[0, 0]], {}, "at least one labelled element"),
        ([[1.5, 1.0]], {}, "whole class values"),
        ([[-1, 2]], {}, "a class from 1 to 2|must be -1 or"),
        ([[1, 5]], {"n_classes": 3}, "a class from 1 to 3, or 0 where there is none; found 5"),
        ([[1, 1]], {"kind": "patterns"}, "no pattern of 5 labels was seen at least 6 times.*seen 0 times"),
        ([[1, 1]], {"kind": "patterns", "length": 0}, "at least one label"),
        ([[1, 1]], {"kind": "hmm"}, "'markov' or 'patterns'; found 'hmm'"),
        ([[0, 1, 1]], {"smoothing": 0}, "first element of at least one sequence"),
    ],
)
def test_refusals(rows, options, message):
    with pytest.raises(PriorError, match=f"(?s){message}"):
        from_labels(rows, **options)

"""The theorems of the paper as functions: golden values, and the brute force behind every closed form."""

from __future__ import annotations

from itertools import combinations
from math import comb, log, sqrt

import numpy as np
import pytest

from dugong.exceptions import GraphError
from dugong.graph import theory


def dense_products_to_joints(n_variables: int) -> np.ndarray:
    """B_t as the paper writes it."""
    walsh = np.ones((1, 1))
    for _ in range(n_variables):
        walsh = np.kron(walsh, [[1, 1], [1, -1]])
    return (walsh + 1) / 2


def complete_incidence(n_sources: int) -> np.ndarray:
    rows = list(combinations(range(n_sources), 2))
    incidence = np.zeros((len(rows), n_sources))
    for row, pair in enumerate(rows):
        incidence[row, pair] = 1
    return incidence


@pytest.mark.parametrize(("n_variables", "golden"), [(2, 1.366), (4, 1.112)])
def test_golden_norms_of_the_products_to_joints_matrix(n_variables, golden):
    assert round(theory.products_to_joints_norm(n_variables), 3) == golden


@pytest.mark.parametrize("n_variables", range(1, 9))
def test_closed_form_of_the_norm_is_that_of_the_dense_matrix(n_variables):
    dense = np.linalg.norm(np.linalg.inv(dense_products_to_joints(n_variables)), ord=2)
    np.testing.assert_allclose(theory.products_to_joints_norm(n_variables), dense, rtol=1e-10)


@pytest.mark.parametrize("n_sources", range(3, 12))
def test_incidence_norm_is_that_of_the_dense_system(n_sources):
    dense = np.linalg.norm(np.linalg.pinv(complete_incidence(n_sources)), ord=2)
    np.testing.assert_allclose(theory.incidence_norm(n_sources), dense, rtol=1e-10)
    np.testing.assert_allclose(dense, 1 / sqrt(n_sources - 2), rtol=1e-10)


def test_three_sources_are_needed_for_the_incidence_norm():
    with pytest.raises(GraphError, match="from three sources on; found 2"):
        theory.incidence_norm(2)


def test_the_example_of_the_paper_needs_five_sources():
    assert theory.minimum_sources(5, 2) == theory.GeneralMinimum(free=5, linked=3)


@pytest.mark.parametrize(("n_elements", "window", "longest_vote"), [(3, 2, 1), (6, 4, 2), (9, 3, 9), (40, 5, 3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_general_minimum_is_the_smallest_that_satisfies_the_inequality(n_elements, window, longest_vote, n_classes):
    n_votes = sum(n_classes ** (n_elements - i) for i in range(longest_vote))
    found = theory.minimum_sources(n_elements, window, n_classes=n_classes, longest_vote=longest_vote)
    for count, power in ((found.free, 2 * n_elements + 2 - window), (found.linked, n_elements)):
        half = (count - 1) // 2
        assert count % 2 == 1
        assert n_votes**half >= n_classes**power > n_votes ** (half - 1)


@pytest.mark.parametrize(("n_windows", "window", "n_votes"), [(3, 1, 2), (5, 2, 2), (7, 3, 8), (9, 3, 2), (101, 4, 3)])
def test_chain_minimum_is_the_smallest_that_satisfies_both_inequalities(n_windows, window, n_votes):
    found = theory.minimum_chain_sources(n_windows, window, n_votes=n_votes)
    for count, k in ((found.as_printed, n_windows), (found.as_cited, (n_windows - 1) // 2)):
        assert comb(k + n_votes**count - 1, k) >= 2 ** (2**window)
        assert count == 1 or comb(k + n_votes ** (count - 1) - 1, k) < 2 ** (2**window)


def test_the_cited_reading_needs_at_least_as_many_sources_and_three_windows():
    both = theory.minimum_chain_sources(5, 3, n_votes=2)
    assert both.as_printed == 3
    assert both.as_cited == 5
    assert theory.minimum_chain_sources(2, 1) == theory.ChainMinimum(as_printed=2, as_cited=None)


def test_chain_minimum_of_large_windows_agrees_with_the_exact_one(monkeypatch):
    exact = [theory.minimum_chain_sources(n_windows, 8, n_votes=3) for n_windows in (3, 9, 40)]
    monkeypatch.setattr(theory, "_EXACT_WINDOW", 0)
    assert [theory.minimum_chain_sources(n_windows, 8, n_votes=3) for n_windows in (3, 9, 40)] == exact
    large = theory.minimum_chain_sources(100, 30)
    assert 2**30 / (100 * 30) <= large.as_printed <= 2 * 2**30 / (100 * 30)


def test_tied_bound_is_theorem_one_with_the_small_matrix():
    rate = sqrt(18 * log(12) / 1000) + 2 * log(12) / 1000
    expected = sqrt(8 * 5) * 24 / (0.1 * 0.4) * 1.3660254 * rate
    options = {"smallest_prior": 0.1, "smallest_agreement": 0.4}
    np.testing.assert_allclose(theory.tied_error_bound(1000, 8, 5, **options), expected, rtol=1e-7)
    correlations = theory.tied_error_bound(1000, 8, 5, of="correlations", **options)
    np.testing.assert_allclose(correlations / expected, sqrt(40) * 1.1123724 / 1.3660254, rtol=1e-7)


def test_untied_bound_is_theorem_two():
    n, m, T = 5000, 4, 3
    options = {"smallest_prior": 0.2, "smallest_agreement": 0.5}
    rate = sqrt(18 * log(6 * 2**T) / n) + 2 * log(6 * 2**T) / n
    norm = np.linalg.norm(np.linalg.inv(dense_products_to_joints(2 * T)), ord=2)
    expected = 2 ** (2 * T) * sqrt(m) * 6 / (0.2 * 0.5) * norm * rate
    np.testing.assert_allclose(theory.untied_error_bound(n, m, T, **options), expected, rtol=1e-10)
    rate = sqrt(18 * log(6 * 2 ** (2 * T)) / n) + 2 * log(6 * 2 ** (2 * T)) / n
    norm = theory.products_to_joints_norm(4 * T)
    expected = 2 ** (4 * T) * m * 6 / (0.2 * 0.5) * norm * rate
    found = theory.untied_error_bound(n, m, T, of="correlations", **options)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_without_tying_one_position_is_the_tied_bound():
    options = {"smallest_prior": 0.3, "smallest_agreement": 0.5}
    tied = theory.tied_error_bound(400, 5, 1, **options)
    np.testing.assert_allclose(theory.untied_error_bound(400, 5, 1, **options), tied, rtol=1e-10)


def test_untied_bound_of_a_long_sequence_is_infinite_rather_than_an_overflow():
    assert theory.untied_error_bound(10, 3, 10_000, smallest_prior=0.1, smallest_agreement=0.5) == float("inf")


def test_bounds_fall_with_the_root_of_the_number_of_sequences():
    options = {"smallest_prior": 0.1, "smallest_agreement": 0.4}
    ratio = theory.tied_error_bound(10**8, 8, 5, **options) / theory.tied_error_bound(16 * 10**8, 8, 5, **options)
    np.testing.assert_allclose(ratio, 4, rtol=1e-3)


@pytest.mark.parametrize("of", ["accuracies", "correlations"])
@pytest.mark.parametrize("error", [0.05, 1.0, 5000.0])
def test_sequences_needed_is_the_smallest_number_that_meets_the_bound(error, of):
    options = {"smallest_prior": 0.1, "smallest_agreement": 0.4, "of": of}
    n = theory.tied_sequences_needed(error, 8, 5, **options)
    assert theory.tied_error_bound(n, 8, 5, **options) <= error
    assert n == 1 or theory.tied_error_bound(n - 1, 8, 5, **options) > error


def test_end_model_bound():
    assert theory.end_model_bound(0.5, 0.25, optimisation=0.1) == pytest.approx(6.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.minimum_sources(5, 6), "found window=6"),
        (lambda: theory.minimum_chain_sources(5, 1, n_votes=1), "n_votes=1"),
        (
            lambda: theory.tied_error_bound(0, 3, 5, smallest_prior=0.1, smallest_agreement=0.5),
            "at least one sequence",
        ),
        (
            lambda: theory.tied_error_bound(9, 3, 5, smallest_prior=0, smallest_agreement=0.5),
            "smallest_prior must lie",
        ),
        (lambda: theory.untied_error_bound(9, 3, 5, smallest_prior=0.1, smallest_agreement=2), "found 2"),
        (
            lambda: theory.tied_sequences_needed(0, 3, 5, smallest_prior=0.1, smallest_agreement=0.5),
            "positive",
        ),
    ],
)
def test_impossible_questions_are_errors(call, message):
    with pytest.raises(GraphError, match=message):
        call()

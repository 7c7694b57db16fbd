"""Standard errors: the formula, the quick replicates against slow ones, coverage of intervals, and odd cases."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dugong as dg
from dugong.fit.errors import RawTables, StandardErrors, jackknife, weighted_error
from dugong.fit.fitting import fit_moments, moment_errors
from dugong.fit.moments import solve_tables
from dugong.fit.moments.assemble import raw_tables
from dugong.fit.moments.equations import Given
from dugong.fit.paper import paper_tables, plan_paper, tables_without
from dugong.fit.passes import InMemory
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.priors import Markov
from dugong.sums import assign_groups, count
from dugong.worlds import Block, World, accurate, copying_pair, lopsided, multiresolution, self_dependent


def fit(world, n_sequences, seed=0, *, balance=False, **options):
    votes, _ = world.sample(n_sequences, rng=seed)
    design = make_design(votes.sources, SourceGraph.of(votes.source_names, world.dependencies), **options)
    grouping = assign_groups(votes)
    moments = count(votes, design.plan, grouping)
    passes = InMemory(votes=votes, n_threads=1) if balance else None
    return fit_moments(Given.under(world.prior, design, moments), passes=passes)


def pair_world(seed=3) -> World:
    pair = copying_pair(accurate(0.7, 0.8, 0.1), 0.5, accurate(0.6, 0.75, 0.2))
    singles = [Block(names=(f"s{i}",), table=accurate(0.6 + 0.05 * i, 0.85 - 0.04 * i, 0.2)) for i in range(4)]
    return World(prior=Markov(positive=0.4, stay=0.7), blocks=(Block(names=("a", "b"), table=pair), *singles))


# --- the formula -----------------------------------------------------------------------------------------------------


def test_error_of_a_mean_over_equal_groups_is_the_textbook_one(rng):
    values = rng.normal(size=(20, 50))
    without = np.array([np.delete(values, g, axis=0).mean() for g in range(20)])
    found = weighted_error(np.array(values.mean()), without, np.full(20, 1 / 20))
    expected = values.mean(axis=1).std(ddof=1) / np.sqrt(20)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_error_of_a_mean_over_unequal_groups_is_unbiased(rng):
    """1,000 samples in groups of 5 to 200 values: the mean squared error found is the variance of the mean."""
    sizes = rng.integers(5, 200, size=25)
    squares = []
    for _ in range(1000):
        sums = rng.normal(size=25) * np.sqrt(sizes)
        total = sums.sum() / sizes.sum()
        without = (sums.sum() - sums) / (sizes.sum() - sizes)
        squares.append(weighted_error(np.array(total), without, sizes / sizes.sum()) ** 2)
    np.testing.assert_allclose(np.mean(squares), 1 / sizes.sum(), rtol=0.05)


def test_error_from_some_of_the_groups_is_that_of_all_data(rng):
    """With very many sequences only 32 groups are drawn, a tenth of the data; the rest is never left out."""
    squares = []
    for _ in range(1000):
        sums = rng.normal(size=320) * 10.0
        total = sums.sum() / 32000
        without = (sums.sum() - sums[:32]) / (32000 - 100)
        squares.append(weighted_error(np.array(total), without, np.full(32, 1 / 320)) ** 2)
    np.testing.assert_allclose(np.mean(squares), 1 / 32000, rtol=0.05)


# --- quick replicates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "options"),
    [
        (lopsided(5), {}),
        (lopsided(5), {"sharing": "task"}),
        (lopsided(4, n_elements=3), {"sharing": {"s0": "full"}, "n_tasks": {"s0": 3}}),
        (multiresolution(), {}),
        (self_dependent(5, 2), {}),
        (pair_world(), {}),
        (pair_world(), {"sharing": "task"}),
        (pair_world(), {"sharing": {f"s{i}": "task" for i in range(4)}}),
    ],
    ids=["tied", "task", "full", "resolutions", "temporal", "pair", "pair by task", "witnesses by task"],
)
def test_replicates_are_new_solutions(world, options):
    """Three steps from the full solution give the same errors as solving every replicate to the end."""
    fitted = fit(world, 1500, **options)
    quick = moment_errors(fitted)

    def solve(group: int) -> RawTables:
        rest = replace(fitted.tables.given, moments=fitted.tables.given.moments.without(group))
        return raw_tables(solve_tables(rest))

    slow = jackknife(
        RawTables(accuracies=fitted.estimate.raw, correlations=fitted.estimate.raw_correlations),
        fitted.tables.given.sizes(),
        lambda groups: RawTables.stack([solve(int(group)) for group in groups]),
    )
    for name, errors in slow.accuracies.items():
        np.testing.assert_allclose(quick.accuracies[name], errors, rtol=1e-3, atol=1e-7)
        assert (quick.accuracies[name] > 0).any()
    for edge, errors in slow.correlations.items():  # proxies keep the weights of the full sample here
        np.testing.assert_allclose(quick.correlations[edge], errors, rtol=0.1, atol=1e-7)


def test_errors_fall_with_the_root_of_the_sample():
    small, large = (moment_errors(fit(lopsided(6), n)) for n in (1000, 16000))
    ratios = [np.median(small.accuracies[n] / large.accuracies[n]) for n in small.accuracies]
    assert 3.3 < np.mean(ratios) < 4.8


# --- coverage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [False, True], ids=["prior's balance", "sample's balance"])
def test_intervals_cover(balance):
    """200 repeats: pooled coverage of all entries 92 to 97 %, none below 88 %."""
    world = pair_world()
    truth = world.accuracies()
    pair = world.block("a").table
    hits = []
    for seed in range(200):
        errors = moment_errors(fit(world, 400, seed=seed, balance=balance))
        inside = []
        for key, table in [*truth.items(), (("a", "b"), pair)]:
            low, high = errors.interval(key)
            inside.append(((low <= table) & (table <= high))[(table > 0) & (table < 1)])
        hits.append(np.concatenate(inside))
    coverage = np.mean(hits, axis=0)
    assert 0.92 < coverage.mean() < 0.97
    assert coverage.min() >= 0.88


# --- odd cases -------------------------------------------------------------------------------------------------------


def test_one_group_knows_nothing():
    world = lopsided(4)
    design = make_design(world.sources, SourceGraph.of(world.source_names))
    moments = world.population(design.plan)
    errors = moment_errors(fit_moments(Given.under(world.prior, design, moments)))
    assert errors.n_groups == 0
    assert np.isinf(errors.accuracies["s0"]).all()
    low, high = errors.intervals["s0"]
    assert (low == 0).all()
    assert (high == 1).all()


def test_empty_groups_are_skipped():
    fitted = fit(lopsided(4), 25)
    sizes = fitted.tables.given.sizes()
    errors = moment_errors(fitted)
    assert (sizes[1:] == 0).any()
    assert errors.n_groups == np.count_nonzero(sizes[1:]) < 25
    assert all(np.isfinite(e).all() for e in errors.accuracies.values())


def test_known_accuracies_have_no_error():
    world = lopsided(4)
    votes, _ = world.sample(500)
    known = {"s1": world.accuracies()["s1"]}
    design = make_design(votes.sources, SourceGraph.of(votes.source_names), pinned=known)
    moments = count(votes, design.plan)
    errors = moment_errors(fit_moments(Given.under(world.prior, design, moments, accuracies=known)))
    np.testing.assert_allclose(errors.accuracies["s1"], 0, atol=1e-12)
    assert (errors.accuracies["s0"] > 0).all()


def test_silent_and_constant_sources_have_finite_errors():
    blocks = (
        *(Block(names=(f"s{i}",), table=accurate(0.7, 0.8, 0.1)) for i in range(3)),
        Block(names=("silent",), table=np.array([[0.0, 0.0, 1.0]] * 2)),
        Block(names=("constant",), table=np.array([[0.0, 1.0, 0.0]] * 2)),
    )
    errors = moment_errors(fit(World(prior=Markov(positive=0.4, stay=0.7), blocks=blocks), 400))
    for name in ("silent", "constant"):
        np.testing.assert_allclose(errors.accuracies[name], 0, atol=1e-12)


def test_replicates_of_the_paper_estimator_are_solved_as_if_alone():
    """Their equations are made together, and two stages of them."""
    world = multiresolution()
    votes, _ = world.sample(400)
    design = make_design(votes.sources, SourceGraph.of(votes.source_names, world.dependencies))
    given = Given.under(world.prior, design, count(votes, plan_paper(design)))
    alone = [replace(given, moments=given.moments.without(group)) for group in range(1, 33)]
    for one, together in zip(alone, tables_without(given, np.arange(1, 33)), strict=True):
        expected = raw_tables(paper_tables(one))
        for name, table in raw_tables(together).accuracies.items():
            np.testing.assert_allclose(table, expected.accuracies[name], rtol=0, atol=1e-12)


def test_the_paper_estimator_has_errors_too():
    world = pair_world()
    votes, _ = world.sample(600)
    design = make_design(votes.sources, SourceGraph.of(votes.source_names, world.dependencies))
    moments = count(votes, plan_paper(design))
    errors = moment_errors(fit_moments(Given.under(world.prior, design, moments), dg.estimators.Paper()))
    assert errors.n_groups == 32
    assert (errors.accuracies["a"] > 0).all()
    assert (errors.correlations["a", "b"][:, :2, :2] > 0).all()


def test_errors_are_plain_data_too():
    for found in (moment_errors(fit(pair_world(), 300)), infinite()):
        again = StandardErrors.from_dict(json.loads(json.dumps(found.to_dict())))
        assert again.n_groups == found.n_groups
        for name, errors in found.accuracies.items():
            np.testing.assert_array_equal(again.accuracies[name], errors)
            np.testing.assert_array_equal(again.raw[name], found.raw[name])
        for edge, errors in found.correlations.items():
            np.testing.assert_array_equal(again.correlations[edge], errors)
            np.testing.assert_array_equal(again.interval(edge)[0], found.interval(edge)[0])


def infinite() -> StandardErrors:
    world = lopsided(3)
    design = make_design(world.sources, SourceGraph.of(world.source_names))
    moments = world.population(design.plan)
    return moment_errors(fit_moments(Given.under(world.prior, design, moments)))


def test_shuffled_sequences_give_the_same_errors(rng):
    world = lopsided(4)
    votes, _ = world.sample(300)
    found = []
    for order in (np.arange(300), rng.permutation(300)):
        chosen = votes[order]
        design = make_design(chosen.sources, SourceGraph.of(chosen.source_names))
        moments = count(chosen, design.plan)
        found.append(moment_errors(fit_moments(Given.under(world.prior, design, moments))))
    for name in world.source_names:
        np.testing.assert_allclose(found[0].accuracies[name], found[1].accuracies[name], rtol=1e-9)

"""What ends a fit on little data: tables back from the edge, and one exact E/M step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import truncnorm

import dugong as dg
from dugong.fit.em import EM, Ties
from dugong.fit.finish import possible_mean
from dugong.fit.fitting import fit_moments
from dugong.fit.moments import solve_tables, table_errors
from dugong.fit.moments.equations import Given
from dugong.fit.passes import InMemory
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.infer.engine import posterior
from dugong.law import ExpectedCounts
from dugong.law.parameters import Conditional, Parameters
from dugong.sums import count
from dugong.worlds import Block, World, accurate, copying_pair, lopsided, multiresolution

ELEMENT = dg.Element()


def brier(probabilities, labels) -> float:
    return float(((probabilities[:, 1] - (labels > 0)) ** 2).mean())


@pytest.mark.parametrize("value", [-0.3, -0.001, 0.0, 0.02, 0.4, 0.5, 0.97, 1.0, 1.2])
@pytest.mark.parametrize("error", [0.01, 0.1, 1.0, 10.0])
def test_the_mean_of_a_cut_normal_law(value, error) -> None:
    expected = truncnorm.mean(-value / error, (1 - value) / error, loc=value, scale=error)
    found = possible_mean(np.array([value]), np.array([error]))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_far_inside_nothing_moves_and_far_outside_the_edge_is_near() -> None:
    inside = np.array([0.1, 0.5, 0.9])
    for error in (1e-2, 1e-3, 1e-9):
        np.testing.assert_allclose(possible_mean(inside, np.full(3, error)), inside, rtol=1e-15, atol=0)
    outside = possible_mean(np.array([-5.0, 6.0]), np.full(2, 1e-3))
    assert 0 < outside[0] < 1e-6
    assert 0 <= 1 - outside[1] < 1e-6
    assert (possible_mean(np.array([-1000.0, -0.3]), np.full(2, 1e-9)) > 0).all()


def rare_world(seed: int) -> World:
    return replace(lopsided(6, seed), prior=dg.priors.Markov(positive=0.05, stay=0.8))


def test_few_sequences_with_rare_positives_do_not_make_certain_labels() -> None:
    """Tables at the edge of what is valid, as projection leaves them, waste more than a third of what can be known."""
    finished, projected = [], []
    for seed in range(70, 78):
        world = rare_world(seed)
        votes, _ = world.sample(200, rng=seed)
        fresh, labels = world.sample(2_000, rng=seed + 500)
        design = make_design(votes.sources, SourceGraph.of(votes.source_names, ()))
        passes = InMemory(votes=votes)
        given = Given.under(world.prior, design, count(votes, design.plan))
        edge = fit_moments(given, passes=passes).estimate.parameters
        model = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
        best, with_edge = (
            brier(posterior(fresh, parameters, world.prior, resolutions=[ELEMENT])[ELEMENT], labels["element"])
            for parameters in (world.parameters(), edge)
        )
        projected.append(with_edge / best)
        finished.append(brier(model.predict_proba(fresh), labels["element"]) / best)
    assert np.mean(finished) < 1.35 < 1.6 < np.mean(projected)


def test_the_step_is_recorded_and_loses_nothing_to_em() -> None:
    world = lopsided(5, 3)
    votes, labels = world.sample(400, rng=8)
    model = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
    assert [note.kind for note in model.diagnostics_.notes].count("step") == 1
    likely = dg.LabelModel(prior=world.prior, dependencies=(), estimator="em").fit(votes)
    gold = labels["element"]
    assert brier(model.predict_proba(votes), gold) < 1.02 * brier(likely.predict_proba(votes), gold)


def test_much_data_needs_no_step() -> None:
    world = lopsided(4, 1)
    votes, _ = world.sample(200_000, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
    assert not any(note.kind in ("step", "possible") for note in model.diagnostics_.notes)


def test_the_paper_as_it_is() -> None:
    world = lopsided(4, 1)
    votes, _ = world.sample(300, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=(), estimator="paper").fit(votes)
    assert not any(note.kind in ("step", "possible") for note in model.diagnostics_.notes)


@pytest.mark.parametrize("world", [lopsided(6, 2), multiresolution(2)], ids=lambda world: world.name)
def test_errors_from_the_equations_are_near_those_of_the_jackknife(world) -> None:
    votes, _ = world.sample(2_000, rng=4)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
    given = Given.under(world.prior, model._options().design(votes), model.moments_)
    found = table_errors(solve_tables(given))
    ratios = [np.median(found[name] / error) for name, error in model.standard_errors_.accuracies.items()]
    assert 0.5 < min(ratios) < max(ratios) < 1.5


@pytest.mark.parametrize("group", ["twins", "s3"], ids=["any name", "the name of a source"])
@pytest.mark.parametrize("estimator", ["centred", EM(max_iter=3)], ids=["centred", "em"])
def test_known_tables_stay_and_shared_ones_are_one(estimator, group) -> None:
    world = lopsided(5, 4)
    votes, _ = world.sample(300, rng=5)
    alike = tuple(replace(info, shares=group if info.name in ("s1", "s2") else None) for info in votes.sources)
    votes = dg.Votes(sources=alike, columns=votes.columns, lengths=votes.lengths)
    known = accurate(0.8, 0.7, 0.1)
    model = dg.LabelModel(prior=world.prior, dependencies=(), estimator=estimator, accuracies={"s0": known}).fit(votes)
    np.testing.assert_array_equal(model.accuracies_["s0"], known)
    np.testing.assert_array_equal(model.parameters_["s0"].table, known)
    np.testing.assert_array_equal(model.accuracies_["s1"], model.accuracies_["s2"])
    np.testing.assert_array_equal(model.parameters_["s1"].table, model.parameters_["s2"].table)
    assert not np.array_equal(model.accuracies_["s1"], model.accuracies_["s3"])


def test_only_tables_of_the_same_shapes_are_added_up() -> None:
    """`longer` has one more kind of vote, `after` a table of another kind; `twins` only has the name of the group."""
    shapes = {"a": (2, 3), "b": (2, 3), "longer": (2, 4), "twins": (2, 3)}
    factors = {name: {"table": np.full(shape, 1.0 + place)} for place, (name, shape) in enumerate(shapes.items())}
    factors["after"] = {"table": np.full((2, 3, 3), 5.0), "marginal": np.full((2, 3), 5.0)}
    counts = ExpectedCounts(
        factors=factors, initial=np.ones(2), transitions=np.ones((2, 2)), log_likelihood=np.zeros(())
    )
    tables = [Conditional(source=n, resolution=ELEMENT, table=np.full(s, 1 / s[1])) for n, s in shapes.items()]
    keys = dict.fromkeys(("a", "b", "longer", "after"), "twins")
    pooled = Ties(keys=keys).pool(counts, Parameters(n_classes=2, factors=tuple(tables))).factors
    found = {name: {float(table.flat[0]) for table in own.values()} for name, own in pooled.items()}
    assert found == {"a": {3.0}, "b": {3.0}, "longer": {3.0}, "twins": {4.0}, "after": {5.0}}


@pytest.mark.parametrize("estimator", ["centred", EM(max_iter=3)], ids=["centred", "em"])
def test_sources_that_share_a_table_keep_their_own_company(estimator) -> None:
    """`a` copies `x`; `c`, which shares the table of `a`, has nothing to do with `z`, though that was declared."""
    table = accurate(0.75, 0.7, 0.1)
    pair, alone = copying_pair(table, 0.8, table), [accurate(0.7, 0.8, 0.2) for _ in range(4)]
    blocks = (Block(names=("x", "a"), table=pair), Block(names=("z",), table=table), Block(names=("c",), table=table))
    singles = tuple(Block(names=(f"s{i}",), table=one) for i, one in enumerate(alone))
    world = World(prior=dg.priors.Markov(positive=0.4, stay=0.7), blocks=(*blocks, *singles), lengths=5)
    votes, _ = world.sample(2_000, rng=6)
    sources = tuple(replace(info, shares="one" if info.name in ("a", "c") else None) for info in votes.sources)
    votes = dg.Votes(sources=sources, columns=votes.columns, lengths=votes.lengths)
    model = dg.LabelModel(prior=world.prior, dependencies=[("x", "a"), ("z", "c")], estimator=estimator).fit(votes)
    dependence = {}
    for edge in (("x", "a"), ("z", "c")):
        both = model.correlations_[edge]
        dependence[edge] = np.abs(both - both.sum(axis=2)[:, :, None] * both.sum(axis=1)[:, None, :]).max()
    assert dependence["x", "a"] > 0.1
    assert dependence["z", "c"] < 0.04


def test_em_keeps_known_tables_where_the_prior_is_learned() -> None:
    votes, _ = lopsided(6, 4).sample(500, rng=5)
    known = accurate(0.8, 0.7, 0.1)
    model = dg.LabelModel(estimator=EM(max_iter=3), dependencies=(), accuracies={"s0": known}).fit(votes)
    np.testing.assert_allclose(model.accuracies_["s0"], known, rtol=0, atol=1e-12)


def test_empty_sequences_leave_standard_errors_finite() -> None:
    votes, _ = lopsided(5, 1).sample(60, rng=2)
    lengths = np.concatenate([votes.lengths, [0, 0, 0]])
    more = dg.Votes.from_tasks({name: votes.column(name) for name in votes.source_names}, lengths=lengths)
    model = dg.LabelModel().fit(more, groups=[*range(60), "empty", "empty", "empty"])
    assert all(np.isfinite(error).all() for error in model.standard_errors_.accuracies.values())


def test_nothing_but_empty_sequences_is_an_error() -> None:
    votes = dg.Votes.from_tasks({"a": [], "b": [], "c": []}, lengths=[0, 0])
    with pytest.raises(dg.VoteError, match="needs at least one element; all sequences are empty"):
        dg.LabelModel().fit(votes)


def test_votes_that_contradict_the_prior_are_told() -> None:
    """Three sources that err together on a fifth of the elements look right, and the rest wrong."""
    rng = np.random.default_rng(3)
    lengths = np.full(400, 10)
    gold = rng.random(4_000) < 0.05
    shared = gold | (rng.random(4_000) < 0.2)
    votes = {f"same{i}": np.where(shared ^ (rng.random(4_000) < 0.05), 1, -1) for i in range(3)}
    votes |= {f"own{i}": np.where(gold ^ (rng.random(4_000) < 0.3), 1, -1) for i in range(2)}
    prior = dg.priors.Markov(positive=0.05, stay=0.05)
    alone = dg.LabelModel(prior=prior, dependencies=()).fit(dg.Votes.from_tasks(votes, lengths=lengths))
    told = [note for note in alone.diagnostics_.notes if note.kind == "contradiction"]
    assert len(told) == 1
    assert "the prior says 5.0%" in told[0].text
    assert 'dependencies="learn"' in told[0].text
    world = lopsided(6, 2)
    right = dg.LabelModel(prior=world.prior, dependencies=()).fit(world.sample(500, rng=3)[0])
    assert not any(note.kind == "contradiction" for note in right.diagnostics_.notes)

"""From joint tables to factors: what noise has made impossible stays possible, and odd graphs are refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dugong.exceptions import GraphError
from dugong.fit.fitting import fit_moments
from dugong.fit.moments.equations import Given
from dugong.fit.tables import project, soften
from dugong.graph import SourceGraph, temporal
from dugong.graph.design import make_design
from dugong.infer.engine import log_likelihood
from dugong.sums import count
from dugong.tasks import Window
from dugong.votes import SourceInfo
from dugong.worlds import lopsided, rare, self_dependent

TASKS = {"s0": 3, "s1": 3}


def fit(world, n_sequences, dependencies=None, **options):
    votes, _ = world.sample(n_sequences, rng=1)
    edges = world.dependencies if dependencies is None else dependencies
    design = make_design(votes.sources, SourceGraph.of(votes.source_names, edges), **options)
    return votes, fit_moments(Given.under(world.prior, design, count(votes, design.plan))).estimate


@pytest.mark.parametrize("seed", range(5))
def test_few_sequences_of_a_rare_class_leave_all_their_votes_possible(seed):
    """Noise pushes entries below zero; the projected table must not rule out votes that were seen."""
    world = rare(seed=seed)
    votes, estimate = fit(world, 60)
    assert estimate.diagnostics.projections
    assert np.isfinite(log_likelihood(votes, estimate.parameters, world.prior)).all()


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e14])
def test_tables_of_a_label_that_hardly_occurs_become_laws(scale):
    """Dividing by a tiny P(label) makes huge entries, whose digits the projection must not lose."""
    table, _ = project(scale * np.random.default_rng(0).normal(size=(40, 3)))
    assert table.min() >= 0
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_projected_tables_of_dependent_sources_leave_votes_possible():
    world = self_dependent(4, 1)
    votes, estimate = fit(world, 30, [("s1", "s2"), *world.dependencies])
    assert np.isfinite(log_likelihood(votes, estimate.parameters, world.prior)).all()


def test_softening_keeps_distributions_and_what_never_occurs(rng):
    table = np.array([[[0.0, 0.7, 0.0, 0.3], [1.0, 0.0, 0.0, 0.0]]])
    seen = np.array([[[0.5, 0.3, 0.0, 0.2]]])
    soft = soften(table, seen, 1, 0.1)
    np.testing.assert_allclose(soft[0, 0], [0.05, 0.66, 0.0, 0.29], rtol=0, atol=1e-15)
    np.testing.assert_allclose(soft[0, 1], [0.95, 0.03, 0.0, 0.02], rtol=0, atol=1e-15)
    joint = rng.dirichlet(np.ones(36)).reshape(2, 2, 3, 3)
    soft = soften(joint, joint.sum(axis=(0, 1), keepdims=True), 4, 0.2)
    np.testing.assert_allclose(soft.sum(), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(soft.sum(axis=(2, 3)), joint.sum(axis=(2, 3)), rtol=0, atol=1e-14)
    np.testing.assert_allclose(soft.sum(axis=(0, 1)), joint.sum(axis=(0, 1)), rtol=0, atol=1e-14)


def test_tables_that_were_valid_are_not_touched():
    world = lopsided(5)
    design = make_design(world.sources, SourceGraph.of(world.source_names))
    moments = world.population(design.plan)
    estimate = fit_moments(Given.under(world.prior, design, moments)).estimate
    for name, table in world.accuracies().items():
        np.testing.assert_allclose(estimate.parameters[name].table, table, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("dependencies", "options", "message"),
    [
        ([("s0", "s1"), temporal("s0")], {}, "depends on itself in time and on|depends on .* and on itself"),
        (
            [("s0", "s1")],
            {"sharing": {"s0": "full", "s1": "full"}, "n_tasks": {"s0": 3, "s1": 3}},
            "declared dependency",
        ),
        ([temporal("s0")], {"sharing": {"s0": "full"}, "n_tasks": TASKS}, 'has sharing="full" and a declared'),
    ],
    ids=["temporal and pair", "full and pair", "full and temporal"],
)
def test_two_dependencies_at_once_are_refused(dependencies, options, message):
    world = lopsided(6, n_elements=3)
    with pytest.raises(GraphError, match=message):
        fit(world, 100, dependencies, **options)


def test_a_source_follows_one_coarser_source_only():
    world = lopsided(5)
    votes, _ = world.sample(50)
    windows = [SourceInfo(name=f"w{i}", resolution=Window(size=5, link="any")) for i in range(4)]
    sources = (*votes.sources, *windows)
    design = make_design(sources, SourceGraph.of([s.name for s in sources], [("s0", "w0"), ("s0", "w1")]))
    from dugong.fit.moments.assemble import Assembly

    tables = SimpleNamespace(given=SimpleNamespace(design=design))
    with pytest.raises(GraphError, match="at a coarser resolution and on something else as well"):
        Assembly(tables)

"""Planted dependencies are found, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import GraphError
from dugong.fit.learned import learn
from dugong.fit.learned.factors import forest_factors
from dugong.fit.learned.forest import reroot, strongest_forest
from dugong.fit.learned.lowrank import decompose
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.residuals.misfit import discoveries, p_values
from dugong.infer.engine import posterior
from dugong.law.parameters import Conditional, Temporal
from dugong.tasks import Element
from dugong.votes import Votes
from dugong.worlds import (
    Block,
    TemporalBlock,
    World,
    copying_pair,
    couplings,
    cycle,
    ising,
    lopsided,
    sticky,
    temporal,
)
from dugong.worlds.standard import lopsided_table


def planted(n_sources: int, n_pairs: int, n_repeating: int, strength: float, seed: int) -> World:
    """Some pairs that copy and some sources that repeat themselves, among independent ones."""
    rng = np.random.default_rng(seed)
    blocks: list[Block | TemporalBlock] = []
    for pair in range(n_pairs):
        table = copying_pair(lopsided_table(rng), strength, own=lopsided_table(rng))
        blocks.append(Block(names=(f"pair{pair}a", f"pair{pair}b"), table=table))
    for place in range(n_repeating):
        first, step = temporal(lopsided_table(rng), strength)
        blocks.append(TemporalBlock(name=f"again{place}", first=first, step=step))
    free = range(n_sources - 2 * n_pairs - n_repeating)
    blocks += [Block(names=(f"free{place}",), table=lopsided_table(rng)) for place in free]
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks), lengths=5, name="planted")


@pytest.mark.parametrize(("strength", "n_sequences"), [(0.3, 3000), (0.7, 1000)])
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_graphs_are_found(strength, n_sequences, seed):
    world = planted(9, 2, 2, strength, seed)
    votes, _ = world.sample(n_sequences, rng=seed)
    learned = learn(votes)
    assert set(learned.graph.edges) == {("pair0a", "pair0b"), ("pair1a", "pair1b")}
    assert set(learned.graph.temporal) == {"again0", "again1"}
    assert set(learned.strengths) == {*learned.graph.edges, ("again0", "again0"), ("again1", "again1")}
    assert all(value > 0.1 for value in learned.strengths.values())
    assert learned.trust > 0.9
    assert learned.correlations["pair0a", "pair0b"].shape == (2, 3, 3)
    np.testing.assert_allclose(learned.correlations["pair0a", "pair0b"].sum(axis=(1, 2)), 1, atol=1e-9)


def test_a_copy_is_modelled_with_its_parent():
    world = planted(7, 1, 1, 0.6, seed=5)
    votes, _ = world.sample(4000, rng=5)
    learned = learn(votes)
    kinds = {factor.source: factor for factor in learned.parameters.factors}
    children = [factor for factor in kinds.values() if isinstance(factor, Conditional) and factor.parents]
    assert {children[0].source, *children[0].parents} == {"pair0a", "pair0b"}
    again = kinds["again0"]
    assert isinstance(again, Temporal)
    truth = next(block for block in world.blocks if block.names == ("again0",))
    np.testing.assert_allclose(again.step[1, 1], truth.step[1, 1], atol=0.08)
    joint = next(block for block in world.blocks if block.names == ("pair0a", "pair0b")).table
    np.testing.assert_allclose(learned.correlations["pair0a", "pair0b"], joint, atol=0.03)


@pytest.mark.parametrize("lag", [2, 4])
def test_a_source_that_repeats_an_earlier_vote_is_found(lag):
    rng = np.random.default_rng(lag)
    first, step = temporal(lopsided_table(rng), 0.6)
    free = (Block(names=(f"free{j}",), table=lopsided_table(rng)) for j in range(6))
    again = TemporalBlock(name="again", first=first, step=step, lag=lag)
    world = World(prior=sticky(0.3, 0.85), blocks=(again, *free), lengths=12)
    votes, labels = world.sample(1000, rng=1)
    learned = learn(votes)
    assert learned.graph.temporal == {"again": lag}
    assert learned.trust > 0.9
    assert learned.parameters["again"].lag == lag
    truth = labels["element"] > 0
    best = posterior(votes, world.parameters(), world.prior)[Element()][:, 1]
    found = learned.probabilities(votes)[Element()][:, 1]
    assert np.mean((found - truth) ** 2) < 1.03 * np.mean((best - truth) ** 2)


# --- discoveries ---------------------------------------------------------------------------------------------------
def test_few_discoveries_are_false(rng):
    false, found, missed = 0, 0, 0
    for _ in range(200):
        sums = rng.normal(size=(80, 50))
        sums[:, :5] += 0.6
        p = p_values(sums.sum(axis=0), (sums**2).sum(axis=0), (sums**4).sum(axis=0))
        chosen = discoveries(p, 0.1)
        false, found, missed = false + chosen[5:].sum(), found + chosen.sum(), missed + (~chosen[:5]).sum()
    assert false / found < 0.1
    assert missed < 100


def test_p_values_of_nothing_are_even(rng):
    sums = rng.normal(size=(60, 4000))
    p = p_values(sums.sum(axis=0), (sums**2).sum(axis=0), (sums**4).sum(axis=0))
    np.testing.assert_allclose(np.quantile(p, [0.05, 0.25, 0.5, 0.75]), [0.05, 0.25, 0.5, 0.75], atol=0.03)
    assert p_values(np.zeros(2), np.zeros(2), np.zeros(2)).tolist() == [1.0, 1.0]
    rare = np.zeros((1000, 1))
    rare[:3] = 1.0
    assert p_values(rare.sum(axis=0), (rare**2).sum(axis=0), (rare**4).sum(axis=0))[0] > 0.05
    assert discoveries(np.zeros(0), 0.1).tolist() == []


def test_independent_sources_have_no_edges():
    for seed in range(3):
        votes, _ = lopsided(8, seed=seed).sample(1500, rng=seed)
        graph = learn(votes).graph
        assert graph.edges == ()
        assert graph.temporal == {}


@pytest.mark.parametrize("shape", ["ring", "triangle"])
def test_rings_and_triangles_are_modelled_together(shape):
    names = ("a", "b", "c", "d") if shape == "ring" else ("a", "b", "c")
    edges = cycle(names)
    rng = np.random.default_rng(0)
    table = ising([0.6, 0.7, 0.5, 0.6][: len(names)], couplings(names, edges, 0.4))
    free = (Block(names=(f"free{j}",), table=lopsided_table(rng)) for j in range(4))
    world = World(prior=sticky(0.4, 0.8), blocks=(Block(names=names, table=table, edges=edges), *free), lengths=6)
    votes, labels = world.sample(4000, rng=1)
    learned = learn(votes)
    assert len(learned.graph.edges) == len(names) - 1
    assert {name for edge in learned.graph.edges for name in edge} == set(names)
    truth = labels["element"] > 0
    best = posterior(votes, world.parameters(), world.prior)[Element()][:, 1]
    found = learned.probabilities(votes)[Element()][:, 1]
    assert np.mean((found - truth) ** 2) < 1.03 * np.mean((best - truth) ** 2)


def test_large_trees_and_little_data_keep_single_parents():
    single = np.full((5, 2, 3), 1 / 3)
    edges = {place: np.full((2, 3, 3), 1 / 3) for place in range(1, 5)}
    names, chain = tuple("abcde"), np.array([-1, 0, 1, 2, 3])

    def widths(parents: np.ndarray, most_cells: float) -> list[int]:
        factors = forest_factors(
            names, parents, Repeats(rates=np.zeros((2, 5)), lags=np.ones(5, dtype=np.int64)), single, edges, most_cells
        )
        return [len(factor.parents) for factor in factors]

    assert widths(chain, 1e9) == [0, 1, 1, 1, 1]
    assert widths(np.array([-1, 0, 1, 2, -1]), 1e9) == [0, 1, 2, 3, 0]
    assert widths(np.array([-1, 0, 1, 2, -1]), 100) == [0, 1, 1, 1, 0]


def test_the_strongest_edges_make_a_forest():
    strength = np.zeros((5, 5))
    for (j, k), value in {(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.7, (3, 4): 0.4}.items():
        strength[j, k] = strength[k, j] = value
    forest = strongest_forest(strength, 0.5)
    assert forest.parents.tolist() == [1, -1, 1, -1, -1]
    assert forest.apart[0, 3]
    assert not forest.apart[0, 2]
    assert strongest_forest(strength, 0.1).n_edges == 3
    assert strongest_forest(strength, 0.1, most=1).n_edges == 1
    assert strongest_forest(np.zeros((3, 3)), 0.0).n_edges == 0


def test_the_stronger_of_two_dependencies_stays():
    strength = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.6], [0.0, 0.6, 0.0]])
    forest = strongest_forest(strength, 0.3)
    parents, repeats = reroot(forest.near, np.array([0.2, 0.0, 0.9]), strength)
    assert parents.tolist() == [1, 2, -1]
    assert repeats.tolist() == [False, False, True]
    parents, repeats = reroot(forest.near, np.array([0.8, 0.0, 0.9]), strength)
    assert parents.tolist() == [-1, 2, -1]
    assert repeats.tolist() == [True, False, True]


# --- low rank plus sparse ------------------------------------------------------------------------------------------
def test_an_inverse_is_split_into_its_sparse_and_low_rank_parts():
    rng = np.random.default_rng(0)
    sparse, load = np.eye(12), rng.uniform(0.15, 0.25, (12, 1))
    sparse[0, 1] = sparse[1, 0] = -0.4
    sparse[5, 7] = sparse[7, 5] = 0.3
    parts = decompose(np.linalg.inv(sparse - load @ load.T), 0.01, 0.03)
    off = np.abs(np.where(np.eye(12, dtype=bool), 0, parts.sparse))
    assert set(map(tuple, np.argwhere(off > 0.1).tolist())) == {(0, 1), (1, 0), (5, 7), (7, 5)}
    assert np.sign(parts.sparse[0, 1]) == -1
    assert np.sign(parts.sparse[5, 7]) == 1
    np.testing.assert_array_less(-1e-9, np.linalg.eigvalsh(parts.low))
    assert np.linalg.eigvalsh(parts.low)[-1] > 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_both_methods_find_a_planted_graph(seed):
    votes, _ = planted(8, 2, 1, 0.5, seed).sample(1000, rng=seed)
    for method in ("residuals", "low-rank"):
        found = dg.learn_graph(votes, method=method)
        assert set(found.graph.edges) == {("pair0a", "pair0b"), ("pair1a", "pair1b")}
        assert found.graph.temporal == {"again0": 1}
        assert set(found.strengths) == {*found.graph.edges, ("again0", "again0")}
        assert all(0.3 < value < 0.8 for value in found.strengths.values())
        assert dg.temporal("again0") in found.dependencies
    model = dg.LabelModel(dependencies="low-rank").fit(votes)
    assert set(model.graph_.edges) == set(found.graph.edges)
    assert set(model.graph_.temporal) == {"again0"}
    assert model.diagnostics_.learned["trust"] > 0.9


def test_low_rank_with_abstains_missing_votes_and_several_classes(rng):
    truth = np.repeat(rng.integers(0, 3, 1500), 4)
    codes = np.where(rng.random((6000, 6)) < 0.75, truth[:, np.newaxis], rng.integers(0, 3, (6000, 6)))
    codes[:, 1] = np.where(rng.random(6000) < 0.5, codes[:, 0], codes[:, 1])
    codes[rng.random(codes.shape) < 0.2] = -1
    codes[rng.random(codes.shape) < 0.1] = -9
    votes = Votes.from_classes(codes, n_classes=3, abstain=-1, missing=-9, lengths=[40] * 150)
    found = dg.learn_graph(votes, method="low-rank")
    assert found.graph.edges == (("s0", "s1"),)
    assert found.graph.temporal == {}
    order = rng.permutation(6)
    again = dg.learn_graph(votes.select(sources=[f"s{j}" for j in order]), method="low-rank")
    assert again.strengths[again.graph.edges[0]] == pytest.approx(found.strengths["s0", "s1"], abs=1e-6)


def test_words_for_learning_are_checked(rng):
    votes, _ = lopsided(4, seed=1).sample(50, rng=1)
    with pytest.raises(GraphError, match="method= must be 'residuals' or 'low-rank'; found 'magic'"):
        dg.learn_graph(votes, method="magic")
    with pytest.raises(GraphError, match='dependencies must be "learn" or "low-rank", or given as a list'):
        dg.LabelModel(dependencies="magic").fit(votes)
    silent = Votes.from_dense(np.zeros((20, 2), dtype=np.int8), lengths=[20])
    assert dg.learn_graph(silent, method="low-rank").graph.edges == ()

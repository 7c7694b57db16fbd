"""Estimation from samples: error sizes, the square-root law, and what ignoring a dependency costs."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.fit.fitting import fit_moments
from dugong.fit.moments.equations import Given
from dugong.fit.passes import InMemory
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.sums import count
from dugong.worlds import Block, World, copying_pair, flipped, lopsided, rare, sticky
from dugong.worlds.standard import lopsided_table


def errors(world, n_sequences, seed, length=5, dependencies=None, **options):
    votes, _ = world.sample(n_sequences, length, rng=np.random.default_rng(seed))
    declared = world.dependencies if dependencies is None else dependencies
    design = make_design(votes.sources, SourceGraph.of(votes.source_names, declared), **options)
    given = Given.under(world.prior, design, count(votes, design.plan))
    fitted = fit_moments(given, passes=InMemory(votes=votes))
    truth = world.accuracies(length)
    return np.concatenate([np.abs(fitted.estimate.accuracies[name] - truth[name]).ravel() for name in truth])


def test_accuracies_of_ten_lopsided_sources() -> None:
    means = [errors(lopsided(10, seed), 10_000, seed).mean() for seed in range(5)]
    assert np.mean(means) <= 0.0035


def test_accuracies_when_positives_are_rare() -> None:
    means = [errors(rare(8, seed), 40_000, seed).mean() for seed in range(5)]
    assert np.mean(means) <= 0.008


def copying_world(seed):
    rng = np.random.default_rng(seed)
    tables = [lopsided_table(rng) for _ in range(7)]
    blocks = [Block(names=(f"s{j}",), table=tables[j]) for j in range(4)]
    blocks.append(Block(names=("liar",), table=flipped(tables[4])))
    blocks.append(Block(names=("a", "b"), table=copying_pair(tables[5], 0.7, own=tables[6])))
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks))


def test_a_declared_copy_and_a_liar() -> None:
    assert max(errors(copying_world(seed), 20_000, seed).max() for seed in range(3)) <= 0.015


def test_ignoring_a_copy_is_costly() -> None:
    declared = errors(copying_world(1), 20_000, 1).max()
    ignored = errors(copying_world(1), 20_000, 1, dependencies=()).max()
    assert ignored > 10 * declared


def test_error_falls_with_the_square_root_of_n() -> None:
    world = lopsided(8, 4)
    few = np.mean([errors(world, 1_000, seed).mean() for seed in range(10)])
    many = np.mean([errors(world, 16_000, seed).mean() for seed in range(10)])
    assert 3.3 <= few / many <= 4.8


@pytest.mark.parametrize("sharing", ["tied", "task"])
def test_error_and_the_length_of_sequences(sharing) -> None:
    """With one table per source longer sequences help; with one per position the summed error grows."""
    world = lopsided(6, 2)
    tables = {}
    for length in (2, 8):
        votes, _ = world.sample(2_000, length, rng=np.random.default_rng(length))
        design = make_design(votes.sources, SourceGraph.of(votes.source_names), sharing=sharing)
        given = Given.under(world.prior, design, count(votes, design.plan))
        estimate = fit_moments(given, passes=InMemory(votes=votes)).estimate
        truth = world.accuracies(length)
        tables[length] = np.sqrt(sum(((estimate.accuracies[n] - truth[n]) ** 2).sum() for n in truth))
    assert tables[8] < tables[2] if sharing == "tied" else tables[8] > 1.5 * tables[2]

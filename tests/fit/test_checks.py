"""A given prior is checked against the votes: hardly ever doubted when it is right, and named when it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.fit.checks import check_prior, measure
from dugong.graph import SourceGraph
from dugong.sums import assign_groups
from dugong.worlds import Block, TemporalBlock, World, accurate, copying_pair, temporal

SHAPES = ((100, 5), (500, 5), (2000, 4), (6, 800), (40, 50))


def random_world(rng):
    positive, memory = rng.choice([0.05, 0.1, 0.3, 0.5, 0.8]), rng.choice([0.0, 0.3, 0.8, 0.95])
    prior = dg.priors.Markov(positive=positive, stay=positive + memory * (1 - positive))
    tables = [accurate(*rng.uniform(0.6, 0.95, 2), *rng.uniform(0, 0.6, 2)) for _ in range(rng.integers(3, 8))]
    return World(prior=prior, blocks=tuple(Block(names=(f"s{j}",), table=t) for j, t in enumerate(tables)))


def look(world, votes, prior=None, of=measure):
    graph = SourceGraph.of(votes.source_names, world.dependencies)
    return of(votes, assign_groups(votes), prior or world.prior, graph, world.accuracies())


def test_right_priors_are_not_doubted() -> None:
    """Over 60 worlds the two numbers are as far off as their standard errors say, and there is no alarm."""
    scores = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        world = random_world(rng)
        votes, _ = world.sample(*SHAPES[rng.integers(len(SHAPES))], rng=rng)
        assert look(world, votes, of=check_prior) == ()
        scores.append([(one.found - one.given) / one.error for one in look(world, votes)])
    spread = np.std(scores, axis=0)
    assert (spread > 0.7).all(), spread
    assert (spread < 1.4).all(), spread
    assert np.abs(np.mean(scores, axis=0)).max() < 0.5


@pytest.mark.parametrize("settings", [{"dependencies": ()}, {}, {"dependencies": (), "estimator": "em"}])
def test_a_wrong_prior_is_named_with_both_numbers_and_the_remedy(settings) -> None:
    world = World(
        prior=dg.priors.Markov(positive=0.1, stay=0.9),
        blocks=tuple(Block(names=(f"s{j}",), table=accurate(0.8)) for j in range(5)),
    )
    votes, _ = world.sample(400, 10, rng=1)

    def said(prior):
        notes = dg.LabelModel(prior=prior, **settings).fit(votes).diagnostics_.notes
        return [note.text for note in notes if note.kind == "contradiction"]

    assert said(world.prior) == []
    (text,) = said(dg.priors.Markov(positive=0.5, stay=0.6))
    assert "positive, where the prior says 50.0%" in text
    assert 'prior="learn"' in text
    if settings:  # a search for dependencies takes a wrong prior for sources that repeat themselves
        assert "where the prior says 0.20" in text
        assert "priors.Markov(positive=0.12, stay=" in text
        assert "positive, where" not in said(dg.priors.Markov(positive=0.1, stay=0.2))[0]


def test_declared_dependencies_are_no_contradiction() -> None:
    """A pair that copies, and a source that repeats itself, take no part where they would mislead."""
    first, step = temporal(accurate(0.8), 0.6)
    world = World(
        prior=dg.priors.Markov(positive=0.3, stay=0.7),
        blocks=(
            *(Block(names=(f"s{j}",), table=accurate(0.8)) for j in range(3)),
            Block(names=("a", "b"), table=copying_pair(accurate(0.75), 0.9)),
            TemporalBlock(name="again", first=first, step=step),
        ),
    )
    votes, _ = world.sample(1000, 6, rng=2)
    assert look(world, votes, of=check_prior) == ()


def test_nothing_is_said_where_nothing_can_be_known() -> None:
    two = World(prior=dg.priors.Uniform(), blocks=tuple(Block(names=(n,), table=accurate(0.8)) for n in "ab"))
    assert look(two, two.sample(200, 3, rng=0)[0]) is None
    single = World(prior=dg.priors.Uniform(), blocks=tuple(Block(names=(n,), table=accurate(0.8)) for n in "abc"))
    assert look(single, single.sample(300, 1, rng=0)[0])[1].given == 0.0

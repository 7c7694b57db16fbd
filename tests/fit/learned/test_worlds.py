"""Worlds that obey the model: with everything learned, labels are within 3 % of the optimal Brier score."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.fit.learned import learn
from dugong.infer import answers
from dugong.infer.engine import posterior
from dugong.law import Law
from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.tasks import Element
from dugong.votes import Votes
from dugong.worlds import Block, World, confusion, lopsided, multiresolution, ragged, rare, self_dependent, tv_news

ELEMENT = Element()


def many_classes(seed: int = 0, n_classes: int = 4, n_sources: int = 7) -> World:
    """Independent confusion tables and a sticky chain of several classes."""
    rng = np.random.default_rng(seed)
    blocks = tuple(
        Block(
            names=(f"s{j}",),
            table=confusion(n_classes, rng.uniform(0.5, 0.85, n_classes).tolist(), rng.uniform(0, 0.4)),
        )
        for j in range(n_sources)
    )
    balance = rng.dirichlet(np.full(n_classes, 5.0))
    prior = Markov(initial=balance, transition=0.8 * np.eye(n_classes) + 0.2 * balance)
    return World(prior=prior, blocks=blocks, lengths=5, name="many_classes")


def brier(probabilities: np.ndarray, truth: np.ndarray) -> float:
    places = (truth > 0).astype(int) if probabilities.shape[1] == 2 else truth.astype(int) - 1
    return float(((probabilities - np.eye(probabilities.shape[1])[places]) ** 2).sum(axis=1).mean())


def ratio(world: World, votes: Votes, truth: np.ndarray, law: Law, resolution=ELEMENT) -> float:
    """Return the Brier score of learned labels over that of the true parameters."""
    best = posterior(votes, world.parameters(), world.prior, resolutions=[resolution])[resolution]
    return brier(answers.posterior(law, votes, (resolution,))[resolution], truth) / brier(best, truth)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("make", "n_sequences"),
    [
        (lopsided, 3000),
        (multiresolution, 4000),
        (rare, 10000),
        (self_dependent, 6000),
        (many_classes, 4000),
        (ragged, 2000),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_everything_learned(make, n_sequences, seed):
    world = make(seed=seed)
    votes, labels = world.sample(n_sequences, rng=seed + 100)
    learned = learn(votes)
    assert learned.trust > 0.9
    assert ratio(world, votes, labels["element"], learned.law) < 1.05


def test_rare_events_in_long_sequences():
    world = tv_news()
    votes, labels = world.sample(1000, rng=3)
    learned = learn(votes)
    assert ratio(world, votes, labels["element"], learned.law) < 1.05
    for info in world.sources[-1:]:
        truth = labels[info.resolution]
        assert ratio(world, votes, truth, learned.law, info.resolution) < 1.05


def test_tables_and_prior_are_those_of_the_world():
    world = lopsided(8, seed=7)
    votes, _ = world.sample(8000, rng=7)
    learned = learn(votes)
    for name, table in world.accuracies().items():
        np.testing.assert_allclose(learned.accuracies[name], table, atol=0.03)
    np.testing.assert_allclose(learned.prior.initial, world.prior.initial, atol=0.02)
    np.testing.assert_allclose(learned.prior.transition, world.prior.transition, atol=0.03)


@pytest.mark.parametrize("make", [multiresolution, self_dependent, many_classes], ids=lambda make: make.__name__)
@pytest.mark.parametrize("given_prior", [False, True], ids=["prior learned", "prior given"])
def test_a_given_graph_is_taken_at_its_word(make, given_prior):
    world = make(seed=3)
    votes, labels = world.sample(4000, rng=3)
    model = LabelModel(dependencies=world.dependencies, prior=world.prior if given_prior else "learn").fit(votes)
    assert model.law_.tempering is None
    assert ratio(world, votes, labels["element"], model.law_) < 1.02
    assert set(model.correlations_) == set(model.graph_.edges)


def test_a_given_prior_stays():
    world = lopsided(6, seed=4)
    votes, labels = world.sample(2000, rng=4)
    learned = learn(votes, prior=world.prior)
    assert learned.prior == world.prior
    assert ratio(world, votes, labels["element"], learned.law) < 1.05


def test_given_tables_stay():
    world = lopsided(5, seed=5)
    votes, _ = world.sample(1000, rng=5)
    table = world.accuracies()["s1"]
    learned = learn(votes, accuracies={"s1": table})
    np.testing.assert_array_equal(learned.accuracies["s1"], table)
    np.testing.assert_array_equal(learned.parameters["s1"].table, table)


def test_shared_tables_are_one():
    world = lopsided(6, seed=6)
    votes, _ = world.sample(1500, rng=6)
    sources = tuple(
        type(info)(name=info.name, shares="pair" if place < 2 else None) for place, info in enumerate(votes.sources)
    )
    columns = (votes.columns[0], *votes.columns[:1], *votes.columns[2:])
    tied = Votes(sources=sources, columns=columns, lengths=votes.lengths)
    model = LabelModel(dependencies=[("s0", "s1")]).fit(tied)
    assert model.law_.tempering is None
    free = learn(Votes(sources=sources, columns=votes.columns, lengths=votes.lengths))
    np.testing.assert_allclose(free.parameters["s0"].table, free.parameters["s1"].table, atol=1e-3)
    np.testing.assert_allclose(free.accuracies["s0"], free.accuracies["s1"], rtol=1e-12)  # what people read is one, too
    few = learn(Votes(sources=sources, columns=votes.columns, lengths=votes.lengths)[:40])
    assert few.trust < 1
    np.testing.assert_allclose(few.accuracies["s0"], few.accuracies["s1"], rtol=1e-12)

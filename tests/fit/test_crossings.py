"""A source on elements and one on windows that read the same detector: declared, and found where nobody declared it."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.fit.learned.tempering import Peers
from dugong.infer.answers import posterior
from dugong.law import Law
from dugong.law.parameters import Crossed
from dugong.tasks import Element
from dugong.worlds import Block, CrossedBlock, World, accurate

PRIOR = dg.priors.Markov(positive=0.2, stay=0.75)
WINDOW = dg.Window(size=5, link="any")


def world(copies: float) -> World:
    """Three sources on elements, one on windows, and one on elements that repeats it with some probability."""
    own = accurate(0.75, 0.85, 0.1, 0.1)
    table = np.tile(own[:, np.newaxis, np.newaxis], (1, 2, 3, 1))
    table[:, :, :2] = (1 - copies) * table[:, :, :2] + copies * np.eye(3)[:2]
    return World(
        prior=PRIOR,
        blocks=(
            *(Block(names=(f"s{j}",), table=accurate(0.75, 0.8, 0.1, 0.1)) for j in range(3)),
            Block(names=("windows",), table=accurate(0.8, 0.75), resolution=WINDOW),
            CrossedBlock(name="frames", parent="windows", table=table),
        ),
        lengths=20,
    )


def ratio(copies, seed, **settings):
    """Brier score over that of who knows everything, and the model."""
    made = world(copies)
    votes, truth = made.sample(500, rng=seed)
    gold = truth["element"] > 0
    model = dg.LabelModel(**settings).fit(votes)
    found, best = (
        model.predict_proba(votes),
        posterior(Law(parameters=made.parameters(), prior=PRIOR), votes)[Element()],
    )
    return [((one[:, 1] - gold) ** 2).mean() for one in (found, best)], model


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"prior": PRIOR, "dependencies": [("frames", "windows")]}, 1.03),
        ({"prior": PRIOR, "dependencies": [("frames", "windows")], "estimator": "em"}, 1.03),
        ({"dependencies": [("frames", "windows")]}, 1.03),
        ({"prior": PRIOR}, 1.05),
        ({}, 1.05),
    ],
)
def test_a_shared_detector(settings, limit) -> None:
    (found, best), model = ratio(0.6, 1, **settings)
    assert found < limit * best
    assert [sorted(edge) for edge in model.graph_.edges] == [["frames", "windows"]]
    assert isinstance(model.law_.parameters["frames"], Crossed)
    # Left out, the dependence costs more than the coarse source is worth.
    (ignored, best), _ = ratio(0.6, 1, prior=PRIOR, dependencies=())
    assert ignored > 1.5 * best


@pytest.mark.parametrize(("copies", "seed"), [(0.3, 0), (0.8, 0), (0.8, 2), (0.95, 1)])
def test_a_dependence_that_is_not_found_is_never_trusted_away(copies, seed) -> None:
    """Where a copy is so close that the search takes its errors for labels, the model is not taken at its word."""
    _, model = ratio(copies, seed)
    tempering = model.law_.tempering
    assert model.graph_.edges or (isinstance(tempering, Peers) and tempering.trust < 0.9)


def test_nothing_is_found_where_nothing_is() -> None:
    for seed in range(3):
        (found, best), model = ratio(0.0, seed)
        assert model.graph_.edges == ()
        # Four sources leave one that can confirm a model: by chance it does not always, and caution costs a little.
        assert found < 1.15 * best


def test_the_paper_and_streams_still_say_what_they_cannot_measure() -> None:
    votes, _ = world(0.6).sample(50, rng=0)
    pair = [("frames", "windows")]
    with pytest.raises(dg.NotIdentifiableError, match="depend on each other"):
        dg.LabelModel(prior=PRIOR, dependencies=pair, estimator="paper").fit(votes)
    with pytest.raises(dg.NotIdentifiableError, match="depend on each other"):
        dg.LabelModel(prior=PRIOR, dependencies=pair).partial_fit(votes)

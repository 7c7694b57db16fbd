"""How many sequences are needed: the plan comes true, and says when it is an extrapolation."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dugong.exceptions import GraphError, TaskError
from dugong.fit.fitting import fit_moments
from dugong.fit.moments.equations import Given
from dugong.fit.passes import InMemory
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.priors import Markov
from dugong.sums import count
from dugong.worlds import Block, World, accurate, confusion, lopsided, silent
from dugong.worlds.planner import centred_fit, plan, theorem_bound

SOURCES = {"good": (0.85, 0.9, 0.1), "fair": (0.7, 0.75, 0.2), "poor": (0.6, 0.65, 0.0), "mute": (0.8, 0.7, 0.8)}


def world(**options) -> World:
    blocks = tuple(Block(names=(name,), table=accurate(*numbers)) for name, numbers in SOURCES.items())
    return World(prior=Markov(positive=0.4, stay=0.6), blocks=blocks, **options)


def test_the_plan_comes_true():
    """At the size that the plan asks for, 95 % of new estimates are within the wanted width (here 0.06)."""
    found = plan(world(), width=0.06, repeats=30)
    assert not found.extrapolated
    truth, inside = world().accuracies(), []
    for seed in range(60):
        votes, _ = world().sample(found.needed, rng=1000 + seed)
        design = make_design(votes.sources, SourceGraph.of(votes.source_names))
        given = Given.under(world().prior, design, count(votes, design.plan))
        raw = fit_moments(given, passes=InMemory(votes=votes)).estimate.raw
        widest = max(found.sources, key=lambda source: source.needed).name
        errors = np.abs(raw[widest] - truth[widest])
        inside.append(errors[np.unravel_index(errors.argmax(), errors.shape)] <= 0.06)
    assert 0.85 <= np.mean(inside) <= 1.0
    half = plan(world(), width=0.06, n_sequences=found.needed, repeats=30, seed=5)
    assert 0.04 < max(source.half_width for source in half.sources) < 0.09


def test_half_the_width_takes_four_times_the_sequences():
    wide = plan(world(), width=0.1, n_sequences=400, repeats=6)
    narrow = plan(world(), width=0.05, n_sequences=400, repeats=6)
    assert narrow.needed == pytest.approx(4 * wide.needed, rel=0.01)
    for a, b in zip(wide.sources, narrow.sources, strict=True):
        assert a.half_width == pytest.approx(b.half_width, rel=0.05)


def test_the_worst_source_decides():
    found = plan(world(), n_sequences=500, repeats=8)
    assert found.needed == max(source.needed for source in found.sources)
    assert [source.name for source in found.sources] == list(SOURCES)
    assert found.needed > min(source.needed for source in found.sources)


def test_the_same_seed_gives_the_same_plan():
    assert plan(world(), n_sequences=300, repeats=4, seed=3) == plan(world(), n_sequences=300, repeats=4, seed=3)
    assert plan(world(), n_sequences=300, repeats=4, seed=3) != plan(world(), n_sequences=300, repeats=4, seed=4)


def test_far_predictions_are_marked():
    assert plan(world(), width=0.002, n_sequences=300, repeats=3).extrapolated
    assert "extrapolated" in str(plan(world(), width=0.002, n_sequences=300, repeats=3))


def test_long_simulations_stop_early(monkeypatch):
    monkeypatch.setattr("dugong.worlds.planner._MOST_ELEMENTS", 4000)
    found = plan(world(), width=0.01, repeats=3)
    assert found.extrapolated
    assert max(step.n_sequences for step in found.steps) <= 800


def test_theorem_one_stands_beside_it():
    found = plan(world(), n_sequences=400, repeats=4)
    assert found.bound is not None
    assert found.bound > 1000 * found.needed
    two = World(prior=Markov(positive=0.4, stay=0.6), blocks=world().blocks[:2])
    assert theorem_bound(two, 0.05, 5) is None
    useless = World(prior=Markov(positive=0.4, stay=0.6), blocks=(*world().blocks, Block(names=("s",), table=silent())))
    assert theorem_bound(useless, 0.05, 5) is None


def test_any_estimator_can_be_planned_for():
    """One that always answers the same needs one sequence."""
    fixed = {name: np.full((2, 3), 1 / 3) for name in SOURCES}
    assert plan(world(), fit=lambda _: fixed, repeats=3).needed == 1


def test_more_classes_need_an_estimator():
    tables = [Block(names=(f"s{i}",), table=confusion(3, 0.7)) for i in range(3)]
    three = World(prior=Markov(initial=[0.3, 0.3, 0.4], transition=np.full((3, 3), 1 / 3)), blocks=tuple(tables))
    with pytest.raises(TaskError, match="needs two classes; found 3"):
        centred_fit(three)


@pytest.mark.parametrize("options", [{"width": 0}, {"width": 1.5}, {"level": 1.0}, {"repeats": 1}])
def test_impossible_wishes_are_errors(options):
    with pytest.raises(GraphError, match="a plan needs 0 < width < 1"):
        plan(world(), **options)


def test_it_is_plain_data_and_a_table():
    found = plan(lopsided(4), n_sequences=200, repeats=3)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["needed"] == found.needed
    assert plain["sources"][0]["name"] == "s0"
    lines = str(found).splitlines()
    assert lines[0].startswith("source  votes on  +- at 200")
    assert lines[-1].startswith("Theorem 1 of the paper, a worst case, asks for ")

"""Beliefs about sources: pseudo-votes behind a table, and a polarity that every later step respects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dugong as dg
from dugong.exceptions import GraphError
from dugong.fit.beliefs import hold, resolve_beliefs, slope
from dugong.law.parameters import Conditional, Temporal
from dugong.tasks import Element
from dugong.votes import SourceInfo
from dugong.worlds import Block, World, accurate, unipolar

PRIOR = dg.priors.Markov(positive=0.4, stay=0.8)
LIAR = World(
    prior=PRIOR,
    blocks=(
        *(Block(names=(f"s{j}",), table=accurate(p, abstain_plus=0.1)) for j, p in enumerate((0.8, 0.85, 0.75, 0.8))),
        Block(names=("liar",), table=accurate(0.25)),
    ),
)
SETTINGS = {
    "closed form": {"prior": PRIOR, "dependencies": ()},
    "em": {"prior": PRIOR, "dependencies": (), "estimator": "em"},
    "prior learned": {"dependencies": ()},
    "dependencies learned": {"prior": PRIOR},
    "defaults": {},
    "defaults and em": {"estimator": "em"},
}


def votes_of(world, n=300, length=6, seed=0):
    return sample_of(world, n, length, seed)[0]


def sample_of(world, n, length, seed):
    return world.sample(n, length, rng=np.random.default_rng(seed))


def test_a_belief_is_about_the_sources_of_its_table() -> None:
    """One of them and its group, and no source that only has the name of that group."""
    sources = [SourceInfo(name=name, shares=group) for name, group in (("a", "c"), ("b", "c"), ("c", None))]
    belief = dg.Belief(precision=0.8)
    assert resolve_beliefs({"a": belief}, sources, "group", ()) == {"a": belief, "b": belief}
    assert resolve_beliefs({"c": belief}, sources, "group", ()) == {"c": belief}


# --- the polarity ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("how", ["signs", "belief"])
def test_no_later_step_undoes_a_polarity(name, how) -> None:
    votes = votes_of(LIAR)
    said = {"signs": "positive"} if how == "signs" else {"beliefs": {"liar": dg.Belief(better_than_chance=True)}}
    free, held = (dg.LabelModel(**SETTINGS[name], **more).fit(votes) for more in ({}, said))
    assert slope(free.accuracies_["liar"]) < -0.3
    assert 0 < slope(held.accuracies_["liar"]) < 0.3
    assert "liar" in [note.where for note in held.diagnostics_.notes if note.kind == "belief"]
    assert slope(held.accuracies_["s0"]) > 0.4


def test_beliefs_choose_between_two_mirror_images() -> None:
    """Two liars speak louder than two honest sources: who is believed decides."""
    tables = {"a": accurate(0.7), "b": accurate(0.7), "c": accurate(0.2), "d": accurate(0.2)}
    world = World(prior=PRIOR, blocks=tuple(Block(names=(name,), table=table) for name, table in tables.items()))
    votes = votes_of(world, 2000)
    for belief in (dg.Belief(better_than_chance=True), dg.Belief(precision=0.6, weight=5)):
        model = dg.LabelModel(prior=PRIOR, dependencies=(), beliefs={"a": belief, "b": belief}).fit(votes)
        assert [slope(model.accuracies_[name]) > 0 for name in "abcd"] == [True, True, False, False]
    alone = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes)
    assert [slope(alone.accuracies_[name]) > 0 for name in "abcd"] == [False, False, True, True]


# --- pseudo-votes -----------------------------------------------------------------------------------------------------
counts = arrays(np.float64, (2, 3), elements=st.floats(0.5, 500))


@given(counts, st.floats(0.05, 0.95), st.floats(1, 1000))
def test_checked_votes_say_what_is_believed(seen, precision, weight) -> None:
    added = dg.Belief(precision=precision, weight=weight).held(seen) - seen
    assert (added > -1e-9).all()
    if precision * seen[:, 1].sum() < seen[1].sum() and (1 - precision) * seen[:, 1].sum() < seen[0].sum():
        np.testing.assert_allclose(added[:, 1].sum(), weight, rtol=1e-9)
        np.testing.assert_allclose(added[1, 1], weight * precision, rtol=1e-6)
        # The class balance stays, and so does the way in which the other votes are shared out.
        np.testing.assert_allclose(added.sum(axis=1) / added.sum(), seen.sum(axis=1) / seen.sum(), rtol=1e-6)
        np.testing.assert_allclose(added[:, 0] * seen[:, 2], added[:, 2] * seen[:, 0], rtol=1e-6, atol=1e-9)


def test_recall_alone_and_with_precision() -> None:
    seen = np.array([[60.0, 30.0, 10.0], [10.0, 80.0, 10.0]])
    alone = dg.Belief(recall=0.5, weight=1e9).held(seen)
    np.testing.assert_allclose(alone[1, 1] / alone[1].sum(), 0.5, rtol=1e-6)
    np.testing.assert_allclose(alone[:, 1].sum() / alone.sum(), 110 / 200, rtol=1e-6)
    both = dg.Belief(recall=0.5, precision=0.8, weight=1e9).held(seen)
    np.testing.assert_allclose(both[1, 1] / both[1].sum(), 0.5, rtol=1e-6)
    np.testing.assert_allclose(both[1, 1] / both[:, 1].sum(), 0.8, rtol=1e-6)


def test_more_than_two_classes_and_a_source_of_negatives() -> None:
    seen = np.full((3, 4), 20.0)
    held = dg.Belief(precision=0.9, weight=1e9).held(seen)
    for own in range(3):
        np.testing.assert_allclose(held[own, own] / held[:, own].sum(), 0.9, rtol=1e-6)
    negatives = dg.Belief(precision=0.9, weight=1e9).held(np.array([[50.0, 0, 50], [20, 0, 80]]))
    np.testing.assert_allclose(negatives[0, 0] / negatives[:, 0].sum(), 0.9, rtol=1e-6)
    assert not dg.Belief(precision=0.9).held(np.zeros((2, 3))).any()


def test_what_a_source_owes_to_others_stays() -> None:
    """The table of an edge, and of a source that repeats itself, change in their sums over label and vote only."""
    rng = np.random.default_rng(3)
    table, marginal = rng.random((2, 3, 3)) + 1, rng.random((2, 3))
    edge = Conditional(source="b", resolution=Element(), parents=("a",), table=np.full((2, 3, 3), 1 / 3))
    belief = dg.Belief(precision=0.95, weight=1e7)
    held = hold({"table": table, "marginal": marginal}, edge, belief)
    np.testing.assert_allclose(_precision(held["table"].sum(axis=1) + held["marginal"]), 0.95, rtol=1e-3)
    step, first = rng.random((2, 2, 3, 3)) + 1, rng.random((2, 3))
    again = Temporal(source="b", resolution=Element(), first=np.full((2, 3), 1 / 3), step=np.full((2, 2, 3, 3), 1 / 3))
    held = hold({"step": step, "first": first}, again, belief)
    np.testing.assert_allclose(_precision(held["step"].sum(axis=(0, 2)) + held["first"]), 0.95, rtol=1e-3)
    placed = replace(edge, parents=(), table=np.full((4, 2, 3), 1 / 3), by_position=True)
    held = hold({"table": rng.random((4, 2, 3))}, placed, belief)
    for one in held["table"]:
        np.testing.assert_allclose(_precision(one), 0.95, rtol=1e-3)


def _precision(votes):
    return votes[1, 1] / votes[:, 1].sum()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_belief_counts_as_much_as_it_weighs(name) -> None:
    world = World(
        prior=dg.priors.Markov(positive=0.3, stay=0.8),
        blocks=(
            *(Block(names=(f"s{j}",), table=accurate(0.8, abstain_plus=0.1)) for j in range(4)),
            Block(names=("lexicon",), table=unipolar(0.5, 0.3)),
        ),
    )
    votes = votes_of(world)
    settings = {key: world.prior if key == "prior" else one for key, one in SETTINGS[name].items()}
    light, heavy = (
        dg.LabelModel(**settings, beliefs={"lexicon": dg.Belief(precision=0.9, weight=weight)}).fit(votes)
        for weight in (1, 10_000)
    )
    free = dg.LabelModel(**settings).fit(votes)
    said = [_said(model) for model in (free, light, heavy)]
    assert abs(said[1] - said[0]) < 0.05
    assert said[2] > max(said[0] + 0.2, 0.84)


def _said(model):
    table = model.accuracies_["lexicon"]
    positive = 0.3
    return positive * table[1, 1] / (positive * table[1, 1] + (1 - positive) * table[0, 1])


def test_a_right_belief_helps_where_votes_are_few() -> None:
    """Three sources and 30 short sequences: knowing one of them well makes labels better, on average over worlds."""
    world = World(prior=PRIOR, blocks=tuple(Block(names=(f"s{j}",), table=accurate(0.85 - 0.1 * j)) for j in range(3)))
    gains = []
    for seed in range(8):
        votes, truth = sample_of(world, 30, 4, seed)
        gold = truth["element"] > 0
        scores = [
            float(((model.fit(votes).predict_proba(votes)[:, 1] - gold) ** 2).mean())
            for model in (
                dg.LabelModel(prior=PRIOR, dependencies=()),
                dg.LabelModel(
                    prior=PRIOR, dependencies=(), beliefs={"s0": dg.Belief(precision=0.79, recall=0.85, weight=100)}
                ),
            )
        ]
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0


# --- errors -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (dg.Belief, "must say something"),
        (lambda: dg.Belief(precision=1.2), "between 0 and 1"),
        (lambda: dg.Belief(precision=0.8, weight=0), "number of votes above 0"),
        (lambda: dg.LabelModel(beliefs={"x": dg.Belief(precision=0.8)}).fit(votes_of(LIAR)), "'x' is none"),
        (lambda: dg.LabelModel(beliefs={"s0": 0.8}).fit(votes_of(LIAR)), "beliefs= must be a mapping to Belief"),
        (
            lambda: dg.LabelModel(beliefs={"s0": dg.Belief(precision=0.8)}, accuracies={"s0": accurate(0.8)}).fit(
                votes_of(LIAR)
            ),
            "say it twice",
        ),
    ],
)
def test_beliefs_that_cannot_be(make, words) -> None:
    with pytest.raises(GraphError, match=words):
        make()


def test_a_model_with_beliefs_in_a_file(tmp_path) -> None:
    beliefs = {"liar": dg.Belief(better_than_chance=True), "s0": dg.Belief(precision=0.8, weight=7)}
    model = dg.LabelModel(prior=PRIOR, dependencies=(), beliefs=beliefs).fit(votes_of(LIAR))
    model.save(tmp_path / "model.json")
    assert dg.LabelModel.load(tmp_path / "model.json").beliefs == beliefs

"""Every question that a fitted model answers, by the group pass and by propagation, against the product engine.

The law is the same for both: only the way of answering differs. Two classes have a source that repeats itself, three
classes a window that is about one of them; propagation has two kinds of windows that overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

import dugong as dg
from dugong.engines import local_engine
from dugong.infer import answers, engine
from dugong.infer.grouped import WindowEngine
from dugong.law import Law
from dugong.shards import VoteShards, fit_shards
from dugong.votes.concat import concat
from dugong.worlds import Block, TemporalBlock, World, accurate, confusion, sticky
from dugong.worlds.blocks import temporal

THREE = dg.priors.Markov(initial=[0.5, 0.3, 0.2], transition=0.05 * np.ones((3, 3)) + 0.85 * np.eye(3))
WAYS = ["group pass", "propagation"]


@dataclass(frozen=True)
class Case:
    """Votes, what fits them, the labels, and how far answers may be from exact ones."""

    votes: dg.Votes
    settings: dict[str, object]
    labels: np.ndarray
    near: float

    def fit(self, **other: object) -> dg.LabelModel:
        """A model of these votes."""
        return dg.LabelModel(**(self.settings | other)).fit(self.votes)


@cache
def make(way: str, n_classes: int) -> Case:
    """One world per way and number of classes."""
    of = 2 if n_classes == 3 else None
    windows = [dg.Window(6, link="majority", of=of)]
    if way == "propagation":
        windows = [dg.Window(4, 2, "majority", of=of), dg.Window(5, 2, "any", of=of, name="wide")]
    if n_classes == 2:
        first, step = temporal(accurate(0.8, 0.75, 0.1, 0.2), 0.4)
        fine = [TemporalBlock(name="s0", first=first, step=step)]
        fine += [Block(names=(f"s{j}",), table=accurate(0.7 + 0.05 * j, 0.75, 0.1, 0.2)) for j in (1, 2, 3)]
    else:
        fine = [Block(names=(f"s{j}",), table=confusion(3, 0.6 + 0.06 * j, abstain=0.1)) for j in range(4)]
    coarse = [
        Block(names=(f"w{j}",), table=accurate(0.85, 0.8, 0.1, 0.1), resolution=one) for j, one in enumerate(windows)
    ]
    prior = sticky(0.35, 0.8) if n_classes == 2 else THREE
    world = World(prior=prior, blocks=(*fine, *coarse), lengths=13)
    votes, labels = world.sample(80, rng=3)
    inference = "auto" if way == "group pass" else "approximate"
    settings = {"prior": prior, "dependencies": world.dependencies, "inference": inference}
    return Case(votes, settings, labels["element"], 1e-8 if way == "group pass" else 0.02)


@cache
def fitted(way: str, n_classes: int) -> dg.LabelModel:
    """The model of a case."""
    return make(way, n_classes).fit()


@pytest.fixture(params=[(way, n_classes) for way in WAYS for n_classes in (2, 3)], ids=str)
def answered(request) -> tuple[Case, dg.LabelModel, Law]:
    """A case, its model, and its law as the product engine answers for it."""
    case, model = make(*request.param), fitted(*request.param)
    own = engine.engine_for(case.votes, model.parameters_, model.prior_, model.law_.inference)
    assert isinstance(own, WindowEngine)
    assert own.exact == (request.param[0] == "group pass")
    return case, model, replace(model.law_, inference="exact")


def test_predict_proba(answered) -> None:
    case, model, law = answered
    exact = answers.posterior(law, case.votes, case.votes.resolutions)
    for resolution in case.votes.resolutions:
        assert np.abs(model.predict_proba(case.votes, resolution) - exact[resolution]).mean() < case.near


def test_log_likelihood(answered) -> None:
    case, model, law = answered
    exact = answers.log_likelihood(law, case.votes)
    assert np.abs(model.log_likelihood(case.votes) - exact).max() < 20 * case.near


def test_decode_and_sample(answered) -> None:
    case, model, law = answered
    assert (model.decode(case.votes) == answers.decode(law, case.votes)).mean() >= 1 - 2 * case.near
    drawn = model.sample(case.votes, 300)
    law_of = model.predict_proba(case.votes)
    shares = np.stack([(drawn == value).mean(axis=0) for value in model.classes_], axis=1)
    assert np.abs(shares - law_of).mean() < 0.03


def test_explain(answered) -> None:
    case, model, _ = answered
    for resolution in case.votes.resolutions:
        found = model.explain(case.votes, sequence=2, task=1, resolution=resolution)
        parts = found.prior + sum(own.log_odds for own in found.own_votes) + found.neighbours
        assert found.log_odds == pytest.approx(parts, abs=1e-9)
        row = model.predict_proba(case.votes, resolution)[case.votes.layout(resolution).offsets[2] + 1]
        classes = model.classes_.tolist() if resolution == dg.Element() else [-1, 1]
        assert found.probability == pytest.approx(row[classes.index(found.target)], abs=1e-9)


def test_expected_counts_by_group(answered) -> None:
    case, model, law = answered
    groups = np.arange(case.votes.n_sequences) % 3
    found, exact = (answers.expected_counts(one, case.votes, groups=groups, n_groups=3) for one in (model.law_, law))
    for name, tables in exact.factors.items():
        for key, table in tables.items():
            assert np.abs(found.factors[name][key] - table).sum() <= 2 * case.near * table.sum() + 1e-8
    assert np.abs(found.transitions - exact.transitions).sum() <= 2 * case.near * exact.transitions.sum() + 1e-8


def test_known_labels(answered) -> None:
    case, model, law = answered
    known = np.where(np.arange(case.votes.n_elements) % 4 == 0, case.labels, 0).astype(np.int8)
    found, exact = (answers.posterior(one, case.votes, evidence=known) for one in (model.law_, law))
    element = dg.Element()
    assert np.abs(found[element] - exact[element]).mean() < case.near
    places = np.searchsorted(model.classes_, known[known != 0])
    np.testing.assert_allclose(found[element][known != 0, places], 1.0, rtol=0, atol=1e-9)


def test_em_and_standard_errors(answered) -> None:
    case, _, _ = answered
    settings = {"estimator": dg.estimators.EM(max_iter=3)}
    model, exact = case.fit(**settings), case.fit(**settings, inference="exact")
    for name, table in exact.accuracies_.items():
        np.testing.assert_allclose(model.accuracies_[name], table, rtol=0, atol=2 * case.near + 1e-7)
        errors = model.standard_errors_.accuracies[name]
        assert np.isfinite(errors).all()
        np.testing.assert_allclose(errors, exact.standard_errors_.accuracies[name], rtol=0, atol=case.near)


def test_shards_and_engines(answered, tmp_path) -> None:
    case, _, _ = answered
    parts = [concat([case.votes[first : first + 40]], keys=[key]) for first, key in ((0, "a"), (40, "b"))]
    streamed = fit_shards(dg.LabelModel(**case.settings), VoteShards.write(parts, tmp_path / "votes"))
    whole = concat(parts)
    on_engine = fit_shards(dg.LabelModel(**case.settings), VoteShards.open(tmp_path / "votes"), engine=local_engine(2))
    direct = dg.LabelModel(**case.settings).fit(whole)
    for resolution in whole.resolutions:
        expected = direct.predict_proba(whole, resolution)
        for model in (streamed, on_engine):
            np.testing.assert_allclose(model.predict_proba(whole, resolution), expected, rtol=0, atol=1e-9)


def test_an_option_that_is_none_is_named():
    world = dg.worlds.lopsided(4)
    votes, _ = world.sample(3, rng=0)
    with pytest.raises(TypeError, match=r"unknown options .*n_thread"):
        engine.posterior(votes, world.parameters(), world.prior, n_thread=3)

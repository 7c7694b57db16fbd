"""A fit tells what it does: to a function, as a bar to those who watch, and that it compiles when it does."""

from __future__ import annotations

import time

import numba
import numpy as np
import pytest

import dugong as dg
from dugong.progress import fit_progress
from dugong.shards import VoteShards, fit_shards


@pytest.fixture(scope="module")
def votes() -> dg.Votes:
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.choice([-1, 1], size=(40, 5)), 4, axis=1)
    wrong = rng.random((4, 40, 20)) < 0.2
    return dg.Votes.from_dense(np.stack([np.where(one, -truth, truth) for one in wrong], axis=2))


def told_by(model: dg.LabelModel, votes: dg.Votes) -> list[tuple[str, int, int]]:
    told: list[tuple[str, int, int]] = []
    model.fit(votes, progress=lambda *step: told.append(step))
    return [step for step in told if step[0] != "compile"]


def test_learning_and_em_tell_their_steps(votes: dg.Votes) -> None:
    assert told_by(dg.LabelModel(), votes) == [("learn", done, 4) for done in range(1, 5)]
    prior = dg.priors.Markov(positive=0.5, stay=0.8)
    steps = told_by(dg.LabelModel(prior=prior, dependencies=(), estimator=dg.estimators.EM(max_iter=7)), votes)
    assert [step[0] for step in steps] == ["em"] * len(steps)
    assert [step[1] for step in steps] == list(range(len(steps)))
    assert {step[2] for step in steps} == {7}


def test_long_steps_of_many_sources_are_told() -> None:
    """A hundred sources: the ways to fit them that take long say how far they are."""
    rng = np.random.default_rng(0)
    truth = rng.choice([-1, 1], size=(60, 10, 1))
    votes = dg.Votes.from_dense(np.where(rng.random((60, 10, 100)) < 0.3, -truth, truth))
    given = {"prior": dg.priors.Markov(positive=0.5, stay=0.5), "dependencies": ()}
    steps = told_by(dg.LabelModel(**given, estimator=dg.estimators.SGD(max_steps=100)), votes)
    assert set(steps) == {("sgd", 50, 100), ("sgd", 100, 100)}
    steps = told_by(dg.LabelModel(dependencies="low-rank"), votes)
    assert [step for step in steps if step[0] == "low-rank"][:2] == [("low-rank", 1, 400), ("low-rank", 2, 400)]
    assert [step[1] for step in steps if step[0] == "learn"] == [1, 2, 3, 4]


def test_a_fit_is_the_same_whoever_listens(votes: dg.Votes) -> None:
    loud, quiet = dg.LabelModel().fit(votes, progress=lambda *_: None), dg.LabelModel().fit(votes, progress=False)
    np.testing.assert_array_equal(loud.predict_proba(votes), quiet.predict_proba(votes))


def test_shards_tell_what_is_counted(votes: dg.Votes, tmp_path) -> None:
    for place in range(2):
        votes[list(range(20 * place, 20 * place + 20))].write(tmp_path / f"part{place}.parquet")
    told = []
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.8), dependencies=())
    fit_shards(model, VoteShards.open(tmp_path), progress=lambda *step: told.append(step))
    assert ("moments", 2, 2) in told


def test_whoever_listens_hears_of_compilations() -> None:
    told = []
    with fit_progress(lambda *step: told.append(step)):
        numba.njit(lambda x: x + 1)(1)
        numba.njit(lambda x: x + 2)(1)
    assert told == [("compile", 1, 0), ("compile", 2, 0)]
    numba.njit(lambda x: x + 3)(1)
    assert len(told) == 2


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (1.4, True)])
def test_a_bar_appears_only_when_a_fit_takes_long(monkeypatch, capsys, seconds: float, shown: bool) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with fit_progress(None) as tell:
        tell("compile", 1, 0)
        time.sleep(seconds)
        tell("learn", 2, 4)
    assert ("compiling; later fits start at once" in capsys.readouterr().err) == shown


def test_nobody_watches_and_nothing_is_said(monkeypatch, capsys) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with fit_progress(None) as tell:
        tell("learn", 1, 4)
        time.sleep(1.2)
    assert capsys.readouterr().err == ""

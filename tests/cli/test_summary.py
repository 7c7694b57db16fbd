"""A fitted model at a glance."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.fit.passes import InMemory
from dugong.summary import Seen, fitted_on
from dugong.worlds import lopsided, self_dependent, tv_news


@pytest.fixture(scope="module")
def news() -> tuple[dg.LabelModel, dg.Votes, np.ndarray]:
    world = tv_news()
    votes, labels = world.sample(1500, rng=3)
    return dg.LabelModel(prior=world.prior, dependencies=()).fit(votes), votes, labels["element"]


def test_a_row_per_source(news: tuple[dg.LabelModel, dg.Votes, np.ndarray]) -> None:
    model, votes, _ = news
    summary = model.summary()
    assert [row.name for row in summary.sources] == list(votes.source_names)
    assert [row.resolution for row in summary.sources] == ["element"] * 5 + ["caption"] * 2 + ["sequence"]
    for row, column in zip(summary.sources, votes.columns, strict=True):
        assert row.coverage == pytest.approx(np.mean(column != 0), abs=1e-12)
        table = model.accuracies_[row.name]
        assert [part.right for part in row.classes] == [table[0, 0], table[1, 1]]
        for part in row.classes:
            low, high = part.interval or (np.nan, np.nan)
            assert 0 <= low <= part.right <= high <= 1


def test_accuracy_is_the_share_of_right_votes(news: tuple[dg.LabelModel, dg.Votes, np.ndarray]) -> None:
    model, votes, gold = news
    plain, measured = model.summary(), model.summary(votes, gold)
    by_hand = votes.summary(gold)
    for row, hand in zip(measured.sources, by_hand.sources, strict=True):
        assert row.empirical == pytest.approx(hand.accuracy, abs=1e-12)
        assert row.accuracy == pytest.approx(row.empirical, abs=0.05)
    assert all(row.empirical is None for row in plain.sources)


def test_its_text(news: tuple[dg.LabelModel, dg.Votes, np.ndarray]) -> None:
    model, votes, gold = news
    text = str(model.summary())
    assert "Label model of 8 sources, fitted on 1,500 sequences (45,000 elements)" in text
    assert model.summary().prior == "Markov(positive=0.03, stay=0.9)"
    assert "prior         of the elements -1 on 97.0%, often a whole sequence; +1 on 3.0%, about 10 in a row" in text
    assert "P(+1 | +1) how often it says +1 where that is true" in text
    assert "measured" not in text
    assert "measured" in str(model.summary(votes, gold))
    assert repr(model.summary()) == text


def test_a_single_source_by_name(news: tuple[dg.LabelModel, dg.Votes, np.ndarray]) -> None:
    summary = news[0].summary()
    assert summary["thank_you"].resolution == "caption"
    with pytest.raises(KeyError, match="'nobody' is none of the sources"):
        summary["nobody"]


def test_dependencies_and_tables_by_position() -> None:
    world = self_dependent()
    votes, _ = world.sample(3000, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies, sharing={"s5": "task"}).fit(votes)
    summary = model.summary()
    assert set(summary.dependencies) == {("s0", "s0"), ("s1", "s1"), ("s2", "s2")}
    assert "s0 repeats itself" in str(summary)
    assert summary["s5"].classes[0].right == pytest.approx(model.accuracies_["s5"].mean(axis=0)[0, 0], abs=1e-12)


def test_what_was_seen_is_the_same_from_votes_and_from_moments() -> None:
    world = lopsided()
    votes, _ = world.sample(200, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
    seen = fitted_on(InMemory(votes=votes).contents(), votes.sources, world.prior, votes.class_names)
    assert seen.to_dict() == model.seen_.to_dict()
    assert Seen.from_dict(seen.to_dict()).to_dict() == seen.to_dict()
    assert seen.balance["s0"] == pytest.approx([0.7, 0.3], abs=1e-12)


def test_class_names_in_the_table() -> None:
    votes, _ = lopsided().sample(300, rng=1)
    named = dg.Votes.from_tasks(
        dict(zip(votes.source_names, votes.columns, strict=True)), lengths=votes.lengths, classes=["no", "yes"]
    )
    summary = dg.LabelModel(prior=lopsided().prior, dependencies=()).fit(named).summary()
    assert [part.label for part in summary.sources[0].classes] == ["no", "yes"]
    assert "P(yes | yes)" in str(summary)


def test_an_unfitted_model_has_no_summary() -> None:
    with pytest.raises(dg.NotFittedError):
        dg.LabelModel().summary()

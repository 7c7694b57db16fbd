"""Suggested rules: found without gold, as code that runs, and not what a source says already."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LabelError
from dugong.suggest import suggest

PRIOR = dg.priors.Markov(positive=0.3, stay=0.8)


def world(seed=0, n_sequences=150, length=20):
    """Two noisy rules see `speed`; a third feature `noise` says nothing, and `heat` is seen by nobody."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(rng.random((n_sequences, length // 4)) < 0.3, 4, axis=1)
    size = truth.shape
    columns = [np.where(rng.random(size) < 0.8, 2 * truth - 1, 1 - 2 * truth) for _ in range(4)]
    features = {"heat": truth * 1.5 + rng.normal(size=size), "noise": rng.normal(size=size)}
    votes = dg.Votes.from_dense(np.stack(columns, axis=2))
    rows = {
        i: [{name: float(one[i, t]) for name, one in features.items()} for t in range(length)] for i in range(size[0])
    }
    return votes, rows, truth.ravel()


def test_a_feature_that_nobody_reads_is_found_and_its_code_runs():
    votes, rows, truth = world()
    model = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes)
    found = model.suggest(votes, rows, 3)
    assert len(found) >= 1
    assert all("heat" in one.condition for one in found.rules)
    space = {"dg": dg}
    exec(found.rules[0].code, space)
    rule = space[found.rules[0].name]
    more = dg.apply([rule], rows, progress=False).column(rule.name)
    right = (2 * truth - 1)[more != 0] == more[more != 0]
    assert right.mean() == pytest.approx(found.rules[0].precision, abs=0.05)
    columns = {**dict(zip(votes.source_names, votes.columns, strict=True)), rule.name: more}
    both = dg.Votes.from_tasks(columns, votes.lengths)
    again = dg.LabelModel(prior=PRIOR, dependencies=()).fit(both)

    def loss(model, votes):
        return ((model.predict_proba(votes)[:, 1] - truth) ** 2).mean()

    assert loss(again, both) < loss(model, votes)
    assert "@dg.source" in str(found)
    assert found.to_dict()["rules"][0]["vote"] in (-1, 1)


def test_what_a_source_says_already_is_not_suggested():
    votes, rows, _ = world(1)
    heat = np.array([row["heat"] for one in rows.values() for row in one])
    columns = dict(zip(votes.source_names, votes.columns, strict=True))
    hot = dg.Votes.from_tasks({**columns, "hot": np.where(heat > 1, 1, -1)}, votes.lengths)
    alone = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes).suggest(votes, rows, 1).rules[0].gain
    beside = dg.LabelModel(prior=PRIOR, dependencies=()).fit(hot).suggest(hot, rows, 1).rules
    assert not beside or beside[0].gain < 0.6 * alone


def test_words_and_what_cannot_be_read():
    rng = np.random.default_rng(2)
    truth = rng.random((200, 10)) < 0.3
    words = np.where(truth, rng.choice(["aspirin", "insulin"], truth.shape), rng.choice(["the", "slept"], truth.shape))
    votes = dg.Votes.from_dense(
        np.where(rng.random((*truth.shape, 3)) < 0.8, 2 * truth[..., None] - 1, 1 - 2 * truth[..., None])
    )
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.3, stay=0.3), dependencies=()).fit(votes)
    found = model.suggest(votes, {i: words[i].tolist() for i in range(200)}, 2)
    assert "'aspirin', 'insulin'" in found.rules[0].condition
    with pytest.raises(LabelError, match="0 is missing, or of another length"):
        model.suggest(votes, {})
    with pytest.raises(LabelError, match="found object"):
        model.suggest(votes, {i: [object()] * 10 for i in range(200)})


def test_a_model_that_counts_votes_gets_no_rule_that_knows_less_than_its_labels():
    """A list that is right on two words of three would outvote sources that tell its words apart by their context."""
    rng = np.random.default_rng(0)
    words = rng.choice(["pain", "aspirin", "the", "cold"], 2000, p=[0.1, 0.1, 0.4, 0.4])
    sure = np.where(rng.random(2000) < 0.65, 0.95, 0.05)
    positive = np.select([words == "pain", words == "aspirin", words == "the"], [sure, 0.8, 0.03], 0.4)
    shares, votes = np.stack([1 - positive, positive], axis=1), dg.Votes.from_tasks({"s": np.zeros(2000)}, [2000])
    weighed, counted = (suggest(votes, shares, {0: words.tolist()}, counted=how) for how in (False, True))
    assert {one.condition for one in weighed.rules} >= {"word.lower() in {'aspirin', 'pain'}"}
    assert {one.condition for one in counted.rules} >= {"word.lower() in {'aspirin'}"}
    assert not any("pain" in one.condition for one in counted.rules)


def test_nothing_is_suggested_where_nothing_is_to_be_found():
    votes, rows, _ = world(3)
    noise = {one: [{"noise": row["noise"]} for row in own] for one, own in rows.items()}
    model = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes)
    assert str(model.suggest(votes, noise)).startswith("No rule")


def test_names_are_names_of_python() -> None:
    from dugong.suggest import _name

    assert _name("words_for_B-Chemical") == "words_for_b_chemical"
    assert _name("heat_below_-1.5") == "heat_below_minus_1_5"
    assert _name("3") == "rule_3"

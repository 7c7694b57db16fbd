"""Which sequences people should look at: uncertain ones, and not the same thing twice."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LabelError
from dugong.infer import answers
from dugong.review import check_request, choose
from dugong.worlds.standard import multiresolution, rare


def flat(lengths: list[int]) -> dg.Votes:
    return dg.Votes.from_tasks({"s": np.zeros(sum(lengths), np.int8)}, lengths)


def test_the_most_uncertain_come_first() -> None:
    votes = flat([2, 2, 2, 0])
    shares = np.array([0.9, 0.9, 0.5, 0.6, 0.99, 1.0])
    found = choose(votes, np.stack([1 - shares, shares], axis=1), 10)
    assert found.ids == (1, 0, 2)
    assert found.worth[0] == pytest.approx(1 + 0.9709505944546686)
    assert "entropy" in str(found)
    assert found.to_dict()["sequences"] == [1, 0, 2]


def test_twins_are_not_chosen_twice() -> None:
    """Two groups of equal sequences: the second choice is from the other group, though it is less uncertain."""
    columns = np.repeat([[1] * 4, [1] * 4, [1] * 4, [-1] * 4], 1, axis=0).ravel().astype(np.int8)
    votes = dg.Votes.from_tasks({"s": columns}, [4] * 4)
    shares = np.repeat([0.55, 0.55, 0.55, 0.3], 4)
    found = choose(votes, np.stack([1 - shares, shares], axis=1), 2)
    assert found.ids[0] == 0
    assert found.ids[1] == 3


def test_what_cannot_be_asked() -> None:
    with pytest.raises(LabelError, match="chosen by 'entropy' or 'value'; found by='luck'"):
        check_request(1, "luck")
    with pytest.raises(LabelError, match="at least 1; found 0"):
        check_request(0, "entropy")


def test_a_model_chooses() -> None:
    rng = np.random.default_rng(0)
    votes = dg.Votes.from_dense(rng.choice([-1, 1], (8, 5, 3)))
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.8), dependencies=()).fit(votes)
    found = model.review(votes, budget=3)
    assert len(found) == 3
    shares = model.predict_proba(votes)
    bits = -(shares * np.log2(shares)).sum(axis=1).reshape(8, 5).sum(axis=1)
    assert found.places[0] == int(np.argmax(bits))


def fitted(world, seed=0, n_sequences=60):
    votes, truth = world.sample(n_sequences, rng=seed)
    return dg.LabelModel(prior=world.prior, dependencies=()).fit(votes), votes, truth[dg.Element()]


def risk_after(model, votes, row, risk):
    """Expected fall of the Brier loss of all labels once one is known, by asking the law about each of its values."""
    shares, fall = model.predict_proba(votes), 0.0
    for place, value in enumerate(votes.classes):
        known = np.zeros(votes.n_elements, dtype=np.int8)
        known[row] = value
        then = model.predict_proba(votes, known=known)
        fall += shares[row, place] * (risk - (1 - (then**2).sum(axis=1)).sum())
    return fall


def test_worth_is_the_expected_fall_of_the_risk() -> None:
    model, votes, _ = fitted(multiresolution(2), n_sequences=40)
    shares = model.predict_proba(votes)
    risk = (1 - (shares**2).sum(axis=1)).sum()
    review = model.review(votes, 5, by="value")
    assert review.by == "value"
    first = review.rows[0]
    assert review.worth[0] == pytest.approx(risk_after(model, votes, first, risk), rel=0.15)
    best = max(risk_after(model, votes, row, risk) for row in range(votes.n_elements))
    assert risk_after(model, votes, first, risk) > 0.9 * best
    assert (np.diff(review.worth) <= 1e-9).all()
    assert "element" in str(review)
    assert review.to_dict()["elements"] == review.elements.tolist()


def test_what_a_choice_tells_about_its_neighbours_is_not_counted_twice() -> None:
    """One label for a whole sequence: knowing one element is knowing all, so every sequence is asked once."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.choice([-1, 1], (6, 1, 1)), 8, axis=1)
    votes = dg.Votes.from_dense(np.where(rng.random((6, 8, 4)) < 0.52, labels, -labels))
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=1.0), dependencies=())
    model.accuracies = {name: np.array([[0.52, 0.48, 0.0], [0.48, 0.52, 0.0]]) for name in votes.source_names}
    review = model.fit(votes).review(votes, 6, by="value")
    assert len(set(review.ids)) == len(review)


def test_known_labels_are_certain_and_never_asked_again() -> None:
    model, votes, truth = fitted(multiresolution(1))
    first = model.review(votes, 10, by="value")
    known = np.zeros(votes.n_elements, dtype=np.int8)
    known[first.rows] = truth[first.rows]
    again = model.review(votes, 10, by="value", known=known)
    assert not set(again.rows.tolist()) & set(first.rows.tolist())
    shares = model.predict_proba(votes, known=known)
    assert (shares[first.rows, (known[first.rows] + 1) // 2] > 1 - 1e-12).all()
    np.testing.assert_array_equal(model.decode(votes, known=known)[first.rows], known[first.rows])
    table = model.labels(votes, ["element"], known=known).to_pandas()
    assert (table["confidence"].to_numpy()[first.rows] > 1 - 1e-12).all()
    drawn = answers.sample(model.law_, votes, np.random.default_rng(0), 3, evidence=known)
    assert (drawn[:, first.rows] == known[first.rows]).all()


def test_only_positive_answers_are_no_ambiguity() -> None:
    model, votes, truth = fitted(multiresolution(3))
    known = np.where(truth == 1, 1, 0).astype(np.int8)
    assert model.fit(votes, gold=known).score(votes, truth) > 0.8


def test_known_labels_take_no_trust_from_a_model_that_is_right_about_them() -> None:
    """They leave fewer votes to confirm it with; the defaults once fell back to shares of votes."""
    from benchmarks.review import after, draw_world, loss

    job = draw_world(rare, 3, given=False)
    before = loss(job, job.model.predict_proba(job.votes))
    assert job.model.diagnostics_.learned["trust"] == 1
    assert after(job, job.at_random(150)) < before
    assert after(job, job.chosen(50)) < 0.5 * before


@pytest.mark.parametrize("make", [multiresolution, rare])
def test_fifty_chosen_labels_are_worth_more_than_random_ones(make) -> None:
    """The short form of `make bench-review`: mean over four draws."""
    losses = np.array([compare_reviews(make, seed) for seed in range(4)]).mean(axis=0)
    assert losses[0] < losses[1]


def compare_reviews(make, seed: int) -> tuple[float, float]:
    from benchmarks.review import after, draw_world

    job = draw_world(make, seed)
    return after(job, job.chosen(50)), after(job, job.at_random(150))


def test_of_a_long_sequence_only_what_is_near_is_drawn(monkeypatch) -> None:
    """What a label is worth is right, though most of its sequence is not drawn; else memory would grow with it."""
    rng = np.random.default_rng(0)
    window, truth = dg.Window(30, link="any"), np.repeat(rng.choice([-1, 1], 3_000), rng.geometric(0.02, 3_000))
    columns = {f"s{k}": np.where(rng.random(len(truth)) < 0.7, truth, -truth) for k in range(4)}
    coarse = np.maximum.reduceat(truth, np.arange(0, len(truth), 30))
    columns["coarse"] = np.where(rng.random(len(coarse)) < 0.9, coarse, -coarse)
    votes = dg.Votes.from_tasks(columns, [len(truth)], resolutions={"coarse": window})
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.98), dependencies=()).fit(votes)
    drawn, sample = [], answers.sample
    monkeypatch.setattr(answers, "sample", lambda law, part, *a, **b: drawn.append(part) or sample(law, part, *a, **b))
    review = model.review(votes, 1, by="value")
    assert sum(part.n_elements for part in drawn) < votes.n_elements / 4
    assert max(part.n_elements for part in drawn) <= 20_000
    shares = model.predict_proba(votes)
    risk = (1 - (shares**2).sum(axis=1)).sum()
    assert review.worth[0] == pytest.approx(risk_after(model, votes, review.rows[0], risk), rel=0.15)

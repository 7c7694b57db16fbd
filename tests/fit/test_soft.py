"""Soft votes: what scores are worth is learned without labels, whether or not they are calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import dugong as dg
from dugong.fit.soft import choose_thresholds
from dugong.infer import answers, engine
from dugong.infer.potentials import with_scores
from dugong.law.parameters import Conditional, Parameters
from dugong.tasks import Element
from dugong.votes.flat import certainty

HARD = np.array([[0.62, 0.18, 0.2], [0.15, 0.6, 0.25]])


def brier(probabilities, truth):
    return float(((probabilities[:, 1] - truth) ** 2).mean())


def chain(rng, n_sequences, length, positive, stay):
    prior = dg.priors.Markov(positive=positive, stay=stay)
    steps, labels = np.array(prior.transition), np.zeros((n_sequences, length), dtype=int)
    labels[:, 0] = rng.random(n_sequences) < positive
    for t in range(1, length):
        labels[:, t] = rng.random(n_sequences) < steps[labels[:, t - 1], 1]
    return prior, labels.ravel()


def world(seed, n_sequences=600, positive=0.4, stay=0.8, sharpness=(1, 1, 3, 3), shift=0.0, n_hard=2):
    """Two hard sources, and soft ones: log-likelihood ratios are normal, stated with some sharpness and shift.

    Returns votes, truth, prior, and the best possible labels.
    """
    rng, length = np.random.default_rng(seed), 10
    prior, truth = chain(rng, n_sequences, length, positive, stay)
    hard = {}
    for place in range(n_hard):
        said = (rng.random(len(truth))[:, None] > np.cumsum(HARD[truth], axis=1)).sum(axis=1)
        hard[f"h{place}"] = np.array([-1, 1, 0], dtype=np.int8)[said]
    scores, potentials = {}, np.zeros((len(truth), 2))
    for place, sharp in enumerate(sharpness):
        info = (0.8, 0.5)[place % 2]
        ratio = rng.normal((2 * truth - 1) * info, np.sqrt(2 * info))
        potentials[:, 1] += ratio
        scores[f"s{place}"] = expit(sharp * (ratio + logit(positive) + shift))
    votes = dg.Votes.from_scores(scores, [length] * n_sequences, votes=hard)
    factors = tuple(Conditional(source=name, resolution=Element(), table=HARD) for name in hard)
    parameters = Parameters(n_classes=2, factors=factors)
    best = engine.posterior(votes.select(sources=hard), parameters, prior, potentials=potentials)
    return votes, truth, prior, best.probabilities[Element()]


def hardened(votes, threshold):
    """The same with votes where scores exceed a threshold, and nothing more."""
    columns = {info.name: column for info, column in zip(votes.sources, votes.columns, strict=True)}
    columns |= {name: np.where(rows[:, 1] > threshold, 1, -1) for name, rows in votes.scores.items()}
    return dg.Votes.from_tasks(columns, lengths=votes.lengths)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("sharpness", [(1, 1, 1, 1), (3, 3, 3, 3), (1, 1, 3, 3)])
def test_labels_are_near_the_optimum_and_better_than_with_any_threshold(sharpness, learned):
    ratios = []
    for seed in range(3):
        votes, truth, prior, best = world(seed, sharpness=sharpness)
        options = {} if learned else {"prior": prior, "dependencies": ()}
        found = brier(dg.LabelModel(**options).fit(votes).predict_proba(votes), truth)
        ratios.append(found / brier(best, truth))
        for threshold in (0.1, 0.3, 0.5, 0.7, 0.9) if seed == 0 else ():
            plain = hardened(votes, threshold)
            assert brier(dg.LabelModel(**options).fit(plain).predict_proba(plain), truth) > 1.1 * found
    assert np.mean(ratios) < 1.02


@pytest.mark.parametrize("positive", [0.1, 0.05, 0.02])
@pytest.mark.parametrize(("sharpness", "learned"), [((1, 1, 1, 1), False), ((3, 3, 3, 3), False), ((1, 1, 3, 3), True)])
def test_rare_positives_are_near_the_optimum_too(sharpness, learned, positive):
    """Scores tell more about the labels behind the tables of votes than rare votes do: both are learned together."""
    found = []
    # Twelve draws, because 2 % of 20,000 elements are few events, and the optimum itself is only as sure as they are.
    for seed in range(410, 422):
        votes, truth, prior, best = world(seed, 2000, positive=positive, stay=0.9, sharpness=sharpness)
        options = {} if learned else {"prior": prior, "dependencies": ()}
        model = dg.LabelModel(**options).fit(votes)
        found.append([brier(model.predict_proba(votes), truth), brier(best, truth)])
        for place in (0, 1) if positive == 0.1 and seed < 413 else ():
            np.testing.assert_allclose(model.accuracies_[f"h{place}"], HARD, atol=0.04)
        for threshold in (0.05, 0.1, 0.3, 0.5) if seed == 410 else ():
            plain = hardened(votes, threshold)
            assert brier(dg.LabelModel(**options).fit(plain).predict_proba(plain), truth) > 1.1 * found[-1][0]
    ours, optimum = np.sum(found, axis=0)
    assert ours < 1.02 * optimum


@pytest.mark.parametrize("options", [{}, {"prior": dg.priors.Markov(positive=0.02, stay=0.9), "dependencies": ()}])
def test_detectors_that_are_never_sure_vote_where_they_say_most(options, tmp_path):
    """No score of a rare event exceeds one half: votes at one half would all be the same, and say nothing."""
    votes, truth, _, best = world(3, 2000, positive=0.02, stay=0.9, sharpness=(1, 1, 3, 3), shift=-1.0, n_hard=1)
    assert all((votes.column(name) == 1).sum() < 20 for name in votes.scores)
    model = dg.LabelModel(**options).fit(votes)
    shares = model.predict_proba(votes)
    assert brier(shares, truth) < 1.1 * brier(best, truth)
    assert set(model.law_.thresholds) == set(votes.scores)
    assert all(one < 0.1 for one in model.law_.thresholds.values())
    assert all(model.accuracies_[name][1, 1] > 2 * model.accuracies_[name][0, 1] for name in votes.scores)
    assert "'s0' is read as a vote for the positive class from 0.0" in " ".join(
        one.text for one in model.diagnostics_.notes
    )
    # All that reads votes reads them so: credits, drift, reports, files.
    row = int(np.argmax(shares[:, 1]))
    found = model.explain(votes, sequence=row // 10, task=row % 10)
    assert found.probability == pytest.approx(shares[row, 1], abs=1e-9)
    assert {one.vote for one in found.own_votes if one.source == "s0"} == {1}
    again, _, _, _ = world(4, 500, positive=0.02, stay=0.9, sharpness=(1, 1, 3, 3), shift=-1.0, n_hard=1)
    assert not model.drift(again)
    told = next(one for one in model.report(votes, sequences=(0,)).to_dict()["sources"] if one["name"] == "s0")
    assert told["classes"][1]["right"] == pytest.approx(model.accuracies_["s0"][1, 1], abs=1e-6)
    read = model.law_.read(votes)
    assert (read.column("s0") == 1).sum() >= 20
    assert told["conflicts"] == pytest.approx(read.summary().sources[0].conflicts, abs=1e-6)
    assert told["conflicts"] != pytest.approx(votes.summary().sources[0].conflicts, abs=1e-3)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(dg.LabelModel.load(tmp_path / "model.json").predict_proba(votes), shares)


def test_votes_of_a_known_table_are_the_plain_ones():
    votes, _, prior, _ = world(3, 300, positive=0.05, stay=0.9)
    table = np.array([[0.99, 0.01, 0.0], [0.8, 0.2, 0.0]])
    model = dg.LabelModel(prior=prior, dependencies=(), accuracies={"s0": table}).fit(votes)
    assert set(model.law_.thresholds) == {"s1", "s2", "s3"}


def test_one_half_stays_the_threshold_where_it_does_well():
    for seed in range(3):
        assert choose_thresholds(world(seed, 300)[0]) == {}
    assert choose_thresholds(world(1, 300, positive=0.05)[0])["s1"] < 0.3
    # Nothing can be said about a score that is always the same, or missing.
    flat = dg.Votes.from_scores({"a": np.full(50, 0.3), "b": np.full(50, np.nan)}, [50])
    assert choose_thresholds(flat) == {}


def test_how_sure_an_overconfident_source_is_survives_rounding():
    """Of P = 1e-9 and 1e-12 the rest is 1 in single precision; the order of what is nearly certain must not be lost."""
    scores = np.array([1e-12, 1e-9, 1e-3, 0.4])
    rows = dg.Votes.from_scores({"a": scores, "b": 1 - scores}, [4]).scores
    for name, place in (("a", 1), ("b", 0)):
        np.testing.assert_allclose(rows[name][:, place], scores, rtol=1e-6, atol=1e-16)
        assert len(np.unique(certainty(rows[name], 1 - place))) == 4
    losses = []
    for sharpness in (1, 3):
        votes, truth, prior, _ = world(413, 2000, positive=0.02, stay=0.9, sharpness=(sharpness,) * 4)
        losses.append(brier(dg.LabelModel(prior=prior, dependencies=()).fit(votes).predict_proba(votes), truth))
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


def test_known_tables_stay_where_scores_are_learned():
    votes, _, prior, _ = world(5, n_sequences=100)
    model = dg.LabelModel(prior=prior, dependencies=(), accuracies={"h0": HARD}).fit(votes)
    np.testing.assert_allclose(model.law_.parameters["h0"].table, HARD, atol=1e-6)


def test_a_biased_detector_is_read_by_the_order_of_its_scores():
    votes, truth, prior, best = world(7, sharpness=(1, 3), shift=-2.0)
    model = dg.LabelModel(prior=prior, dependencies=()).fit(votes)
    assert brier(model.predict_proba(votes), truth) < 1.03 * brier(best, truth)


def test_a_source_that_is_sure_of_nothing_it_says_gets_no_more_than_its_vote_is_worth():
    votes, truth, prior, _ = world(3, sharpness=(), n_hard=4)
    rng = np.random.default_rng(0)
    scores = rng.random(len(truth)).astype(np.float32)
    noisy = dg.Votes.from_scores(
        {"noise": scores}, votes.lengths, votes=dict(zip(votes.source_names, votes.columns, strict=True))
    )
    plain = dg.LabelModel(prior=prior, dependencies=()).fit(votes).predict_proba(votes)
    with_noise = dg.LabelModel(prior=prior, dependencies=()).fit(noisy).predict_proba(noisy)
    assert abs(brier(with_noise, truth) - brier(plain, truth)) < 0.01 * brier(plain, truth)


def test_what_a_score_is_worth_never_falls_where_the_score_rises():
    votes, _, prior, _ = world(1)
    for grading in dg.LabelModel(prior=prior, dependencies=()).fit(votes).law_.soft:
        # Steps behind an infinite cut hold no score.
        against, aware = (
            (grading.table[1] / grading.table[0])[vote][: np.isfinite(grading.cuts[vote]).sum() + 1] for vote in (0, 1)
        )
        assert (np.diff(against) <= 1e-9).all()  # votes against: the surer, the less likely positive
        assert (np.diff(aware) >= -1e-9).all()


def test_scores_enter_as_enumeration_says():
    votes, _, prior, _ = world(2, n_sequences=60)
    model = dg.LabelModel(prior=prior, dependencies=()).fit(votes)
    graded, parameters = with_scores(votes[:3], model.law_.parameters, model.law_.soft)
    from dugong.infer import enumerate as enumerated
    from dugong.infer.factors import flatten

    question = enumerated.LabelQuestion(graded, flatten(graded, parameters), prior.chain())
    oracle = enumerated.posterior(question, (Element(),))
    found = answers.posterior(model.law_, votes[:3])[Element()]
    np.testing.assert_allclose(found, oracle.probabilities[Element()], rtol=0, atol=1e-10)


def test_scores_on_windows_count_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(5)
    prior, truth = chain(rng, 500, 8, 0.3, 0.8)
    windows = truth.reshape(-1, 4).max(axis=1)
    ratio = rng.normal((2 * windows - 1) * 1.5, np.sqrt(3))
    hard = {
        name: np.where(rng.random(len(truth)) < 0.75, 2 * truth - 1, 1 - 2 * truth).astype(np.int8) for name in "abc"
    }
    resolutions = {"w": dg.Window(4, link="any")}
    votes = dg.Votes.from_scores({"w": expit(2 * ratio)}, [8] * 500, votes=hard, resolutions=resolutions)
    plain = dg.Votes.from_tasks(
        dict(zip(votes.source_names, votes.columns, strict=True)), [8] * 500, resolutions=resolutions
    )
    for options in ({"prior": prior, "dependencies": ()}, {}):
        model = dg.LabelModel(**options).fit(votes)
        alone = dg.LabelModel(**options).fit(plain)
        assert brier(model.predict_proba(votes), truth) < brier(alone.predict_proba(plain), truth)
        model.save(tmp_path / "model.json")
        again = dg.LabelModel.load(tmp_path / "model.json")
        np.testing.assert_array_equal(again.predict_proba(votes), model.predict_proba(votes))


def test_distributions_over_classes():
    rng = np.random.default_rng(4)
    n_classes, truth = 4, np.repeat(rng.integers(4, size=(300, 4)), 3, axis=1).ravel()

    def network(sharp):
        logits = rng.normal(size=(len(truth), n_classes)) + 1.5 * np.eye(n_classes)[truth]
        odds = np.exp(sharp * logits)
        return odds / odds.sum(axis=1, keepdims=True)

    votes = dg.Votes.from_scores({f"n{k}": network((1, 4)[k % 2]) for k in range(4)}, [12] * 300, n_classes=4)
    plain = dg.Votes.from_tasks(dict(zip(votes.source_names, votes.columns, strict=True)), [12] * 300, n_classes=4)
    gold = np.eye(4)[truth]
    soft = dg.LabelModel().fit(votes).predict_proba(votes)
    hard = dg.LabelModel().fit(plain).predict_proba(plain)
    assert ((soft - gold) ** 2).sum() < 0.8 * ((hard - gold) ** 2).sum()


def test_the_credit_of_a_vote_holds_its_score():
    votes, _, prior, _ = world(6, n_sequences=200)
    model = dg.LabelModel(prior=prior, dependencies=()).fit(votes)
    found = model.explain(votes, sequence=1, task=4)
    total = found.prior + sum(one.log_odds for one in found.own_votes) + found.neighbours
    assert total == pytest.approx(found.log_odds, abs=1e-9)
    assert found.probability == pytest.approx(model.predict_proba(votes)[14, 1], abs=1e-9)

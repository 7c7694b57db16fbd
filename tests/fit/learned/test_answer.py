"""The answer that is learned from peers: what it promises where sources share errors, and one law for all questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import dugong as dg
from dugong.fit.learned import answer, learn, views
from dugong.fit.learned.tempering import Peers, potentials_for
from dugong.fit.learned.trust import _surprise
from dugong.infer import engine
from dugong.infer.answers import decode, posterior, sample
from dugong.priors import Markov
from dugong.tasks import Element, Sequence, Window
from dugong.votes import Votes

ELEMENT = Element()


def shared_errors(rng, n=6000, right=(0.8, 0.8, 0.8, 0.75, 0.7), shared=0.6, length=60):
    """Votes of sources of which the first three repeat one another's errors, and labels in runs."""
    truth = np.repeat(rng.random(n // 20) < 0.4, 20)
    codes = np.where(rng.random((n, len(right))) < right, truth[:, np.newaxis], ~truth[:, np.newaxis])
    copied = rng.random(n) < shared
    codes[copied, 1:3] = codes[copied, :1]
    return Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[length] * (n // length)), truth


# --- one law from the answer ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_chain_has_the_marginals_that_it_was_made_for(rng, n_classes):
    wanted = rng.dirichlet(np.full(n_classes, 0.3), 90) * 0.99 + 0.01 / n_classes
    votes = Votes.from_classes(np.zeros((90, 1), dtype=int), n_classes=n_classes, lengths=[40, 0, 1, 49])
    balance = rng.dirichlet(np.ones(n_classes))
    stay = 0.999 if n_classes == 2 else 0.9
    prior = Markov(initial=balance, transition=stay * np.eye(n_classes) + (1 - stay) * balance)
    found = engine.posterior(votes, None, prior, potentials=potentials_for(wanted, votes, prior))
    np.testing.assert_allclose(found.probabilities[ELEMENT], wanted, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_known_labels_move_no_other_element_beyond_what_the_answer_says(rng, n_classes):
    """Labels that hardly ever change, some of them known: as differences, cells beside these were rounding errors."""
    wanted = rng.dirichlet(np.full(n_classes, 0.3), 90) * 0.99 + 0.01 / n_classes
    wanted[::2] = np.eye(n_classes)[rng.integers(n_classes, size=45)]
    votes = Votes.from_classes(np.zeros((90, 1), dtype=int), n_classes=n_classes, lengths=[40, 0, 1, 49])
    balance = rng.dirichlet(np.ones(n_classes))
    prior = Markov(initial=balance, transition=0.9999 * np.eye(n_classes) + 0.0001 * balance)
    found = engine.posterior(votes, None, prior, potentials=potentials_for(wanted, votes, prior))
    np.testing.assert_allclose(found.probabilities[ELEMENT], wanted, atol=1e-7)


@pytest.mark.data
@pytest.mark.parametrize("name", ["occupancy", "tennis"])
def test_known_labels_of_a_real_set_take_something_off_the_loss(name, shared_data):
    """In the labels of a default fit, and with them in the fit; occupancy lost a third of its quality once."""
    from benchmarks.review import draw_real, loss

    assert shared_data.exists()
    job = draw_real(name, 0)
    known = np.zeros(job.votes.n_elements, dtype=np.int8)
    rows = job.at_random(150)
    known[rows] = job.truth[rows]
    before = loss(job, job.model.predict_proba(job.votes))
    assert loss(job, job.model.predict_proba(job.votes, known=known)) < before
    fitted = dg.LabelModel().fit(job.votes, gold=known)
    assert loss(job, fitted.predict_proba(job.votes, known=known)) < before


def test_every_question_is_answered_by_one_distribution(rng):
    votes, _ = shared_errors(rng, n=1200)
    window = Window(6, link="any", name="w")
    learned = learn(votes)
    assert isinstance(learned.law.tempering, Peers)
    found = posterior(learned.law, votes, (ELEMENT, window, Sequence("any")))
    elements, windows = found[ELEMENT][:, 1], found[window][:, 1]
    inside = elements.reshape(-1, 6)
    assert (windows >= inside.max(axis=1) - 1e-9).all()
    assert (windows <= inside.sum(axis=1) + 1e-9).all()
    np.testing.assert_allclose(elements, learned.law.tempering.elements(learned.law, votes)[:, 1], atol=1e-6)
    draws = sample(learned.law, votes, np.random.default_rng(0), 400)
    np.testing.assert_allclose((draws > 0).mean(axis=0), elements, atol=0.12)
    path = decode(learned.law, votes) > 0
    assert np.mean(path == (elements > 0.5)) > 0.95


def test_labels_of_a_sequence_do_not_depend_on_its_batch(rng):
    votes = shared_errors(rng)[0].select(sources=["s0", "s3"])
    law = learn(votes).law
    assert law.tempering is not None
    whole, part = (posterior(law, one, (ELEMENT,))[ELEMENT] for one in (votes, votes[10:12]))
    np.testing.assert_allclose(part, whole[600:720], atol=1e-12)


def test_known_labels_are_kept_by_a_tempered_law(rng):
    votes, truth = shared_errors(rng)
    known = np.where(rng.random(len(truth)) < 0.1, truth * 2 - 1, 0).astype(np.int8)
    learned = learn(votes, evidence=known)
    found = learned.probabilities(votes, (ELEMENT,), evidence=known)[ELEMENT]
    np.testing.assert_allclose(found[known != 0, truth[known != 0].astype(int)], 1, atol=1e-9)


# --- sources that share errors -------------------------------------------------------------------------------------
def test_shared_errors_leave_the_labels_honest(rng):
    votes, truth = shared_errors(rng, shared=0.9, right=(0.75, 0.75, 0.75, 0.75, 0.7, 0.7))
    found = learn(votes).probabilities(votes)[ELEMENT][:, 1]
    vote = dg.MajorityVote().fit(votes).predict_proba(votes)[:, 1]
    assert np.mean((found - truth) ** 2) < np.mean((vote - truth) ** 2)
    assert np.mean((found > 0.5) == truth) > np.mean((vote > 0.5) == truth) - 0.003


def test_an_inverted_source_is_found_and_used(rng):
    truth = rng.random(4000) < 0.4
    codes = np.where(rng.random((4000, 4)) < (0.85, 0.8, 0.8, 0.9), truth[:, np.newaxis], ~truth[:, np.newaxis])
    codes[:, 3] = ~codes[:, 3]
    votes = Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[40] * 100)
    found = learn(votes).probabilities(votes)[ELEMENT][:, 1]
    vote = dg.MajorityVote().fit(votes).predict(votes) > 0
    assert np.mean((found > 0.5) == truth) > 0.92 > np.mean(vote == truth) + 0.05


def test_ten_copies_of_the_worst_source_do_not_outvote_three_others(rng):
    truth = rng.random(4000) < 0.5
    good = np.where(rng.random((4000, 3)) < (0.85, 0.85, 0.8), truth[:, np.newaxis], ~truth[:, np.newaxis])
    worst = np.where(rng.random(4000) < 0.6, truth, ~truth)
    copies = np.where(rng.random((4000, 10)) < 0.97, worst[:, np.newaxis], ~worst[:, np.newaxis])
    votes = Votes.from_dense((np.hstack([good, copies]) * 2 - 1).astype(np.int8), lengths=[40] * 100)
    learned = learn(votes)
    found = learned.probabilities(votes)[ELEMENT][:, 1] > 0.5
    assert np.mean(found == truth) > 0.85
    weights = learned.diagnostics.learned["copy_weights"]
    assert sum(weights[name] for name in votes.source_names[3:]) < 2


def test_a_constant_source_counts_nothing(rng):
    votes, _ = shared_errors(rng)
    constant = np.ones(votes.n_elements, dtype=np.int8)
    more = replace(
        votes, sources=(*votes.sources, replace(votes.sources[0], name="always")), columns=(*votes.columns, constant)
    )
    learned = learn(more)
    assert learned.diagnostics.learned["copy_weights"]["always"] == 0
    assert any(note.kind == "constant" and "'always'" in note.text for note in learned.diagnostics.notes)


def test_neighbours_count_only_where_labels_outlast_errors(rng):
    truth = np.repeat(rng.random(300) < 0.4, 20)
    brief = np.where(rng.random((6000, 3)) < 0.75, truth[:, np.newaxis], ~truth[:, np.newaxis])
    lasting = np.where(np.repeat(rng.random((300, 3)) < 0.75, 20, axis=0), truth[:, np.newaxis], ~truth[:, np.newaxis])
    counts = []
    for codes in (brief, lasting):
        votes = Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[600] * 10)
        counts.append(learn(votes.select(sources=["s0", "s1"])).diagnostics.learned["exponents"]["neighbours"])
    assert counts[0] > 0.5
    assert counts[1] < 0.1


# --- what is given ---------------------------------------------------------------------------------------------------
def test_leaving_the_dependencies_out_does_not_cost_labels_where_nothing_can_be_learned(rng):
    truth = np.repeat(rng.random(200) < 0.3, 20)
    column = np.where(rng.random(4000) < 0.85, truth, ~truth) * 2 - 1
    votes = Votes.from_dense(column[:, np.newaxis].astype(np.int8), lengths=[100] * 40)
    prior = Markov(positive=0.3, stay=0.95)
    given, left_out = (dg.LabelModel(prior=prior, **more).fit(votes) for more in ({"dependencies": ()}, {}))
    first, second = (np.mean((model.predict_proba(votes)[:, 1] - truth) ** 2) for model in (given, left_out))
    assert second < 1.1 * first


# --- worlds that the model describes almost -------------------------------------------------------------------------
def test_accuracies_by_position_do_not_cost_the_model_its_trust(rng):
    n, length, right = 3000, 5, rng.uniform(0.6, 0.9, (5, 9))
    truth = np.repeat(rng.random((n, 1)) < 0.4, length, axis=1) ^ (rng.random((n, length)) < 0.15)
    hits = rng.random((n, length, 9)) < right
    codes = np.where(hits, truth[:, :, np.newaxis], ~truth[:, :, np.newaxis]).reshape(-1, 9)
    votes = Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[length] * n)
    learned = learn(votes)
    exact = dg.LabelModel(dependencies=()).fit(votes).predict_proba(votes)[:, 1]
    found = learned.probabilities(votes)[ELEMENT][:, 1]
    assert learned.trust > 0.9
    assert np.mean((found - truth.ravel()) ** 2) < 1.02 * np.mean((exact - truth.ravel()) ** 2)


def hard_elements(seed: int, hard: float) -> tuple[Votes, np.ndarray]:
    """Eight sources that are right nine times out of ten, but err more often on some elements, all on the same ones."""
    rng = np.random.default_rng(seed)
    truth, blurred = rng.random(6_000) < 0.4, rng.random((6_000, 1)) < 0.3
    right = rng.random((6_000, 8)) < np.where(blurred, hard, 0.9)
    codes = np.where(right, truth[:, np.newaxis], ~truth[:, np.newaxis])
    return Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[10] * 600), truth


@pytest.mark.parametrize("seed", range(3))
def test_a_model_is_not_trusted_where_sources_err_together_on_hard_elements(seed: int) -> None:
    """No pair stands out enough to be an edge: that errors go together shows in a second kind of elements."""
    alike, _ = hard_elements(seed, 0.9)
    learned = learn(alike)
    assert learned.diagnostics.learned["kinds"] < 1
    assert learned.trust > 0.98
    votes, _ = hard_elements(seed, 0.55)
    learned = learn(votes)
    assert learned.diagnostics.learned["kinds"] > 2
    assert learned.trust < 0.02


# --- words -----------------------------------------------------------------------------------------------------------
def test_the_first_note_says_where_the_vote_is_ahead(rng):
    votes = shared_errors(rng)[0].select(sources=["s0", "s3", "s4"])
    vote, mine = dg.MajorityVote().fit(votes).predict(votes), dg.LabelModel().fit(votes).predict(votes)
    known = np.where(vote != mine, vote, 0).astype(np.int8)
    known[np.flatnonzero(vote != mine)[20:]] = 0  # twenty labels, on which the vote happens to be right
    notes = learn(votes, evidence=known).diagnostics.notes
    assert notes[0].kind == "vote ahead"
    assert "majority vote is ahead on the 20 known labels" in notes[0].text
    notes = learn(votes).diagnostics.notes
    assert "depart from majority vote on" in notes[0].text
    assert {"discount", "neighbours"} <= {note.kind for note in notes}


@pytest.mark.parametrize("sureness", [1.0, 2.0, 0.5])
def test_a_model_that_holds_gains_what_it_expects(sureness: float) -> None:
    """Votes drawn as predicted surprise nobody; predictions that are too sure, or not sure enough, do."""
    rng = np.random.default_rng(5)
    sources, blocks, odds = np.repeat(np.arange(6), 2_000), np.arange(12_000), rng.normal(0, 1.5, 12_000)
    ours, theirs = (np.stack([expit(-x), expit(x)], axis=1) for x in (odds, 0.3 * odds))
    better = np.log(ours) - np.log(theirs)
    votes = (rng.random(12_000) < expit(odds / sureness)).astype(int)
    gaps = better[np.arange(12_000), votes] - (ours * better).sum(axis=1)
    assert (_surprise(gaps, sources, blocks) > 0) == (sureness != 1.0)


def tied_alarms(seed: int) -> tuple[dg.Votes, np.ndarray]:
    """Four detectors of an event in a quarter of the elements; two of them sound the same false alarms."""
    rng = np.random.default_rng(seed)
    labels, alarm = rng.random(4_000) < 0.25, rng.random(4_000) < 0.15
    right = rng.random((4_000, 4)) < 0.9
    said = np.where(right, labels[:, np.newaxis], ~labels[:, np.newaxis])
    said[:, :2] |= alarm[:, np.newaxis]
    return dg.Votes.from_dense(np.where(said, 1, -1).astype(np.int8), lengths=[10] * 400), labels


@pytest.mark.parametrize("seed", range(3))
def test_the_first_of_two_classes_has_the_casting_vote(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = tied_alarms(seed)
    tied = np.stack(votes.columns).sum(axis=0) == 0

    def on_ties() -> float:
        return float((dg.LabelModel().fit(votes).predict_proba(votes)[tied, 1] > 0.5).mean())

    with_it = on_ties()
    monkeypatch.setattr(views, "CASTING", 0.0)
    assert with_it <= on_ties()
    assert labels[tied].mean() < 0.5, "the case is about alarms that are false"
    assert with_it < 0.5


def test_a_tie_is_worth_two_to_one_for_the_first_of_two_classes(monkeypatch):
    """Two sources that are equally often right and contradict each other say nothing else about the label."""
    codes = np.repeat([[1, 1], [-1, -1], [1, -1], [-1, 1]], [400, 400, 100, 100], axis=0)
    votes = dg.Votes.from_dense(codes.astype(np.int8), lengths=[1] * len(codes))
    monkeypatch.setattr(answer, "DOUBT", 0.0)
    found = dg.LabelModel().fit(votes).predict_proba(votes)
    np.testing.assert_allclose(found[800:, 0], 2 / 3, atol=0.01)
    np.testing.assert_allclose(found[:400, 1], found[400:800, 0], atol=0.01)


def test_the_less_sources_agree_the_more_of_the_log_odds_is_taken_back():
    """Of the log-odds (k + 1/3) / (k + 2/3) are kept at an agreement k beyond chance."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, (6_000, 1))
    for right in (0.5, 0.7, 0.999):
        said = np.where(rng.random((6_000, 5)) < right, labels, 1 - labels)
        said[:600] = 1 - labels[:600]  # errors that all share
        votes = dg.Votes.from_classes(said, n_classes=2, lengths=[6] * 1_000)
        kappa = 0.1 + 0.9 * (2 * right - 1) ** 2
        kept = dg.LabelModel().fit(votes).diagnostics_.learned["kept"]
        np.testing.assert_allclose(kept, (kappa + 1 / 3) / (kappa + 2 / 3), atol=0.01)


def test_windows_decide_between_two_sources_that_contradict_each_other():
    """The casting vote is for ties about which nobody else says anything."""
    rng = np.random.default_rng(4)
    labels = np.repeat(rng.integers(0, 2, 400), 10)
    said = np.where(rng.random((4_000, 2)) < [0.9, 0.75], labels[:, np.newaxis], 1 - labels[:, np.newaxis])
    columns = {"a": 2 * said[:, 0] - 1, "b": 2 * said[:, 1] - 1}
    window = dg.Window(size=10, link="any")
    whole = {"w": (window, np.where(rng.random(400) < 0.95, 2 * labels[::10] - 1, 0))}
    lengths, casting = [10] * 400, []
    for coarse in ({}, whole):
        kinds = {name: where for name, (where, _) in coarse.items()}
        votes = dg.Votes.from_tasks(
            columns | {name: found for name, (_, found) in coarse.items()}, lengths, resolutions=kinds
        )
        casting.append(dg.LabelModel().fit(votes).law_.tempering.answer.sayings.casting)
    assert casting == [np.log(2), 0.0]

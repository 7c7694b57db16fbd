"""The parts of the learned defaults against brute force, closed forms and what they promise."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from dugong.codec import decode, encode
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned import learn
from dugong.fit.learned.exact import run_exact
from dugong.fit.learned.families import count_agreements, family_weights, find_families
from dugong.fit.learned.folded import fold
from dugong.fit.learned.panel import Coding, Panel, Reader
from dugong.fit.learned.repeats import Repeats, fresh_votes
from dugong.fit.learned.tables import logs_of, make_tables, mute_unseen
from dugong.fit.learned.trust import keeps_names
from dugong.infer.answers import posterior
from dugong.law import Law
from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.tasks import Element
from dugong.tasks.bio import bio_steps
from dugong.votes import Votes
from dugong.worlds import lopsided, multiresolution, tv_news

ELEMENT = Element()


def panel_of(votes: Votes) -> Panel:
    return Reader(votes, votes.sources, Coding.of(votes)).read(0, votes.n_elements)


# --- the chain -----------------------------------------------------------------------------------------------------
def test_the_chain_agrees_with_enumeration(rng):
    n_classes, length = 3, 4
    moved, stayed = rng.normal(size=(2, length, n_classes))
    initial = rng.dirichlet(np.ones(n_classes))
    transition = rng.dirichlet(np.ones(n_classes), n_classes)
    labels, kept, steps = np.empty(moved.shape), np.empty(moved.shape), np.zeros((n_classes, n_classes))
    starts = np.array([True, False, False, False])
    kernels.smooth(moved, stayed, starts, initial, transition, labels, steps, kept)
    expected, same, pairs = np.zeros(moved.shape), np.zeros(moved.shape), np.zeros(transition.shape)
    for path in itertools.product(range(n_classes), repeat=length):
        weight = initial[path[0]] * np.exp(moved[0, path[0]])
        for t in range(1, length):
            logs = stayed if path[t] == path[t - 1] else moved
            weight *= transition[path[t - 1], path[t]] * np.exp(logs[t, path[t]])
        for t, label in enumerate(path):
            expected[t, label] += weight
            if t and path[t - 1] == label:
                same[t, label] += weight
            if t:
                pairs[path[t - 1], label] += weight
    total = expected[0].sum()
    np.testing.assert_allclose(labels, expected / total, atol=1e-12)
    np.testing.assert_allclose(kept, same / total, atol=1e-12)
    np.testing.assert_allclose(steps, pairs / total, atol=1e-12)


def test_sequences_do_not_touch(rng):
    moved = rng.normal(size=(7, 2))
    law = (np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.3, 0.7]]))
    none = np.zeros((0, 2))

    def run(rows: slice) -> np.ndarray:
        part = np.ascontiguousarray(moved[rows])
        starts = np.arange(7)[rows] % 4 == 0
        labels = np.empty(part.shape)
        kernels.smooth(part, none, starts, *law, labels, np.zeros((2, 2)), none)
        return labels

    np.testing.assert_allclose(run(slice(0, 7)), np.vstack([run(slice(0, 4)), run(slice(4, 7))]), atol=1e-14)


@pytest.mark.parametrize("lag", [1, 3])
def test_evidence_of_the_model_is_the_product_of_its_tables(rng, lag):
    codes = rng.integers(-1, 3, (30, 3)).astype(np.int8)
    single = rng.dirichlet(np.ones(3), (3, 2))
    edges = rng.dirichlet(np.ones(3), (1, 2, 3))
    parents, slots = np.array([-1, 0, -1]), np.array([0, 0, 0])
    repeats, lags = np.array([[0.0, 0.0, 0.4], [0.0, 0.0, 0.1]]), np.array([1, 1, lag])
    place = np.arange(30) % 10
    moved, stayed = np.empty((2, 30, 2))
    kernels.add_model(codes, logs_of(single), logs_of(edges), slots, parents, repeats, lags, place, moved, stayed)
    for i, y in itertools.product(range(30), range(2)):
        chance = np.ones(2)
        a, b, c = codes[i]
        if a >= 0:
            chance *= single[0, y, a]
        if b >= 0:
            chance *= edges[0, y, a, b] if a >= 0 else single[1, y, b]
        if c >= 0:
            before = -1 if place[i] < lag else codes[i - lag, 2]
            again = repeats[:, 2] if before >= 0 else np.zeros(2)
            chance *= (1 - again) * single[2, y, c] + again * (before == c)
        np.testing.assert_allclose([stayed[i, y], moved[i, y]], np.log(chance), atol=1e-12)


def test_rows_of_the_same_votes_share_their_evidence(rng):
    codes = rng.integers(-1, 3, (300, 3)).astype(np.int8)
    panel = Panel(
        coding=Coding(split=np.vstack([np.eye(2), np.zeros((1, 2))])),
        codes=codes,
        starts=np.arange(300) % 7 == 0,
        known=rng.choice([-1, -1, 0, 1], 300).astype(np.int8),
    )
    folded = fold(panel)
    assert len(folded.sizes) < 220
    np.testing.assert_array_equal(folded.rows.codes[folded.which], codes)
    np.testing.assert_array_equal(folded.rows.known[folded.which], panel.known)
    assert folded.sizes.sum() == 300
    logs = rng.normal(size=(len(folded.sizes), 2))
    law = (np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.3, 0.7]]))
    found, expected = ((np.empty((300, 2)), np.zeros((2, 2)), np.empty((300, 2))) for _ in range(2))
    first = kernels.smooth_rows(logs, folded.which, panel.starts, *law, *found)
    second = kernels.smooth(logs[folded.which], np.zeros((0, 2)), panel.starts, *law, *expected)
    np.testing.assert_allclose(first, second, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_wide_rows_are_told_apart(rng):
    codes = rng.integers(0, 2, (400, 70)).astype(np.int8)
    codes[200:] = codes[:200]
    codes[399, 69] ^= 1
    panel = Panel(
        coding=Coding(split=np.vstack([np.eye(9), np.zeros((1, 9))])),
        codes=codes,
        starts=np.ones(400, dtype=bool),
        known=np.full(400, -1, dtype=np.int8),
    )
    assert len(fold(panel).sizes) == 201


# --- tables --------------------------------------------------------------------------------------------------------
def test_tables_are_counts_with_pseudo_votes(rng):
    votes = Votes.from_dense(rng.choice([-1, 0, 1], (400, 3)).astype(np.int8), lengths=[400])
    panel = panel_of(votes)
    labels = np.eye(2)[rng.integers(0, 2, 400)]
    tables = make_tables(panel, labels, np.ones(400, dtype=bool), np.array([-1, 0, -1]))
    rows = labels[:, 1] > 0
    counts = np.bincount(panel.codes[rows, 2], minlength=3)
    np.testing.assert_allclose(tables.single[2, 1], counts / counts.sum(), atol=0.01)
    np.testing.assert_allclose(tables.edges.sum(axis=-1), 1, atol=1e-12)
    both = rows & (panel.codes[:, 0] == 0)
    counts = np.bincount(panel.codes[both, 1], minlength=3)
    np.testing.assert_allclose(tables.edges[0, 1, 0], counts / counts.sum(), atol=0.03)


def test_unseen_votes_say_nothing():
    table = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]])
    muted = mute_unseen(table, np.array([False, False, True]))
    np.testing.assert_allclose(muted[:, 2], 1e-6, rtol=1e-9)
    np.testing.assert_allclose(muted.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(muted[0, 0] / muted[0, 1], 3.5, rtol=1e-9)
    np.testing.assert_allclose(mute_unseen(table, np.ones(3, dtype=bool)), 1 / 3, atol=1e-12)


@pytest.mark.parametrize("lag", [1, 2])
def test_repetitions_are_told_from_fresh_votes(rng, lag):
    n = 40_000
    labels = np.repeat(rng.random(n // 20) < 0.4, 20)
    fresh = np.where(rng.random(n) < 0.8, labels, ~labels)
    codes = fresh.astype(np.int8)
    for i in range(lag, n):
        if rng.random() < 0.5:
            codes[i] = codes[i - lag]
    panel = Panel(
        coding=Coding(split=np.vstack([np.eye(2), np.zeros((1, 2))])),
        codes=codes[:, np.newaxis],
        starts=np.arange(n) == 0,
        known=np.full(n, -1, dtype=np.int8),
    )
    soft = np.eye(2)[labels.astype(int)]
    stays = np.concatenate([[False], labels[1:] == labels[:-1]])
    kept = soft * stays[:, np.newaxis]
    single, repeats = np.full((1, 2, 3), 1 / 3), Repeats.about(np.array([0.3]), np.array([lag]))
    for _ in range(40):
        counts, repeats = fresh_votes(panel, np.zeros((1, 2, 3)), soft, kept, single, repeats)
        single = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(repeats.rates[0], 0.5, atol=0.02)
    np.testing.assert_allclose(repeats.rates[1], 0.5, atol=0.06)
    np.testing.assert_allclose([single[0, 0, 0], single[0, 1, 1]], 0.8, atol=0.02)


# --- panels --------------------------------------------------------------------------------------------------------
def test_near_copies_share_one_vote(rng):
    base = rng.integers(0, 3, (3000, 4))
    truth = rng.integers(0, 3, (3000, 1))
    codes = np.where(rng.random((3000, 4)) < 0.8, truth, base)
    copies = np.where(rng.random((3000, 3)) < 0.98, codes[:, :1], base[:, :3])
    votes = Votes.from_classes(np.hstack([codes, copies]), n_classes=3, lengths=[3000])
    weights = family_weights(find_families(count_agreements(fold(panel_of(votes)))))
    assert 0.9 < weights[[0, 4, 5, 6]].sum() < 1.5
    assert (weights[1:4] > 0.9).all()


def test_accurate_sources_are_not_variants_because_they_agree(rng):
    truth = rng.integers(0, 2, 6000)
    right = np.array([0.98, 0.97, 0.7, 0.65, 0.7])
    codes = np.where(rng.random((6000, 5)) < right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    votes = Votes.from_classes(codes, n_classes=2, lengths=[6000])
    assert family_weights(find_families(count_agreements(fold(panel_of(votes))))).min() > 0.9


@pytest.mark.parametrize("right", [0.5, 0.7, 0.9])
def test_agreement_beyond_chance_is_the_product_of_skills(rng, right):
    """For independent errors Cohen's kappa of two even sources is the product of their skills."""
    truth = rng.integers(0, 2, 20_000)
    codes = np.where(rng.random((20_000, 5)) < right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    votes = Votes.from_classes(codes, n_classes=2, lengths=[20_000])
    found = count_agreements(fold(panel_of(votes))).beyond_chance(np.ones(5))
    np.testing.assert_allclose(found, (2 * right - 1) ** 2, atol=0.01)


def test_agreement_of_sources_that_never_speak_together_is_believed_to_be_one_half(rng):
    codes = np.where(np.arange(4_000)[:, np.newaxis] % 2 == [0, 1], rng.integers(0, 2, (4_000, 2)), -1)
    agreements = count_agreements(fold(panel_of(Votes.from_classes(codes, n_classes=2, lengths=[4_000]))))
    assert agreements.beyond_chance(np.ones(2)) == 0.5
    assert agreements.beyond_chance(np.zeros(2)) == 0.5


@pytest.mark.parametrize("right", [0.5, 0.9, 0.99])
def test_lists_that_can_only_contradict_each_other_agree_where_they_seldom_speak_together(rng, right):
    """A list of yes and a list of no: one that guesses speaks beside the other as often as anywhere."""
    truth = rng.integers(0, 2, 20_000)
    finds = np.where(rng.random((20_000, 2)) < right, truth[:, np.newaxis] == [0, 1], truth[:, np.newaxis] != [0, 1])
    votes = Votes.from_classes(np.where(finds, [0, 1], -1), n_classes=2, lengths=[20_000])
    found = count_agreements(fold(panel_of(votes))).beyond_chance(np.ones(2))
    np.testing.assert_allclose(found, 1 - 4 * right * (1 - right), atol=0.02)


def test_underspecified_votes_agree_with_what_they_leave_open(rng):
    truth = rng.integers(0, 3, 20_000)
    wide = np.where(truth == 2, 2, 7)  # "0 or 1", or 2: always right
    votes = Votes.from_classes(np.stack([truth, wide], axis=1), n_classes=3, partial={7: (0, 1)}, lengths=[20_000])
    np.testing.assert_allclose(count_agreements(fold(panel_of(votes))).beyond_chance(np.ones(2)), 1, atol=1e-3)


# --- constraints ---------------------------------------------------------------------------------------------------
def test_bio_tags_forbid_what_cannot_follow():
    names = ("O", "B-x", "I-x", "B-y", "I-y")
    possible = bio_steps(names)
    allowed = {(a, b) for a, b in itertools.product(names, names) if possible.steps[names.index(a), names.index(b)]}
    assert {(a, b) for a, b in allowed if b == "I-x"} == {("B-x", "I-x"), ("I-x", "I-x")}
    assert all((a, b) in allowed for a in names for b in ("O", "B-x", "B-y"))
    assert possible.first.tolist() == [True, True, False, True, False]
    assert bio_steps(("O", "I-x")) is None
    assert bio_steps(("wake", "B-x", "I-x")) is None
    assert bio_steps(None) is None


def test_known_labels_that_break_bio_lift_the_constraint(rng):
    names = ("O", "B-x", "I-x")
    codes = rng.integers(-1, 3, (300, 3))
    votes = Votes.from_classes(codes, n_classes=3, classes=names, lengths=[100] * 3)
    known = np.zeros(300, dtype=np.int8)
    assert learn(votes, evidence=known).diagnostics.learned["bio"]
    known[10:12] = [1, 3]
    assert not learn(votes, evidence=known).diagnostics.learned["bio"]


# --- exact rounds --------------------------------------------------------------------------------------------------
def test_exact_rounds_raise_the_likelihood():
    world = multiresolution(seed=1)
    votes, _ = world.sample(500, rng=1)
    learned = learn(votes)
    worse = Markov(positive=0.45, stay=0.6)
    result = run_exact(votes, learned.parameters, worse, 12, learn_prior=True)
    gains = np.diff(result.likelihoods)
    assert len(gains) > 3
    assert (gains > -0.05).all()  # pseudo-votes may cost the likelihood itself a trifle near the top
    assert result.prior.stay > 0.75


# --- values --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_sources", [2, 8])
def test_plain_data_and_back(n_sources):
    votes, _ = lopsided(n_sources, seed=2).sample(500, rng=2)
    check_round_trip(votes)


def test_plain_data_and_back_at_every_resolution():
    check_round_trip(tv_news().sample(200, rng=4)[0])


def check_round_trip(votes: Votes) -> None:
    learned = learn(votes)
    again = decode(Law, json.loads(json.dumps(encode(learned.law))))
    assert again.fingerprint == learned.law.fingerprint
    first, second = (posterior(law, votes, votes.resolutions) for law in (learned.law, again))
    for resolution in votes.resolutions:
        np.testing.assert_array_equal(second[resolution], first[resolution])


def test_threads_and_progress_change_nothing():
    votes, _ = lopsided(5, seed=3).sample(15_000, rng=3)
    told: list[tuple[str, int, int]] = []
    learned = learn(votes, n_threads=1, progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == "learn"] == [("learn", done, 4) for done in range(1, 5)]
    one, two = (learned.probabilities(votes, n_threads=n)[ELEMENT] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_two_variants_do_not_prove_each_other_skilled(rng):
    """Two sources read the same thing beside the label: that they agree shows no skill, as others do not confirm it."""
    label, size = rng.random(4_000) < 0.1, rng.random(4_000) < 0.2
    heard = [label | size, label | size, label, label, label]
    wrong = rng.random((4_000, 5)) < (0.05, 0.1, 0.08, 0.08, 0.2)
    votes = Votes.from_classes((np.stack(heard, axis=1) ^ wrong).astype(int), n_classes=2, lengths=[10] * 400)
    similar = find_families(count_agreements(fold(panel_of(votes))))
    assert similar[0, 1] > 0.2
    similar[:2, :2] = 0.0
    assert similar.max() < 0.05


def test_where_all_are_silent_the_label_is_the_class_that_nobody_names(rng):
    """Lists that speak of the same words: the balance where they speak must not speak for where they are silent."""
    label = rng.random((3_000, 1)) < 0.6
    known = np.where(label, rng.random((3_000, 1)), 0.3 * rng.random((3_000, 1)))
    speaks = rng.random((3_000, 10)) < known
    votes = Votes.from_classes(np.where(speaks, 1, -1), n_classes=2, lengths=[10] * 300)
    labels = LabelModel().fit(votes).predict_proba(votes)
    assert labels[~speaks.any(axis=1), 1].mean() < 0.35
    assert labels[speaks.sum(axis=1) > 4, 1].mean() > 0.8


def test_no_trust_in_a_model_whose_classes_changed_their_meaning(rng):
    names = rng.integers(0, 3, (500, 4)).astype(np.int8)
    panel = Panel(
        coding=Coding(split=np.vstack([np.eye(3), np.zeros((1, 3))])),
        codes=names,
        starts=np.arange(500) == 0,
        known=np.full(500, -1, dtype=np.int8),
    )
    kept = np.array([[0.8, 0.1, 0.1, 0.0], [0.2, 0.5, 0.3, 0.0], [0.3, 0.3, 0.4, 0.0]])
    tables = np.repeat(kept[np.newaxis], 4, axis=0)
    assert keeps_names(tables, panel)
    assert not keeps_names(tables[:, [0, 2, 1]], panel)

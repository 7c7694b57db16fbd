"""The hidden Markov baseline: Baum-Welch by hand, starts, classes, ragged sequences, contract."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import dugong as dg
from dugong.baselines import HiddenMarkov, MajorityVote
from dugong.baselines.elements import element_codes
from dugong.priors import Markov
from dugong.worlds import Between, Block, World, confusion
from dugong.worlds.standard import lopsided, sticky


def three_classes() -> World:
    step = np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.15, 0.15, 0.7]])
    tables = [confusion(3, p, a) for p, a in ((0.8, 0.1), (0.7, 0.3), (0.75, 0.0), (0.6, 0.2))]
    blocks = tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables))
    return World(prior=Markov(initial=[0.5, 0.3, 0.2], transition=step), blocks=blocks, lengths=Between(5, 30))


def baum_welch_step(codes, lengths, tables, initial, transition):
    """Oracle: expected counts of one E-step by plain forward-backward, sequence after sequence."""
    emitted = np.prod([table[:, codes[:, j]] for j, table in enumerate(tables)], axis=0).T
    starts, states, steps, likelihood = np.zeros(len(initial)), [], np.zeros_like(transition), 0.0
    for begin, length in zip(np.cumsum(lengths) - lengths, lengths, strict=True):
        e = emitted[begin : begin + length]
        forward, backward = np.zeros_like(e), np.ones_like(e)
        forward[0] = initial * e[0]
        for t in range(1, length):
            forward[t] = (forward[t - 1] @ transition) * e[t]
        for t in range(length - 2, -1, -1):
            backward[t] = transition @ (e[t + 1] * backward[t + 1])
        total = forward[-1].sum()
        likelihood += np.log(total)
        gamma = forward * backward / total
        starts += gamma[0]
        states.append(gamma)
        for t in range(1, length):
            steps += np.outer(forward[t - 1], e[t] * backward[t]) * transition / total
    gamma = np.concatenate(states)
    counts = [
        np.stack([gamma[codes[:, j] == v].sum(axis=0) for v in range(t.shape[1])], axis=1) for j, t in enumerate(tables)
    ]
    normal = lambda a: a / a.sum(axis=-1, keepdims=True)  # noqa: E731
    return [normal(c) for c in counts], normal(starts), normal(steps), likelihood


def test_steps_are_those_of_baum_welch() -> None:
    """Without pseudo-votes, k + 1 steps are k steps and one more by hand."""
    votes, _ = three_classes().sample(40, rng=1)
    options = {"tolerance": 0.0, "pseudo_votes": 0.0}
    before = HiddenMarkov(max_iter=2, **options).fit(votes)
    after = HiddenMarkov(max_iter=3, **options).fit(votes)
    tables = [before.accuracies_[name] for name in votes.source_names]
    prior = before.prior_
    new, initial, transition, likelihood = baum_welch_step(
        element_codes(votes), votes.lengths, tables, np.array(prior.initial), np.array(prior.transition)
    )
    for name, table in zip(votes.source_names, new, strict=True):
        np.testing.assert_allclose(after.accuracies_[name], table, rtol=0, atol=1e-10)
    np.testing.assert_allclose(after.prior_.initial, initial, rtol=0, atol=1e-10)
    np.testing.assert_allclose(after.prior_.transition, transition, rtol=0, atol=1e-10)
    assert before.log_likelihoods_[-1] == pytest.approx(likelihood, rel=1e-12)


def test_recovers_a_chain_with_three_classes() -> None:
    world = three_classes()
    votes, labels = world.sample(600, rng=2)
    model = HiddenMarkov().fit(votes)
    assert model.converged_
    assert (np.diff(model.log_likelihoods_) > -1e-6).all()
    np.testing.assert_allclose(model.prior_.transition, world.prior.transition, rtol=0, atol=0.04)
    for name, table in world.accuracies().items():
        np.testing.assert_allclose(model.accuracies_[name], table, rtol=0, atol=0.04)
    gold = labels["element"]
    assert model.score(votes, gold) > MajorityVote().fit(votes).score(votes, gold) + 0.03
    assert (model.decode(votes) == gold).mean() > 0.9


def test_a_random_start_names_its_states_after_the_votes() -> None:
    votes, labels = three_classes().sample(300, rng=3)
    scores = [
        HiddenMarkov(start="random", n_starts=4, seed=seed).fit(votes).score(votes, labels["element"])
        for seed in (0, 1)
    ]
    assert min(scores) > 0.9


def test_the_likeliest_of_several_starts_is_kept() -> None:
    votes, _ = lopsided(n_sources=3, seed=1, prior=sticky(0.3, 0.9)).sample(60, lengths=20, rng=4)
    alone = HiddenMarkov(start="random", seed=5, max_iter=8).fit(votes)
    several = HiddenMarkov(start="random", seed=5, max_iter=8, n_starts=5).fit(votes)
    again = HiddenMarkov(start="random", seed=5, max_iter=8, n_starts=5).fit(votes)
    assert several.log_likelihoods_[-1] >= alone.log_likelihoods_[-1]
    np.testing.assert_array_equal(several.accuracies_["s0"], again.accuracies_["s0"])


def test_known_labels_are_evidence() -> None:
    world = lopsided(n_sources=3, seed=1)
    votes, labels = world.sample(400, rng=5)
    gold = labels["element"]
    model = HiddenMarkov(max_iter=20).fit(votes, gold)
    codes = element_codes(votes)
    for place, name in enumerate(votes.source_names):
        counts = np.array([np.bincount(codes[gold == y, place], minlength=3) for y in (-1, 1)])
        np.testing.assert_allclose(model.accuracies_[name], counts / counts.sum(axis=1, keepdims=True), atol=0.01)


def test_coarse_votes_and_coarse_labels() -> None:
    votes = dg.Votes.from_tasks(
        {"a": np.array([1, 1, -1, -1] * 40), "b": np.array([1, 1, -1, -1] * 40), "w": np.array([1, -1] * 40)},
        lengths=[4] * 40,
        resolutions={"w": dg.Window(size=2, link="any")},
    )
    model = HiddenMarkov().fit(votes)
    assert model.predict(votes).tolist() == [1, 1, -1, -1] * 40
    assert model.predict(votes, "window2").tolist() == [1, -1] * 40
    assert model.predict_proba(votes, dg.Sequence()).shape == (40, 2)


def test_empty_sequences_silent_sources_and_new_votes() -> None:
    dense = [np.array([[1, 1, 0], [-1, -1, 0]]), np.zeros((0, 3)), np.array([[1, -1, 0]])]
    votes = dg.Votes.from_dense([d.astype(np.int8) for d in dense] * 10)
    model = HiddenMarkov().fit(votes)
    unseen = dg.Votes.from_dense(np.array([[-1, 0, 1]]), lengths=[1])
    for given in (votes, unseen, votes.select(sources=["s1"])):
        found = model.predict_proba(given)
        assert found.shape == (given.n_elements, 2)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_errors_say_what_is_wrong() -> None:
    votes = dg.Votes.from_dense(np.array([[1, 1], [-1, 1]]), lengths=[2])
    with pytest.raises(dg.VoteError, match='start="votes" or "random"'):
        HiddenMarkov(start="kmeans").fit(votes)
    with pytest.raises(dg.NotFittedError, match="call fit"):
        HiddenMarkov().decode(votes)
    with pytest.raises(dg.VoteError, match="found none for 's2'"):
        HiddenMarkov().fit(votes).predict(dg.Votes.from_dense(np.zeros((1, 3), dtype=int), lengths=[1]))


@pytest.mark.parametrize("model", [HiddenMarkov(start="random", seed=3), dg.DataProgramming(balance=[0.9, 0.1])])
def test_settings_are_those_of_scikit_learn(model) -> None:
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert repr(copy) == repr(model)

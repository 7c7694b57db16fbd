"""A source that changed is found within 200 short sequences, and a stable stream raises no alarm."""

import numpy as np
import pytest

import dugong as dg
from dugong.drift import compare, watch

ACCURACIES = np.array([0.85, 0.8, 0.75, 0.9, 0.7, 0.8, 0.85, 0.65])


def stream(n_sequences, rng, accuracies=ACCURACIES, speaks=0.8):
    labels = rng.random((n_sequences, 5)) < 0.4
    for t in range(1, 5):
        labels[:, t] = np.where(rng.random(n_sequences) < 0.7, labels[:, t - 1], labels[:, t])
    signs = np.where(labels, 1, -1)[..., None]
    votes = np.where(rng.random((n_sequences, 5, 8)) < accuracies, signs, -signs)
    votes[rng.random(votes.shape) > speaks] = 0
    return dg.Votes.from_dense(votes.astype(np.int8))


@pytest.fixture(scope="module")
def fitted():
    votes = stream(2000, np.random.default_rng(0))
    return dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.82), dependencies=()).fit(votes), votes


def drift(fitted, votes, level=0.01):
    model, seen = fitted
    sums = watch(model.law_, model.accuracies_, seen)
    return compare(sums, watch(model.law_, model.accuracies_, votes), votes, level)


def test_one_of_eight_sources_that_lost_accuracy_is_named(fitted):
    found = 0
    for seed in range(20):
        changed = ACCURACIES.copy()
        changed[seed % 8] -= 0.15
        alarms = drift(fitted, stream(200, np.random.default_rng(seed + 1), changed)).alarms
        found += any(one.where == f"s{seed % 8}" for one in alarms)
    assert found >= 19


def test_a_stable_stream_raises_no_alarm(fitted):
    assert sum(bool(drift(fitted, stream(200, np.random.default_rng(seed + 100)))) for seed in range(20)) <= 1


def test_silence_and_words(fitted):
    found = drift(fitted, stream(200, np.random.default_rng(7), speaks=0.6))
    assert {one.what for one in found.alarms} >= {"coverage"}
    assert "votes on 6" in str(found)
    assert found.to_dict()["alarm"] is True
    calm = drift(fitted, stream(200, np.random.default_rng(8)))
    assert str(calm).startswith("Nothing changed by more than chance in 200 sequences")
    with pytest.raises(dg.VoteError, match="level= must be a probability"):
        drift(fitted, stream(20, np.random.default_rng(8)), level=2)


def test_few_long_sequences_are_compared_by_stretches(fitted):
    model, _ = fitted
    labels = np.random.default_rng(1).random((3, 2000)) < 0.4
    signs = np.where(labels, 1, -1)[..., None]
    rng = np.random.default_rng(2)
    votes = dg.Votes.from_dense(np.where(rng.random((3, 2000, 8)) < ACCURACIES, signs, -signs).astype(np.int8))
    sums = watch(model.law_, model.accuracies_, votes)
    assert all(one.sums.units >= 20 for one in sums)
    assert not compare(sums, sums, votes, 0.01)


def test_a_model_remembers_what_its_votes_looked_like(fitted, tmp_path):
    model, _ = fitted
    changed = ACCURACIES.copy()
    changed[2] -= 0.2
    new = stream(200, np.random.default_rng(3), changed)
    found = model.drift(new)
    assert "s2" in {one.where for one in found.alarms}
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json").drift(new)
    assert again == found
    assert not model.drift(stream(200, np.random.default_rng(4)))

"""Laws of the label model with a given prior and given dependencies, and the contract of its methods."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import dugong as dg
from dugong import worlds
from dugong.infer import engine
from dugong.sums import Moments
from dugong.tasks import Element
from dugong.votes import SourceInfo

WORLD = worlds.multiresolution(0)


@pytest.fixture(scope="module")
def sample():
    return WORLD.sample(1_500, rng=np.random.default_rng(7))


@pytest.fixture(scope="module")
def fitted(sample):
    return dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies).fit(sample[0])


def brier(probabilities, labels) -> float:
    return float(((probabilities[:, 1] - (labels > 0)) ** 2).mean())


def test_labels_are_close_to_optimal_at_every_resolution(sample, fitted) -> None:
    votes, labels = sample
    optimal = engine.posterior(votes, WORLD.parameters(), WORLD.prior)
    for resolution in votes.resolutions:
        best = brier(optimal.probabilities[resolution], labels[resolution])
        assert brier(fitted.predict_proba(votes, resolution), labels[resolution]) <= 1.08 * best


def test_permuting_the_sources_changes_nothing(sample, fitted) -> None:
    votes, _ = sample
    backwards = votes.select(sources=votes.source_names[::-1])
    again = dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies).fit(backwards)
    for name, table in fitted.accuracies_.items():
        np.testing.assert_allclose(again.accuracies_[name], table, rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.predict_proba(backwards), fitted.predict_proba(votes), rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(backwards), fitted.predict_proba(votes), rtol=0, atol=1e-12)


def test_permuting_the_sequences_permutes_the_labels(sample, fitted) -> None:
    votes, _ = sample
    order = np.random.default_rng(1).permutation(votes.n_sequences)
    plain = votes.select()
    shuffled = votes[order]
    again = dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies).fit(shuffled)
    before = fitted.predict_proba(plain).reshape(votes.n_sequences, 5, 2)[order].reshape(-1, 2)
    np.testing.assert_allclose(again.predict_proba(shuffled), before, rtol=0, atol=1e-9)


def test_flipping_votes_and_prior_flips_the_labels() -> None:
    world = worlds.lopsided(6, 3, prior=dg.priors.Markov(positive=0.4, stay=0.8))
    votes, _ = world.sample(1_000, rng=np.random.default_rng(2))
    mirror = dg.Votes.from_tasks({n: -votes.column(n) for n in votes.source_names}, lengths=votes.lengths)
    chain = world.prior.chain()
    flipped = dg.priors.Markov(initial=chain.initial[::-1], transition=chain.transition[::-1, ::-1])
    ours = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes).predict_proba(votes)
    theirs = dg.LabelModel(prior=flipped, dependencies=()).fit(mirror).predict_proba(mirror)
    np.testing.assert_allclose(theirs[:, ::-1], ours, rtol=0, atol=1e-9)


def with_source(votes, name, column):
    columns = {n: votes.column(n) for n in votes.source_names} | {name: column}
    return dg.Votes.from_tasks(columns, lengths=votes.lengths)


def element_votes(n_sequences=800):
    return worlds.lopsided(5, 1).sample(n_sequences, rng=np.random.default_rng(3))[0]


PRIOR = worlds.lopsided().prior


def test_a_source_that_always_abstains_changes_nothing() -> None:
    votes = element_votes()
    mute = with_source(votes, "mute", np.zeros(votes.n_elements, dtype=np.int8))
    ours = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes).predict_proba(votes)
    model = dg.LabelModel(prior=PRIOR, dependencies=()).fit(mute)
    np.testing.assert_allclose(model.predict_proba(mute), ours, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.accuracies_["mute"], [[0, 0, 1], [0, 0, 1]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["constant", "unipolar", "duplicate", "noise"])
def test_odd_sources_have_a_defined_outcome(kind) -> None:
    votes = element_votes()
    rng = np.random.default_rng(0)
    column = {
        "constant": np.ones(votes.n_elements, dtype=np.int8),
        "unipolar": (votes.column("s0") > 0).astype(np.int8),
        "duplicate": votes.column("s1"),
        "noise": rng.integers(-1, 2, votes.n_elements).astype(np.int8),
    }[kind]
    dependencies = {"unipolar": [("s0", "odd")], "duplicate": [("s1", "odd")]}.get(kind, [])
    more = with_source(votes, "odd", column)
    model = dg.LabelModel(prior=PRIOR, dependencies=dependencies).fit(more)
    labels = model.predict_proba(more)
    assert np.isfinite(labels).all()
    np.testing.assert_allclose(labels.sum(axis=1), 1, rtol=0, atol=1e-9)
    for table in model.accuracies_.values():
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=0, atol=1e-9)
    plain = dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes).predict_proba(votes)
    assert np.abs(labels - plain).mean() < 0.02


def test_sequences_of_length_zero_and_one() -> None:
    votes = element_votes(400)
    lengths = np.concatenate([votes.lengths, [0, 1, 0]])
    columns = {n: np.concatenate([votes.column(n), [1]]).astype(np.int8) for n in votes.source_names}
    ragged = dg.Votes.from_tasks(columns, lengths=lengths)
    labels = dg.LabelModel(prior=PRIOR, dependencies=()).fit(ragged).predict_proba(ragged)
    assert labels.shape == (votes.n_elements + 1, 2)
    assert np.isfinite(labels).all()


def test_too_few_sources_say_what_would_help() -> None:
    votes = element_votes().select(sources=["s0", "s1"])
    flat = dg.priors.Markov(positive=0.3, stay=0.3)
    with pytest.raises(dg.NotIdentifiableError, match="cannot tell 's0' and 's1' apart"):
        dg.LabelModel(prior=flat, dependencies=()).fit(votes)
    known = {"s0": worlds.lopsided(5, 1).accuracies()["s0"]}
    assert dg.LabelModel(prior=flat, dependencies=(), accuracies=known).fit(votes).accuracies_["s1"].shape == (2, 3)


def test_unknown_and_absent_sources(sample, fitted) -> None:
    votes, _ = sample
    fewer = votes.select(sources=["frame0", "frame1", "whole"])
    assert np.isfinite(fitted.predict_proba(fewer)).all()
    stranger = dg.Votes.from_tasks({"stranger": np.ones(5, dtype=np.int8)}, lengths=[5])
    with pytest.raises(dg.VoteError, match="'stranger' was not there"):
        fitted.predict_proba(stranger)


def test_predicting_leaves_the_model_unchanged(sample, fitted) -> None:
    votes, _ = sample
    before = copy.deepcopy({k: v for k, v in vars(fitted).items() if k in ("accuracies_", "classes_")})
    first = fitted.predict_proba(votes)
    fitted.decode(votes)
    fitted.explain(votes, 2, 1)
    np.testing.assert_array_equal(fitted.predict_proba(votes), first)
    for name, table in before["accuracies_"].items():
        np.testing.assert_array_equal(fitted.accuracies_[name], table)


def test_fitting_twice_is_fitting_once(sample) -> None:
    votes, _ = sample
    model = dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies)
    first = model.fit(votes).predict_proba(votes)
    np.testing.assert_array_equal(model.fit(votes).predict_proba(votes), first)


@pytest.mark.parametrize("learned", [False, True])
def test_save_then_load_is_the_same_model(sample, tmp_path, learned) -> None:
    votes = sample[0][:400]
    given = {} if learned else {"prior": WORLD.prior, "dependencies": WORLD.dependencies}
    model = dg.LabelModel(**given).fit(votes)
    model.save(tmp_path / "model.json")
    loaded = dg.LabelModel.load(tmp_path / "model.json")
    for resolution in votes.resolutions:
        np.testing.assert_array_equal(loaded.predict_proba(votes, resolution), model.predict_proba(votes, resolution))
    assert loaded.get_params().keys() == model.get_params().keys()
    assert str(loaded.summary()) == str(model.summary())


def test_shards_add_up_to_the_whole() -> None:
    votes = element_votes()
    whole = dg.LabelModel(prior=PRIOR, dependencies=()).partial_fit(votes)
    parts = dg.LabelModel(prior=PRIOR, dependencies=())
    for shard in (votes[500:], votes[:200], votes[200:500]):
        parts.partial_fit(shard)
    for name, table in whole.accuracies_.items():
        np.testing.assert_allclose(parts.accuracies_[name], table, rtol=0, atol=1e-12)
    with pytest.raises(dg.GraphError, match="adding up moments needs"):
        dg.LabelModel().partial_fit(votes)


def test_loaded_model_needs_its_moments_to_go_on(tmp_path) -> None:
    votes = element_votes()
    model = dg.LabelModel(prior=PRIOR, dependencies=()).partial_fit(votes[:600])
    model.save(tmp_path / "model.json")
    model.moments_.save(tmp_path / "moments.npz")
    loaded = dg.LabelModel.load(tmp_path / "model.json")
    with pytest.raises(dg.NotFittedError, match="no moments to add to"):
        loaded.partial_fit(votes[600:])
    loaded.moments_ = Moments.load(tmp_path / "moments.npz")
    loaded.partial_fit(votes[600:])
    model.partial_fit(votes[600:])
    for name, table in model.accuracies_.items():
        np.testing.assert_array_equal(loaded.accuracies_[name], table)


def test_known_labels_help(sample) -> None:
    votes, labels = sample
    gold = np.where(np.arange(votes.n_elements) % 3 == 0, labels["element"], 0)
    model = dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies)
    truth = WORLD.accuracies()
    without = np.mean([np.abs(t - truth[n]).mean() for n, t in model.fit(votes).accuracies_.items()])
    helped = np.mean([np.abs(t - truth[n]).mean() for n, t in model.fit(votes, gold=gold).accuracies_.items()])
    assert helped < without


@pytest.mark.parametrize("estimator", ["centred", "centered", "em", dg.estimators.EM(max_iter=3)])
def test_estimators_by_name_and_by_object(sample, estimator) -> None:
    votes, labels = sample
    model = dg.LabelModel(prior=WORLD.prior, dependencies=WORLD.dependencies, estimator=estimator).fit(votes)
    assert brier(model.predict_proba(votes), labels["element"]) < 0.03


def test_an_unknown_estimator_says_which_are_known() -> None:
    with pytest.raises(dg.GraphError, match="'centred', 'paper'"):
        dg.LabelModel(prior=PRIOR, dependencies=(), estimator="magic").fit(element_votes())


def test_decoded_labels_and_samples_have_one_value_per_element(sample, fitted) -> None:
    votes, labels = sample
    decoded = fitted.decode(votes)
    assert decoded.shape == (votes.n_elements,)
    assert (decoded == labels["element"]).mean() > 0.9
    draws = fitted.sample(votes, n_draws=3)
    assert draws.shape == (3, votes.n_elements)
    assert set(np.unique(draws).tolist()) == {-1, 1}


def test_the_label_table_is_tidy(sample, fitted) -> None:
    votes, _ = sample
    table = fitted.labels(votes[:3], resolutions=["element", "sequence"]).table
    names = ["sequence", "start", "end", "resolution", "p_-1", "p_1", "label", "confidence", "best_path"]
    assert table.column_names == names
    assert table.num_rows == 3 * 5 + 3
    np.testing.assert_allclose(table["p_1"].to_numpy()[:15], fitted.predict_proba(votes[:3])[:, 1], rtol=0, atol=1e-12)


def test_explanations_sum_to_the_shown_log_odds(sample, fitted) -> None:
    votes, _ = sample
    learned = dg.LabelModel().fit(votes)
    for model in (fitted, learned):
        for resolution in ("element", "sequence"):
            one = model.explain(votes, 5, 0, resolution)
            shown = model.predict_proba(votes[[5]], resolution)[0, 1]
            total = one.prior + sum(vote.log_odds for vote in one.own_votes) + one.neighbours + one.averaging
            assert total == pytest.approx(one.log_odds, abs=1e-9)
            assert one.log_odds == pytest.approx(np.log(shown / (1 - shown)), abs=1e-7)


def test_sources_keep_their_resolution(fitted) -> None:
    assert SourceInfo(name="frame0", resolution=Element()) in fitted.sources_


def test_a_vote_that_was_never_seen_is_no_evidence() -> None:
    votes = element_votes()
    alarm = with_source(votes, "alarm", (votes.column("s0") > 0).astype(np.int8))
    model = dg.LabelModel(prior=PRIOR, dependencies=[("s0", "alarm")]).fit(alarm)
    columns = {name: alarm.column(name)[:5] for name in alarm.source_names}
    silent = dg.Votes.from_tasks(columns | {"alarm": np.full(5, dg.MISSING, dtype=np.int8)}, lengths=[5])
    stranger = dg.Votes.from_tasks(columns | {"alarm": np.full(5, -1, dtype=np.int8)}, lengths=[5])
    assert np.isfinite(model.predict_proba(stranger)).all()
    np.testing.assert_allclose(model.predict_proba(stranger), model.predict_proba(silent), rtol=0, atol=0.05)


def test_learned_intervals_contain_what_is_shown(sample) -> None:
    model = dg.LabelModel().fit(sample[0])
    for name, (low, high) in model.standard_errors_.intervals.items():
        assert (low <= model.accuracies_[name] + 1e-12).all()
        assert (high >= model.accuracies_[name] - 1e-12).all()


def test_standard_errors_are_worked_out_when_they_are_read_and_travel_with_copies() -> None:
    votes, _ = worlds.lopsided(5).sample(200, rng=3)
    for settings in ({"prior": worlds.lopsided(5).prior, "dependencies": ()}, {"dependencies": ()}, {}):
        model = dg.LabelModel(**settings).fit(votes)
        copied = copy.deepcopy(model)
        kept = copied.standard_errors_
        assert kept is copied.standard_errors_
        for name, error in model.standard_errors_.accuracies.items():
            assert error.max() > 0
            np.testing.assert_array_equal(kept.accuracies[name], error)
    assert not hasattr(dg.LabelModel(), "standard_errors_")

"""Data programming: the sampler against exact gradients by enumeration, contract, coarse votes, missing votes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dugong as dg
from dugong.baselines import DataProgramming
from dugong.baselines.elements import element_codes, on_elements
from dugong.baselines.trained import vote_table
from dugong.priors import Markov
from dugong.worlds import Block, World, accurate, confusion
from dugong.worlds.standard import lopsided


def even_world(accuracies, abstains, n_classes=2) -> World:
    """Sources that fit the factor graph: they err evenly and abstain whatever the label is."""
    tables = [confusion(n_classes, p, a) for p, a in zip(accuracies, abstains, strict=True)]
    step = np.full((n_classes, n_classes), 0.2 / (n_classes - 1))
    np.fill_diagonal(step, 0.8)
    prior = Markov(initial=np.full(n_classes, 1 / n_classes), transition=step)
    return World(prior=prior, blocks=tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables)))


def climb_exactly(codes, n_classes, balance, known=None, steps=8000, rate=1.5):
    """Oracle: gradient ascent with both means by enumeration, over labels and over all patterns of votes."""
    n_sources = codes.shape[1]
    factor = lambda votes, y: np.concatenate([votes == y, (votes >= 0) & (votes < n_classes)])  # noqa: E731
    patterns = [np.array(p) for p in product(range(n_classes + 1), repeat=n_sources)]
    cells = [(y, pattern) for y in range(n_classes) for pattern in patterns]
    free = np.array([factor(pattern, y) for y, pattern in cells], dtype=float)
    prior = np.log([balance[y] for y, _ in cells])
    known = np.full(len(codes), -1) if known is None else known
    rows, counts = np.unique(np.column_stack([codes, known]), axis=0, return_counts=True)
    seen = np.array([[factor(row[:-1], y) for y in range(n_classes)] for row in rows], dtype=float)
    weights = np.concatenate([np.ones(n_sources), np.zeros(n_sources)])
    for _ in range(steps):
        law = np.exp(prior + free @ weights - (prior + free @ weights).max())
        given = np.log(balance) + seen @ weights
        for place, row in enumerate(rows):
            if row[-1] >= 0:
                given[place, np.arange(n_classes) != row[-1]] = -np.inf
        given = np.exp(given - given.max(axis=1, keepdims=True))
        given /= given.sum(axis=1, keepdims=True)
        positive = np.einsum("r,ry,ryf->f", counts / counts.sum(), given, seen)
        weights += rate * (positive - law @ free / law.sum())
    return weights[:n_sources], weights[n_sources:]


def check_tables(model, n_classes, accuracy, propensity) -> None:
    for place, table in enumerate(model.accuracies_.values()):
        expected = vote_table(n_classes, accuracy[place], propensity[place])
        np.testing.assert_allclose(table, expected, rtol=0, atol=0.008)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_sampler_climbs_where_exact_gradients_do(n_classes) -> None:
    world = even_world([0.85, 0.7, 0.75, 0.6], [0.3, 0.2, 0.4, 0.25], n_classes)
    votes, _ = world.sample(600, rng=1)
    balance = np.full(n_classes, 1 / n_classes)
    accuracy, propensity = climb_exactly(element_codes(votes), n_classes, balance)
    check_tables(DataProgramming(n_epochs=1000).fit(votes), n_classes, accuracy, propensity)


def test_known_labels_and_a_given_balance() -> None:
    world = World(
        prior=Markov(positive=0.2, stay=0.2),
        blocks=tuple(Block(names=(f"s{j}",), table=accurate(p, p, 0.2)) for j, p in enumerate([0.8, 0.7, 0.65])),
    )
    votes, labels = world.sample(600, rng=2)
    gold = np.where(np.arange(votes.n_elements) % 3 == 0, labels["element"], 0)
    known = np.select([gold == -1, gold == 1], [0, 1], -1)
    accuracy, propensity = climb_exactly(element_codes(votes), 2, np.array([0.8, 0.2]), known)
    check_tables(DataProgramming(n_epochs=800, balance=[0.8, 0.2]).fit(votes, gold), 2, accuracy, propensity)


def test_accuracies_come_near_the_truth_where_its_assumptions_hold() -> None:
    world = even_world(np.linspace(0.6, 0.9, 8), np.linspace(0, 0.5, 8))
    votes, _ = world.sample(4000, rng=3)
    model = DataProgramming(n_epochs=60).fit(votes)
    for name, table in world.accuracies().items():
        np.testing.assert_allclose(model.accuracies_[name], table, rtol=0, atol=0.02)


def test_labels_are_those_of_independent_elements() -> None:
    world = lopsided(n_sources=4, seed=1)
    votes, labels = world.sample(200, rng=4)
    model = DataProgramming(n_epochs=20).fit(votes)
    codes = element_codes(votes)
    expected = np.full((votes.n_elements, 2), 0.5)
    for place, name in enumerate(votes.source_names):
        expected *= model.accuracies_[name][:, codes[:, place]].T
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(votes), expected, rtol=0, atol=1e-12)
    assert model.score(votes, labels["element"]) > 0.75
    window = dg.Window(size=5, link="any")
    quiet = np.prod(expected[:, 0].reshape(-1, 5), axis=1)
    np.testing.assert_allclose(model.predict_proba(votes, window)[:, 0], quiet, rtol=0, atol=1e-12)


def coarse(column, resolution, **options) -> dg.Votes:
    return dg.Votes.from_tasks({"c": column}, lengths=[4], resolutions={"c": resolution}, **options)


def test_coarse_votes_are_forced_onto_elements() -> None:
    votes = coarse(np.array([1, -1]), dg.Window(size=2))
    assert on_elements(votes).columns[0].tolist() == [1, 1, -1, -1]
    overlapping = coarse(np.array([1, -1, -1]), dg.Window(size=2, stride=1))
    assert on_elements(overlapping).columns[0].tolist() == [1, 0, -1, -1]
    missing = coarse(np.array([dg.MISSING, -1]), dg.Window(size=2))
    assert on_elements(missing).columns[0].tolist() == [dg.MISSING, dg.MISSING, -1, -1]
    named = coarse(np.array([1, -1]), dg.Window(size=2, of=3), n_classes=4)
    assert on_elements(named).columns[0].tolist() == [3, 3, 0, 0]


def test_labels_at_the_resolution_of_a_coarse_source() -> None:
    votes = dg.Votes.from_tasks(
        {"a": np.array([1, 1, -1, -1] * 50), "w": np.array([1, -1] * 50)},
        lengths=[4] * 50,
        resolutions={"w": dg.Window(size=2, link="any")},
    )
    model = DataProgramming(n_epochs=5).fit(votes)
    assert model.predict(votes, "window2").tolist() == [1, -1] * 50


def test_votes_that_were_not_asked_are_no_evidence() -> None:
    world = even_world([0.8, 0.75, 0.7, 0.65], [0.1, 0.1, 0.1, 0.1])
    votes, _ = world.sample(2000, rng=5)
    hidden = np.random.default_rng(0).random(votes.n_elements) < 0.6
    columns = [np.where(hidden, dg.MISSING, votes.columns[0]).astype(np.int8), *votes.columns[1:]]
    partly = dg.Votes(sources=votes.sources, columns=tuple(columns), lengths=votes.lengths)
    model = DataProgramming(n_epochs=60).fit(partly)
    np.testing.assert_allclose(model.accuracies_["s0"], world.accuracies()["s0"], rtol=0, atol=0.03)


def test_the_seed_decides_and_silence_stays_finite() -> None:
    votes = dg.Votes.from_dense(np.array([[1, 1, 0], [-1, -1, 0], [1, -1, 0]] * 20), lengths=[60])
    first, again, other = (DataProgramming(n_epochs=30, seed=seed).fit(votes) for seed in (1, 1, 2))
    assert first.weights_ == again.weights_
    assert first.weights_ != other.weights_
    assert np.isfinite(first.predict_proba(votes)).all()
    assert first.accuracies_["s2"][0, 2] > 0.9


def test_sparse_lexicons_are_not_mirrored_and_silence_stays_even() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(4000) < 0.1, 1, -1)
    positive = [np.where((truth == 1) & (rng.random(4000) < 0.4), 1, 0) for _ in range(4)]
    negative = [np.where((truth == -1) & (rng.random(4000) < 0.05), -1, 0) for _ in range(4)]
    votes = dg.Votes.from_dense(np.stack([*positive, *negative], axis=1)[np.newaxis].astype(np.int8))
    model = dg.DataProgramming(n_epochs=40).fit(votes)
    assert all(accuracy > 0 for accuracy, _ in model.weights_.values())
    silent = np.all(np.array(votes.columns) == 0, axis=0)
    assert silent.mean() > 0.5
    assert set(model.predict_proba(votes)[silent, 1].tolist()) == {0.5}
    assert set(model.predict(votes)[silent].tolist()) == {-1}


def test_tables_from_weights() -> None:
    np.testing.assert_allclose(
        vote_table(2, np.log(4), 0.0), [[4 / 6, 1 / 6, 1 / 6], [1 / 6, 4 / 6, 1 / 6]], rtol=1e-12
    )


def test_errors_say_what_is_wrong() -> None:
    votes = dg.Votes.from_dense(np.array([[1, 1], [-1, 1]]), lengths=[2])
    with pytest.raises(dg.PriorError, match="2 positive probabilities"):
        DataProgramming(balance=[0.5, 0.6]).fit(votes)
    with pytest.raises(dg.VoteError, match="n_epochs >= 1"):
        DataProgramming(n_epochs=0).fit(votes)
    with pytest.raises(dg.NotFittedError, match="call fit"):
        DataProgramming().predict(votes)

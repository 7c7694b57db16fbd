"""What each prior is: its law, its text, its plain form, its samples, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dugong as dg
import label_oracles as oracle
from dugong import priors
from dugong.exceptions import FileError, PriorError
from dugong.priors import Joint, Markov, Patterns, Prior, Uniform
from dugong.sums import Laws, Shapes
from dugong.tasks import Sequence, Window

EXACT = {"rtol": 0, "atol": 1e-12}
every_prior = st.one_of(oracle.chain_priors(), oracle.chain_priors(n_classes=3), oracle.joint_priors())


# --- laws ----------------------------------------------------------------------------------------------------


def test_markov_is_stationary_with_the_given_stay():
    prior = Markov(positive=0.1, stay=0.9)
    assert prior.probability((1,)) == pytest.approx(0.1)
    assert prior.probability((1, 1)) == pytest.approx(0.09)
    assert prior.probability((-1, 1)) == pytest.approx(0.01)
    assert prior.mean(("element", 999), 1000) == pytest.approx(-0.8)
    assert prior.is_stationary


def test_a_bout_is_a_mean_run_of_positives():
    assert Markov(positive=0.1, bout=10) == Markov(positive=0.1, stay=0.9)
    assert Markov(positive=0.5, bout=1).stay == 0


def test_stay_one_gives_the_sequence_one_label(rng):
    prior = Markov(positive=0.3, stay=1)
    assert prior.probability((1,) * 50) == pytest.approx(0.3)
    labels = prior.sample_lengths(np.full(200, 7), rng).reshape(200, 7)
    assert (labels == labels[:, :1]).all()
    assert set(labels[:, 0].tolist()) == {-1, 1}
    assert Markov(positive=1, stay=1).probability((1, 1, 1)) == 1


@given(prior=oracle.chain_priors(), length=st.integers(1, 6))
def test_patterns_of_any_length_sum_to_one_and_extend_each_other(prior, length):
    table = {p: prior.probability(p) for p in oracle.patterns(2, length)}
    assert sum(table.values()) == pytest.approx(1, abs=1e-12)
    for pattern, probability in table.items():
        longer = sum(prior.probability((*pattern, label)) for label in (-1, 1))
        assert longer == pytest.approx(probability, abs=1e-12)


@given(prior=oracle.pattern_priors(), data=st.data())
def test_a_pattern_table_is_followed_exactly_up_to_its_length(prior, data):
    table = dict(zip(prior.patterns, prior.probabilities, strict=True))
    for pattern in oracle.patterns(2, prior.length):
        assert prior.probability(pattern) == pytest.approx(table.get(pattern, 0), abs=1e-12)
    shorter = data.draw(st.integers(1, prior.length))
    np.testing.assert_allclose(
        prior.shorter(shorter).table(), prior.table().sum(axis=tuple(range(shorter, prior.length))), **EXACT
    )


def test_beyond_its_length_a_pattern_table_continues_from_the_last_labels():
    prior = Patterns({(1, 1, 1): 0.2, (1, 1, -1): 0.1, (-1, -1, -1): 0.4, (-1, 1, 1): 0.3})
    assert prior.probability((1, 1, 1, 1)) == pytest.approx(0.2 * 2 / 3)
    assert prior.probability((-1, 1, 1, -1)) == pytest.approx(0.3 / 3)
    # (1, -1) begins no pattern: the context shrinks to (-1), after which the table shows -1 (0.8) and +1 (0.3).
    assert prior.probability((1, 1, -1, 1)) == pytest.approx(0.1 * 0.3 / 1.1)


def test_a_label_that_only_ends_patterns_falls_back_to_the_share_of_each_class():
    prior = Patterns({(-1, -1, 1): 1.0})
    assert prior.probability((-1, -1, 1, 1)) == pytest.approx(1 / 3)


def test_patterns_of_one_label_are_independent_elements():
    prior = Patterns({(1,): 0.25, (-1,): 0.75})
    assert prior.probability((1, 1, -1)) == pytest.approx(0.25**2 * 0.75)


def test_a_markov_chain_cut_to_patterns_is_the_same_chain():
    chain = Markov(initial=[0.5, 0.3, 0.2], transition=[[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
    cut = chain.shorter(3)
    for pattern in [(1, 2, 3, 3, 1), (2, 2, 2, 2, 2)]:
        assert cut.probability(pattern) == pytest.approx(chain.probability(pattern), abs=1e-15)


def test_a_joint_table_names_tasks_of_several_resolutions():
    window = Window(2, link="joint")
    table = np.arange(1.0, 9.0).reshape(2, 2, 2) / 36
    prior = Joint([("element", 0), ("element", 1), (window, 0)], table)
    np.testing.assert_allclose(prior.joint_law([(window, 0), ("element", 1)], 2), table.sum(axis=0).T, **EXACT)
    assert prior.probability((1, -1)) == pytest.approx(table[1, 0].sum())
    assert prior.mean((Sequence("all"), 0), 2) == pytest.approx(2 * table[1, 1].sum() - 1)
    named = Joint([("element", 0), ("element", 1), ("window", 0)], table)
    np.testing.assert_allclose(named.joint_law([(window, 0)], 2), table.sum(axis=(0, 1)), **EXACT)


# --- samples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prior",
    [
        Uniform(),
        Markov(positive=0.3, stay=0.8),
        Markov(initial=[0.2, 0.5, 0.3], transition=[[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.4]]),
        Patterns({(1, 1, 1): 0.2, (1, 1, -1): 0.1, (-1, -1, -1): 0.4, (-1, 1, 1): 0.3}),
        Joint([("element", i) for i in range(4)], np.arange(16.0).reshape(2, 2, 2, 2) / 120),
    ],
    ids=repr,
)
def test_samples_follow_the_law(prior, rng):
    n = 40_000
    labels = prior.sample_lengths(np.full(n, 4), rng).reshape(n, 4)
    assert labels.dtype == np.int8
    found, counts = np.unique(labels, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, found.tolist()), counts / n, strict=True))
    for pattern in oracle.patterns(prior.n_classes, 4):
        probability = prior.probability(pattern)
        assert abs(seen.get(pattern, 0) - probability) <= 5 * np.sqrt(probability / n)
    assert len(prior.sample(4, rng)) == 4


def test_samples_repeat_with_the_seed_and_allow_empty_sequences():
    lengths = np.array([3, 0, 5])
    first, second = (Uniform().sample_lengths(lengths, np.random.default_rng(7)) for _ in range(2))
    assert (first == second).all()
    assert len(first) == 8


# --- text and plain data --------------------------------------------------------------------------------------


@given(prior=every_prior)
def test_plain_data_gives_the_same_prior_back(prior):
    plain = json.loads(json.dumps(prior.to_dict()))
    again = priors.from_dict(plain)
    assert again == prior
    assert hash(again) == hash(prior)


def test_joint_tables_with_resolutions_survive_plain_data():
    prior = Joint([("element", 0), (Sequence("joint"), 0)], [[0.5, 0.1], [0.1, 0.3]])
    assert priors.from_dict(json.loads(json.dumps(prior.to_dict()))) == prior


def test_unknown_plain_data():
    with pytest.raises(FileError, match=r"kind must be one of .*'markov'.*; found 'gaussian'"):
        priors.from_dict({"kind": "gaussian"})


def test_priors_print_what_they_are():
    assert repr(Uniform()) == "Uniform(n_classes=2)"
    assert repr(Markov(positive=0.1, bout=10)) == "Markov(positive=0.1, stay=0.9)"
    assert "from       -1        1" in str(Markov(positive=0.1, stay=0.9))
    assert "initial=[0.7, 0.3]" in repr(Markov(initial=[0.7, 0.3], transition=[[0.5, 0.5], [0.5, 0.5]]))
    table = Patterns({(1, 1): 0.25, (-1, -1): 0.75})
    assert repr(table) == "Patterns(length=2, n_classes=2, 2 of 4 possible)"
    assert str(table).splitlines()[1] == "  (-1, -1)  0.75"
    assert "and 4 more" in str(Uniform().shorter(4))
    assert repr(Joint([("element", 0)], [0.5, 0.5])) == "Joint(1 elements, 0 other tasks, n_classes=2)"


# --- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Markov(positive=0.9, stay=0.5), r"at most `1 - positive`.*positive=0.9 and stay=0.5.\n.*0.8889"),
        (lambda: Markov(positive=1.2, stay=0.5), "`positive` must be a probability from 0 to 1; found 1.2"),
        (lambda: Markov(positive=float("nan"), stay=0.5), "`positive` must be a probability"),
        (lambda: Markov(positive=0.2), "positive= with stay= or bout=.*found positive"),
        (Markov, "found nothing"),
        (lambda: Markov(positive=0.2, stay=0.5, bout=3), "found positive, stay, bout"),
        (lambda: Markov(positive=0.2, bout=0.5), "at least one element; found bout=0.5"),
        (lambda: Markov(initial=[0.5, 0.4], transition=np.eye(2)), "initial law must sum to one; found 0.9"),
        (lambda: Markov(initial=[0.5, 0.5], transition=[[1, 0], [0.5, 0.4]]), "transition matrix must sum to one"),
        (lambda: Markov(initial=[0.5, 0.5], transition=np.eye(3)), r"found shapes \(2,\) and \(3, 3\)"),
        (lambda: Patterns({(1, 1): 0.5, (-1, -1): 0.4}), "table of patterns must sum to one; found 0.9"),
        (lambda: Patterns({(1, 1): 1.5, (-1, -1): -0.5}), "table of patterns must hold probabilities"),
        (lambda: Patterns({(1, 0): 1.0}, n_classes=2), r"must be -1 or \+1; found 0"),
        (lambda: Patterns({(1, 1): 0.5, (1,): 0.5}), "same length, at least one; found lengths 1, 2"),
        (lambda: Patterns({}), "at least one pattern"),
        (lambda: Patterns(np.ones((2, 3)) / 6), r"found shape \(2, 3\)"),
        (lambda: Joint([("element", 0)], [0.5, 0.4]), "joint table must sum to one; found 0.9"),
        (lambda: Joint([("element", 1)], [0.5, 0.5]), r"found elements \[1\]"),
        (lambda: Joint([("element", 0)], np.ones((2, 2)) / 4), "found 1 tasks and shape"),
        (lambda: Joint([("element", 0)], [0.5, 0.5]).chain(), "no chain over elements"),
        (lambda: Uniform(n_classes=1), "at least two classes"),
        (lambda: Uniform().probability((1, 2)), r"must be -1 or \+1; found 2"),
        (lambda: Uniform().shorter(30), "at most 65536 patterns; found 30 elements"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(PriorError, match=f"(?s){message}"):
        make()


class Listed(Prior):
    """A user's own prior with numbers in a list: equal where they are, and without a hash."""

    n_classes = 2

    def __init__(self, positive: float) -> None:
        self.numbers = [positive]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.numbers == other.numbers

    __hash__ = None

    def chain(self):
        return Markov(positive=self.numbers[0], stay=0.8).chain()


class Changing(Listed):
    """The same object may have other numbers later."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@pytest.mark.parametrize("kind", [Listed, Changing])
def test_any_prior_of_a_users_own_can_be_fitted_with(kind) -> None:
    """With or without a hash, and whatever was asked of it before: as the same law written by us."""
    votes = dg.Votes.from_dense(np.random.default_rng(0).choice([-1, 1], (30, 6, 4)))
    own, hashes = kind(0.4), []
    for positive in (0.4, 0.2):
        own.numbers[0] = positive
        model = dg.LabelModel(prior=own, dependencies=()).fit(votes)
        ours = dg.LabelModel(prior=Markov(positive=positive, stay=0.8), dependencies=()).fit(votes)
        np.testing.assert_array_equal(model.predict_proba(votes), ours.predict_proba(votes))
        assert model.explain(votes).log_odds == ours.explain(votes).log_odds
        laws, known = (Laws(one, Shapes.of(votes.lengths, {})) for one in (own, ours.prior))
        window = Window(3)
        np.testing.assert_array_equal(laws.joint("same", window, window), known.joint("same", window, window))
        assert str(model.identifiability(votes)) == str(ours.identifiability(votes))
        # A report names what the labels came from, by the numbers of a prior that no file can name.
        hashes.append(model.report(votes, n_sequences=2).provenance.model_hash)
    assert len(hashes) == len(set(hashes)) == 2
    with pytest.raises(FileError, match="cannot be saved"):
        model.law_.to_dict()
    # A class of a user's own does not get in the way of those that files hold.
    assert priors.from_dict(ours.prior.to_dict()) == ours.prior

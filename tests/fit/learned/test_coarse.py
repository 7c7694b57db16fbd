"""Coarse votes: a good tag moves the elements, a useless one changes nothing, a harmful one is noticed."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.codec import decode, encode
from dugong.fit.beliefs import Leaning
from dugong.fit.learned.coarse import CoarseRules, describe_coarse, learn_coarse
from dugong.fit.learned.lifting import Windows, move_labels
from dugong.model import LabelModel
from dugong.tasks import Sequence, Spans, Window
from dugong.types import MISSING
from dugong.votes import Votes

N, T = 300, 50


def chain(rng, stay: float = 0.9, rise: float = 0.05, n: int = N) -> np.ndarray:
    """Labels 0 and 1 of n sequences of T elements."""
    truth = np.zeros((n, T), dtype=int)
    truth[:, 0] = rng.random(n) < 0.2
    for t in range(1, T):
        truth[:, t] = rng.random(n) < np.where(truth[:, t - 1] == 1, stay, rise)
    return truth.ravel()


def soft_labels(rng, truth: np.ndarray, sharp: float = 2.0) -> np.ndarray:
    """Calibrated labels of elements: the posterior of one noisy reading each."""
    balance = truth.mean()
    reading = rng.normal(np.where(truth == 1, 1, -1) * sharp / 2, np.sqrt(sharp / 2))
    odds = np.log(balance / (1 - balance)) + 2 * reading
    positive = 1 / (1 + np.exp(-odds))
    return np.stack([1 - positive, positive], axis=1)


def tag(rng, window: np.ndarray, sensitivity: float, specificity: float) -> np.ndarray:
    yes = rng.random(len(window)) < np.where(window, sensitivity, 1 - specificity)
    return np.where(yes, 1, -1).astype(np.int8)


def window_truth(truth: np.ndarray, size: int, link: str) -> np.ndarray:
    share = truth.reshape(-1, size).mean(axis=1)
    return {"any": share > 0, "all": share == 1, "majority": share > 0.5}[link]


def case(rng, link: str, size: int = 10, n: int = N):
    """Return true labels, labels by elements, the resolution, and who is positive."""
    truth = chain(rng, rise=0.015 if (link, size) == ("any", T) else 0.05, n=n)
    resolution = Window(size, link=link) if size < T else Sequence(link)
    return truth, soft_labels(rng, truth), resolution, window_truth(truth, size, link)


def votes_of(resolution, n: int = N, **columns: np.ndarray) -> Votes:
    elements = {"element": np.zeros(n * T, dtype=np.int8)}
    return Votes.from_tasks(elements | columns, np.full(n, T), resolutions=dict.fromkeys(columns, resolution))


def brier(labels: np.ndarray, truth: np.ndarray) -> float:
    return float(((labels[:, 1] - truth) ** 2).mean())


def learned(labels: np.ndarray, votes: Votes) -> tuple[CoarseRules, np.ndarray]:
    rules = learn_coarse(labels, votes, votes.sources)
    return rules, rules.move(labels, votes)


@pytest.mark.parametrize(("link", "size"), [("any", 10), ("any", T), ("all", 5), ("majority", 10), ("majority", T)])
def test_good_tag_moves_the_elements(rng, link, size):
    truth, labels, resolution, window = case(rng, link, size)
    votes = votes_of(resolution, good=tag(rng, window, 0.95, 0.95))
    rules, moved = learned(labels, votes)
    (one,) = rules.sources
    assert one.counts > 0.8
    np.testing.assert_allclose(one.learned.table[:, 1], [0.05, 0.95], atol=0.12)
    assert brier(moved, truth) < brier(labels, truth) - 0.0005
    np.testing.assert_allclose(moved.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize(("link", "size"), [("any", 10), ("all", 5), ("majority", 10)])
def test_shuffled_tag_changes_nothing(rng, link, size):
    _, labels, resolution, window = case(rng, link, size)
    for _ in range(5):
        votes = votes_of(resolution, shuffled=rng.permutation(tag(rng, window, 0.95, 0.95)))
        rules, moved = learned(labels, votes)
        assert rules.sources[0].counts < 0.1
        assert np.abs(moved - labels).mean() < 1e-4


@pytest.mark.parametrize(("link", "size"), [("any", 10), ("all", 5), ("majority", 10)])
def test_source_that_fires_at_changes_is_noticed(rng, link, size):
    truth, labels, resolution, _ = case(rng, link, size)
    mixed = np.ptp(truth.reshape(-1, size), axis=1) > 0
    rules, moved = learned(labels, votes_of(resolution, moves=tag(rng, mixed, 0.97, 0.97)))
    assert rules.sources[0].against > 0.99
    np.testing.assert_allclose(moved, labels, atol=0.01)


def test_inverted_tag_is_read_the_other_way_round(rng):
    truth, labels, resolution, window = case(rng, "any")
    good = tag(rng, window, 0.9, 0.95)
    (_, moved), (rules, mirrored) = (learned(labels, votes_of(resolution, one=sign * good)) for sign in (1, -1))
    assert rules.sources[0].inverted
    assert brier(mirrored, truth) < brier(labels, truth)
    np.testing.assert_allclose(mirrored, moved, atol=1e-6)


@pytest.mark.parametrize("link", ["any", "majority"])
def test_copies_count_once(rng, link):
    truth, labels, resolution, window = case(rng, link)
    good = tag(rng, window, 0.9, 0.9)
    _, alone = learned(labels, votes_of(resolution, one=good))
    rules, together = learned(labels, votes_of(resolution, one=good, two=good, three=good))
    assert sum(one.weight for one in rules.sources) == pytest.approx(1, abs=0.15)
    assert np.abs(together - alone).mean() < 0.003
    independent = votes_of(resolution, one=good, two=tag(rng, window, 0.9, 0.9))
    rules, both = learned(labels, independent)
    assert min(one.weight for one in rules.sources) > 0.8
    assert brier(both, truth) < brier(alone, truth)


def test_ten_windows_or_fewer_teach_nothing(rng):
    truth, labels, resolution, window = case(rng, "any", size=T, n=10)
    rules, moved = learned(labels, votes_of(resolution, n=10, tag=tag(rng, window, 1.0, 1.0)))
    assert rules.sources[0].counts == 0
    np.testing.assert_array_equal(moved, labels)
    known = {"tag": np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01]])}
    votes = votes_of(resolution, n=10, tag=tag(rng, window, 1.0, 1.0))
    told = learn_coarse(labels, votes, votes.sources, known).move(labels, votes)
    assert brier(told, truth) < brier(labels, truth)


def test_overlapping_windows_count_their_elements_once(rng):
    truth, labels, _, _ = case(rng, "any")
    resolution = Window(10, stride=5, link="any")
    starts, stops = votes_of(resolution, x=np.zeros(N * 9, dtype=np.int8)).layout(resolution).flat_bounds()
    window = np.array([truth[a:b].any() for a, b in zip(starts, stops, strict=True)])
    rules, moved = learned(labels, votes_of(resolution, good=tag(rng, window, 0.95, 0.95)))
    assert rules.sources[0].n_windows == pytest.approx(N * 5, rel=0.15)
    assert brier(moved, truth) < brier(labels, truth)
    assert rules.sources[0].fresh > 0.6
    together = np.repeat(rng.random(-(-len(window) // 3)) < 0.85, 3)[: len(window)]
    lasting = np.where(together == window, 1, -1).astype(np.int8)
    rules, _ = learned(labels, votes_of(resolution, lasting=lasting))
    assert rules.sources[0].fresh < 0.6


def test_spans_missing_votes_and_new_votes(rng):
    truth, labels, _, _ = case(rng, "any")
    spans = [[(0, 10), (12, 30), (40, 50)]] * N
    window = np.array([truth[s * T + a : s * T + b].any() for s in range(N) for a, b in spans[s]])
    column = tag(rng, window, 0.95, 0.95)
    column[::7] = MISSING
    votes = Votes.from_tasks(
        {"element": np.zeros(N * T, dtype=np.int8), "tag": column},
        np.full(N, T),
        resolutions={"tag": Spans("scene", link="any")},
        spans={"scene": spans},
    )
    rules, moved = learned(labels, votes)
    outside = np.tile(np.r_[10:12, 30:40], (N, 1)) + T * np.arange(N)[:, np.newaxis]
    np.testing.assert_allclose(moved[outside.ravel()], labels[outside.ravel()], atol=1e-12)
    part = votes.select(sequences=range(100, 150))
    np.testing.assert_allclose(rules.move(labels[100 * T : 150 * T], part), moved[100 * T : 150 * T], atol=1e-12)
    again = decode(CoarseRules, json.loads(json.dumps(encode(rules))))
    np.testing.assert_array_equal(again.move(labels, votes), moved)


def test_three_classes_and_two_resolutions(rng):
    n = 200
    kind = rng.integers(0, 3, n)
    truth = np.where(rng.random((n, T)) < 0.7, kind[:, np.newaxis], rng.integers(0, 3, (n, T))).ravel()
    noise = rng.dirichlet(np.ones(3), n * T)
    labels = 0.5 * noise + 0.5 * np.eye(3)[np.where(rng.random(n * T) < 0.6, truth, rng.integers(0, 3, n * T))]
    labels /= labels.sum(axis=1, keepdims=True)
    most = np.stack([(truth.reshape(n, T) == k).mean(axis=1) > 0.5 for k in range(3)], axis=1)
    columns = {f"is{k}": tag(rng, most[:, k], 0.9, 0.9) for k in (0, 2)}
    some = (truth.reshape(-1, 10) == 1).any(axis=1)
    votes = Votes.from_tasks(
        {"element": np.zeros(n * T, dtype=np.int8), "has1": tag(rng, some, 0.9, 0.9)} | columns,
        np.full(n, T),
        n_classes=3,
        resolutions={
            "is0": Sequence("majority", of=1),
            "is2": Sequence("majority", of=3),
            "has1": Window(10, link="any", of=2),
        },
    )
    rules, moved = learned(labels, votes)
    assert [one.name for one in rules.sources] == ["has1", "is0", "is2"]
    score = [((one - np.eye(3)[truth]) ** 2).sum(axis=1).mean() for one in (labels, moved)]
    assert score[1] < score[0] - 0.002
    swapped = votes.select(sources=[*reversed(votes.source_names)])
    np.testing.assert_allclose(learn_coarse(labels, swapped, swapped.sources).move(labels, swapped), moved, atol=1e-9)


@given(
    st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6),
    st.floats(0.05, 20.0),
    st.sampled_from(["any", "all"]),
)
def test_independent_elements_move_exactly(positive, ratio, link):
    """Against enumeration: elements that are independent before a window speaks."""
    q = np.array(positive)
    total = np.zeros(len(q))
    mass = window = 0.0
    for pattern in product((0, 1), repeat=len(q)):
        y = np.array(pattern)
        p = np.prod(np.where(y == 1, q, 1 - q))
        holds = y.any() if link == "any" else y.all()
        window += p * holds
        mass += p * (ratio if holds else 1.0)
        total += p * (ratio if holds else 1.0) * y
    after = window * ratio / mass
    labels = np.stack([1 - q, q], axis=1)
    moved = move_labels(labels, link, 1, np.full(len(q), window), np.full(len(q), after))
    np.testing.assert_allclose(moved[:, 1], total / mass, rtol=1e-9, atol=1e-12)


def test_majority_agrees_with_its_window(rng):
    labels = rng.dirichlet(np.ones(3), 50)
    composition = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    before = rng.uniform(0.05, 0.95, 50)
    same = move_labels(labels, "majority", 2, before, before, composition)
    np.testing.assert_allclose(same, labels, atol=1e-12)
    up = move_labels(labels, "majority", 2, before, (before + 1) / 2, composition)
    assert (up[:, 2] > labels[:, 2]).all()
    # The mixture of what is left if the window is surely negative or surely positive is the label of before.
    ends = [move_labels(labels, "majority", 2, before, np.full(50, p), composition) for p in (1e-12, 1 - 1e-12)]
    mixed = (1 - before)[:, np.newaxis] * ends[0] + before[:, np.newaxis] * ends[1]
    np.testing.assert_allclose(mixed, labels, atol=1e-6)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 30))
def test_windows_against_loops(size, stride, seed):
    rng = np.random.default_rng(seed)
    starts = np.arange(0, 20, min(stride, size))
    stops = np.minimum(starts + size, 25)
    values = rng.random(25)
    windows = Windows(starts=starts, stops=stops, n_elements=25)
    for link, how in (("any", np.max), ("all", np.min), ("majority", np.mean)):
        inside = np.array([how(values[a:b]) for a, b in zip(starts, stops, strict=True)])
        np.testing.assert_allclose(windows.lift(values, link), np.log(inside / (1 - inside)), rtol=1e-9)
    said = rng.random(len(starts))
    for t, found in enumerate(windows.to_elements(said)):
        holding = [value for a, b, value in zip(starts, stops, said, strict=True) if a <= t < b]
        assert found == pytest.approx(np.mean(holding) if holding else 0.0)
        assert windows.held()[t] == bool(holding)


def test_words_say_what_each_source_does(rng):
    truth, labels, resolution, window = case(rng, "any")
    mixed = np.ptp(truth.reshape(-1, 10), axis=1) > 0
    good = tag(rng, window, 0.9, 0.95)
    votes = votes_of(
        resolution,
        good=good,
        again=good,
        useless=rng.permutation(good),
        inverted=-tag(rng, window, 0.9, 0.9),
        moves=tag(rng, mixed, 0.97, 0.97),
    )
    rules, _ = learned(labels, votes)
    first, *others = describe_coarse(rules, labels, votes)
    assert "turn" in first.text
    words = {note.where: note.text for note in others}
    assert "of the positive windows" in words["good"]
    assert "its errors are those of other coarse sources" in words["again"]
    assert "do not predict" in words["useless"]
    assert "the other way round" in words["inverted"]
    assert "is not used" in words["moves"]
    assert "does not mean 'any'" in words["moves"]
    few = case(rng, "any", size=T, n=10)
    votes = votes_of(few[2], n=10, tag=tag(rng, few[3], 1, 1))
    rules, _ = learned(few[1], votes)
    assert "10 windows are too few" in describe_coarse(rules, few[1], votes)[1].text
    assert describe_coarse(CoarseRules(), labels, votes) == []


# --- in the whole model --------------------------------------------------------------------------------------------
def noisy_votes(rng, truth: np.ndarray, n_sources: int = 5, accuracy: float = 0.8, shared: float = 0.4) -> dict:
    """Sources on elements that share errors, and repeat them for five elements: their model does not hold."""
    together = np.repeat(rng.random(len(truth) // 5) > accuracy, 5)
    columns = {}
    for place in range(n_sources):
        wrong = np.where(rng.random(len(truth)) < shared, together, rng.random(len(truth)) > accuracy)
        columns[f"s{place}"] = np.where(wrong, 1 - 2 * truth, 2 * truth - 1).astype(np.int8)
    return columns


def fitted(columns: dict, resolution=None, **coarse: np.ndarray) -> tuple[LabelModel, Votes]:
    votes = Votes.from_tasks(columns | coarse, np.full(N, T), resolutions=dict.fromkeys(coarse, resolution))
    return LabelModel(n_threads=1).fit(votes), votes


def test_model_with_good_shuffled_and_harmful_tags(rng):
    truth = chain(rng)
    columns, resolution, window = noisy_votes(rng, truth), Window(10, link="any"), window_truth(truth, 10, "any")
    model, votes = fitted(columns)
    alone = model.predict_proba(votes)
    good = tag(rng, window, 0.95, 0.95)
    model, votes = fitted(columns, resolution, good=good)
    labels = model.predict_proba(votes)
    assert brier(labels, truth) < brier(alone, truth) - 0.001
    assert any("'good' says yes" in note.text for note in model.diagnostics_.notes)
    # One law: windows agree with their elements.
    windows = model.predict_proba(votes, resolution)[:, 1]
    inside = labels[:, 1].reshape(-1, 10)
    assert (windows >= inside.max(axis=1) - 1e-3).all()
    assert (windows <= inside.sum(axis=1) + 1e-3).all()
    assert ((windows - window) ** 2).mean() < 0.08
    for name, column in {
        "shuffled": rng.permutation(good),
        "moves": tag(rng, np.ptp(truth.reshape(-1, 10), axis=1) > 0, 0.97, 0.97),
    }.items():
        model, votes = fitted(columns, resolution, **{name: column})
        assert abs(brier(model.predict_proba(votes), truth) - brier(alone, truth)) < 0.001
        note = next(note for note in model.diagnostics_.notes if note.where == name)
        assert ("is not used" if name == "moves" else "changes nothing") in note.text


def test_only_coarse_sources(rng, tmp_path):
    """Rules per window of 10, per window of 25 and per sequence: labels agree, and each adds to the others."""
    truth = np.repeat(chain(rng)[::10], 10)
    n = len(truth) // T
    seconds = truth[::10] == 1
    coarse = {
        "a": (tag(rng, seconds, 0.8, 0.85), Window(10, link="majority")),
        "b": (tag(rng, seconds, 0.75, 0.8), Window(10, link="majority")),
        "c": (tag(rng, seconds, 0.7, 0.9), Window(10, link="any")),
        "d": (tag(rng, window_truth(truth[: n * 50], 25, "any"), 0.9, 0.9), Window(25, link="any")),
        "e": (tag(rng, window_truth(truth, T, "any"), 0.9, 0.9), Sequence("any")),
    }
    votes = Votes.from_tasks(
        {name: column for name, (column, _) in coarse.items()},
        np.full(n, T),
        resolutions={name: resolution for name, (_, resolution) in coarse.items()},
    )
    model = LabelModel(n_threads=1).fit(votes)
    labels = model.predict_proba(votes)
    assert ((labels[:, 1] > 0.5) == truth).mean() > 0.85
    windows = model.predict_proba(votes, Window(25, link="any"))[:, 1]
    assert (windows >= labels[:, 1].reshape(-1, 25).max(axis=1) - 1e-3).all()
    assert model.accuracies_["a"].shape == (2, 3)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(LabelModel.load(tmp_path / "model.json").predict_proba(votes), labels)


@pytest.mark.parametrize("resolution", [Sequence("any"), Sequence("majority"), Window(25, link="all")])
def test_one_coarse_source_and_nothing_else(rng, resolution):
    truth = chain(rng)
    window = window_truth(truth, T if isinstance(resolution, Sequence) else 25, resolution.link)
    model, votes = fitted({}, resolution, only=tag(rng, window, 0.9, 0.9))
    labels = model.predict_proba(votes)
    assert np.isfinite(labels).all()
    yes = votes.column("only") == 1
    found = model.predict_proba(votes, resolution)[:, 1]
    assert found[yes].mean() > found[~yes].mean() + 0.3


def test_three_classes_from_coarse_sources_alone(rng):
    kind = rng.integers(1, 4, 100)
    votes = Votes.from_tasks(
        {f"is{k}": np.where(rng.random(100) < 0.9, np.where(kind == k, 1, -1), 0).astype(np.int8) for k in (1, 2, 3)},
        np.full(100, 20),
        n_classes=3,
        resolutions={f"is{k}": Sequence("majority", of=k) for k in (1, 2, 3)},
    )
    labels = LabelModel(n_threads=1).fit(votes).predict_proba(votes)
    assert (labels.argmax(axis=1) + 1 == np.repeat(kind, 20)).mean() > 0.85
    one = votes.select(sources=["is2"])
    labels = LabelModel(n_threads=1).fit(one).predict_proba(one)[::20, 1]
    assert labels[one.column("is2") == -1].max() < labels[one.column("is2") == 1].min()
    assert labels[one.column("is2") == -1].mean() < 0.5


@pytest.mark.parametrize("link", ["any", "majority"])
def test_how_far_elements_are_believed_follows_from_the_table_that_is_leant_on(link) -> None:
    """As if that table were known; with the shift of another one, usual votes would be surprises."""
    rng = np.random.default_rng(4)
    _, labels, resolution, window = case(rng, link)
    votes = votes_of(resolution, tag=tag(rng, window, 0.9, 0.95))
    truth = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0]])
    leaning = Leaning(table=truth, weights=np.full(2, 1e9))
    alone, leant, known = (
        learn_coarse(labels, votes, votes.sources, known, beliefs).sources[0].learned
        for known, beliefs in (({}, {}), ({}, {"tag": leaning}), ({"tag": truth}, {}))
    )
    np.testing.assert_allclose(leant.table, truth, rtol=0, atol=1e-5)
    assert leant.shift == pytest.approx(known.shift, abs=1e-3)
    assert leant.slope == pytest.approx(known.slope, abs=1e-3)
    assert abs(alone.shift - known.shift) > 0.1

"""Laws that hold for all labels."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dugong.metrics import Evaluation, evaluate


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Draw ragged sequences with sticky gold, some of it unknown, and probabilities that lean towards it."""
    n_classes = draw(st.integers(2, 4))
    lengths = np.array(draw(st.lists(st.integers(0, 25), min_size=2, max_size=8).filter(any)))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = int(lengths.sum())
    columns = np.repeat(rng.integers(0, n_classes, n), rng.integers(1, 6, n))[:n]
    probabilities = rng.dirichlet(np.full(n_classes, 0.5), size=n)
    probabilities = probabilities + np.eye(n_classes)[columns] * draw(st.floats(0, 1))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    values = np.array([-1, 1]) if n_classes == 2 else np.arange(1, n_classes + 1)
    gold = np.where(rng.random(n) < 0.1, 0, values[columns])
    if not gold.any():
        gold[0] = values[0]
    return {"probabilities": probabilities, "gold": gold, "lengths": lengths, "classes": values}


def run(world: dict[str, np.ndarray]) -> Evaluation:
    return evaluate(world["probabilities"], world["gold"], lengths=world["lengths"], classes=world["classes"])


def same(one: Evaluation, other: Evaluation) -> None:
    assert [score.name for score in one.scores] == [score.name for score in other.scores]
    for a, b in zip(one.scores, other.scores, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-10, atol=1e-12, err_msg=a.name)
        assert (a.interval is None) == (b.interval is None), a.name
        if a.interval is not None and b.interval is not None:
            np.testing.assert_allclose(a.interval, b.interval, rtol=1e-6, atol=1e-9, err_msg=a.name)


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_sequences_does_not_matter(world, random):
    order = list(range(len(world["lengths"])))
    random.shuffle(order)
    pieces = np.split(np.arange(len(world["gold"])), np.cumsum(world["lengths"])[:-1])
    index = np.concatenate([pieces[i] for i in order])
    shuffled = world | {
        "probabilities": world["probabilities"][index],
        "gold": world["gold"][index],
        "lengths": world["lengths"][order],
    }
    same(run(world), run(shuffled))


@given(worlds())
def test_twice_is_the_same(world):
    assert run(world).to_dict() == run(world).to_dict()


@given(worlds())
def test_perfect_labels_are_perfect(world):
    columns = np.searchsorted(world["classes"], np.where(world["gold"] == 0, world["classes"][0], world["gold"]))
    result = run(world | {"probabilities": np.eye(len(world["classes"]))[columns]})
    for score in result.scores:
        best = 0.0 if score.name in ("brier", "log_loss", "ece", "onset_error", "offset_error") else 1.0
        assert score.value == best or math.isnan(score.value), score
    assert result.accuracy == 1.0
    assert result.brier == result.log_loss == result.ece == 0.0


@given(worlds())
def test_scores_lie_in_their_ranges_and_inside_their_intervals(world):
    result = run(world)
    highest = {"brier": 2.0, "log_loss": np.inf, "onset_error": np.inf, "offset_error": np.inf}
    for score in result.scores:
        assert math.isnan(score.value) or 0.0 <= score.value <= highest.get(score.name, 1.0), score
        if score.interval is not None:
            assert score.interval[0] <= score.value <= score.interval[1], score


@given(worlds(), st.floats(0.05, 0.5))
def test_a_lower_threshold_never_matches_fewer_exactly_right_spans(world, iou):
    result = evaluate(
        world["probabilities"], world["gold"], lengths=world["lengths"], classes=world["classes"], iou=iou
    )
    if not math.isnan(result.event_f1):
        assert result.event_f1 >= result.span_f1 - 1e-12
        assert max(result.event_precision or 0.0, result.event_recall or 0.0) <= 1.0


@given(worlds())
def test_unknown_gold_is_as_good_as_absent_for_elements(world):
    known = world["gold"] != 0
    result = run(world)
    cut = evaluate(world["probabilities"][known], world["gold"][known], classes=world["classes"])
    for score in cut.scores:
        np.testing.assert_allclose(score.value, result[score.name].value, rtol=1e-10, atol=1e-12)


@given(worlds())
def test_hard_labels_score_as_their_probabilities_do(world):
    hard = world["classes"][world["probabilities"].argmax(axis=1)]
    result = run(world)
    for score in evaluate(hard, world["gold"], lengths=world["lengths"], classes=world["classes"]).scores:
        assert score == result[score.name] or math.isnan(score.value)


@given(worlds())
def test_swapping_two_classes_swaps_the_positive_class(world):
    assume(len(world["classes"]) == 2)
    assume(not np.any(world["probabilities"][:, 0] == world["probabilities"][:, 1]))
    mirrored = evaluate(
        world["probabilities"][:, ::-1],
        -world["gold"],
        lengths=world["lengths"],
        classes=[-1, 1],
        positive=-1,
    )
    same(run(world), mirrored)

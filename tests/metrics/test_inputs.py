"""What must hold, what was found, what to do: every complaint about input."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.exceptions import DugongError, LabelError
from dugong.metrics import compare, evaluate

HALF = np.full((4, 2), 0.5)


@pytest.mark.parametrize(
    ("labels", "gold", "options", "messages"),
    [
        ([1, -1, 1], [1, -1], {}, ["one entry per element", "found 3 and 2"]),
        (HALF, [1, -1, 1, -1], {"lengths": [2, 3]}, ["lengths must add up", "sum of 5 over 2", "4 elements"]),
        (HALF, [1, -1, 1, -1], {"lengths": [5, -1]}, ["lengths must be whole numbers, none negative"]),
        (HALF, [1, -1, 1, -1], {"lengths": [2.0, 2.0]}, ["lengths must be whole numbers"]),
        (HALF, [1, -1, 1, -1], {"lengths": [[2, 2]]}, ["lengths must be one flat array"]),
        ([[0.5, 0.4], [0.5, 0.5]], [1, -1], {}, ["sum to one", "found 1 rows", "element 0", "[0.5, 0.4]"]),
        ([[0.5, 0.5], [1.2, -0.2]], [1, -1], {}, ["sum to one", "element 1"]),
        ([[0.5, 0.5], [np.nan, 0.5]], [1, -1], {}, ["1 with NaN", "element 1"]),
        ([0.2, 0.7], [1, -1], {}, ["may be labels or P(+1)", "np.column_stack([1 - p, p])", "astype(int)"]),
        ([[0.3], [0.7]], [1, -1], {}, ["sum to one"]),
        ([[1.0], [1.0]], [1, -1], {}, ["at least two columns", "np.column_stack"]),
        (HALF, [1, -1, 2, -1], {}, ["gold must be one of the classes [-1, 1]", "element 2 (value 2)"]),
        (np.eye(3), [1, -1, 2], {}, ["gold must be one of the classes [1, 2, 3]", "add 1"]),
        (
            [1, 2, 7],
            [1, 2, 3],
            {"classes": ["a", "b", "c"]},
            ["labels must be one of", "element 2 (value 7)"],
        ),
        (HALF, [0, 0, 0, 0], {}, ["gold must be known somewhere", "4 elements, all of them 0"]),
        (np.zeros((0, 2)), [], {}, ["gold must be known somewhere", "found 0 elements"]),
        ([], [], {"classes": [-1, 1]}, ["gold must be known somewhere"]),
        (HALF, [1, -1, np.nan, 1], {}, ["gold must be whole", "element 2", "Mark unknown gold with 0"]),
        (HALF, [1, 0.5, 1, 1], {}, ["gold must be whole", "value 0.5"]),
        (HALF, [True, False, True, True], {}, ["found bool", "np.where(values, 1, -1)"]),
        ([True, False], [1, -1], {}, ["labels must hold class values", "found bool"]),
        (HALF, ["a", "b", "a", "b"], {}, ["gold must hold class values"]),
        (HALF, [0, 1, 1, 0], {}, ["looks like 0/1 coding", "2 zeros", "classes=[0, 1]", "classes=[-1, 1]"]),
        ([0, 1, 1, 0], [-1, 1, 1, -1], {}, ["labels must hold -1 and +1", "0/1 coding"]),
        ([1, 2, 2], [1, 2, 1], {}, ["cannot tell how many classes", "between 1 and 2"]),
        ([1, -1, 3], [1, 2, 3], {}, ["cannot tell how many classes", "between -1 and 3"]),
        ([1, 1], [1, 1], {}, ["cannot tell how many classes"]),
        (HALF, [1, -1, 1, -1], {"classes": ["a", "b", "c"]}, ["columns of the probabilities", "[2, 3]"]),
        (HALF, [1, -1, 1, -1], {"classes": ["a", "a"]}, ["class names must differ", "'a'"]),
        (HALF, [1, -1, 1, -1], {"classes": [0, 1]}, ["-1 is unknown", "leave classes= out"]),
        (HALF, [1, -1, 1, -1], {"classes": [1, -1]}, ["in this order"]),
        (HALF, [1, -1, 1, -1], {"classes": ["a", 1]}, ["all names, all values, or a mapping"]),
        (HALF, [1, -1, 1, -1], {"classes": ["a"]}, ["at least two classes"]),
        (HALF, [1, -1, 1, -1], {"classes": {"a": -1, "b": 1}}, ["a mapping of value to name"]),
        (HALF, [1, -1, 1, -1], {"positive": "rally"}, ["positive must be one of", "found 'rally'"]),
        (HALF, [1, -1, 1, -1], {"background": 3}, ["background must be one of", "found 3"]),
        (HALF, [1, -1, 1, -1], {"positive": 1, "background": 1}, ["must be different classes"]),
        (HALF, [1, -1, 1, -1], {"groups": [1, 2, 3]}, ["per element (4)", "found shape (3,)"]),
        (
            HALF,
            [1, -1, 1, -1],
            {"groups": [1, 2, 3], "lengths": [2, 2]},
            ["per sequence (2) or per element (4)"],
        ),
        (HALF, [1, -1, 1, -1], {"iou": 0.0}, ["iou must be above 0"]),
        (HALF, [1, -1, 1, -1], {"iou": 1.1}, ["at most 1"]),
        (HALF, [1, -1, 1, -1], {"n_bins": 0}, ["n_bins must be at least 1"]),
        (HALF, [1, -1, 1, -1], {"confidence": 95}, ["confidence must lie between 0 and 1"]),
        (np.zeros((2, 2, 2)), [1, -1], {}, ["labels must be one flat array", "(2, 2, 2)"]),
        (HALF, [[1, -1], [1, -1]], {}, ["gold must be one flat array", "(2, 2)"]),
        ([[1, -1], [1]], [1, -1, 1], {}, ["found a ragged list", "np.concatenate"]),
        (HALF.astype(str), [1, -1, 1, -1], {}, ["probabilities must be numbers"]),
    ],
)
def test_bad_input_is_named(labels, gold, options, messages):
    with pytest.raises(LabelError) as caught:
        evaluate(labels, gold, **options)
    for message in messages:
        assert message in str(caught.value)
    assert isinstance(caught.value, DugongError)
    assert isinstance(caught.value, ValueError)


def test_saying_the_coding_allows_unknown_beside_positive():
    for classes in ([-1, 1], np.array([-1, 1]), {-1: "rest", 1: "event"}, {1: "event", -1: "rest"}):
        result = evaluate(HALF, [0, 1, 1, 0], classes=classes)
        assert (result.n_known, result.n_unknown) == (2, 2)
    assert [one.name for one in result.classes] == ["rest", "event"]


def test_the_number_of_classes_may_come_from_the_values_and_is_noted():
    result = evaluate([1, 4, 2], [1, 2, 2])
    assert len(result.classes) == 4
    assert "4 classes, taken from the values" in str(result)


def test_whole_floats_are_accepted_as_gold():
    assert evaluate(HALF, [1.0, -1.0, 0.0, 1.0]).n_known == 3


def test_single_precision_probabilities_are_accepted(rng):
    probabilities = rng.dirichlet(np.ones(18), size=1000)
    gold = rng.integers(1, 19, 1000)
    single = evaluate(probabilities.astype(np.float32), gold)
    np.testing.assert_allclose(single.log_loss, evaluate(probabilities, gold).log_loss, rtol=1e-5, atol=0)


def test_gold_that_may_run_from_zero_is_noted():
    result = evaluate(np.full((4, 3), 1 / 3), [0, 1, 2, 1])
    assert "if gold runs from 0 to K - 1, add 1" in str(result)


def test_empty_sequences_change_nothing(rng):
    labels, gold = rng.choice([-1, 1], 12), rng.choice([-1, 1], 12)
    plain = evaluate(labels, gold, lengths=[5, 7]).to_dict()
    empty = evaluate(labels, gold, lengths=[0, 5, 0, 0, 7, 0]).to_dict()
    assert plain.pop("n_sequences") == 2
    assert empty.pop("n_sequences") == 6
    assert plain == empty


def test_comparison_names_the_method_at_fault():
    with pytest.raises(LabelError, match="each row of model must be probabilities"):
        compare({"majority": HALF, "model": HALF * 2}, [1, -1, 1, -1])
    with pytest.raises(LabelError, match="model and gold must have one entry per element"):
        compare({"majority": HALF, "model": HALF[:2]}, [1, -1, 1, -1])
    with pytest.raises(LabelError, match="at least two methods; found \\['model'\\]"):
        compare({"model": HALF}, [1, -1, 1, -1])
    with pytest.raises(LabelError, match="columns of the probabilities"):
        compare({"majority": HALF, "model": np.full((4, 4), 0.25)}, [1, -1, 1, -1])

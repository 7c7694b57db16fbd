"""Windows of context and padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.endmodels import EndModelError, Padded, context_windows, pad_sequences


def test_one_step_per_element_keeps_its_place():
    windows = context_windows(np.arange(1.0, 6.0)[:, None])
    assert windows.values.shape == (5, 5, 1)
    assert windows.values.dtype == np.float32
    assert windows.values[..., 0].tolist() == [
        [0, 0, 0, 1, 2],
        [0, 0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4, 5],
        [2, 3, 4, 5, 0],
    ]
    np.testing.assert_array_equal(windows.mask, windows.values[..., 0] > 0)


def test_windows_stop_at_the_ends_of_sequences():
    windows = context_windows(np.arange(1.0, 6.0), lengths=[2, 0, 3], before=1, after=1)
    assert windows.values[..., 0].tolist() == [[0, 1, 2], [1, 2, 0], [0, 3, 4], [3, 4, 5], [4, 5, 0]]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 4), st.integers(0, 3))
def test_both_forms_agree_on_single_steps(lengths, before, after):
    elements = np.arange(1.0, sum(lengths) + 1.0)[:, None]
    if not len(elements):
        return
    aligned = context_windows(elements, lengths=lengths, before=before, after=after)
    joined = context_windows(list(elements[:, None]), lengths=lengths, before=before, after=after)
    for i in range(len(elements)):
        np.testing.assert_array_equal(aligned.values[i][aligned.mask[i]], joined.values[i][joined.mask[i]])
    assert np.all(aligned.values[~aligned.mask] == 0)
    assert np.all(joined.values[~joined.mask] == 0)


def cycles() -> list[np.ndarray]:
    """Three elements of 2, 3 and 1 steps; the tens name the element."""
    return [np.array([[10.0], [11.0]]), np.array([[20.0], [21.0], [22.0]]), np.array([[30.0]])]


def test_elements_that_take_time_are_joined():
    windows = context_windows(cycles(), before=1, after=1)
    assert windows.values[..., 0].tolist() == [
        [10, 11, 20, 21, 22, 0],
        [10, 11, 20, 21, 22, 30],
        [20, 21, 22, 30, 0, 0],
    ]
    assert windows.mask.sum(axis=1).tolist() == [5, 6, 4]


def test_a_long_window_keeps_its_own_element():
    windows = context_windows(cycles(), before=1, after=1, max_length=3)
    assert windows.values[..., 0].tolist() == [[10, 11, 20], [20, 21, 22], [21, 22, 30]]


def test_the_own_element_can_be_marked():
    joined = context_windows(cycles(), before=1, after=1, mark=True)
    assert joined.values[..., 1].tolist() == [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 0, 0]]
    aligned = context_windows(np.ones((3, 2)), before=1, after=1, mark=True)
    assert aligned.values.shape == (3, 3, 3)
    assert aligned.values[..., 2].tolist() == [[0, 1, 0]] * 3


def test_images_and_tokens_have_windows_too():
    frames = np.ones((4, 3, 8, 8), dtype=np.uint8)
    windows = context_windows(frames, before=1, after=0)
    assert windows.values.shape == (4, 2, 3, 8, 8)
    assert windows.values.dtype == np.uint8
    assert context_windows(np.array([5, 6, 7])).values.dtype.kind == "i"


def test_padding():
    padded = pad_sequences([np.ones((2, 3)), np.ones((4, 3))])
    assert padded.values.shape == (2, 4, 3)
    assert padded.mask.tolist() == [[True, True, False, False], [True] * 4]
    assert pad_sequences([np.arange(5.0)], max_length=3).values.tolist() == [[0, 1, 2]]
    assert len(padded) == 2


def test_rows_can_be_taken():
    padded = pad_sequences([np.ones(1), np.ones(2), np.ones(3)])
    assert padded.take([2, 0]).mask.sum(axis=1).tolist() == [3, 1]
    assert padded.take(slice(1, None)).mask.sum(axis=1).tolist() == [2, 3]


def test_arrays_are_read_only_and_inputs_stay():
    elements = np.ones((3, 2))
    windows = context_windows(elements, mark=True)
    assert not windows.values.flags.writeable
    assert not windows.mask.flags.writeable
    np.testing.assert_array_equal(elements, np.ones((3, 2)))
    assert elements.flags.writeable


def test_no_elements_give_no_windows():
    assert context_windows(np.zeros((0, 4))).values.shape == (0, 5, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: context_windows(np.ones((3, 1)), before=-1), "0 or more; found -1 and 1"),
        (lambda: context_windows(np.ones((3, 1)), lengths=[1, 1]), "add up to 3; .* sum 2"),
        (lambda: context_windows(np.ones((3, 1)), max_length=2), "max_length is for a list"),
        (lambda: context_windows([np.ones(3), np.ones(3)]), "give one array of shape"),
        (lambda: context_windows([np.ones((2, 3)), np.ones((2, 4))]), r"item 0 has \(3,\), item 1 \(4,\)"),
        (lambda: context_windows([np.ones((2, 2, 2))], mark=True), "vectors of floats; found steps of shape"),
        (lambda: context_windows([]), "the list is empty"),
        (lambda: context_windows(np.array(["a"])), "must be numbers"),
        (lambda: pad_sequences([np.ones(2), np.ones(0)]), "1 have none, the first is row 1"),
        (lambda: pad_sequences([np.ones(2)], max_length=0), "at least 1; found 0"),
        (lambda: Padded(values=np.ones((2, 3)), mask=np.ones((2, 2), dtype=bool)), "one entry per step"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(EndModelError, match=message):
        call()

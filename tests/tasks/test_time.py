"""Seconds become elements only at a known rate, and every move is reported."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import TaskError
from dugong.tasks import Rounding, TimeAxis
from strategies import lengths, time_axes


def test_bounds_on_element_borders_do_not_move():
    axis = TimeAxis.from_rate([25.0, 30.0], start=[0.0, 10.0])
    spans = axis.to_elements([0, 1], [0.4, 10.1], [1.0, 12.0])
    assert spans.starts.tolist() == [10, 3]
    assert spans.stops.tolist() == [25, 60]
    assert spans.rounding == Rounding(n_bounds=4)


def test_rounding_is_reported():
    axis = TimeAxis.from_rate(10.0, n_sequences=1)
    spans = axis.to_elements([0, 0, 0], [0.0, 0.13, 0.26], [0.13, 0.26, 0.27])
    assert spans.starts.tolist() == [0, 1, 3]
    assert spans.stops.tolist() == [1, 3, 3]
    assert spans.rounding.n_bounds == 6
    assert spans.rounding.n_moved == 5
    assert spans.rounding.largest == pytest.approx(0.04, rel=1e-9)
    assert spans.rounding.n_empty == 1
    assert "5 of 6 bounds moved to an element border, by 0.04 s at most; 1 spans hold no element" in str(spans.rounding)


@given(
    st.floats(0.3, 60),
    st.lists(st.floats(0.001, 5), min_size=1, max_size=30),
    st.floats(-50, 50),
)
def test_spans_that_tile_the_time_tile_the_elements(rate, steps, start):
    borders = start + np.concatenate([[0.0], np.cumsum(steps)])
    axis = TimeAxis.from_rate(rate, n_sequences=1, start=start)
    spans = axis.to_elements(np.zeros(len(steps), dtype=int), borders[:-1], borders[1:])
    assert spans.starts[0] == 0
    assert (spans.starts[1:] == spans.stops[:-1]).all()
    assert spans.rounding.largest <= 0.5 / rate + 1e-6


@given(st.floats(0.3, 60), st.floats(0, 100), st.floats(0.01, 20))
def test_an_element_belongs_to_a_span_if_its_centre_does(rate, start, duration):
    spans = TimeAxis.from_rate(rate, n_sequences=1).to_elements([0], [start], [start + duration])
    centres = (np.arange(int((start + duration) * rate) + 2) + 0.5) / rate
    near_a_border = (np.abs(centres - start) < 1e-5) | (np.abs(centres - start - duration) < 1e-5)
    inside = (centres >= start) & (centres < start + duration)
    found = np.zeros(len(centres), dtype=bool)
    found[spans.starts[0] : spans.stops[0]] = True
    assert (found == inside)[~near_a_border].all()


def test_timestamps_decide_by_themselves():
    axis = TimeAxis.from_timestamps({"b": [0.0, 0.5, 2.0], "a": [1.0]}, ids=["a", "b"], start={"a": 0.0, "b": 100.0})
    spans = axis.to_elements([1, 1, 0], [100.0, 100.4, 0.0], [100.5, 103.0, 2.0])
    assert spans.starts.tolist() == [0, 1, 0]
    assert spans.stops.tolist() == [1, 3, 1]
    assert spans.rounding.n_moved == 2  # 100.4 to 100.5, and 0.0 to 1.0; ends after the last stamp stay
    assert spans.rounding.largest == pytest.approx(1.0, rel=1e-9)
    assert axis.seconds([1, 0], [2, 0]).tolist() == [102.0, 1.0]
    with pytest.raises(TaskError, match="must exist to have a timestamp"):
        axis.seconds([1], [3])


@given(st.data(), lengths())
def test_plain_data_selection_and_concatenation(data, of_lengths):
    axis = data.draw(time_axes(of_lengths))
    again = TimeAxis.from_dict(json.loads(json.dumps(axis.to_dict())))
    assert again.equals(axis)
    assert not again.equals(None)
    chosen = data.draw(st.lists(st.integers(0, len(of_lengths) - 1), min_size=1, max_size=4))
    part = axis.select(chosen)
    for place, sequence in enumerate(chosen):
        elements = np.arange(of_lengths[sequence])
        mine, theirs = np.full(len(elements), place), np.full(len(elements), sequence)
        assert part.seconds(mine, elements).tolist() == axis.seconds(theirs, elements).tolist()
    halves = [axis.select(np.arange(0, 1)), axis.select(np.arange(1, len(of_lengths)))]
    assert TimeAxis.concat(halves).equals(axis)


def test_the_rounding_report_survives_as_plain_data():
    axis = TimeAxis(start=np.zeros(1), rate=np.ones(1), rounding=Rounding(n_bounds=3, n_moved=1, largest=0.2))
    assert TimeAxis.from_dict(json.loads(json.dumps(axis.to_dict()))).rounding == axis.rounding
    assert "1 of 3 bounds" in repr(axis)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeAxis.from_rate(25.0), "pass n_sequences= or ids="),
        (lambda: TimeAxis.from_rate(0.0, n_sequences=1), "positive number of elements per second; found 0.0"),
        (lambda: TimeAxis.from_rate([25.0, np.nan]), "found nan for sequence 1"),
        (lambda: TimeAxis.from_rate({"a": 1.0}, n_sequences=1), "needs ids="),
        (lambda: TimeAxis.from_rate({"a": 1.0}, ids=["a", "b"]), "rate must be given for every sequence.*'b'"),
        (lambda: TimeAxis.from_rate([1.0, 2.0], n_sequences=3), r"one number or one per sequence; found \(2,\) for 3"),
        (lambda: TimeAxis.from_rate(1.0, n_sequences=1, start=np.inf), "start of a sequence must be a finite"),
        (lambda: TimeAxis.from_timestamps([[0, 1, 1]]), "increase inside a sequence; found 1.*sequence 0, element 2"),
        (lambda: TimeAxis.from_timestamps([[0], [0, np.nan]]), "sequence 1, element 1: nan"),
        (lambda: TimeAxis(start=np.zeros(1)), "either rates or timestamps"),
        (lambda: TimeAxis.from_rate(1.0, n_sequences=1).to_elements([0], [2.0], [2.0]), "end after it starts; found 1"),
        (lambda: TimeAxis.from_rate(1.0, n_sequences=1).to_elements([0], [np.nan], [2.0]), "must be finite"),
        (
            lambda: TimeAxis.from_timestamps([[0.0, 1.0], []]).to_elements([0, 0], [0.5, 1.5], [3.0, 9.0]),
            r"must touch the timestamps of its sequence; found 1.*row 1, sequence 0: \[1.5, 9.0\)",
        ),
        (lambda: TimeAxis.from_timestamps([[0.0], []]).to_elements([1], [0.0], [9.0]), "found 1.*row 0, sequence 1"),
        (
            lambda: TimeAxis.concat([TimeAxis.from_rate(1.0, n_sequences=1), TimeAxis.from_timestamps([[0.0]])]),
            "do not go together",
        ),
    ],
)
def test_clocks_that_are_none(make, message):
    with pytest.raises(TaskError, match=message):
        make()


def test_places_may_count_from_the_end():
    axis = TimeAxis.from_timestamps([[0.0, 1.0, 2.0], [5.0, 6.0]])
    assert axis.select(np.array([-1])).stamps.tolist() == [5.0, 6.0]
    assert axis.select(np.array([0, -1])).stamps.tolist() == [0.0, 1.0, 2.0, 5.0, 6.0]

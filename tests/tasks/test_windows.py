"""Where tasks lie: the rule for windows against its definition, and the worked example of the paper's Figure 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import TaskError
from dugong.tasks import Element, Layout, Sequence, Spans, SpanTable, TaskFinder, Window, count_tasks
from strategies import lengths, resolutions, span_tables, windows


def windows_by_hand(length: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Windows start at 0, stride, 2 stride, ... and stop with the first that reaches the end."""
    found: list[tuple[int, int]] = []
    start = 0
    while length > 0:
        found.append((start, min(start + size, length)))
        if start + size >= length:
            break
        start += stride
    return found


@given(lengths(max_length=40), windows(max_size=12))
def test_windows_follow_their_definition(of_lengths, window):
    expected = [windows_by_hand(length, window.size, window.stride) for length in of_lengths.tolist()]
    layout = Layout.of(window, of_lengths)
    assert count_tasks(window, of_lengths).tolist() == [len(pairs) for pairs in expected]
    starts, stops = layout.bounds()
    assert list(zip(starts.tolist(), stops.tolist(), strict=True)) == [pair for pairs in expected for pair in pairs]
    assert layout.owners().tolist() == [place for place, pairs in enumerate(expected) for _ in pairs]


@given(st.integers(1, 200), st.integers(1, 50), st.data())
def test_number_of_windows_in_closed_form(length, size, data):
    stride = data.draw(st.integers(1, size))
    expected = 1 if length <= size else -((size - length) // stride) + 1
    assert count_tasks(Window(size, stride), np.array([length])).tolist() == [expected]


@given(lengths(max_length=30), windows(max_size=9))
def test_windows_cover_every_element_and_cross_no_border(of_lengths, window):
    layout = Layout.of(window, of_lengths)
    starts, stops = layout.flat_bounds()
    covered = np.zeros(int(of_lengths.sum()), dtype=bool)
    for start, stop in zip(starts, stops, strict=True):
        covered[start:stop] = True
    assert covered.all()
    ends = layout.element_offsets[layout.owners() + 1]
    assert (stops <= ends).all()


def test_figure_1_of_the_paper_has_8_tasks():
    # Four frames, three overlapping windows of two, one sequence.
    length = np.array([4])
    frames, pairs, scene = (Layout.of(r, length) for r in (Element(), Window(2, stride=1), Sequence()))
    assert [layout.n_tasks for layout in (frames, pairs, scene)] == [4, 3, 1]
    assert sum(layout.n_tasks for layout in (frames, pairs, scene)) == 8
    assert list(zip(*map(np.ndarray.tolist, pairs.bounds()), strict=True)) == [(0, 2), (1, 3), (2, 4)]
    assert list(zip(*map(np.ndarray.tolist, scene.bounds()), strict=True)) == [(0, 4)]


def test_an_empty_sequence_has_no_tasks():
    for resolution in (Element(), Window(3), Sequence()):
        assert count_tasks(resolution, np.array([0, 2])).tolist() == [0, 2 if resolution == Element() else 1]


@given(st.data(), lengths(max_length=20))
def test_tasks_that_touch_a_range_are_found(data, of_lengths):
    total = int(of_lengths.sum())
    if total == 0:
        return
    spans = {name: data.draw(span_tables(of_lengths)) for name in ("shot", "line")}
    layout = Layout.of(data.draw(resolutions()), of_lengths, spans)
    begin = data.draw(st.integers(0, total - 1))
    end = data.draw(st.integers(begin + 1, total))
    starts, stops = layout.flat_bounds()
    expected = np.flatnonzero((starts < end) & (stops > begin))
    run = TaskFinder(layout).touching(begin, end)
    assert np.arange(run.first, run.last).tolist() == expected.tolist()
    assert run.starts.tolist() == starts[expected].tolist()
    assert run.stops.tolist() == stops[expected].tolist()


@given(st.data(), lengths())
def test_spans_of_selected_sequences(data, of_lengths):
    table = data.draw(span_tables(of_lengths))
    chosen = np.array(data.draw(st.lists(st.integers(0, len(of_lengths) - 1), max_size=4)), dtype=np.int64)
    selected = table.select(chosen)
    for place, sequence in enumerate(chosen):
        rows, source = slice(*selected.offsets[place : place + 2]), slice(*table.offsets[sequence : sequence + 2])
        assert selected.starts[rows].tolist() == table.starts[source].tolist()
        assert selected.stops[rows].tolist() == table.stops[source].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size of a window must be a positive number of elements; found 0"),
        ({"size": 2.5}, "found 2.5"),
        ({"size": "3"}, "found '3'"),
        ({"size": 3, "stride": 0}, "stride of a window must be a positive number"),
        ({"size": 3, "stride": 4}, "at most its size; found stride 4 and size 3"),
        ({"size": 3, "link": "most"}, "must be one of 'any', 'all', 'majority', 'joint'; found 'most'"),
    ],
)
def test_windows_that_are_none(options, message):
    with pytest.raises(TaskError, match=message):
        Window(**options)


def test_overlapping_spans_say_where():
    table = SpanTable.from_lists([[(0, 2)], [(0, 3), (2, 4)]])
    with pytest.raises(TaskError, match=r"'shot' must be sorted and must not overlap; found 1.*sequence 1: \[2, 4\)"):
        table.check(np.array([2, 4]), "shot")


def test_spans_outside_of_their_sequence_say_where():
    table = SpanTable.from_lists([[(0, 2)], [(3, 5)]])
    with pytest.raises(TaskError, match=r"inside their sequence.*sequence 1: \[3, 5\) of 4 elements"):
        table.check(np.array([2, 4]), "shot")


def test_spans_must_be_given_for_every_sequence():
    with pytest.raises(TaskError, match="1 lists for 2 sequences"):
        SpanTable.from_lists([[(0, 2)]]).check(np.array([2, 4]), "shot")
    with pytest.raises(TaskError, match=r"needs its spans.\n.*spans=\{'shot': ...\}"):
        Layout.of(Spans("shot"), np.array([3]))

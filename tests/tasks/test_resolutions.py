"""Resolutions are plain values with names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.codec import decode, encode
from dugong.exceptions import FileError, TaskError
from dugong.tasks import (
    Element,
    Resolution,
    Sequence,
    Spans,
    WholeSequence,
    Window,
    describe,
    find_resolution,
)
from strategies import resolutions


def test_equal_windows_are_one_resolution_whatever_their_names():
    assert Window(5, name="a") == Window(5, stride=5, name="b")
    assert len({Window(5, name="a"), Window(5, name="b"), Window(5, link="all"), Window(5, of="REM")}) == 3
    assert Window(30).name == "window30"
    assert WholeSequence is Sequence


@given(st.sampled_from([2, 5]).flatmap(resolutions))
def test_plain_data_and_back(resolution):
    again = decode(Resolution, encode(resolution))
    assert again == resolution
    assert again.name == resolution.name
    assert resolution.name in describe(resolution)


def test_unknown_kinds_are_named():
    with pytest.raises(FileError, match="kind must be one of 'element', 'window', 'sequence', 'spans'; found 'pixel'"):
        decode(Resolution, {"kind": "pixel"})


def test_resolutions_are_found_by_name_kind_or_object():
    known = [Element(), Window(5), Spans("shot"), Sequence()]
    assert find_resolution("window5", known) == Window(5)
    assert find_resolution("window", known) == Window(5)
    assert find_resolution("shot", known) == Spans("shot")
    assert find_resolution(Sequence(), known) == Sequence()


def test_an_ambiguous_name_lists_what_it_may_mean():
    known = [Window(5), Window(5, link="all"), Sequence()]
    with pytest.raises(TaskError, match=r"'window5' is ambiguous(.|\n)*link='any'(.|\n)*link='all'") as caught:
        find_resolution("window5", known)
    assert "sequence" not in str(caught.value)


def test_an_unknown_name_lists_what_is_known():
    with pytest.raises(TaskError, match=r"no resolution 'scene'(.|\n)*- element(.|\n)*- window5"):
        find_resolution("scene", [Element(), Window(5)])
    with pytest.raises(TaskError, match=r"no resolution .window7 \(size=7"):
        find_resolution(Window(7), [Element(), Window(5)])


def test_spans_need_a_name():
    with pytest.raises(TaskError, match="spans need a name"):
        Spans("")

"""What sources see, what they may return, and what becomes of it."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pandas as pd
import pytest

from dugong.exceptions import SourceError, TaskError, VoteError
from dugong.sources import apply, source
from dugong.tasks import Layout, Sequence, Spans, Window
from dugong.types import MISSING

NUMBERS = {"a": [0, 5, 2, 9], "b": [7], "c": []}


def votes_of(one, sequences=NUMBERS, **options):
    return apply([one], sequences, progress=False, **options).column(one.name).tolist()


def returning(value, **options):
    return source(name="s", **options)(lambda _: value)


# --- what a source sees ---------------------------------------------------------------------------------------------
def test_elements_come_one_by_one():
    @source
    def large(number):
        return 1 if number > 4 else -1 if number < 1 else 0

    assert votes_of(large) == [-1, 1, 0, 1, 1]


def test_order_names_and_lengths_are_kept():
    @source(shares="numbers")
    def second(number):
        return 1

    votes = apply([returning(0), second], NUMBERS, progress=False)
    assert votes.source_names == ("s", "second")
    assert votes.sources[1].shares == "numbers"
    assert votes.sequence_ids.tolist() == ["a", "b", "c"]
    assert votes.lengths.tolist() == [4, 1, 0]


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (2, 1), (3, 2), (3, 3), (10, 4)])
def test_windows_see_their_elements_and_where_they_lie(size, stride):
    seen = []

    @source(resolution=Window(size=size, stride=stride))
    def look(window):
        seen.append((list(window.elements), window.start, window.stop, window.index, len(window), window.length))
        assert list(window) == list(window.elements)
        assert window[0] == window.elements[0]
        assert window[-1:] == window.elements[-1:]
        return 1

    sequence = list(range(100, 107))
    votes = apply([look], {"a": sequence}, progress=False)
    starts, stops = Layout.of(look.resolution, votes.lengths).bounds()
    expected = [(sequence[a:b], a, b, index, b - a, 7) for index, (a, b) in enumerate(zip(starts, stops, strict=True))]
    assert seen == expected


def test_a_sequence_source_sees_the_whole_sequence():
    @source(resolution=Sequence())
    def longer(numbers):
        return 1 if len(numbers) > 2 else -1

    assert votes_of(longer) == [1, -1]  # the empty sequence has no task


@pytest.mark.parametrize(
    "spans",
    [
        {"pair": {"a": [(0, 2), (2, 4)], "b": [(0, 1)], "c": []}},
        {"pair": [[(0, 2), (2, 4)], [(0, 1)], []]},
        {"pair": lambda numbers: [(i, min(i + 2, len(numbers))) for i in range(0, len(numbers), 2)]},
    ],
)
def test_spans_are_given_by_id_by_place_or_by_a_function(spans):
    @source(resolution=Spans(name="pair"))
    def nine(span):
        return 1 if 9 in span.elements else -1

    votes = apply([nine], NUMBERS, spans=spans, progress=False)
    assert votes.column("nine").tolist() == [-1, 1, -1]
    assert votes.spans["pair"].stops.tolist() == [2, 4, 1]


def test_absent_and_wrong_spans_are_explained():
    one = returning(1, resolution=Spans(name="shot"))
    with pytest.raises(SourceError, match=r"votes on shot .* not given"):
        votes_of(one)
    with pytest.raises(TaskError, match=r"'shot' must be given for every sequence; found none for 'b'"):
        votes_of(one, spans={"shot": {"a": [(0, 4)]}})
    with pytest.raises(TaskError, match=r"(?s)'shot' of sequence 'a' .*\[2, 9\) of 4 elements"):
        votes_of(one, spans={"shot": [[(2, 9)], [], []]})
    with pytest.raises(SourceError, match=r"finds the spans 'shot' raised ZeroDivisionError.*on sequence 'a'"):
        votes_of(one, spans={"shot": lambda _: 1 / 0})


def test_pandas_is_read_by_position():
    @source
    def high(row):
        return 1 if row["x"] > 1 else -1

    @source(resolution=Window(size=2))
    def any_high(window):
        return 1 if window["x"].max() > 1 else -1

    table = pd.DataFrame({"x": [0.0, 3.0, 1.0]}, index=[7, 8, 9])
    votes = apply([high, any_high], {"a": table}, progress=False)
    assert votes.column("high").tolist() == [-1, 1, -1]
    assert votes.column("any_high").tolist() == [1, -1]


# --- vectorised -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "returned",
    [
        np.array([1, 0, -1]),
        np.array([1, 0, -1], dtype=np.int8),
        np.array([1.0, 0.0, -1.0]),
        np.array([1, None, -1], dtype=object),
        np.ma.masked_array([1, 1, -1], mask=[False, True, False]),
        [1, None, -1],
        (1, 0, -1),
        pd.Series([1, 0, -1], index=[5, 6, 7]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_vectorised_sources_return_one_vote_per_task(returned):
    calls = []

    @source(vectorized=True)
    def all_at_once(sequence):
        calls.append(sequence)
        return returned

    assert votes_of(all_at_once, {"a": "xyz"}) == [1, 0, -1]
    assert calls == ["xyz"]


def test_vectorised_windows_get_their_bounds_if_they_ask():
    @source(resolution=Window(size=3, stride=2), vectorized=True)
    def sums(numbers, tasks):
        return [1 if sum(numbers[a:b]) > 10 else -1 for a, b in zip(tasks.starts, tasks.stops, strict=True)]

    assert votes_of(sums, {"a": [1, 2, 3, 4, 5, 6]}) == [-1, 1, 1]


@pytest.mark.parametrize(
    ("returned", "found"),
    [([1, 1], "2 votes"), (np.ones((3, 1)), r"shape \(3, 1\)"), (1, r"shape \(\)"), (np.ones(4), "4 votes")],
)
def test_a_wrong_number_of_votes_is_an_error(returned, found):
    one = source(vectorized=True, name="many")(lambda _: returned)
    with pytest.raises(
        SourceError, match=rf"'many' is vectorised .* each of the 3 elements of sequence 'a'; found .*{found}"
    ):
        votes_of(one, {"a": "xyz"})


def test_a_wrong_value_of_a_vectorised_source_is_named():
    one = source(vectorized=True, name="many")(lambda _: np.array([1, 2, 3]))
    with pytest.raises(SourceError, match=r"found 2 on element 1 of sequence 'a' and 1 more such values"):
        votes_of(one, {"a": "xyz"})


# --- values ---------------------------------------------------------------------------------------------------------
class Side(IntEnum):
    AGAINST = -1
    FOR = 1


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1, 1),
        (-1, -1),
        (0, 0),
        (None, 0),
        (np.int8(-1), -1),
        (np.int64(1), 1),
        (np.sign(-3.5), -1),
        (1.0, 1),
        (Side.AGAINST, -1),
        (MISSING, MISSING),
    ],
    ids=repr,
)
def test_values_that_are_votes(value, code):
    assert votes_of(returning(value), {"a": [0, 0]}) == [code, code]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2, r"found 2 on element 0 of sequence 'a' and 1 more such values"),
        (10**30, "found 10000"),
        (0.5, "found 0.5"),
        (True, r"found True .*\n  True does not say"),
        (np.False_, r"found False .*\n  False does not say"),
        (float("nan"), r"found nan .*\n  NaN is no vote: return None"),
        (np.float32("nan"), r"found nan .*\n  NaN is no vote"),
        ("REM", r"found 'REM' .*\n  Pass classes="),
        ([1, 0], r"found \[1, 0\] .*\n  .*vectorized=True"),
        (np.array([1, 0]), r"found ndarray of shape \(2,\) .*\n  .*vectorized=True"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("on_fault", ["raise", "abstain"])
def test_values_that_are_no_votes(value, words, on_fault):
    with pytest.raises(SourceError, match=rf"source 's' must return -1, 0, \+1 or None \(abstain\); {words}"):
        votes_of(returning(value), {"a": [0, 0]}, on_fault=on_fault)


def test_the_place_of_a_wrong_vote_is_said_for_windows():
    one = source(name="w", resolution=Window(size=2))(lambda window: 1 if window.index == 0 else 7)
    with pytest.raises(SourceError, match=r"found 7 on window2 1 \(elements 2 to 3\) of sequence 'a'"):
        votes_of(one, {"a": [0, 0, 0, 0]})


def test_classes_by_number_and_by_name():
    names = ("wake", "light", "REM")
    stages = source(name="stages")(lambda stage: stage)
    votes = apply([stages], {"a": ["REM", 1, None, "light", 0]}, classes=names, progress=False)
    assert votes.column("stages").tolist() == [3, 1, 0, 2, 0]
    assert (votes.n_classes, votes.class_names) == (3, names)
    for value in (4, -1, "dream"):
        with pytest.raises(
            SourceError, match=r"a class from 1 to 3, a name of 'wake', 'light', 'REM' or None \(abstain\); found"
        ):
            votes_of(stages, {"a": [value]}, classes=names)


def test_windows_among_many_classes_vote_yes_or_no():
    rem = source(name="rem", resolution=Window(size=2, of="REM"))(lambda _: -1)
    assert votes_of(rem, {"a": [0, 0]}, classes=("wake", "light", "REM")) == [-1]
    third = source(name="third", resolution=Window(size=2, of=3))(lambda _: 3)
    with pytest.raises(SourceError, match=r"must return -1, 0, \+1 or None \(abstain\); found 3"):
        votes_of(third, {"a": [0]}, n_classes=3)


def test_two_classes_may_have_names():
    one = source(name="one")(lambda name: name)
    votes = apply([one], {"a": ["no", "yes"]}, classes=("no", "yes"), background="no", progress=False)
    assert votes.column("one").tolist() == [-1, 1]
    assert votes.background == -1
    with pytest.raises(SourceError, match="background= must be one of the classes; found 'maybe'"):
        votes_of(one, {"a": ["no"]}, classes=("no", "yes"), background="maybe")


# --- everything is checked before the first sequence is read --------------------------------------------------------
@pytest.mark.parametrize(
    ("sources", "options", "error", "words"),
    [
        ([returning(1), returning(1)], {}, VoteError, "'s'"),
        ([returning(1)], {"classes": ("a", "b"), "n_classes": 3}, VoteError, "class names"),
        ([returning(1, resolution=Window(size=2))], {"n_classes": 3}, VoteError, "of="),
        ([returning(1)], {"on_fault": "ignore"}, SourceError, "on_fault= must be 'raise' or 'abstain'"),
        ([returning(1)], {"classes": ("a", "a")}, SourceError, "must be different names; found 'a', 'a'"),
        ([returning(1)], {"n_jobs": 0}, SourceError, "n_jobs= must be at least 1"),
        ([returning(1)], {"only": "other"}, SourceError, "'other', which is not there; known are 's'"),
        ([len], {}, SourceError, "must be functions decorated with @source; found <built-in function len>"),
        ([], {}, SourceError, "there are no sources"),
    ],
)
def test_mistakes_are_found_before_any_sequence_is_read(sources, options, error, words):
    def never():
        pytest.fail("a sequence was read")
        yield

    with pytest.raises(error, match=words):
        apply(sources, never(), progress=False, **options)


def test_only_and_limit_make_a_small_run():
    read = []

    def stream():
        for index in range(100):
            read.append(index)
            yield index, [index]

    other = source(name="other")(lambda _: pytest.fail("this source must not run"))
    votes = apply([other, returning(1)], stream(), only="s", limit=3, progress=False)
    assert votes.source_names == ("s",)
    assert votes.sequence_ids.tolist() == [0, 1, 2]
    assert read == [0, 1, 2]

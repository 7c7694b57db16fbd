"""Columns of tables as sources."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dugong as dg
from dugong.exceptions import VoteError
from dugong.types import MISSING

VOTES = dg.Votes.from_tasks({"rule": [1, -1, 1, 0, -1]}, [3, 2], ids=["a", "b"])


def test_votes_by_element_by_stretch_and_in_order():
    element = pa.table({"sequence": ["b", "a", "z"], "element": [1, 0, 5], "says": [1, -1, 1]})
    assert VOTES.with_table(element, "x", column="says").column("x").tolist() == [-1, MISSING, MISSING, MISSING, 1]
    stretch = pa.table({"sequence": ["a"], "start": [1], "end": [3], "x": ["yes"]})
    assert VOTES.with_table(stretch, "x", values={"yes": 1}).column("x").tolist() == [MISSING, 1, 1, MISSING, MISSING]
    order = pa.table({"sequence": ["b", "b"], "x": [1, None]})
    assert VOTES.with_table(order, "x").column("x").tolist() == [MISSING] * 3 + [1, MISSING]


def test_scores_vote_softly():
    table = pa.table({"sequence": ["a", "a"], "element": [0, 2], "p": [0.9, None]})
    found = VOTES.with_table(table, "x", column="p", soft=True)
    assert found.column("x").tolist() == [1, MISSING, MISSING, MISSING, MISSING]
    np.testing.assert_allclose(found.scores["x"][0], [0.1, 0.9], rtol=1e-6)
    many = dg.Votes.from_tasks({"rule": [1, 3]}, [2], ids=["a"], n_classes=3)
    table = pa.table({"sequence": ["a", "a"], "p1": [0.2, 0.1], "p2": [0.7, 0.1], "p3": [0.1, 0.8]})
    assert many.with_table(table, "x", column=["p1", "p2", "p3"], soft=True).column("x").tolist() == [2, 3]


def test_whole_sequences_names_and_data_frames():
    table = pa.table({"sequence": ["b", "a"], "x": [-1, 1]})
    assert VOTES.with_table(table, "x", resolution=dg.Sequence()).column("x").tolist() == [1, -1]
    named = dg.Votes.from_tasks({"rule": [1, 2]}, [2], ids=["a"], classes=["rest", "walk", "run"])
    table = pa.table({"sequence": ["a", "a"], "x": ["walk", ""]})
    assert named.with_table(table, "x").column("x").tolist() == [2, MISSING]
    assert named.with_table(table.to_pandas(), "x").column("x").tolist() == [2, MISSING]


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"sequence": ["a"], "element": [0]}, {}, "must have a column 'x'; found sequence, element"),
        ({"sequence": ["q"], "element": [0], "x": [1]}, {}, "must name sequences of the votes, such as 'a'"),
        ({"sequence": ["a"], "element": [3], "x": [1]}, {}, "row 0 covers elements 3 to 4 of a, which has 3"),
        ({"sequence": ["a", "a"], "element": [1, 1], "x": [1, 1]}, {}, "several for task 1 of sequence a"),
        ({"sequence": ["a"], "x": [1]}, {}, "one row per element; sequence a has 3, and 1 rows"),
        ({"sequence": ["a"], "element": [0], "x": ["perhaps"]}, {}, r"found 'perhaps' in row 0(.|\n)*values="),
        ({"sequence": ["a"], "element": [0.5], "x": [1]}, {}, "'element' of source 'x' must hold whole numbers"),
        ({"sequence": ["a"], "start": [0.0], "end": [2.5], "x": [1]}, {}, r"found double(.|\n)*Times in seconds"),
        ({"sequence": ["a", "a"], "element": [0, None], "x": [1, 1]}, {}, "places of elements; found 1 empty"),
        (
            {"sequence": ["a"], "element": [0], "x": [0.5], "y": [0.2], "z": [0.3]},
            {"soft": True, "column": ["x", "y", "z"]},
            r"one column per class, 2 of them, or one with P\(positive\); found 3",
        ),
        ({"sequence": ["a"], "element": [0], "x": ["high"]}, {"soft": True}, "must be numbers"),
        ({"sequence": ["a"], "element": [0], "x": [7.0]}, {"soft": True}, "scores must be probabilities"),
        (
            {"sequence": ["a"], "x": [1]},
            {"resolution": dg.Window(2)},
            "whole sequences; found window2",
        ),
        ({"sequence": ["a"], "element": [0], "x": ["y"]}, {"values": {"y": 300}}, r"lead to votes, .*; found 300"),
    ],
)
def test_what_cannot_be_read_is_explained(table, options, words):
    with pytest.raises(VoteError, match=words):
        VOTES.with_table(pa.table(table), "x", **options)


def test_an_empty_sequence_has_no_task_to_vote_on() -> None:
    votes = dg.Votes.from_tasks({"s": [1, -1]}, [0, 2], ids=["empty", "full"])
    table = pa.table({"sequence": ["full", "empty"], "x": [1, 1]})
    with pytest.raises(VoteError, match=r"a sequence with elements; row 1 is of empty, which has none"):
        votes.with_table(table, "x", resolution=dg.Sequence())

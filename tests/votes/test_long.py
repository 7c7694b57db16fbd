"""Long tables: from any library, in elements or seconds, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import VoteError
from dugong.tasks import Sequence, Window
from dugong.types import MISSING
from dugong.votes import Votes
from strategies import votes as any_votes

TABLE = {
    "sequence": ["b", "b", "a", "b"],
    "source": ["motion", "blur", "blur", "motion"],
    "start": [0, 1, 0, 2],
    "end": [2, 4, 2, 3],
    "vote": [1, -1, 1, -1],
}


@given(any_votes(plain=True))
def test_long_then_dense_is_the_identity(votes):
    again = (
        Votes.from_long(
            votes.to_long(),
            votes.lengths,
            resolutions={source.name: source.resolution for source in votes.sources},
            n_classes=votes.n_classes,
            partial=votes.partial,
            missing=MISSING,
            abstain=0,
            spans=votes.spans,
            sources=votes.source_names,
            ids=votes.sequence_ids,
        )
        if votes.to_long().num_rows
        else votes
    )
    assert again.equals(votes)
    assert again.to_long().equals(votes.to_long())


@pytest.mark.parametrize(
    "make",
    [
        dict,
        pd.DataFrame,
        lambda table: pd.DataFrame(table, index=[7, 8, 9, 10]),
        lambda table: pd.DataFrame(table).astype({"sequence": "category", "source": "category"}),
        pl.DataFrame,
        lambda table: pl.DataFrame(table).with_columns(pl.col("source").cast(pl.Categorical)),
        pa.table,
        lambda table: pa.table(table).to_batches()[0],
        lambda table: pa.table(table).to_reader(),
        lambda table: pa.concat_tables([pa.table(table).slice(0, 1), pa.table(table).slice(1)]),
    ],
)
def test_every_kind_of_table(make):
    votes = Votes.from_long(make(TABLE))
    # Sequences and sources in order of first appearance.
    assert votes.sequence_ids.tolist() == ["b", "a"]
    assert votes.source_names == ("motion", "blur")
    assert votes.lengths.tolist() == [4, 2]
    assert votes.column("motion").tolist() == [1, 1, -1, 0, 0, 0]
    assert votes.column("blur").tolist() == [0, -1, -1, -1, 1, 1]


def test_lengths_may_list_sequences_without_votes():
    votes = Votes.from_long(TABLE, {"silent": 3, "a": 2, "b": 5})
    assert votes.sequence_ids.tolist() == ["b", "a", "silent"]
    assert votes.lengths.tolist() == [5, 2, 3]
    votes = Votes.from_long(TABLE, [2, 5], ids=["a", "b"], sources=["blur", "new", "motion"])
    assert votes.sequence_ids.tolist() == ["a", "b"]
    assert votes.column("new").tolist() == [0] * 7


def test_integer_sequences_keep_their_type():
    votes = Votes.from_long({**TABLE, "sequence": [7, 7, 3, 7]})
    assert votes.sequence_ids.tolist() == [7, 3]


def test_names_values_and_our_own_coding():
    names = {**TABLE, "vote": ["cat", "bg", "dog", "?"]}
    votes = Votes.from_long(names, classes=["bg", "cat", "dog"], abstain="?", background="bg")
    assert votes.column("motion").tolist() == [2, 2, 0, 0, 0, 0]
    assert votes.class_names == ("bg", "cat", "dog")
    assert votes.background == 1
    values = {**TABLE, "vote": [1, 0, 2, 9]}
    assert Votes.from_long(values, classes=range(3), abstain=9).column("blur").tolist() == [0, 1, 1, 1, 3, 3]
    own = {**TABLE, "vote": [2, 1, 3, 0]}
    assert Votes.from_long(own, classes=["bg", "cat", "dog"], background=1).equals(votes)
    two = Votes.from_long({**TABLE, "vote": ["no", "yes", "no", "yes"]}, classes=["no", "yes"])
    assert two.column("motion").tolist() == [-1, -1, 1, 0, 0, 0]
    assert Votes.from_long({**TABLE, "vote": [0, 1, 0, 1]}, classes=[0, 1]).column("motion").tolist() == [
        *(-1, -1, 1, 0, 0, 0)
    ]
    assert Votes.from_long({**TABLE, "vote": [0, 1, 0, 1]}, abstain=0).column("motion").tolist() == [0, 0, 1, 0, 0, 0]


def test_underspecified_votes():
    names = {**TABLE, "vote": ["cat", "animal", "dog", "bg"]}
    votes = Votes.from_long(names, classes=["bg", "cat", "dog"], partial={"animal": ("cat", "dog")})
    assert votes.partial == {4: (2, 3)}
    assert votes.column("blur").tolist() == [0, 4, 4, 4, 3, 3]


def test_coarser_sources_name_their_tasks():
    table = {
        "sequence": ["a", "a", "a", "a"],
        "source": ["pairs", "pairs", "whole", "stage"],
        "start": [0, 2, 0, 1],
        "end": [2, 3, 3, 2],
        "vote": ["REM", "-1", "+1", "N1"],
    }
    resolutions = {"pairs": Window(2, of="REM"), "whole": Sequence(of="N1")}
    votes = Votes.from_long(table, resolutions=resolutions, classes=["Wake", "N1", "REM"])
    assert votes.column("pairs").tolist() == [1, -1]
    assert votes.column("whole").tolist() == [1]
    assert votes.column("stage").tolist() == [0, 2, 0]


def test_equal_overlapping_rows_are_one_vote():
    rows = {"sequence": ["a", "a"], "source": ["x", "x"], "start": [0, 1], "end": [2, 3], "vote": [1, 1]}
    assert Votes.from_long(rows).column("x").tolist() == [1, 1, 1]
    with pytest.raises(VoteError, match="differently"):
        Votes.from_long({**rows, "vote": [1, 0]}, abstain=0)


def test_seconds_at_a_rate_per_sequence():
    rows = {
        "sequence": ["a", "a", "b"],
        "source": ["slow", "quick", "slow"],
        "start": [10.0, 10.25, 0.0],
        "end": [11.0, 10.5, 2.0],
        "vote": [1, -1, -1],
    }
    votes = Votes.from_long(rows, unit="second", rate={"a": 4, "b": 1}, start={"a": 10.0, "b": 0.0})
    assert votes.lengths.tolist() == [4, 2]
    assert votes.column("slow").tolist() == [1, 1, 1, 1, -1, -1]
    assert votes.column("quick").tolist() == [0, -1, 0, 0, 0, 0]
    assert votes.time.rounding.n_moved == 0
    assert votes.time.rate.tolist() == [4, 1]


def test_seconds_by_timestamps():
    rows = {"sequence": ["a"], "source": ["x"], "start": [0.5], "end": [2.5], "vote": [1]}
    votes = Votes.from_long(rows, unit="second", timestamps={"a": [0.0, 1.0, 2.0, 3.0]})
    assert votes.lengths.tolist() == [4]
    assert votes.column("x").tolist() == [0, 1, 1, 0]
    assert votes.time.rounding.n_moved == 2


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 30), st.data())
def test_sources_of_different_rates_meet_on_one_axis(rate, other, n_frames, data):
    codes = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=n_frames, max_size=n_frames)))
    frames = np.arange(n_frames)
    rows = {"sequence": ["v"] * n_frames, "source": ["x"] * n_frames, "start": frames / other, "vote": codes}
    votes = Votes.from_long({**rows, "end": (frames + 1) / other}, unit="second", rate=rate)
    # Every element has the vote of the frame in which its centre lies.
    centres = (np.arange(votes.n_elements) + 0.5) / rate * other
    assert votes.n_elements == int(np.ceil(np.round(n_frames / other * rate, 6) - 0.5))
    clear = np.abs(centres - np.round(centres)) > 1e-5
    assert np.array_equal(votes.columns[0][clear], codes[np.floor(centres[clear]).astype(int)])
    assert (votes.columns[0] != 0).all()


def test_one_row_that_is_no_task_among_others_that_are_is_an_error():
    rows = {"sequence": ["a"] * 3, "source": ["w"] * 3, "start": [0, 2, 5], "end": [2, 4, 6], "vote": [1, -1, 1]}
    with pytest.raises(
        VoteError, match=r"exactly one task of .*; found 1 that are none(.|\n)*nearest task is \[4, 6\)"
    ):
        Votes.from_long(rows, {"a": 6}, resolutions={"w": Window(size=2)})

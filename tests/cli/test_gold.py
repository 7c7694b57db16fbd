"""Known labels in files: written as runs, read back as one label per element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dugong as dg
from dugong.cli.gold import known_table, read_gold, write_gold
from dugong.exceptions import LabelError


def votes_of(lengths: list[int], **options: object) -> dg.Votes:
    flat = np.zeros((sum(lengths), 1), dtype=np.int8)
    return dg.Votes.from_dense(flat, lengths=lengths, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_runs_there_and_back(tmp_path: Path, ending: str) -> None:
    votes = votes_of([4, 0, 3])
    gold = np.array([1, 1, -1, -1, -1, 0, 1], dtype=np.int8)
    write_gold(gold, votes, tmp_path / f"gold{ending}")
    assert read_gold(tmp_path / f"gold{ending}", votes).tolist() == gold.tolist()
    assert known_table(tmp_path / f"gold{ending}").num_rows == 4


@given(st.lists(st.lists(st.sampled_from([-1, 0, 1]), max_size=5), min_size=1, max_size=5))
def test_any_labels_there_and_back(tmp_path_factory: pytest.TempPathFactory, labels: list[list[int]]) -> None:
    votes = votes_of([len(one) for one in labels])
    gold = np.array([label for one in labels for label in one], dtype=np.int8)
    file = tmp_path_factory.mktemp("gold") / "gold.parquet"
    write_gold(gold, votes, file)
    assert read_gold(file, votes).tolist() == gold.tolist()


def test_class_names(tmp_path: Path) -> None:
    votes = dg.Votes.from_classes(
        np.array([[0], [1], [2]]), n_classes=3, lengths=[3], classes=["wake", "light", "deep"]
    )
    write_gold(np.array([1, 3, 3]), votes, tmp_path / "gold.csv")
    assert "deep" in (tmp_path / "gold.csv").read_text()
    assert read_gold(tmp_path / "gold.csv", votes).tolist() == [1, 3, 3]


def test_a_flat_array(tmp_path: Path) -> None:
    np.save(tmp_path / "gold.npy", np.array([1, -1, 0]))
    assert read_gold(tmp_path / "gold.npy", votes_of([3])).tolist() == [1, -1, 0]


def test_ids_that_look_like_numbers_stay_words(tmp_path: Path) -> None:
    votes = votes_of([2])
    named = dg.Votes.from_long(
        {"sequence": ["007"], "source": ["s"], "start": [0], "end": [1], "vote": [1]}, lengths={"007": 2}
    )
    (tmp_path / "gold.csv").write_text("sequence,start,end,label\n007,0,2,1\n")
    assert read_gold(tmp_path / "gold.csv", named).tolist() == [1, 1]
    with pytest.raises(LabelError, match="'007' is none"):
        read_gold(tmp_path / "gold.csv", votes)


def test_sequences_without_votes_may_be_left_out_on_demand(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("sequence,start,end,label\n0,0,2,1\n1,0,2,-1\n")
    assert read_gold(tmp_path / "gold.csv", votes_of([2]), missing_ok=True).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sequence,start,end\n0,0,1\n", "'label' is missing, found sequence, start, end"),
        ("sequence,start,end,label\n0,0,9,1\n", "elements 0 to 9 of sequence '0', which has 3"),
        ("sequence,start,end,label\n0,2,1,1\n", "must not end before it begins"),
        ("sequence,start,end,label\n5,0,1,1\n", "'5' is none, and 1 are"),
        ("sequence,start,end,label\n0,0,1,7\n", "must be one of -1, 1; found '7'"),
        ("sequence,start,end,label\n0,0.5,1,1\n", "'start' must hold whole numbers"),
        ("sequence,start,end,label\n0,0,2,1\n0,1,3,-1\n", "1 have two different ones"),
        ("sequence,start,end,label\n0,0,,1\n", "'end' must not have empty cells"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gold.csv").write_text(text)
    with pytest.raises(LabelError, match=message):
        read_gold(tmp_path / "gold.csv", votes_of([3]))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="there is no file"):
        read_gold(tmp_path / "gold.csv", votes_of([3]))
    (tmp_path / "gold.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(LabelError, match="the file is damaged"):
        read_gold(tmp_path / "gold.parquet", votes_of([3]))
    (tmp_path / "gold.txt").write_text("1")
    with pytest.raises(LabelError, match=r"read from \.parquet, \.csv or \.npy"):
        read_gold(tmp_path / "gold.txt", votes_of([3]))

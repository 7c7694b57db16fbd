"""Sequences come as mappings, pairs or streams; anything else is explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dugong.exceptions import SourceError
from dugong.sources import apply, source


@source
def positive(number):
    return 1 if number > 0 else -1


def run(sequences, **options):
    return apply([positive], sequences, progress=False, **options)


@pytest.mark.parametrize(
    "sequences",
    [
        {"x": [1, -1], "y": [1]},
        [("x", [1, -1]), ("y", [1])],
        (pair for pair in [("x", np.array([1, -1])), ("y", np.array([1]))]),
        {"x": (1, -1), "y": range(1, 2)},
        {"x": pd.Series([1, -1], index=[5, 3]), "y": pd.Series([1])},
    ],
)
def test_all_forms_are_the_same(sequences):
    votes = run(sequences)
    assert votes.sequence_ids.tolist() == ["x", "y"]
    assert votes.column("positive").tolist() == [1, -1, 1]


def test_sources_may_come_as_a_stream_too():
    votes = apply((one for one in [positive]), {"x": [1, -1]}, only="positive", progress=False)
    assert votes.source_names == ("positive",)


def test_numbers_are_ids_too():
    votes = run(enumerate([[1], [-1], []]))
    assert votes.sequence_ids.tolist() == [0, 1, 2]
    assert run([(np.int64(7), [1])]).sequence_ids.tolist() == [7]


def test_an_archive_of_arrays_is_a_mapping(tmp_path):
    np.savez(tmp_path / "all.npz", first=np.array([1, -2]), second=np.array([3]))
    with np.load(tmp_path / "all.npz") as archive:
        assert run(archive).column("positive").tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        ([[1, 2], [3, 4]], r"\(id, sequence\) pairs; found list at place 0.*\n.*enumerate"),
        (np.ones((2, 3)), r"found ndarray.*\n.*one single sequence"),
        (pd.DataFrame({"a": [1]}), r"found DataFrame.*\n.*one single sequence"),
        (17, "found 17"),
        ([("a", [1]), ("a", [2])], "ids must be unique; found 'a' a second time at place 1"),
        ([("a", [1]), (2, [2])], "all words or all whole numbers; found 2 at place 1"),
        ([(Path("a"), [1])], r"a word or a whole number; found .*Path\('a'\) at place 0"),
        ([(True, [1])], "a word or a whole number; found True"),
        ({"a": 5}, r"must have len\(\) and integer and slice indexing; sequence 'a' is int"),
        ({"a": {"x": 1}}, r"must have len\(\).*sequence 'a' is dict"),
        ({"a": np.array(5)}, r"must have len\(\).*sequence 'a' is ndarray"),
        ({}, "there are no sequences"),
    ],
)
def test_what_is_no_set_of_sequences_is_explained(sequences, words):
    with pytest.raises(SourceError, match=words):
        run(sequences)


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_is_a_number_of_sequences(limit):
    with pytest.raises(SourceError, match=f"limit= must be at least 1 sequence; found {limit}"):
        run({"a": [1]}, limit=limit)

"""Votes in words, and messages of ids that name no column."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.exceptions import VoteError
from dugong.tasks import Element, Sequence
from dugong.types import MISSING
from dugong.votes import Votes, code_name

THREE = Votes.from_tasks(
    {"a": [1, 2, 4]}, lengths=[3], n_classes=3, classes=["wake", "rem", "deep"], partial={4: (1, 3)}
)
TWO = Votes.from_tasks({"a": [1, -1]}, lengths=[2])


def test_every_code_has_a_name() -> None:
    assert [code_name(THREE, code, Element()) for code in (0, MISSING, 1, 3)] == ["abstain", "missing", "wake", "deep"]
    assert code_name(THREE, 4, Element()) == "wake|deep"
    assert code_name(THREE, -1, Sequence(of="rem")) == "-1"
    assert [code_name(TWO, code, Element()) for code in (-1, 1)] == ["-1", "+1"]


def test_ids_that_name_no_column_are_told_what_there_is() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"one": [1, -1], "two": [1, 1]})
    with pytest.raises(VoteError, match="found 'video' and 'one', 'two'"):
        Votes.from_dense(frame, [2], ids="video")
    with pytest.raises(VoteError, match="found 'video' and no columns with names"):
        Votes.from_dense(np.ones((2, 2), dtype=np.int8), [2], ids="video")

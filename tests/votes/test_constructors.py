"""Every named constructor reads its own coding, and says the same as the others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dugong.exceptions import VoteError
from dugong.tasks import Sequence, Spans, TimeAxis, Window
from dugong.types import MISSING
from dugong.votes import Votes
from strategies import lengths


@st.composite
def rows(draw, codes, n_sources=3):
    of_lengths = draw(lengths())
    shape = (int(of_lengths.sum()), n_sources)
    return draw(hnp.arrays(np.int64, shape, elements=st.sampled_from(codes))), of_lengths


@given(rows([-1, 0, 1]), st.sampled_from([np.int8, np.int32, np.float64]))
def test_paper_coding_in_every_shape(drawn, dtype):
    flat, of_lengths = drawn
    flat = flat.astype(dtype)
    votes = Votes.from_dense(flat, of_lengths, coding="paper")
    assert np.array_equal(np.stack(votes.columns, axis=1), flat)
    pieces = np.split(flat, np.cumsum(of_lengths)[:-1])
    assert Votes.from_dense(pieces, coding="paper").equals(votes)
    padded = np.zeros((len(pieces), int(of_lengths.max()) + 1, 3), dtype=dtype)
    for place, piece in enumerate(pieces):
        padded[place, : len(piece)] = piece
    assert Votes.from_dense(padded, of_lengths, coding="paper").equals(votes)


def test_a_block_of_equal_sequences():
    block = np.array([[[1, -1], [0, 1]], [[-1, -1], [1, 0]]])
    votes = Votes.from_dense(block, sources=["a", "b"], ids=["x", "y"], classes=["no", "yes"])
    assert votes.lengths.tolist() == [2, 2]
    assert votes.column("a").tolist() == [1, 0, -1, 1]
    assert votes.sequence_ids.tolist() == ["x", "y"]
    assert Votes.from_dense(block.tolist(), sources=["a", "b"], ids=["x", "y"], classes=["no", "yes"]).equals(votes)
    assert Votes.from_dense(block).source_names == ("s0", "s1")


def test_a_missing_code_is_no_abstain():
    votes = Votes.from_dense([[[1.0, np.nan], [-1.0, 0.0]]], missing=float("nan"))
    assert votes.columns[1].tolist() == [MISSING, 0]
    votes = Votes.from_dense([[[1, -9], [-1, 0]]], missing=-9)
    assert votes.columns[1].tolist() == [MISSING, 0]


@given(rows([-1, 0, 1, 2, 3, 4, 7, 9]))
def test_class_coding(drawn):
    flat, of_lengths = drawn
    votes = Votes.from_classes(flat, n_classes=5, missing=9, partial={7: (1, 2)}, lengths=of_lengths, background=0)
    codes = {-1: 0, 0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 7: 6, 9: MISSING}
    assert np.array_equal(np.stack(votes.columns, axis=1), np.vectorize(codes.get, otypes=[int])(flat))
    assert votes.partial == {6: (2, 3)}
    assert votes.background == 1
    assert votes.classes == (1, 2, 3, 4, 5)


@given(rows([-1, 0, 1]))
def test_two_classes_become_signs(drawn):
    flat, of_lengths = drawn
    votes = Votes.from_classes(flat, n_classes=2, lengths=of_lengths)
    assert np.array_equal(np.stack(votes.columns, axis=1), np.where(flat == -1, 0, 2 * flat - 1))
    assert votes.classes == (-1, 1)


def test_class_names_give_the_number_of_classes():
    votes = Votes.from_classes([[0], [2]], classes=["Wake", "N1", "REM"], lengths=[2])
    assert votes.n_classes == 3
    assert votes.class_names == ("Wake", "N1", "REM")


def test_flyingsquid_runs_task_by_task():
    # Two sequences of three frames and two sources: column i belongs to frame i // 2.
    flat = np.array([[1, -1, 0, 1, 1, 0], [0, 0, -1, -1, 1, 1]])
    votes = Votes.from_flyingsquid(flat, n_tasks=3)
    assert votes.lengths.tolist() == [3, 3]
    assert votes.column("s0").tolist() == [1, 0, 1, 0, -1, 1]
    assert votes.column("s1").tolist() == [-1, 1, 0, 0, -1, 1]
    # FlyingSquid's coding is known by its name: nothing but 0 and 1 is not ambiguous here.
    assert Votes.from_flyingsquid(np.abs(flat), n_tasks=3).column("s1").tolist() == [1, 1, 0, 0, 1, 1]


def test_metal_coding():
    votes = Votes.from_metal([[0, 1], [2, 2]], lengths=[2])
    assert [column.tolist() for column in votes.columns] == [[0, -1], [1, -1]]
    votes = Votes.from_metal(scipy.sparse.csr_matrix([[0, 1], [3, 2]]), lengths=[1, 1], n_classes=3)
    assert [column.tolist() for column in votes.columns] == [[0, 3], [1, 2]]
    votes = Votes.from_metal([[0, 1], [2, 2], [1, 0]], ids=["a", "a", "b"])
    assert (votes.sequence_ids.tolist(), votes.lengths.tolist()) == (["a", "b"], [2, 1])
    with pytest.raises(VoteError, match="lengths"):
        Votes.from_metal(scipy.sparse.csr_matrix([[0, 1], [2, 2]]))


def test_flat_votes_at_several_resolutions():
    votes = Votes.from_tasks(
        {"faces": [1, 0, -1, 1, 0], "captions": np.array([1, -1, 0]), "scene": [1.0, 0.0], "cut": [1, -1, MISSING]},
        lengths=[3, 2],
        resolutions={"captions": Window(2), "scene": Sequence(), "cut": Spans("shot")},
        spans={"shot": [[(0, 1), (1, 3)], [(0, 2)]]},
        shares={"faces": "detector"},
        time=TimeAxis.from_rate(25.0, n_sequences=2),
    )
    assert [resolution.name for resolution in votes.resolutions] == ["element", "window2", "sequence", "shot"]
    assert votes.column("captions").tolist() == [1, -1, 0]
    assert votes.sources[0].shares == "detector"
    assert votes.layout("shot").bounds()[1].tolist() == [1, 3, 2]


def test_values_do_not_change():
    given_votes = np.array([[1, -1], [0, 1]], dtype=np.int8)
    votes = Votes.from_dense(given_votes, [2])
    given_votes[:] = 0
    assert votes.columns[0].tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        votes.columns[0][0] = 1
    with pytest.raises(AttributeError):
        votes.n_classes = 3


def test_repr_says_what_there_is():
    votes = Votes.from_tasks(
        {"faces": [1, 0, -1], "captions": [1, -1]},
        lengths=[2, 1],
        resolutions={"captions": Window(2, link="any")},
        classes=["other", "interview"],
        background=-1,
    )
    text = repr(votes)
    assert "2 sources, 2 sequences, 3 elements (1 to 2 each)" in text
    assert "-1 other (background), +1 interview" in text
    assert "1 source on window2 (size=2, stride=2, link='any'): captions" in text


def test_flat_votes_do_not_change_with_the_array_they_came_from() -> None:
    array = np.array([1, -1, 0], dtype=np.int8)
    votes = Votes.from_tasks({"a": array}, lengths=[3])
    array[:] = 1
    assert votes.column("a").tolist() == [1, -1, 0]

"""Segments: units with their rounding, votes and gold and back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dugong as dg
from dugong.exceptions import LabelError, TaskError, VoteError
from dugong.segments import Recording, Segments
from dugong.types import MISSING
from strategies import time_axes, votes


def walk(**more: object) -> Segments:
    """The truth of the samples."""
    return Segments(sequence=("s1", "s1"), start=(2, 6), end=(5, 6.5), label=("walk", "turn"), unit="second", **more)


# --- units -------------------------------------------------------------------------------------------------------
def test_seconds_become_elements_at_a_rate_and_back() -> None:
    found = walk().to_unit("element", rate=10)
    assert found.start.tolist() == [20, 60]
    assert found.end.tolist() == [50, 65]
    assert found.rounding is not None
    assert found.rounding.n_moved == 0
    assert found.to_unit("second").equals(walk())


def test_rounding_is_reported() -> None:
    found = Segments(sequence=("a",), start=(0.96,), end=(2.5,), label=("x",), unit="second").to_unit("element", rate=1)
    assert (found.start[0], found.end[0]) == (1, 2)
    assert found.rounding is not None
    assert (found.rounding.n_moved, found.rounding.largest) == (2, pytest.approx(0.5))
    assert "2 of 2 bounds moved" in repr(found)


def test_a_rate_is_never_guessed() -> None:
    with pytest.raises(TaskError, match=r"only at a known rate.*'s1'"):
        walk().to_unit("element")


def test_instants_hold_no_element_and_infinity_is_the_end() -> None:
    made = Segments(sequence=("a", "a"), start=(1.2, 0), end=(1.2, np.inf), label=("x", "y"), unit="second").to_unit(
        "element", rate=10
    )
    assert made.start.tolist() == [12, 0]
    assert made.end.tolist() == [12, np.inf]


@given(st.data())
def test_elements_to_seconds_to_elements_is_the_identity(data: st.DataObject) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=3)))
    time = data.draw(time_axes(lengths).filter(lambda axis: (axis.start >= 0).all()))
    base = dg.Votes.from_tasks({"s": np.zeros(lengths.sum(), np.int8)}, lengths, time=time)
    gold = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=int(lengths.sum()), max_size=int(lengths.sum())))
    found = Segments.from_gold(np.array(gold), base)
    again = found.to_unit("second").to_unit("element")
    assert again.start.tolist() == found.start.tolist()
    assert again.end.tolist() == found.end.tolist()


def test_characters_and_tokens() -> None:
    about = Recording(text="Patient has aortic stenosis today.", tokens=((0, 7), (8, 11), (12, 18), (19, 27), (28, 33)))
    made = Segments(sequence=("n",), start=(12,), end=(27,), label=("D",), unit="character", recordings={"n": about})
    tokens = made.to_unit("element")
    assert (tokens.start[0], tokens.end[0]) == (2, 4)
    assert tokens.to_unit("character").equals(made)
    ragged = Segments(sequence=("n",), start=(14,), end=(20,), label=("D",), unit="character", recordings={"n": about})
    moved = ragged.to_unit("element").rounding
    assert moved is not None
    assert (moved.n_moved, moved.largest) == (2, 7)
    with pytest.raises(TaskError, match="text has no clock"):
        made.to_unit("second")


# --- what is refused ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": (-1, 6)}, "before 0; found -1 to 5.*row 0, sequence 's1'"),
        ({"end": (1, 6.5)}, "end before it begins; found 2 to 1"),
        ({"start": (np.nan, 6)}, "must be numbers"),
        ({"probability": (0.5, 1.5)}, "between 0 and 1; found 1.5"),
        ({"label": ("walk",)}, "equally long"),
        ({"unit": "frame"}, "one of element, second, character"),
    ],
)
def test_segments_are_validated_once(change: dict[str, object], message: str) -> None:
    columns = {"sequence": ("s1", "s1"), "start": (2, 6), "end": (5, 6.5), "label": ("walk", "turn"), "unit": "second"}
    with pytest.raises(LabelError, match=message):
        Segments(**columns | change)


def test_segments_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        walk().start[0] = 1


# --- votes -------------------------------------------------------------------------------------------------------
def test_annotations_become_a_source() -> None:
    found = dg.Votes.from_segments(walk(), lengths={"s1": 100}, rate=10, background="none")
    assert found.class_names == ("none", "walk", "turn")
    column = found.column("annotator")
    assert (column[20:50] == 2).all()
    assert (column[60:65] == 3).all()
    assert (np.delete(column, np.r_[20:50, 60:65]) == 1).all()
    assert found.time is not None


def test_silence_abstains_and_what_was_not_asked_is_missing() -> None:
    asked = {("anna", "a"): ((0.0, 4.0),), ("ben", "a"): ((2.0, np.inf),)}
    made = Segments(
        sequence=("a", "a"), start=(1, 5), end=(2, 7), label=("x", "x"), source=("anna", "ben"), asked=asked
    )
    found = dg.Votes.from_segments(made, lengths=[8])
    assert found.column("anna").tolist() == [0, 1, 0, 0, *[MISSING] * 4]
    assert found.column("ben").tolist() == [MISSING, MISSING, 0, 0, 0, 1, 1, 0]
    assert found.class_names == ("no x", "x")


def test_sequences_that_nobody_looked_at_are_missing_votes() -> None:
    found = dg.Votes.from_segments(walk(), lengths={"s0": 5, "s1": 100}, rate=10)
    assert found.sequence_ids.tolist() == ["s1", "s0"]
    assert (found[1].column("annotator") == MISSING).all()
    with pytest.raises(VoteError, match="there is none for 's1'"):
        dg.Votes.from_segments(walk(), lengths={"s0": 5}, rate=10)
    with pytest.raises(VoteError, match="must lie inside their sequence"):
        dg.Votes.from_segments(walk(), lengths={"s1": 40}, rate=10)


def test_annotations_beside_votes() -> None:
    base = dg.Votes.from_dense(np.ones((2, 4, 1), dtype=int), classes=("other", "walk"), coding="paper")
    made = Segments(sequence=("1",), start=(1,), end=(3,), label=("walk",), source=("anna",))
    found = base.with_segments(made, background="other")
    assert found.source_names == ("s0", "anna")
    assert found.column("anna").tolist() == [*[MISSING] * 4, -1, 1, 1, -1]
    with pytest.raises(VoteError, match="'anna' is one of the votes and of the segments"):
        found.with_segments(made)
    with pytest.raises(VoteError, match=r"must be one of 'other', 'walk'.*'run'"):
        base.with_segments(Segments(sequence=("1",), start=(0,), end=(1,), label=("run",)))


@given(votes(plain=True))
def test_votes_to_segments_and_back(given_votes: dg.Votes) -> None:
    made = given_votes.to_segments()
    names = given_votes.class_names or tuple(map(str, given_votes.classes))
    again = (
        dg.Votes.from_segments(
            made,
            resolutions={one.name: one.resolution for one in given_votes.sources},
            classes=names,
        )
        if not given_votes.partial and not given_votes.spans
        else None
    )
    if again is None or given_votes.n_elements == 0:
        return
    for source in given_votes.sources:
        if source.resolution.name == "element" and source.name in again.source_names:
            np.testing.assert_array_equal(again.column(source.name), given_votes.column(source.name))


def test_whole_sequences_are_votes_on_sequences() -> None:
    made = Segments(sequence=("a", "b"), start=(0, 0), end=(np.inf, np.inf), label=("1", "-1"), resolution="sequence")
    found = dg.Votes.from_segments(made, lengths=[3, 4])
    assert found.sources[0].resolution == dg.Sequence()
    assert found.column("annotator").tolist() == [1, -1]


def test_a_source_marks_elements_or_whole_sequences() -> None:
    rows = {"sequence": ("a", "a"), "start": (0, 0), "end": (2, 3), "label": ("1", "-1")}
    both = Segments(**rows, source=("anna", "anna"), resolution=("element", "sequence"))
    with pytest.raises(VoteError, match="elements or on whole sequences; 'anna' marks both"):
        dg.Votes.from_segments(both, lengths={"a": 3})
    apart = Segments(**rows, source=("anna", "ben"), resolution=("element", "sequence"))
    found = dg.Votes.from_segments(apart, lengths={"a": 3})
    assert [one.resolution for one in found.sources] == [dg.Element(), dg.Sequence()]


def test_silence_is_a_vote_for_the_background_only_where_somebody_looked() -> None:
    made = Segments(sequence=("a",), start=(2,), end=(4,), label=("walk",), asked={("annotator", "a"): [(0, 6)]})
    found = dg.Votes.from_segments(made, lengths={"a": 8, "b": 2}, background="none")
    walk, none = (found.classes[found.class_names.index(name)] for name in ("walk", "none"))
    assert found.column("annotator").tolist() == [none, none, walk, walk, none, none, *[MISSING] * 4]


# --- gold --------------------------------------------------------------------------------------------------------
def test_gold_from_annotations() -> None:
    base = dg.Votes.from_tasks({"s": np.zeros(20, np.int8)}, [10, 10], ids=["a", "b"], classes=("other", "walk"))
    made = Segments(sequence=("a",), start=(2,), end=(5,), label=("walk",))
    assert made.to_gold(base).tolist() == [-1, -1, 1, 1, 1, *[-1] * 5, *[0] * 10]
    explicit = Segments(sequence=("a", "a"), start=(2, 6), end=(5, 8), label=("walk", "other"))
    assert explicit.to_gold(base).tolist() == [0, 0, 1, 1, 1, 0, -1, -1, *[0] * 12]


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=9, max_size=9))
def test_gold_to_segments_and_back(gold: list[int]) -> None:
    base = dg.Votes.from_tasks({"s": np.zeros(9, np.int8)}, [4, 0, 5])
    found = Segments.from_gold(np.array(gold), base)
    if -1 in gold or 1 not in gold:
        assert found.to_gold(base).tolist() == gold


def test_gold_that_does_not_fit_is_refused() -> None:
    base = dg.Votes.from_tasks({"s": np.zeros(10, np.int8)}, [10], ids=["a"], classes=("other", "walk"))

    def one(start: float, end: float, label: str = "walk", sequence: str = "a") -> Segments:
        return Segments(sequence=(sequence,), start=(start,), end=(end,), label=(label,))

    with pytest.raises(LabelError, match="elements 2 to 12 of sequence 'a', which has 10"):
        one(2, 12).to_gold(base)
    with pytest.raises(LabelError, match="must be one of other, walk; found 'run'"):
        one(2, 5, "run").to_gold(base)
    with pytest.raises(LabelError, match="'z' is none"):
        one(2, 5, sequence="z").to_gold(base)
    assert not one(2, 5, sequence="z").to_gold(base, missing_ok=True).any()
    twice = Segments(sequence=("a", "a"), start=(1, 3), end=(4, 6), label=("walk", "other"))
    with pytest.raises(LabelError, match="one label; 1 have two different ones, the first is element 3"):
        twice.to_gold(base)


def test_what_begins_behind_its_sequence_and_never_ends_holds_no_element() -> None:
    made = Segments(sequence=("a", "a"), start=(2, 12), end=(4, np.inf), label=("1", "1"), source=("s", "s"))
    votes = dg.Votes.from_segments(made, lengths={"a": 10})
    assert votes.column("s").tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]

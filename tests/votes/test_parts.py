"""Slicing, concatenation, equality, background."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import VoteError
from dugong.review import take_stretches
from dugong.tasks import Sequence, Spans, TimeAxis, Window
from dugong.types import MISSING
from dugong.votes import Fault, Votes, class_indices, count_faults, implied_background
from strategies import votes as any_votes


@given(any_votes(), st.data())
def test_parts_put_together_are_the_whole(votes, data):
    votes = replace(votes, faults=())
    cut = data.draw(st.integers(1, votes.n_sequences))
    parts = [part for part in (votes[:cut], votes[cut:] if cut < votes.n_sequences else None) if part is not None]
    assert Votes.concat(parts).equals(votes)


@given(any_votes(), st.data())
def test_selected_sequences_keep_their_votes(votes, data):
    chosen = data.draw(st.permutations(range(votes.n_sequences)))[:3]
    part = votes[list(chosen)]
    assert part.sequence_ids.tolist() == votes.sequence_ids[list(chosen)].tolist()
    for source in votes.sources:
        mine, theirs = part.layout(source.resolution), votes.layout(source.resolution)
        for place, sequence in enumerate(chosen):
            expected = votes.column(source.name)[theirs.rows(sequence)]
            assert part.column(source.name)[mine.rows(place)].tolist() == expected.tolist()


@given(any_votes())
def test_selected_sources_and_masks(votes):
    names = votes.source_names[::-1]
    part = votes.select(sources=names)
    assert part.source_names == names
    assert all(np.array_equal(part.column(name), votes.column(name)) for name in names)
    mask = votes.lengths >= np.median(votes.lengths)
    assert votes[mask].lengths.tolist() == votes.lengths[mask].tolist()


@given(any_votes())
def test_pickle_and_equality(votes):
    again = pickle.loads(pickle.dumps(votes))  # noqa: S301  (our own, as another process gets it)
    assert again.equals(votes)
    if len(votes.columns[0]):
        changed = np.where(votes.columns[0] == 1, 0, 1).astype(np.int8)
        assert not replace(votes, columns=(changed, *votes.columns[1:])).equals(votes)
    assert not replace(votes, ids=[f"new {place}" for place in range(votes.n_sequences)]).equals(votes)


def test_a_source_absent_from_a_part_was_not_asked():
    first = Votes.from_tasks({"a": [1, -1], "w": [1]}, [2], resolutions={"w": Window(2)})
    second = Votes.from_tasks({"b": [1], "a": [0]}, [1])
    both = Votes.concat([first, second])
    assert both.source_names == ("a", "w", "b")
    assert both.column("a").tolist() == [1, -1, 0]
    assert both.column("w").tolist() == [1, MISSING]
    assert both.column("b").tolist() == [MISSING, MISSING, 1]
    assert both.sequence_ids.tolist() == [0, 1]


def test_keys_keep_ids_apart():
    part = Votes.from_dense([[1], [-1]], [1, 1], ids=["x", "y"])
    with pytest.raises(VoteError, match=r"unique.*\n  Pass keys="):
        Votes.concat([part, part])
    both = Votes.concat([part, part], keys=["train", "test"])
    assert both.sequence_ids.tolist() == ["train/x", "train/y", "test/x", "test/y"]
    with pytest.raises(VoteError, match="1 keys for 2 votes"):
        Votes.concat([part, part], keys=["train"])


def test_faults_follow_their_sequences():
    faults = (Fault("s0", 0, 1, "ValueError: no face"), Fault("s1", 1, None, "OSError: gone"))
    votes = replace(Votes.from_dense([[1, 0], [-1, 1]], [1, 1]), faults=faults)
    assert votes[1].faults == faults[1:]
    assert votes.select(sources=["s0"]).faults == faults[:1]
    both = Votes.concat([votes, votes])
    assert [fault.sequence for fault in both.faults] == [0, 1, 2, 3]
    assert count_faults(both.faults) == {"s0": 2, "s1": 2}
    assert str(faults[1]) == "s1 on the whole sequence of sequence 1: OSError: gone"
    assert Fault(**faults[0].to_dict()) == faults[0]
    assert "faults      2, the first: s0 on task 1 of sequence 0" in repr(votes)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"n_classes": 3}, "same n_classes"),
        ({}, {"classes": ["no", "yes"]}, "same class_names"),
        ({}, {"resolutions": {"a": Sequence()}}, "source 'a' must be the same everywhere"),
        ({"time": TimeAxis.from_rate(1.0, n_sequences=1)}, {}, "time axis, or none"),
        ({"spans": {"shot": [[(0, 1)]]}, "resolutions": {"a": Spans("shot")}}, {}, "source 'a' must be the same"),
        ({"spans": {"shot": [[(0, 1)]]}}, {}, "spans 'shot' must be given for all votes; part 1 has none"),
    ],
)
def test_votes_that_do_not_go_together(first, second, message):
    parts = [Votes.from_tasks({"a": [1]}, [1], ids=[place], **options) for place, options in enumerate((first, second))]
    with pytest.raises(VoteError, match=message):
        Votes.concat(parts)


def test_nothing_to_put_together():
    with pytest.raises(VoteError, match="found none"):
        Votes.concat([])


# --- background ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (Votes.from_classes([[1, 2], [-1, 3]], 4, lengths=[2]), 1),
        (Votes.from_classes([[1, 2], [0, 3]], 4, lengths=[2]), None),
        (Votes.from_classes([[1, 1], [-1, 3]], 4, lengths=[2]), None),
        (Votes.from_classes([[1, 2], [-1, 3]], 4, lengths=[2], background=2), 3),
        (Votes.from_classes([[1, 9], [-1, -1]], 4, partial={9: (2, 3)}, lengths=[2]), 1),
        (Votes.from_classes([[1, -1], [-1, 1]], 2, lengths=[2]), -1),
        (Votes.from_dense([[1, -9], [0, -9]], [2], missing=-9, coding="paper"), -1),
        (Votes.from_dense([[0, 0], [0, 0]], [2]), None),
        (Votes.from_tasks({"a": [1, 0], "w": [-1]}, [2], resolutions={"w": Sequence()}), None),
        (Votes.from_tasks({"a": [2, 0], "w": [1]}, [2], resolutions={"w": Sequence(of=3)}, n_classes=3), 1),
        (Votes.from_tasks({"a": [2, 3], "w": [-1]}, [2], resolutions={"w": Sequence(of=1)}, n_classes=3), 1),
    ],
)
def test_the_only_class_that_is_never_voted_for(votes, expected):
    assert implied_background(votes) == expected


def test_codes_as_table_columns():
    votes = Votes.from_classes([[-1], [0], [2], [7], [9]], 3, partial={7: (0, 1)}, missing=9, lengths=[5])
    assert class_indices(votes, votes.columns[0], 3).tolist() == [3, 0, 2, 4, -1]
    votes = Votes.from_dense([[-1], [0], [1], [9]], [4], missing=9)
    assert class_indices(votes, votes.columns[0], 2).tolist() == [0, 2, 1, -1]


@given(any_votes(), st.data())
def test_stretches_keep_votes_and_tasks_that_lie_inside(votes, data):
    """Whole sequences stay as they are; of a stretch, all that is there is where it was."""
    filled = np.flatnonzero(votes.lengths > 0)
    whole = take_stretches(votes, filled, np.zeros(len(filled), np.int64), votes.lengths[filled])
    assert all(np.array_equal(a, b) for a, b in zip(whole.columns, votes[filled].columns, strict=True))
    for place in filled.tolist():
        begin = data.draw(st.integers(0, int(votes.lengths[place]) - 1))
        end = data.draw(st.integers(begin + 1, int(votes.lengths[place])))
        part = take_stretches(votes, *np.array([[place], [begin], [end]]))
        for info, column in zip(part.sources, part.columns, strict=True):
            layout = votes.layout(info.resolution)
            rows = layout.rows(place)
            starts, stops = (bound[rows].tolist() for bound in layout.bounds())
            given = dict(zip(zip(starts, stops, strict=True), votes.column(info.name)[rows].tolist(), strict=True))
            bounds = zip(*(bound + begin for bound in part.layout(info.resolution).bounds()), strict=True)
            assert column.tolist() == [given.get((int(a), int(b)), MISSING) for a, b in bounds]

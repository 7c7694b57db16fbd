"""The summary: Snorkel's numbers for sources on elements, and a brute-force oracle across resolutions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dugong.tasks import Element, Sequence, Window
from dugong.types import MISSING
from dugong.votes import Votes, find_problems, gold_at, labels_from_classes, positive_class
from dugong.votes import overlaps as overlaps_module
from dugong.votes.overlaps import count_overlaps
from strategies import votes as any_votes

# The example of Snorkel's documentation of LFAnalysis, with the values that it prints there.
SNORKEL = np.array([[-1, 0, 0], [-1, -1, -1], [1, 0, -1], [-1, 0, -1], [0, 0, 0]])


def test_the_numbers_that_snorkel_documents():
    table = Votes.from_classes(SNORKEL, 2, lengths=[5]).summary().to_dict()
    assert table["j"] == [0, 1, 2]
    assert table["Polarity"] == [[-1, 1], [-1], [-1]]
    assert table["Coverage"] == pytest.approx([0.4, 0.8, 0.4], rel=1e-12)
    assert table["Overlaps"] == pytest.approx([0.4, 0.6, 0.4], rel=1e-12)
    assert table["Conflicts"] == pytest.approx([0.2, 0.2, 0.0], rel=1e-12)
    assert "Correct" not in table


def test_with_gold():
    votes = Votes.from_classes(SNORKEL, 2, lengths=[5], sources=["a", "b", "c"])
    summary = votes.summary(labels_from_classes([0, 1, 1, -1, 0], 2))
    table = summary.to_dict()
    assert table["Correct"] == [2, 2, 2]
    assert table["Incorrect"] == [0, 1, 0]
    assert table["Emp. Acc."] == pytest.approx([1.0, 2 / 3, 1.0], rel=1e-12)
    assert summary.to_arrow().column_names == list(table)
    header, first = str(summary).splitlines()[:2]
    names = ["j", "Resolution", "Polarity", "Coverage", "Overlaps", "Conflicts", "Correct", "Incorrect", "Emp.", "Acc."]
    assert header.split() == names
    assert first.split() == ["a", "0", "element", "-1,", "+1", "0.400", "0.400", "0.200", "2", "0", "1.000"]


@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.integers(-1, 3)))
def test_elements_alone_follow_snorkel(array):
    table = Votes.from_classes(array, 4, lengths=[len(array)]).summary().to_dict()
    voted = array >= 0
    for j in range(array.shape[1]):
        others = [k for k in range(array.shape[1]) if k != j]
        overlap = [voted[i, j] and voted[i, others].any() for i in range(len(array))]
        conflict = [
            voted[i, j] and any(voted[i, k] and array[i, k] != array[i, j] for k in others) for i in range(len(array))
        ]
        assert table["Coverage"][j] == pytest.approx(voted[:, j].mean(), rel=1e-12)
        assert table["Overlaps"][j] == pytest.approx(np.mean(overlap), rel=1e-12)
        assert table["Conflicts"][j] == pytest.approx(np.mean(conflict), rel=1e-12)


# --- the definition, by hand --------------------------------------------------------------------------------------


def tasks_of(votes: Votes, place: int) -> list[tuple[int, int, int]]:
    """(start, stop, vote) of every task on which a source votes."""
    starts, stops = votes.layout(votes.sources[place].resolution).flat_bounds()
    rows = zip(starts.tolist(), stops.tolist(), votes.columns[place].tolist(), strict=True)
    return [(start, stop, vote) for start, stop, vote in rows if vote not in (0, MISSING)]


def possible_classes(votes: Votes, place: int, element: int) -> set[int]:
    """Classes of an element that a source, taken at its word, leaves possible."""
    resolution, left = votes.sources[place].resolution, set(votes.classes)
    for start, stop, vote in tasks_of(votes, place):
        if not start <= element < stop:
            continue
        if isinstance(resolution, Element):
            left &= set(votes.partial.get(vote, (vote,)))
        elif resolution.link == "any" and vote == -1:
            left -= {positive_class(votes, resolution)}
        elif resolution.link == "all" and vote == 1:
            left &= {positive_class(votes, resolution)}
    return left


def ruled_out(votes: Votes, place: int, start: int, stop: int, vote: int, others: list[int]) -> bool:
    """Whether what the others say about the elements excludes a vote."""
    resolution = votes.sources[place].resolution
    said = [[possible_classes(votes, k, e) for k in others] for e in range(start, stop)]
    if isinstance(resolution, Element):
        mine = set(votes.partial.get(vote, (vote,)))
        return any(not mine & left for left in said[0])
    if resolution.link == "joint":
        return False
    positive = positive_class(votes, resolution)
    yes_of = [any(left == {positive} for left in sets) for sets in said]
    no_of = [any(positive not in left for left in sets) for sets in said]
    # Disputed elements count only against a vote that speaks about every single element.
    n_yes = sum(y and (resolution.link == "any" or not n) for y, n in zip(yes_of, no_of, strict=True))
    n_no = sum(n and (resolution.link == "all" or not y) for y, n in zip(yes_of, no_of, strict=True))
    size = stop - start
    yes, no = {
        "any": (n_yes > 0, n_no == size),
        "all": (n_yes == size, n_no > 0),
        "majority": (2 * n_yes > size, 2 * n_no >= size),
    }[resolution.link]
    return no if vote == 1 else yes


def counts_by_hand(votes: Votes) -> tuple[list[int], list[int]]:
    overlaps, conflicts = [0] * votes.n_sources, [0] * votes.n_sources
    for place, source in enumerate(votes.sources):
        others = [k for k in range(votes.n_sources) if k != place]
        for start, stop, vote in tasks_of(votes, place):
            meets = [
                k for k, (a, b, _) in ((k, t) for k in others for t in tasks_of(votes, k)) if a < stop and b > start
            ]
            overlaps[place] += bool(meets)
            differs = not isinstance(source.resolution, Element) and any(
                votes.sources[k].resolution == source.resolution and (start, stop, -vote) in tasks_of(votes, k)
                for k in others
            )
            conflicts[place] += differs or ruled_out(votes, place, start, stop, vote, others)
    return overlaps, conflicts


@given(any_votes(max_sources=4, plain=True), st.sampled_from([1, 3, 1 << 16]))
def test_overlaps_and_conflicts_follow_their_definition(votes, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps_module, "_PIECE", piece)
        patch.setattr(overlaps_module, "_SMALLEST", 1)
        found = count_overlaps(votes)
        covered = votes.covered()
    expected = counts_by_hand(votes)
    assert (found.overlaps.tolist(), found.conflicts.tolist()) == expected
    assert found.n_silent == np.count_nonzero(~covered)


@given(any_votes(plain=True))
def test_covered_is_having_been_spoken_about(votes):
    for resolution in votes.resolutions:
        starts, stops = votes.layout(resolution).flat_bounds()
        expected = [
            any(a < stop and b > start for k in range(votes.n_sources) for a, b, _ in tasks_of(votes, k))
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        assert votes.covered(resolution).tolist() == expected


def test_more_sayings_than_bits_in_a_word():
    rng = np.random.default_rng(1)
    array = rng.integers(-1, 90, (300, 5))
    array[:, 1] = np.where(rng.random(300) < 0.5, array[:, 0], array[:, 1])
    votes = Votes.from_classes(array, 90, lengths=[300])
    found = count_overlaps(votes)
    voted = array >= 0
    conflict = [
        sum(any(voted[i, k] and array[i, k] != array[i, j] for k in range(5)) for i in range(300) if voted[i, j])
        for j in range(5)
    ]
    assert found.conflicts.tolist() == conflict


def test_a_window_vote_that_the_elements_rule_out():
    votes = Votes.from_tasks(
        {"faces": [1, -1, -1, -1], "caption": [-1, 1], "scene": [1]},
        [4],
        resolutions={"caption": Window(2, link="any"), "scene": Sequence(link="any")},
    )
    table = votes.summary().to_dict()
    # The first caption contradicts a face; the second contradicts two frames without one. The scene fits the face.
    assert table["Conflicts"] == [0.25, 1.0, 0.0]
    assert table["Overlaps"] == [1.0, 1.0, 1.0]
    assert table["Resolution"] == ["element", "window2", "sequence"]


def test_missing_votes_are_told_from_abstaining():
    votes = Votes.from_dense([[1, -9], [-1, -9], [0, 1], [1, 0]], [4], missing=-9)
    table = votes.summary().to_dict()
    assert table["Asked"] == [1.0, 0.5]
    assert table["Coverage"] == [0.75, 0.25]


# --- gold ---------------------------------------------------------------------------------------------------------


@given(any_votes(links=("any", "all", "majority"), plain=True), st.data())
def test_buckets_are_where_gold_and_vote_meet(votes, data):
    labels = data.draw(hnp.arrays(np.int8, votes.n_elements, elements=st.sampled_from(votes.classes)))
    for source in votes.sources:
        gold, column = gold_at(votes, labels, source.resolution), votes.column(source.name)
        buckets = votes.buckets(source.name, labels)
        pairs = {(g, v) for g, v in zip(gold.tolist(), column.tolist(), strict=True) if v != MISSING}
        assert set(buckets) == pairs
        for (label, vote), tasks in buckets.items():
            assert np.array_equal(tasks, np.flatnonzero((gold == label) & (column == vote)))


def test_gold_by_resolution_and_by_sequence():
    votes = Votes.from_tasks(
        {"a": [1, -1, 1], "w": [1, 1], "joint": [1, -1]},
        [2, 1],
        resolutions={"w": Sequence(), "joint": Sequence(link="joint")},
    )
    gold = {"element": [np.array([1, -1]), np.array([-1])], Sequence(link="joint"): [1, -1]}
    table = votes.summary(gold).to_dict()
    assert table["Correct"] == [2, 1, 2]
    assert table["Incorrect"] == [1, 1, 0]


def test_an_underspecified_vote_is_right_if_the_label_is_among_its_classes():
    votes = Votes.from_classes([[6], [6], [0]], 3, partial={6: (1, 2)}, lengths=[3])
    table = votes.summary(labels_from_classes([2, 0, 0], 3)).to_dict()
    assert (table["Correct"], table["Incorrect"]) == ([2], [1])
    assert "2|3" in str(votes.summary())


def test_no_known_label_is_no_accuracy():
    table = Votes.from_dense([[1], [-1]], [2]).summary([0, 0])
    assert table.to_dict()["Emp. Acc."] == [None]
    assert table.to_arrow()["Emp. Acc."].null_count == 1
    assert str(table).splitlines()[1].endswith("-")


# --- remarks ------------------------------------------------------------------------------------------------------


def test_remarks():
    votes = Votes.from_tasks(
        {
            "good": [1, -1, 0, 0],
            "copy": [1, -1, 0, 0],
            "mute": [0, 0, 0, 0],
            "absent": [MISSING] * 4,
            "stuck": [1, 1],
        },
        [2, 2, 0],
        resolutions={"stuck": Sequence(of=None)},
    )
    kinds = {(problem.kind, problem.source) for problem in find_problems(votes)}
    assert kinds == {
        ("copy", "copy"),
        ("never-votes", "mute"),
        ("never-votes", "absent"),
        ("always-same", "stuck"),
        ("empty", None),
    }
    texts = "\n".join(map(str, find_problems(votes.select(sources=["good", "absent"]))))
    assert "source 'absent' was never asked" in texts
    assert "no source speaks about 2 of 4 elements (50.0%)." in texts


@pytest.mark.parametrize(("given", "words"), [(None, ", the only class that is never voted for."), (1, ", O.")])
def test_silent_elements_and_the_background(given, words):
    votes = Votes.from_classes([[1], [-1], [2]], classes=["O", "B", "I"], lengths=[3])
    votes = votes if given is None else Votes.from_classes([[1], [-1], [2]], classes="OBI", lengths=[3], background=0)
    text = str(find_problems(votes)[-1])
    assert "they count as background, O" in text
    assert text.endswith(words)


def test_every_sign_of_conflict():
    # Two sources on one task: a conflict exactly if they vote differently.
    for first, second in product([-1, 0, 1], repeat=2):
        votes = Votes.from_tasks({"a": [first], "b": [second]}, [1])
        assert count_overlaps(votes).conflicts.tolist() == [int(first * second == -1)] * 2

"""One pass over the votes against a loop over all anchors, for every relation, lag, position and group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from dugong.exceptions import GraphError, VoteError
from dugong.sums import Grouping, MomentRow, Moments, Plan, Slot, assign_groups, count, inside, pair
from dugong.sums import count as counting
from dugong.tasks import Element, Sequence, Window
from dugong.votes import SourceInfo, Votes, class_indices


def codes_of(votes: Votes, name: str) -> np.ndarray:
    resolution = votes.sources[votes.index(name)].resolution
    return class_indices(votes, votes.column(name), votes.n_classes if isinstance(resolution, Element) else 2)


def anchors(votes: Votes, row: MomentRow):
    """Every anchor: its sequence, first element, position, and the flat task of every slot (None: outside)."""
    where = [votes.sources[votes.index(name)].resolution for name in row.sources]
    fine, coarse = where[0], next((other for other in where if other != where[0]), where[0])
    layout, outer = votes.layout(fine), votes.layout(coarse)
    for sequence in range(votes.n_sequences):
        tasks, wholes = layout.rows(sequence), outer.rows(sequence)
        starts = layout.bounds()[0]
        for task in range(tasks.start, tasks.stop):
            place = task - tasks.start
            if row.relation == "same":
                slots = [task + slot.offset for slot in row.slots]
                if all(tasks.start <= slot < tasks.stop for slot in slots):
                    yield sequence, int(starts[task]), place, slots
                continue
            for whole in range(wholes.start, wholes.stop):
                if outer.bounds()[0][whole] <= starts[task] < outer.bounds()[1][whole]:
                    yield sequence, int(starts[task]), place, [task if r == fine else whole for r in where]


def brute_force(votes: Votes, row: MomentRow, grouping: Grouping, shape: tuple[int, ...]) -> np.ndarray:
    table = np.zeros(shape, dtype=np.int64)
    codes = {name: codes_of(votes, name) for name in row.sources}
    for sequence, start, place, tasks in anchors(votes, row):
        cell = [int(codes[name][task]) for name, task in zip(row.sources, tasks, strict=True)]
        if min(cell) >= 0:
            length = max(int(votes.lengths[sequence]), 1)
            group = int(grouping.base[sequence]) + start * int(grouping.blocks[sequence]) // length
            table[(group, place, *cell) if row.by_position else (group, *cell)] += 1
    return table


@st.composite
def rows(draw: st.DrawFn, votes: Votes) -> MomentRow:
    """Rows on one resolution with any lags, or between two resolutions; of one to four slots."""
    first = draw(st.sampled_from(votes.sources))
    by_position = draw(st.booleans())
    others = [info for info in votes.sources if info.resolution != first.resolution]
    if others and draw(st.booleans()):
        second = draw(st.sampled_from(others))
        known = [info.name for info in votes.sources if info.resolution in (first.resolution, second.resolution)]
        more = draw(st.lists(st.sampled_from(known), max_size=2))
        slots = tuple(Slot(name) for name in (first.name, second.name, *more))
        return MomentRow(slots=slots, relation="inside", by_position=by_position)
    alike = [info.name for info in votes.sources if info.resolution == first.resolution]
    slot = st.builds(Slot, st.sampled_from(alike), st.integers(-2, 3))
    return MomentRow(slots=tuple(draw(st.lists(slot, min_size=1, max_size=4))), by_position=by_position)


@st.composite
def groupings(draw: st.DrawFn, votes: Votes) -> Grouping:
    """The usual groups, or any others; group 0 is what no group was drawn for."""
    if draw(st.booleans()):
        return assign_groups(votes)
    base = draw(st.lists(st.integers(0, 3), min_size=votes.n_sequences, max_size=votes.n_sequences))
    return Grouping(base=np.array(base), blocks=np.ones(votes.n_sequences, dtype=np.int64), n_groups=4)


@st.composite
def cases(draw: st.DrawFn):
    votes = draw(strategies.votes(plain=True))
    plan = Plan.of(draw(st.lists(rows(votes), min_size=1, max_size=4)))
    return votes, plan, draw(groupings(votes))


def assert_equal(first: Moments, second: Moments) -> None:
    assert first.plan == second.plan
    assert first.sources == second.sources
    for a, b in zip(first.counts, second.counts, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(first.shapes.lengths, second.shapes.lengths)
    np.testing.assert_array_equal(first.shapes.counts, second.shapes.counts)


@settings(max_examples=100)
@given(cases())
def test_counts_are_those_of_a_loop_over_anchors(case):
    votes, plan, grouping = case
    found = count(votes, plan, grouping)
    assert found.n_groups == grouping.n_groups
    for row, table in zip(plan.rows, found.counts, strict=True):
        np.testing.assert_array_equal(table, brute_force(votes, row, grouping, table.shape))


@given(cases(), st.integers(1, 3))
def test_small_blocks_count_the_same(case, size):
    votes, plan, grouping = case
    whole = count(votes, plan, grouping)
    module = __import__("sys").modules[counting.__module__]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 64 * size)
        assert_equal(count(votes, plan, grouping), whole)


@given(cases(), st.randoms(use_true_random=False))
def test_shards_add_up_in_any_order(case, random):
    votes, plan, grouping = case
    whole = count(votes, plan, grouping)
    order = list(range(votes.n_sequences))
    random.shuffle(order)
    cut = random.randint(0, len(order))
    shards = [part for part in (order[:cut], order[cut:]) if part]
    total = None
    for part in shards:
        index = np.array(part)
        own = Grouping(base=grouping.base[index], blocks=grouping.blocks[index], n_groups=grouping.n_groups)
        found = count(votes[index], plan, own)
        total = found if total is None else found + total
    if not votes.spans:
        assert_equal(total, whole)
    for a, b in zip(total.counts, whole.counts, strict=True):
        np.testing.assert_array_equal(a, b)


@given(strategies.votes(plain=True, max_sources=3), st.randoms(use_true_random=False))
def test_shuffled_sequences_count_the_same_in_total(votes, random):
    """Groups are blocks of the order with few sequences, so only totals are compared here."""
    plan = Plan.of([MomentRow(slots=(Slot(name),)) for name in votes.source_names])
    order = list(range(votes.n_sequences))
    random.shuffle(order)
    first, second = count(votes, plan), count(votes[np.array(order)], plan)
    for row in plan.rows:
        np.testing.assert_array_equal(first.table(row), second.table(row))


def many(rng, *, ids=None, n_sequences=80) -> Votes:
    lengths = rng.integers(1, 6, size=n_sequences)
    sources = tuple(SourceInfo(name=name) for name in "abc")
    columns = tuple(rng.choice([-1, 0, 1], size=lengths.sum()).astype(np.int8) for _ in sources)
    return Votes(sources=sources, columns=columns, lengths=lengths, ids=ids)


PAIRS = Plan.of(
    [MomentRow(slots=(Slot("a"),)), pair("a", "b"), pair("b", "c", lag=1), pair("a", "c", by_position=True)]
)


@pytest.mark.parametrize("named", [False, True], ids=["by content", "by id"])
def test_shuffled_sequences_stay_in_their_groups(named, rng):
    votes = many(rng, ids=np.array([f"clip{i}" for i in range(80)]) if named else None)
    order = rng.permutation(80)
    shuffled = votes[order]
    if not named:
        shuffled = Votes(sources=votes.sources, columns=shuffled.columns, lengths=shuffled.lengths)
    assert_equal(count(votes, PAIRS), count(shuffled, PAIRS))


def test_the_order_of_sources_does_not_change_groups(rng):
    votes = many(rng)
    turned = votes.select(sources=["c", "b", "a"])
    first, second = (
        assign_groups(votes),
        assign_groups(Votes(sources=turned.sources, columns=turned.columns, lengths=turned.lengths)),
    )
    np.testing.assert_array_equal(first.base, second.base)


def test_copies_of_a_sequence_are_spread_over_groups():
    sources = (SourceInfo(name="a"),)
    votes = Votes(sources=sources, columns=(np.tile(np.array([1, -1, 0], np.int8), 320),), lengths=np.full(320, 3))
    sizes = np.bincount(assign_groups(votes).base, minlength=33)[1:]
    assert sizes.sum() == 320
    # As independent draws would be: a chi-square of 31 degrees of freedom. Equal sizes would make errors vanish.
    assert 12 < ((sizes - 10) ** 2 / 10).sum() < 60


def test_a_users_groups_stay_together(rng):
    votes = many(rng)
    patients = np.array([f"p{i % 7}" for i in range(80)])
    base = assign_groups(votes, patients).base
    for patient in np.unique(patients):
        assert len(np.unique(base[patients == patient])) == 1
    with pytest.raises(VoteError, match=r"one group per sequence \(80\); found 3"):
        assign_groups(votes, ["a", "b", "c"])


def test_few_long_sequences_are_cut_into_blocks(rng):
    votes = Votes(
        sources=(SourceInfo(name="a"),),
        columns=(rng.choice([-1, 1], size=3000).astype(np.int8),),
        lengths=np.array([2000, 1000]),
    )
    grouping = assign_groups(votes)
    groups = grouping.of_tasks(votes.layout("element"))
    assert 20 <= grouping.n_groups - 1 <= 40
    assert (np.diff(groups) >= 0).all()  # contiguous, and never across two sequences
    assert groups[1999] < groups[2000]
    assert np.bincount(groups)[1:].min() >= 50


def test_very_many_sequences_leave_a_rest(monkeypatch, rng):
    """Beyond a sample of the data, groups hold only a part; the rest is counted in total, through bit planes."""
    votes = many(rng, n_sequences=2000)
    whole = count(votes, PAIRS)
    monkeypatch.setattr("dugong.sums.groups.SAMPLE", 600)
    grouping = assign_groups(votes)
    found = count(votes, PAIRS, grouping)
    assert (grouping.base == 0).mean() > 0.7
    for row, table in zip(PAIRS.rows, found.counts, strict=True):
        np.testing.assert_array_equal(table.sum(axis=0), whole.table(row))
        np.testing.assert_array_equal(table, brute_force(votes, row, grouping, table.shape))


def test_groups_of_tasks_are_those_of_their_first_element(rng):
    lengths = np.array([40, 0, 33])
    window = Window(size=5, stride=2)
    sources = (
        SourceInfo(name="a"),
        SourceInfo(name="w", resolution=window),
        SourceInfo(name="s", resolution=Sequence()),
    )
    sizes = [73, 19 + 15, 2]
    votes = Votes(
        sources=sources, columns=tuple(rng.choice([-1, 1], size=n).astype(np.int8) for n in sizes), lengths=lengths
    )
    grouping = assign_groups(votes)
    elements = grouping.of_tasks(votes.layout("element"))
    starts = votes.layout(window).flat_bounds()[0]
    np.testing.assert_array_equal(grouping.of_tasks(votes.layout(window)), elements[starts])


def test_an_inside_row_needs_two_resolutions(rng):
    with pytest.raises(VoteError, match="needs sources of two resolutions and no lags; found element"):
        count(many(rng), Plan.of([inside("a", "b")]))


def test_a_row_that_was_not_counted_is_named(rng):
    moments = count(many(rng), PAIRS)
    with pytest.raises(GraphError, match=r"the row a\[\+0\], c\[\+2\] \(same\) was not counted"):
        moments.table(pair("a", "c", lag=2))


@pytest.mark.parametrize("named", [False, True], ids=["by content", "by a column"])
def test_empty_sequences_take_nothing_from_their_neighbours(named, rng):
    lengths = rng.integers(0, 5, size=300)
    sources = tuple(SourceInfo(name=name) for name in "abc")
    columns = tuple(rng.choice([-1, 0, 1], size=lengths.sum()).astype(np.int8) for _ in sources)
    votes = Votes(sources=sources, columns=columns, lengths=lengths)
    groups = assign_groups(votes, rng.integers(0, 150, size=300).tolist() if named else None)
    counted = count(votes, Plan.of([MomentRow(slots=(Slot("a"),)), pair("a", "b")]), groups)
    assert [table.sum() for table in counted.counts] == [lengths.sum()] * 2

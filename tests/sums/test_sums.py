"""Moments as values: adding, leaving out, files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import strategies
from dugong.exceptions import VoteError
from dugong.sums import MomentRow, Moments, Plan, Shapes, Slot, count, inside, pair
from dugong.tasks import Spans, SpanTable, Window
from dugong.votes import SourceInfo, Votes

PLAN = Plan.of([MomentRow(slots=(Slot("a"),)), pair("a", "b"), pair("a", "b", by_position=True), inside("a", "w")])


def draw_votes(rng, lengths, *, names=("a", "b")) -> Votes:
    lengths = np.array(lengths)
    window = Window(size=3, link="any")
    counts = np.where(lengths > 3, -(-(lengths - 3) // 3) + 1, lengths > 0)
    columns = [rng.choice([-1, 0, 1], size=lengths.sum()).astype(np.int8) for _ in names]
    columns.append(rng.choice([-1, 0, 1], size=counts.sum()).astype(np.int8))
    sources = (*(SourceInfo(name=name) for name in names), SourceInfo(name="w", resolution=window))
    return Votes(sources=sources, columns=tuple(columns), lengths=lengths)


def assert_same(first: Moments, second: Moments) -> None:
    assert first.plan == second.plan
    assert first.sources == second.sources
    assert first.n_classes == second.n_classes
    for a, b in zip(first.counts, second.counts, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    np.testing.assert_array_equal(first.shapes.lengths, second.shapes.lengths)
    np.testing.assert_array_equal(first.shapes.counts, second.shapes.counts)
    assert first.shapes.spans.keys() == second.shapes.spans.keys()
    for name, table in first.shapes.spans.items():
        for part in ("offsets", "starts", "stops"):
            np.testing.assert_array_equal(getattr(table, part), getattr(second.shapes.spans[name], part))


def test_adding_commutes_and_associates(rng):
    parts = [count(draw_votes(rng, rng.integers(1, 9, size=30)), PLAN) for _ in range(3)]
    a, b, c = parts
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))


def test_adding_pads_positions_and_merges_lengths(rng):
    short, long = (count(draw_votes(rng, [n] * 25), PLAN) for n in (2, 7))
    total = short + long
    assert total.shapes.lengths.tolist() == [2, 7]
    assert total.shapes.counts.tolist() == [25, 25]
    row = pair("a", "b", by_position=True)
    np.testing.assert_array_equal(total.table(row)[:2], short.table(row) + long.table(row)[:2])
    np.testing.assert_array_equal(total.table(row)[2:], long.table(row)[2:])


def test_different_plans_do_not_add(rng):
    votes = draw_votes(rng, [4] * 20)
    with pytest.raises(VoteError, match="only if plan, sources and classes are the same"):
        count(votes, PLAN) + count(votes, Plan.of([pair("a", "b")]))


def test_leaving_a_group_out_is_the_rest(rng):
    moments = count(draw_votes(rng, [5] * 60), PLAN)
    for group in (0, 3, 17):
        rest = moments.without(group)
        for row, counts in zip(PLAN.rows, moments.counts, strict=True):
            np.testing.assert_array_equal(rest.table(row) + counts[group], moments.table(row))
    np.testing.assert_array_equal(moments.table(PLAN.rows[1]), moments.counts[1].sum(axis=0))


def test_counts_cannot_be_written(rng):
    moments = count(draw_votes(rng, [5] * 30), PLAN)
    with pytest.raises(ValueError, match="read-only"):
        moments.counts[0][0] = 1


def test_save_then_load_is_identity(rng, tmp_path):
    moments = count(draw_votes(rng, rng.integers(1, 9, size=40)), PLAN)
    moments.save(tmp_path / "moments.npz")
    assert_same(Moments.load(tmp_path / "moments.npz"), moments)


@given(strategies.votes(plain=True))
def test_save_then_load_is_identity_for_any_votes(tmp_path_factory, votes):
    plan = Plan.of(
        [MomentRow(slots=(Slot(name),), by_position=place % 2 == 1) for place, name in enumerate(votes.source_names)]
    )
    moments = count(votes, plan)
    path = tmp_path_factory.mktemp("moments") / "any.npz"
    moments.save(path)
    assert_same(Moments.load(path), moments)


def test_spans_keep_every_sequence_apart():
    spans = {"shot": SpanTable.from_lists([[(0, 2)], [(0, 1), (1, 3)]])}
    votes = Votes(
        sources=(SourceInfo(name="a"), SourceInfo(name="s", resolution=Spans(name="shot"))),
        columns=(np.array([1, 1, -1, 0, 1], np.int8), np.array([1, -1, 1], np.int8)),
        lengths=np.array([2, 3]),
        spans=spans,
    )
    moments = count(votes, Plan.of([inside("a", "s")]))
    twice = moments + moments
    assert twice.shapes.lengths.tolist() == [2, 3, 2, 3]
    assert twice.shapes.spans["shot"].offsets.tolist() == [0, 1, 3, 4, 6]
    np.testing.assert_array_equal(twice.counts[0], 2 * moments.counts[0])


def test_shapes_count_lengths():
    shapes = Shapes.of(np.array([5, 2, 5, 5]), {})
    assert (shapes.lengths.tolist(), shapes.counts.tolist()) == ([2, 5], [1, 3])
    total = shapes + Shapes.of(np.array([2, 9]), {})
    assert (total.lengths.tolist(), total.counts.tolist()) == ([2, 5, 9], [2, 3, 1])


def test_a_newer_file_asks_for_an_upgrade(rng, tmp_path):
    path = tmp_path / "moments.npz"
    count(draw_votes(rng, [3] * 20), PLAN).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    header = arrays["header"].tobytes().replace(b'"version": 2', b'"version": 9')
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(VoteError, match="newer version of Dugong"):
        Moments.load(path)


def test_plans_keep_each_row_once():
    plan = Plan.of([pair("a", "b"), pair("b", "c"), pair("a", "b")])
    assert len(plan.rows) == 2
    assert pair("b", "c") in plan
    assert pair("c", "b") not in plan
    assert plan == Plan(rows=(pair("a", "b"), pair("b", "c")))
    assert MomentRow(slots=(Slot("a", -1), Slot("b", 2))).span == 3

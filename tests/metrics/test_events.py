"""Events: finding them, pairing them, scoring them, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import LabelError
from dugong.metrics import evaluate, runs, spans_from_bio

BIO = ["O", "B-Drug", "I-Drug", "B-Pain", "I-Pain"]
Event = tuple[int, int, int]


def loop_runs(kinds: list[int], lengths: list[int]) -> list[Event]:
    """Find runs of one kind, element by element; -1 is no event."""
    events, position = [], 0
    for length in lengths:
        start = position
        for i in range(position, position + length + 1):
            if i == position + length or (i > start and kinds[i] != kinds[start]):
                if i > start and kinds[start] >= 0:
                    events.append((start, i, kinds[start]))
                start = i
        position += length
    return events


def loop_spans(tags: list[int], lengths: list[int]) -> list[Event]:
    """Find BIO spans, tag by tag; -1 is outside."""
    events, position = [], 0
    for length in lengths:
        open_start, open_type = None, None
        for i in range(position, position + length):
            name = "O" if tags[i] < 0 else BIO[tags[i]]
            kind = None if name == "O" else name[2:]
            if open_type is not None and (kind != open_type or name[0] == "B"):
                events.append((open_start, i, ["Drug", "Pain"].index(open_type)))
                open_type = None
            if kind is not None and open_type is None:
                open_start, open_type = i, kind
        if open_type is not None:
            events.append((open_start, position + length, ["Drug", "Pain"].index(open_type)))
        position += length
    return events


def loop_match(gold: list[Event], labelled: list[Event], iou: float) -> list[tuple[int, int]]:
    """Pair greedily: look at all pairs, take the best free one, repeat."""
    pairs = []
    for i, (a, b, kind) in enumerate(gold):
        for j, (c, d, other) in enumerate(labelled):
            shared = min(b, d) - max(a, c)
            if kind == other and shared > 0 and shared / (b - a + d - c - shared) >= iou:
                pairs.append((-shared / (b - a + d - c - shared), i, j))
    taken: list[tuple[int, int]] = []
    for _, i, j in sorted(pairs):
        if all(i != one and j != other for one, other in taken):
            taken.append((i, j))
    return taken


@st.composite
def ragged(draw: st.DrawFn, n_classes: int = 3) -> tuple[list[int], list[int], list[int]]:
    """Draw lengths, gold (0 = unknown) and hard labels (0 = abstain) in 1..K, made of runs."""
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=5).filter(any))
    n = sum(lengths)
    rows = []
    for _ in range(2):
        pieces = draw(st.lists(st.tuples(st.integers(0, n_classes), st.integers(1, 5)), min_size=n, max_size=n))
        rows.append([value for value, times in pieces for _ in range(times)][:n])
    if not any(rows[0]):
        rows[0][0] = 1
    return lengths, rows[0], rows[1]


def test_events_by_hand():
    gold = np.array([-1, 1, 1, 1, 1, -1, -1, 1, 1, -1, 1, 1, -1])
    labels = np.array([-1, -1, 1, 1, 1, 1, -1, -1, -1, 1, 1, 1, 1])
    result = evaluate(labels, gold, lengths=[10, 3])
    # gold [1,5) [7,9) [10,12); labelled [2,6) [9,10) [10,13): IoU 3/5, 0, 2/3. Runs stop at the border at 10.
    assert result.event_precision == pytest.approx(2 / 3, rel=1e-12)
    assert result.event_recall == pytest.approx(2 / 3, rel=1e-12)
    assert result.event_f1 == pytest.approx(2 / 3, rel=1e-12)
    assert (result.onset_error, result.offset_error) == (0.5, 1.0)
    assert result.span_f1 == 0.0
    stricter = evaluate(labels, gold, lengths=[10, 3], iou=0.65)
    assert stricter.event_f1 == pytest.approx(1 / 3, rel=1e-12)


def test_exact_spans_by_hand():
    gold = [1, 1, -1, 1, -1, 1]
    labels = [1, 1, -1, 1, 1, -1]
    result = evaluate(labels, gold, lengths=[6])
    assert result.span_f1 == pytest.approx(2 * 1 / (3 + 2), rel=1e-12)
    assert result["span_precision"].value == 0.5
    assert result["span_recall"].value == pytest.approx(1 / 3, rel=1e-12)


def test_an_event_is_matched_once():
    gold, labels = [1, 1, 1, 1, -1], [1, 1, -1, 1, -1]
    result = evaluate(labels, gold, lengths=[5], iou=0.2)
    assert (result.event_recall, result.event_precision) == (1.0, 0.5)
    assert (result.onset_error, result.offset_error) == (0.0, 2.0)


def test_the_threshold_itself_is_enough():
    assert evaluate([1, -1, -1], [1, 1, -1], lengths=[3], iou=0.5).event_f1 == 1.0
    ten = np.array([1] * 10 + [-1])
    three = np.where(np.arange(11) < 3, 1, -1)
    assert evaluate(three, ten, lengths=[11], iou=0.3).event_f1 == 1.0


def test_unknown_gold_cuts_events_in_both():
    gold, labels = [1, 1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]
    result = evaluate(labels, gold, lengths=[7], classes=[-1, 1])
    assert (result.event_f1, result.span_f1) == (1.0, 1.0)


def test_without_events_scores_are_undefined():
    result = evaluate([-1, -1], [-1, -1], lengths=[2])
    assert math.isnan(result.event_f1)
    assert math.isnan(result.onset_error)


def test_no_lengths_no_event_scores_and_the_table_says_why():
    result = evaluate([1, -1], [1, -1])
    assert result.event_f1 is None
    assert result.onset_error is None
    assert "no event scores: they need lengths" in str(result)


def test_more_classes_without_background_make_every_class_an_event():
    labels, gold = [1, 1, 2, 3], [1, 1, 2, 2]
    result = evaluate(labels, gold, lengths=[4])
    assert result.event_f1 == pytest.approx(4 / 5, rel=1e-12)  # 3 labelled, 2 gold, both matched (IoU 1 and .5)
    without = evaluate(labels, gold, lengths=[4], background=1)
    assert without.event_f1 == pytest.approx(2 / 3, rel=1e-12)


@given(ragged())
def test_runs_equal_a_loop(case):
    lengths, kinds, _ = case
    columns = np.array(kinds) - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    found = runs(columns, offsets)
    assert list(zip(found.start, found.end, found.kind, strict=True)) == loop_runs(columns.tolist(), lengths)


@given(ragged(n_classes=5))
def test_spans_equal_a_loop(case):
    lengths, tags, _ = case
    found = spans_from_bio(np.array(tags) - 1, BIO, lengths)
    expected = loop_spans([tag - 1 for tag in tags], lengths)
    assert list(zip(found.start, found.end, found.kind, strict=True)) == expected


@given(ragged(), st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0]), st.sampled_from([None, 1, 3]))
def test_event_scores_equal_loops(case, iou, background):
    lengths, gold, labels = case
    result = evaluate(labels, gold, lengths=lengths, iou=iou, background=background, classes=[1, 2, 3])
    drop = {0, background}
    seen = [
        [-1 if value in drop or truth == 0 else value - 1 for value, truth in zip(row, gold, strict=True)]
        for row in (gold, labels)
    ]
    one, other = (loop_runs(row, lengths) for row in seen)
    pairs, exact = loop_match(one, other, iou), set(one) & set(other)
    expected = {
        "event_precision": (len(pairs), len(other)),
        "event_recall": (len(pairs), len(one)),
        "event_f1": (2 * len(pairs), len(one) + len(other)),
        "span_f1": (2 * len(exact), len(one) + len(other)),
        "onset_error": (sum(abs(one[i][0] - other[j][0]) for i, j in pairs), len(pairs)),
        "offset_error": (sum(abs(one[i][1] - other[j][1]) for i, j in pairs), len(pairs)),
    }
    for name, (top, bottom) in expected.items():
        ours = result[name].value
        assert math.isnan(ours) if bottom == 0 else ours == pytest.approx(top / bottom, rel=1e-12), name


@given(ragged(n_classes=5))
def test_bio_scores_equal_loops(case):
    lengths, gold, labels = case
    result = evaluate(labels, gold, lengths=lengths, classes=BIO)
    seen = [[-1 if t == 0 else v - 1 for v, t in zip(row, gold, strict=True)] for row in (gold, labels)]
    one, other = (loop_spans(row, lengths) for row in seen)
    bottom = len(one) + len(other)
    exact, pairs = set(one) & set(other), loop_match(one, other, 0.5)
    assert math.isnan(result.span_f1) if not bottom else result.span_f1 == 2 * len(exact) / bottom
    assert math.isnan(result.event_f1) if not bottom else result.event_f1 == 2 * len(pairs) / bottom


def test_bio_names_give_background_and_spans():
    gold = [1, 2, 3, 1, 4, 2]
    labels = [1, 2, 3, 1, 5, 2]  # I-Pain after O opens a span: the span is right, the tag is not
    result = evaluate(labels, gold, lengths=[6], classes=BIO)
    assert result.span_f1 == 1.0
    assert result.f1 < 1.0
    assert "background 'O'" in str(result)
    with pytest.raises(LabelError, match="with BIO tags the background is 'O'"):
        evaluate(labels, gold, classes=BIO, background="B-Drug")


def test_spans_refuse_other_names():
    with pytest.raises(LabelError, match="BIO tags must be named O, B-x and I-x"):
        spans_from_bio([0, 1], ["no", "yes"], [2])
    with pytest.raises(LabelError, match="numbers from -1 to 4"):
        spans_from_bio([0, 5], BIO, [2])


def test_contested_pairs_of_a_long_regular_pattern():
    # Adjacent spans of four, shifted by two: each overlaps two others equally (IoU 1/3), all along the chain.
    gold = np.tile([2, 3, 3, 3], 100)
    labels = np.roll(gold, 2)
    result = evaluate(labels, gold, lengths=[400], iou=1 / 3, classes=BIO)
    one, other = loop_spans((gold - 1).tolist(), [400]), loop_spans((labels - 1).tolist(), [400])
    pairs = loop_match(one, other, 1 / 3)
    assert (len(one), len(other), len(pairs)) == (100, 101, 100)
    assert result.event_f1 == pytest.approx(2 * 100 / 201, rel=1e-12)
    assert result.onset_error == pytest.approx(sum(abs(one[i][0] - other[j][0]) for i, j in pairs) / 100, rel=1e-12)

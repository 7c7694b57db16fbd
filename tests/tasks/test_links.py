"""Labels of coarser tasks follow from the elements: against the definition of each link."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dugong.exceptions import TaskError
from dugong.tasks import Element, Layout, Sequence, TaskCounter, Window, link_labels, links
from strategies import lengths, resolutions, span_tables

COUNTABLE = ("any", "all", "majority")


def label_by_hand(link: str, elements: list[bool]) -> int:
    positive = {"any": any(elements), "all": all(elements), "majority": 2 * sum(elements) > len(elements)}[link]
    return 1 if positive else -1


def possible_by_hand(link: str, elements: list[int], positive: int) -> set[int]:
    """The labels that remain if every unknown element (0) may be either."""
    choices = [[True, False] if label == 0 else [label == positive] for label in elements]
    return {label_by_hand(link, list(choice)) for choice in product(*choices)}


@given(st.data(), lengths(max_length=7), st.sampled_from([2, 4]))
def test_labels_follow_the_link(data, of_lengths, n_classes):
    spans = {name: data.draw(span_tables(of_lengths)) for name in ("shot", "line")}
    resolution = data.draw(resolutions(n_classes, COUNTABLE))
    classes = [-1, 0, 1] if n_classes == 2 else list(range(n_classes + 1))
    labels = data.draw(hnp.arrays(np.int8, int(of_lengths.sum()), elements=st.sampled_from(classes)))
    layout = Layout.of(resolution, of_lengths, spans)
    positive = 1 if n_classes == 2 or isinstance(resolution, Element) else resolution.of
    found = link_labels(labels, layout, positive)
    if isinstance(resolution, Element):
        assert found.tolist() == labels.tolist()
        return
    for label, start, stop in zip(found.tolist(), *layout.flat_bounds(), strict=True):
        possible = possible_by_hand(resolution.link, labels[start:stop].tolist(), positive)
        assert {label} == (possible if len(possible) == 1 else {0})


@given(st.sampled_from(COUNTABLE), st.lists(st.booleans(), min_size=1, max_size=12))
def test_links_as_automata_agree(link, elements):
    state = links.start(link)
    for positive in elements:
        state = links.step(link, state, positive)
    labels = np.where(elements, 1, -1)
    found = link_labels(labels, Layout.of(Sequence(link), np.array([len(elements)])))
    assert links.accept(link, state) == (found[0] == 1)


def test_half_is_no_majority():
    layout = Layout.of(Window(4, link="majority"), np.array([6]))
    assert link_labels([1, 1, -1, -1, 1, -1], layout).tolist() == [-1, -1]
    assert link_labels([1, 1, 1, -1, 1, 1], layout).tolist() == [1, 1]


def test_joint_labels_do_not_follow():
    layout = Layout.of(Window(2, link="joint"), np.array([2]))
    with pytest.raises(TaskError, match=r"own labels\.\n  Give the labels at this resolution"):
        link_labels([1, 1], layout)
    with pytest.raises(TaskError, match=r"priors\.Joint"):
        links.start("joint")


def test_labels_must_be_one_per_element():
    with pytest.raises(TaskError, match=r"one label per element, 2 in all; found shape \(3,\)"):
        link_labels([1, 1, 1], Layout.of(Sequence(), np.array([2])))


@given(st.data(), lengths(max_length=15), st.integers(1, 9))
def test_counts_in_pieces_are_counts_at_once(data, of_lengths, step):
    total = int(of_lengths.sum())
    spans = {name: data.draw(span_tables(of_lengths)) for name in ("shot", "line")}
    layout = Layout.of(data.draw(resolutions()), of_lengths, spans)
    flags = data.draw(hnp.arrays(np.bool_, total))
    counter, found = TaskCounter(layout, 2), []
    for begin in range(0, total, step):
        piece = flags[begin : begin + step]
        done, counts = counter.feed(begin, [piece, ~piece])
        found += list(zip(range(done.first, done.last), *counts.tolist(), strict=True))
    starts, stops = layout.flat_bounds()
    expected = [
        (task, int(flags[a:b].sum()), int(b - a) - int(flags[a:b].sum()))
        for task, (a, b) in enumerate(zip(starts, stops, strict=True))
    ]
    assert found == expected

"""The source graph: what users may declare, what is independent, and the order in which sources are eliminated."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import GraphError
from dugong.graph import SourceGraph, eliminate, temporal
from dugong.graph.design import Independence
from dugong.sums import pair

NAMES = tuple("abcdefg")


@st.composite
def graphs(draw: st.DrawFn) -> SourceGraph:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, 6))]
    edges = draw(st.lists(st.sampled_from(list(combinations(names, 2)) or [None]), max_size=8))
    return SourceGraph.of(names, [edge for edge in edges if edge])


# --- declarations ----------------------------------------------------------------------------------------------------


def test_edges_are_kept_once_in_the_order_of_the_sources():
    graph = SourceGraph.of("abc", [("c", "a"), ("a", "c"), ["b", "a"]])
    assert graph.edges == (("a", "c"), ("a", "b"))
    assert graph.neighbours("a") == {"b", "c"}


def test_lags_are_kept_by_source():
    assert SourceGraph.of("ab", [temporal("b", lag=2)]).temporal == {"b": 2}


@pytest.mark.parametrize(
    ("dependency", "message"),
    [
        (("a", "x"), "names the source 'x', which does not vote here; known are 'a', 'b'"),
        (temporal("x"), "names the source 'x'"),
        (("a", "a"), r"cannot share an edge with itself; found \('a', 'a'\)"),
        ("ab", "must be a pair of source names or temporal\\(\"name\"\\); found 'ab'"),
        (("a", "b", "a"), "must be a pair of source names"),
        (("a", 1), "must be a pair of source names"),
    ],
)
def test_wrong_declarations_say_what_they_must_be(dependency, message):
    with pytest.raises(GraphError, match=message):
        SourceGraph.of("ab", [dependency])


@pytest.mark.parametrize("lag", [0, -1])
def test_a_lag_is_at_least_one(lag):
    with pytest.raises(GraphError, match=f"must be at least 1; found {lag}"):
        temporal("a", lag=lag)


# --- independence ----------------------------------------------------------------------------------------------------


def is_valid(independence, first, second, lag=0):
    """Whether a row of two votes so many tasks apart is an equation."""
    return independence.valid(pair(first, second, lag=lag))


def independence_of(graph):
    levels = dict.fromkeys(graph.names, "tied")
    return Independence(component=graph.components(), tangled=frozenset(graph.temporal), levels=levels)


@given(graphs())
def test_components_are_those_of_paths(graph):
    """Powers of the adjacency matrix say which sources a path joins."""
    n = len(graph.names)
    near = np.eye(n, dtype=int)
    for a, b in graph.edges:
        i, j = graph.names.index(a), graph.names.index(b)
        near[i, j] = near[j, i] = 1
    joined = np.linalg.matrix_power(near, n) > 0
    answers = independence_of(graph)
    for i, first in enumerate(graph.names):
        for j, second in enumerate(graph.names):
            assert answers.apart(first, second) == (not joined[i, j])


def test_a_temporal_source_stays_on_its_own_task_with_one_that_is_not():
    graph = SourceGraph.of("abcd", [temporal("a"), temporal("b"), ("c", "d")])
    answers = independence_of(graph)
    assert is_valid(answers, "a", "c")
    assert not is_valid(answers, "a", "b")
    assert not is_valid(answers, "c", "d")
    assert not is_valid(answers, "a", "c", lag=1)
    assert not is_valid(answers, "a", "a", lag=1)
    assert is_valid(answers, "c", "c", lag=1)
    assert not is_valid(answers, "c", "d", lag=1)


@given(graphs())
def test_independence_is_symmetric(graph):
    answers = independence_of(graph)
    for first in graph.names:
        for second in graph.names:
            for lag in (0, 1):
                assert is_valid(answers, first, second, lag) == is_valid(answers, second, first, lag)


# --- elimination -----------------------------------------------------------------------------------------------------


def assert_valid(graph: SourceGraph) -> None:
    found = eliminate(graph)
    assert sorted(found.order) == sorted(graph.names)
    place = {name: i for i, name in enumerate(found.order)}
    filled = {frozenset(edge) for edge in (*graph.edges, *found.fill)}
    for name, parents in found.parents.items():
        assert all(place[parent] < place[name] for parent in parents)
        # The parents of a source are joined to it and to each other in the triangulated graph.
        for a, b in combinations((name, *parents), 2):
            assert frozenset((a, b)) in filled
    families = [{name, *parents} for name, parents in found.parents.items()]
    for edge in graph.edges:
        assert any(set(edge) <= family for family in families)


@given(graphs())
def test_every_edge_is_inside_a_family_and_families_are_cliques(graph):
    assert_valid(graph)


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_sources_does_not_matter(graph, random):
    shuffled = list(graph.names)
    random.shuffle(shuffled)
    first, second = eliminate(graph), eliminate(SourceGraph.of(shuffled, graph.edges))
    assert first.order == second.order
    assert first.parents == second.parents


@pytest.mark.parametrize(
    ("edges", "fill", "cliques"),
    [
        ([], 0, [{"a"}, {"b"}, {"c"}, {"d"}]),
        ([("a", "b"), ("b", "c")], 0, [{"a", "b"}, {"b", "c"}, {"d"}]),
        ([("a", "b"), ("b", "c"), ("a", "c")], 0, [{"a", "b", "c"}, {"d"}]),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], 1, None),
    ],
    ids=["apart", "path", "triangle", "four-cycle"],
)
def test_cliques(edges, fill, cliques):
    found = eliminate(SourceGraph.of("abcd", edges))
    assert len(found.fill) == fill
    sizes = sorted(map(set, found.cliques()), key=sorted)
    if cliques is None:
        assert [len(clique) for clique in sizes] == [3, 3]
        assert set.union(*sizes) == set("abcd")
    else:
        assert sizes == sorted(cliques, key=sorted)


def test_a_chordal_graph_needs_no_fill():
    fan = [("a", name) for name in "bcdef"] + [("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]
    assert eliminate(SourceGraph.of("abcdef", fan)).fill == ()


def test_too_large_a_clique_is_refused():
    names = [f"s{i}" for i in range(8)]
    with pytest.raises(GraphError, match=r"depends on \d others at once .* at most 5 can be modelled jointly"):
        eliminate(SourceGraph.of(names, combinations(names, 2)))

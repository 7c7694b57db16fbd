"""Before fitting: what can be determined, from what, and what to change if something cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dugong.exceptions import NotIdentifiableError
from dugong.graph import SourceGraph, temporal
from dugong.graph.design import make_design
from dugong.graph.identify import identify
from dugong.graph.theory import GeneralMinimum
from dugong.priors import Markov, Uniform
from dugong.sums import Shapes, count
from dugong.tasks import Sequence, Window
from dugong.types import MISSING
from dugong.votes import SourceInfo, Votes
from population import each_task, population

STICKY = Markov(positive=0.3, stay=0.8)
STILL = Uniform()


def ask(names, dependencies=(), *, prior=STILL, length=5, resolutions=None, shares=None, **options):
    sources = tuple(
        SourceInfo(
            name=name,
            **({"resolution": resolutions[name]} if name in (resolutions or {}) else {}),
            shares=(shares or {}).get(name),
        )
        for name in names
    )
    design = make_design(sources, SourceGraph.of(list(names), dependencies), **options)
    shapes = Shapes(lengths=np.array([length]), counts=np.array([100]))
    return identify(design, prior, shapes)


def message(found) -> str:
    with pytest.raises(NotIdentifiableError) as caught:
        found.check()
    return str(caught.value)


def test_three_independent_sources_are_enough():
    found = ask("abc")
    assert found.identifiable
    assert found.check() is found
    assert (found.n_equations, found.rank) == (3, 3)
    np.testing.assert_allclose(found.condition, 2.0, rtol=1e-9)  # singular values 2, 1, 1
    assert found.components == (("a", "b", "c"),)
    assert {unknown.stage for unknown in found.unknowns} == {"same task"}
    assert found.unknowns[0].partners == ("b", "c")


def test_two_sources_without_memory_are_not():
    found = ask(["blur", "motion"])
    assert message(found) == (
        "cannot tell 'blur' and 'motion' apart: no third vote is independent of both given the labels.\n"
        "  Add a source, or give 'blur' an accuracy."
    )
    assert found.inseparable == (("blur", "motion"),)
    assert (found.n_equations, found.rank, found.condition) == (1, 1, np.inf)


def test_two_sources_are_enough_through_time():
    found = ask("ab", prior=STICKY)
    assert found.identifiable
    assert {unknown.stage for unknown in found.unknowns} == {"across time"}
    assert "assuming that errors do not persist: 'a' and 'b'" in str(found)


def test_through_time_only_if_sequences_are_long_enough():
    assert not ask("ab", prior=STICKY, length=1).identifiable


def test_the_dependent_pair_of_the_style_guide():
    """The message of the style guide: a pair that nothing else can witness."""
    assert message(ask(["blur", "motion"], [("blur", "motion")])) == (
        "cannot tell 'blur' and 'motion' apart: no third vote is independent of both given the labels.\n"
        "  Remove the dependency between them, add a source, or give 'blur' an accuracy. One of these alone is not "
        "enough."
    )
    assert message(ask(["blur", "motion"], [("blur", "motion")], prior=STICKY)) == (
        "cannot tell 'blur' and 'motion' apart: no third vote is independent of both given the labels.\n"
        "  Remove the dependency between them, or add a source."
    )


def test_a_dependent_pair_needs_two_further_sources():
    """With one, the rows form a path: any of three changes helps, and each of them is verified to."""
    names, edge = ["blur", "motion", "faces"], ("blur", "motion")
    found = ask(names, [edge])
    assert message(found) == (
        "cannot tell 'blur', 'faces' and 'motion' apart: no three of them are independent of each other given the "
        "labels.\n  Remove the dependency between 'blur' and 'motion', add a source, or give 'blur' an accuracy."
    )
    assert ask(names).identifiable
    assert ask([*names, "new"], [edge]).identifiable
    assert ask(names, [edge], pinned=["blur"]).identifiable


def test_a_single_source_without_memory_has_no_partner():
    found = ask("a")
    assert found.lonely == ("a",)
    assert message(found) == (
        "cannot find how accurate 'a' is: no other source votes on its tasks, and the prior ties their labels to no "
        "others.\n  Add two sources, or give 'a' an accuracy."
    )


def test_a_given_accuracy_settles_its_component_and_its_sign():
    found = ask("ab", pinned=["a"])
    assert found.identifiable
    assert found.unknowns[0].stage == "given"
    assert "signs follow from the given accuracies" in str(found)
    assert found.rank == 1


def test_sources_that_share_parameters_need_no_third():
    found = ask("ab", shares={"a": "both", "b": "both"})
    assert found.identifiable
    assert [unknown.name for unknown in found.unknowns] == ["both"]


def test_window_and_sequence_sources_are_reached_across_resolutions():
    where = {"w": Window(size=2, link="any"), "s": Sequence(link="any")}
    found = ask("abcws", resolutions=where)
    assert found.identifiable
    stages = {unknown.name: unknown.stage for unknown in found.unknowns}
    assert stages == {**dict.fromkeys("abc", "same task"), **dict.fromkeys("ws", "across resolutions")}


def test_temporal_sources_stay_out_of_rows_across_time():
    found = ask("a", [temporal("a")], prior=STICKY)
    assert not found.identifiable
    assert "remove temporal('a')" in message(found).lower()


def test_a_temporal_source_needs_a_witness():
    assert ask("abcd", [temporal("a")]).identifiable
    found = ask("abc", [temporal("a"), temporal("b"), temporal("c")], prior=STICKY)
    assert "how 'a' depends on itself" in message(found)


def test_a_prior_without_doubt_determines_nothing():
    found = ask("abc", prior=Markov(positive=0.0, stay=0.5))
    assert "the prior leaves no doubt about its labels" in message(found)


def test_by_task_every_position_is_an_unknown():
    prior = Markov(initial=[1.0, 0.0], transition=[[0.7, 0.3], [0.4, 0.6]])
    found = ask("abc", prior=prior, length=3, sharing="task")
    lost = {(u.name, u.position) for u in found.unknowns if u.stage is None}
    assert lost == {("a", 0), ("b", 0), ("c", 0)}  # the first label is certain
    assert len(found.unknowns) == 9


def test_full_tables_need_two_further_sources():
    assert ask("abc", length=3, sharing={"a": "full"}, n_tasks={"a": 3}, prior=STICKY).identifiable
    found = ask("ab", length=3, sharing={"a": "full"}, n_tasks={"a": 3}, prior=STICKY)
    assert "cannot find the full table of 'a'" in message(found)


def test_a_dependency_across_resolutions_needs_a_witness_at_both():
    where = dict.fromkeys("wx", Window(size=2, link="any"))
    assert ask("abcdwx", [("a", "w")], resolutions=where).identifiable
    found = ask("abcdw", [("a", "w")], resolutions=where)
    assert "each resolution needs a further source" in message(found)
    assert "or add a source at window2 resolution" in message(found)


def test_a_clique_without_a_witness_is_named():
    found = ask("abc", [("a", "b"), ("b", "c"), ("a", "c")], prior=STICKY)
    assert "cannot measure how 'a', 'b' and 'c' depend on each other" in message(found)


def test_constant_and_silent_sources_are_no_partners():
    """Three sources, one of which says always the same: two are left, and that is not enough."""
    groups = [
        each_task(SourceInfo(name="a"), [[0.8, 0.2, 0], [0.1, 0.9, 0]]),
        each_task(SourceInfo(name="b"), [[0.7, 0.3, 0], [0.4, 0.6, 0]]),
        each_task(SourceInfo(name="c"), [[0, 1, 0], [0, 1, 0]]),
    ]
    design = make_design(tuple(g.sources[0] for g in groups), SourceGraph.of("abc"))
    moments = population(design.plan, STILL, groups, {1: 1.0})
    assert identify(design, STILL, moments.shapes).identifiable
    found = identify(design, STILL, moments.shapes, moments=moments)
    assert "cannot tell 'a' and 'b' apart" in message(found)


def test_more_than_two_classes_are_looked_at_class_by_class():
    stay = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    prior = Markov(initial=[0.2, 0.3, 0.5], transition=stay)
    assert ask("abc", prior=prior).identifiable
    assert ask("ab", prior=prior).identifiable  # through time
    assert not ask("ab", prior=Uniform(n_classes=3)).identifiable


def test_sources_that_are_never_asked_together_are_no_partners(rng):
    """Two of three sources vote on different sequences: the rows form a path."""
    columns = {name: rng.choice([-1, 1], size=60).astype(np.int8) for name in "abc"}
    columns["a"][:30] = MISSING
    columns["b"][30:] = MISSING
    votes = Votes(
        sources=tuple(SourceInfo(name=name) for name in "abc"),
        columns=tuple(columns.values()),
        lengths=np.ones(60, int),
    )
    design = make_design(votes.sources, SourceGraph.of("abc"))
    moments = count(votes, design.plan)
    assert "cannot tell 'a', 'b' and 'c' apart" in message(identify(design, STILL, moments.shapes, moments=moments))


def test_the_minimum_numbers_of_the_paper_come_along():
    found = ask("abcw", resolutions={"w": Window(size=2, link="any")})
    assert found.minimum == GeneralMinimum(free=5, linked=3)
    assert "sources that suffice by the paper's formulas: 5 if labels are free" in str(found)


def test_it_is_plain_data_too():
    for found in (ask("abc"), ask("ab")):
        plain = found.to_dict()
        assert json.loads(json.dumps(plain))["identifiable"] is found.identifiable
        assert plain["unknowns"][0]["name"] == "a"
    assert plain["condition"] is None
    assert plain["inseparable"] == [["a", "b"]]


def test_without_a_prior_all_labels_are_taken_to_be_correlated():
    assert ask("ab", prior=None).identifiable
    assert not ask("ab", prior=STILL).identifiable


def test_the_text_says_what_and_from_what():
    assert str(ask("abcd")).splitlines()[:3] == [
        "all accuracies and dependencies can be determined",
        "- 4 accuracies, 6 equations, rank 4, condition 1.73",
        "- one sign is free, chosen by the sign rule, among 'a', 'b', 'c' and 'd'",
    ]

"""Exact moments of a known world in, its exact parameters out: one case per feature, no sampling."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dugong.fit.moments import estimate_centred, solve_tables
from dugong.fit.moments.equations import Given
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.law.parameters import Conditional, Crossed, FullTable, Temporal
from dugong.priors import Markov, Patterns
from dugong.tasks import Element, Sequence, Spans, SpanTable, Window
from dugong.worlds import (
    Block,
    CrossedBlock,
    FullBlock,
    TemporalBlock,
    World,
    accurate,
    copying_pair,
    copying_path,
    couplings,
    cycle,
    flipped,
    ising,
    path,
    temporal,
    unipolar,
)

EXACT = {"rtol": 0, "atol": 1e-9}
STICKY = Markov(positive=0.3, stay=0.86)
TABLES = [
    accurate(0.6, 0.95, 0.0, 0.0),
    accurate(0.85, 0.7, 0.1, 0.4),
    accurate(0.75, 0.8, 0.5, 0.2),
    accurate(0.9, 0.65, 0.3, 0.3),
    accurate(0.7, 0.9, 0.0, 0.5),
]


def frames(count: int) -> list[Block]:
    return [Block(names=(f"f{j}",), table=TABLES[j]) for j in range(count)]


def recover(world, lengths=5, counts=None, spans=None, **options):
    lengths = np.atleast_1d(np.asarray(lengths))
    weights = np.full(len(lengths), 1000.0) if counts is None else np.asarray(counts, dtype=float)
    graph = SourceGraph.of(world.source_names, world.dependencies)
    sharing = options.pop("sharing", "tied")
    accuracies = options.pop("accuracies", None)
    n_tasks = {info.name: int(lengths[0]) for info in world.sources}
    design = make_design(world.sources, graph, sharing=sharing, pinned=accuracies or (), n_tasks=n_tasks)
    moments = world.population(design.plan, lengths, weights, spans)
    return estimate_centred(solve_tables(Given.under(world.prior, design, moments, accuracies=accuracies, **options)))


def check_all(world, estimate, length=5):
    for name, table in world.accuracies(length).items():
        np.testing.assert_allclose(estimate.accuracies[name], table, err_msg=name, **EXACT)


@pytest.mark.parametrize("prior", [STICKY, Markov(positive=0.03, stay=0.7), Markov(positive=0.5, stay=0.5)])
def test_asymmetric_sources_with_abstains(prior) -> None:
    world = World(prior=prior, blocks=tuple(frames(5)))
    check_all(world, recover(world))


def test_a_source_that_is_mostly_wrong_is_found_out() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("liar",), table=flipped(TABLES[3]))))
    check_all(world, recover(world))


def test_a_source_with_one_voice() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("alarm",), table=unipolar(0.6, 0.1))))
    check_all(world, recover(world))


def test_a_pattern_prior_that_is_not_stationary() -> None:
    patterns = {(1, 1, 1): 0.2, (-1, -1, -1): 0.35, (-1, 1, 1): 0.25, (-1, -1, 1): 0.15, (1, -1, -1): 0.05}
    world = World(prior=Patterns(patterns), blocks=tuple(frames(4)))
    check_all(world, recover(world, lengths=[2, 3, 7], counts=[5, 10, 3]), length=3)


@pytest.mark.parametrize("link", ["any", "all", "majority"])
def test_elements_windows_and_sequences(link) -> None:
    world = World(
        prior=STICKY,
        blocks=(
            *frames(3),
            Block(names=("window",), table=TABLES[3], resolution=Window(3, 2, link)),
            Block(names=("pair",), table=TABLES[4], resolution=Window(2, link=link)),
            Block(names=("whole",), table=TABLES[1], resolution=Sequence(link)),
        ),
    )
    check_all(world, recover(world))


def test_ragged_lengths_with_a_non_stationary_start() -> None:
    prior = Markov(initial=[0.95, 0.05], transition=[[0.85, 0.15], [0.2, 0.8]])
    world = World(
        prior=prior,
        blocks=(
            *frames(4),
            Block(names=("window",), table=TABLES[3], resolution=Window(3, 2, "any")),
            Block(names=("whole",), table=TABLES[1], resolution=Sequence("majority")),
        ),
    )
    check_all(world, recover(world, lengths=[1, 2, 3, 4, 6, 7], counts=[30, 10, 50, 20, 60, 10]))


def test_given_spans() -> None:
    table = SpanTable.from_lists([[(0, 2), (2, 5)], [(1, 4)], [(0, 1), (1, 3), (3, 6)]])
    world = World(
        prior=Markov(initial=[0.9, 0.1], transition=[[0.8, 0.2], [0.3, 0.7]]),
        blocks=(*frames(3), Block(names=("shot",), table=TABLES[4], resolution=Spans("shot", "majority"))),
    )
    estimate = recover(world, lengths=[5, 4, 6], spans={"shot": table})
    np.testing.assert_allclose(estimate.accuracies["shot"], TABLES[4], **EXACT)


def test_a_correlated_pair() -> None:
    joint = copying_pair(TABLES[3], 0.7, own=TABLES[4])
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("a", "b"), table=joint)))
    estimate = recover(world)
    check_all(world, estimate)
    np.testing.assert_allclose(estimate.correlations["a", "b"], joint, **EXACT)


@pytest.mark.parametrize("shape", [path, cycle])
def test_a_correlated_triple(shape) -> None:
    names = ("a", "b", "c")
    if shape is path:
        joint = copying_path([TABLES[3], TABLES[4], TABLES[1]], 0.6)
    else:
        joint = ising([0.5, 0.8, 0.4], {(0, 1): 0.3, (1, 2): -0.2, (0, 2): 0.4}, abstain=[0.1, 0.0, 0.2])
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=names, table=joint, edges=shape(names))))
    estimate = recover(world)
    check_all(world, estimate)
    check_joint(estimate, names, joint)


def test_a_four_cycle_of_sources() -> None:
    names = ("a", "b", "c", "d")
    joint = ising([0.5, 0.6, 0.4, 0.7], couplings(names, cycle(names), 0.3))
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=names, table=joint, edges=cycle(names))))
    estimate = recover(world)
    check_all(world, estimate)
    check_joint(estimate, names, joint)


def check_joint(estimate, names, joint) -> None:
    """The product of the conditionals along the elimination order is the joint law of the group."""
    product = np.ones(joint.shape)
    for factor in estimate.parameters.factors:
        if factor.source in names:
            assert isinstance(factor, Conditional)
            involved = (*factor.parents, factor.source)
            axes = [1 + names.index(name) for name in involved]
            shape = [joint.shape[0], *(3 if 1 + place in axes else 1 for place in range(len(names)))]
            order = np.argsort(axes)
            product = product * np.transpose(factor.table, (0, *(1 + order))).reshape(shape)
    np.testing.assert_allclose(product, joint, **EXACT)


def test_a_source_that_repeats_itself() -> None:
    first, step = temporal(TABLES[3], 0.6)
    world = World(prior=STICKY, blocks=(*frames(3), TemporalBlock(name="echo", first=first, step=step)))
    estimate = recover(world)
    check_all(world, estimate)
    factor = next(f for f in estimate.parameters.factors if f.source == "echo")
    assert isinstance(factor, Temporal)
    np.testing.assert_allclose(factor.step, step, **EXACT)
    np.testing.assert_allclose(factor.first, first, **EXACT)


def test_a_fine_source_that_follows_a_coarse_one() -> None:
    follow = 0.5 * np.eye(3)[np.newaxis, np.newaxis] + 0.5 * TABLES[1][:, np.newaxis, np.newaxis, :]
    table = np.broadcast_to(follow, (2, 2, 3, 3))
    window = Window(2, link="majority")
    world = World(
        prior=STICKY,
        blocks=(
            *frames(3),
            Block(names=("w0",), table=TABLES[3], resolution=window),
            Block(names=("w1",), table=TABLES[4], resolution=window),
            CrossedBlock(name="follower", table=table, parent="w0"),
        ),
    )
    estimate = recover(world, lengths=4)
    check_all(world, estimate, length=4)
    factor = next(f for f in estimate.parameters.factors if f.source == "follower")
    assert isinstance(factor, Crossed)
    for fine, coarse in ((0, 0), (1, 0), (1, 1)):  # a negative element in a positive pair is impossible
        np.testing.assert_allclose(factor.table[fine, coarse], table[fine, coarse], **EXACT)


def test_one_table_per_position() -> None:
    rng = np.random.default_rng(5)
    blocks = [
        Block(
            names=(f"p{j}",),
            table=np.stack([accurate(*rng.uniform([0.6] * 2, 0.9)) for _ in range(4)]),
            by_position=True,
        )
        for j in range(3)
    ]
    world = World(
        prior=Markov(initial=[0.8, 0.2], transition=[[0.9, 0.1], [0.3, 0.7]]),
        blocks=(
            *blocks,
            Block(names=("f",), table=TABLES[1]),
            Block(names=("q",), table=TABLES[3], resolution=Sequence()),
        ),
    )
    levels = {"p0": "task", "p1": "task", "p2": "task"}
    estimate = recover(world, lengths=4, sharing=levels)
    for block in blocks:
        np.testing.assert_allclose(estimate.accuracies[block.names[0]], block.table, **EXACT)
    np.testing.assert_allclose(estimate.accuracies["f"], TABLES[1], **EXACT)
    np.testing.assert_allclose(estimate.accuracies["q"], TABLES[3], **EXACT)


@pytest.mark.parametrize(("others", "size"), [("tied", 3), ("task", 3), ("tied", 6)])
def test_a_full_table(others, size) -> None:
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.ones(3**size), size=2**size)
    world = World(
        prior=Markov(initial=[0.7, 0.3], transition=[[0.8, 0.2], [0.3, 0.7]]),
        blocks=(*frames(3), FullBlock(name="whole", table=table, n_tasks=size)),
    )
    levels = {"whole": "full"} | {f"f{j}": others for j in range(3)}
    estimate = recover(world, lengths=size, sharing=levels)
    np.testing.assert_allclose(estimate.accuracies["whole"], table, **EXACT)
    factor = next(f for f in estimate.parameters.factors if f.source == "whole")
    assert isinstance(factor, FullTable)


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_sources_over_time(count) -> None:
    world = World(prior=STICKY, blocks=tuple(frames(count)))
    check_all(world, recover(world, lengths=6), length=6)


def test_a_pinned_accuracy_makes_two_sources_enough() -> None:
    world = World(prior=Markov(positive=0.4, stay=0.4), blocks=tuple(frames(2)))
    estimate = recover(world, accuracies={"f0": TABLES[0]})
    check_all(world, estimate)


def test_pinned_accuracies_choose_the_sign() -> None:
    world = World(prior=STICKY, blocks=tuple(Block(names=(f"l{j}",), table=flipped(TABLES[j])) for j in range(3)))
    estimate = recover(world, accuracies={"l0": flipped(TABLES[0])})
    check_all(world, estimate)
    by_group = recover(world)
    assert by_group.accuracies["l1"][1, 1] > by_group.accuracies["l1"][0, 1]


def test_the_positive_rule_flips_single_sources() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("liar",), table=flipped(TABLES[3]))))
    estimate = recover(world, signs="positive")
    table = estimate.accuracies["liar"]
    assert table[1, 1] - table[0, 1] > 0
    assert any(note.kind == "flip" and note.where == "liar" for note in estimate.diagnostics.notes)


@pytest.mark.parametrize("other", ["other", "eyes"], ids=["any name", "the name of the group"])
def test_sources_that_share_their_parameters(other) -> None:
    infos = [Block(names=(name,), table=TABLES[1]) for name in ("left", "right")]
    world = World(prior=STICKY, blocks=(*infos, Block(names=(other,), table=TABLES[3])))
    sources = tuple(replace(info, shares="eyes") if info.name != other else info for info in world.sources)
    design = make_design(sources, SourceGraph.of(world.source_names))
    moments = world.population(design.plan, np.array([5]), np.array([100.0]))
    estimate = estimate_centred(solve_tables(Given.under(world.prior, design, replace(moments, sources=sources))))
    for name in ("left", "right"):
        np.testing.assert_allclose(estimate.accuracies[name], TABLES[1], **EXACT)
    np.testing.assert_allclose(estimate.accuracies[other], TABLES[3], **EXACT)


def test_order_of_sources_does_not_matter() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("a", "b"), table=copying_pair(TABLES[3], 0.5))))
    backwards = World(prior=STICKY, blocks=world.blocks[::-1])
    first, second = recover(world), recover(backwards)
    for name, table in first.accuracies.items():
        np.testing.assert_allclose(second.accuracies[name], table, rtol=0, atol=1e-12)
    assert [f.source for f in first.parameters.factors] == [f.source for f in second.parameters.factors]


def test_every_pair_of_resolutions_is_known_to_the_plan() -> None:
    world = World(
        prior=STICKY,
        blocks=(*frames(2), *(Block(names=(f"w{k}",), table=TABLES[k], resolution=Window(k)) for k in (2, 3))),
    )
    design = make_design(world.sources, SourceGraph.of(world.source_names))
    crossed = {frozenset(row.sources) for row in design.stages["across resolutions"]}
    expected = {frozenset((a.name, b.name)) for a, b in combinations(world.sources, 2) if a.resolution != b.resolution}
    assert crossed == expected
    assert {info.resolution for info in world.sources} == {Element(), Window(2), Window(3)}

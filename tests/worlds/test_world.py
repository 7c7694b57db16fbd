"""Worlds against brute force: every label pattern, every vote."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import label_oracles as oracle
from dugong import worlds
from dugong.exceptions import GraphError, PriorError, TaskError
from dugong.graph import temporal as temporal_edge
from dugong.law.parameters import Conditional, Crossed, FullTable, Temporal
from dugong.priors import Joint, Markov, Patterns
from dugong.sums import MomentRow, Plan, Slot, count, inside, pair
from dugong.tasks import Element, Sequence, Spans, SpanTable, Window
from dugong.worlds import Between, Block, CrossedBlock, FullBlock, Shots, TemporalBlock, World, slot_law

EXACT = {"rtol": 0, "atol": 1e-12}
PRIOR = Markov(initial=[0.8, 0.2], transition=[[0.7, 0.3], [0.4, 0.6]])
TABLE = worlds.accurate(0.8, 0.7, 0.1, 0.3)
OTHER = worlds.accurate(0.6, 0.9, 0.2, 0.05)


def random_law(rng, *shape, n_votes=1):
    table = rng.random(shape) + 0.05
    return table / table.sum(axis=tuple(range(table.ndim - n_votes, table.ndim)), keepdims=True)


def votes_given_labels(parameters, votes, labels, bounds):
    """P(all votes | all labels) by the definition of the factors; everything as class indices by task."""
    chance = 1.0
    for factor in parameters.factors:
        own, truth = votes[factor.source], labels[factor.resolution]
        if isinstance(factor, FullTable):
            row = np.ravel_multi_index(truth, (factor.n_classes,) * len(truth))
            chance *= factor.table[row, np.ravel_multi_index(own, (factor.n_columns,) * len(own))]
            continue
        for i, vote in enumerate(own):
            if isinstance(factor, Conditional):
                table = factor.table[min(i, len(factor.table) - 1)] if factor.by_position else factor.table
                chance *= table[(truth[i], *(votes[p][i] for p in factor.parents), vote)]
            elif isinstance(factor, Temporal):
                if i < factor.lag:
                    chance *= factor.first[truth[i], vote]
                else:
                    before = i - factor.lag
                    chance *= factor.step[truth[before], truth[i], own[before], vote]
            elif isinstance(factor, Crossed):
                start = bounds[factor.resolution][i][0]
                above = next(w for w, (a, b) in enumerate(bounds[factor.parent_resolution]) if a <= start < b)
                key = (truth[i], labels[factor.parent_resolution][above], votes[factor.parent][above], vote)
                chance *= factor.table[key]
    return chance


def brute_slot_law(world, slots, length):
    parameters = world.parameters()
    bounds = {r: oracle.bounds(r, length) for r in world.resolutions}
    sizes = {info.name: len(bounds[info.resolution]) for info in world.sources}
    columns = {name: world.block(name).n_columns for name in sizes}
    law = np.zeros([columns[name] for name, _ in slots])
    everything = [range(columns[name]) for name in sizes for _ in range(sizes[name])]
    for pattern in oracle.patterns(world.n_classes, length):
        labels = {r: [oracle.label(r, piece, pattern, world.n_classes) for piece in bounds[r]] for r in bounds}
        for flat in product(*everything):
            stream = iter(flat)
            votes = {name: [next(stream) for _ in range(sizes[name])] for name in sizes}
            cell = tuple(votes[name][i] for name, i in slots)
            law[cell] += world.prior.probability(pattern) * votes_given_labels(parameters, votes, labels, bounds)
    return law


def build(*blocks, prior=PRIOR):
    return World(prior=prior, blocks=blocks)


def small_worlds():
    """Name, then world, length of a sequence, and some votes in it."""
    rng = np.random.default_rng(5)
    first, step = worlds.temporal(TABLE, 0.6)
    a, b = Block(names="a", table=TABLE), Block(names="b", table=OTHER)
    whole = Block(names="s", table=TABLE, resolution=Sequence("majority"))
    window = Block(names="w", table=OTHER, resolution=Window(2, 1, "any"))
    copies = Block(names=("a", "b"), table=worlds.copying_pair(TABLE, 0.7, OTHER))
    triple = Block(names=("a", "b", "c"), table=random_law(rng, 2, 3, 3, 3, n_votes=3))
    placed = Block(names=("a", "b"), table=random_law(rng, 2, 2, 3, 3, n_votes=2), by_position=True)
    repeats = TemporalBlock(name="a", first=first, step=step)
    lagged = TemporalBlock(name="a", first=TABLE, step=random_law(rng, 2, 2, 3, 3), lag=2)
    full = FullBlock(name="a", n_tasks=2, table=random_law(rng, 4, 9))
    above = Block(names=("s", "t"), table=random_law(rng, 2, 3, 3, n_votes=2), resolution=Sequence("majority"))
    below = CrossedBlock(name="a", parent="s", table=random_law(rng, 2, 2, 3, 3))
    three = Block(names="a", table=worlds.confusion(3, [0.9, 0.6, 0.7], 0.2))
    third = Block(names="w", table=OTHER, resolution=Sequence("any", of=3))
    patterns = Patterns({(1, 2): 0.5, (3, 3): 0.3, (2, 2): 0.2})
    return {
        "independent": (build(a, b), 2, [("a", 0), ("b", 0), ("b", 1)]),
        "copying pair": (build(copies), 2, [("b", 1), ("a", 1), ("a", 0)]),
        "any triple": (build(triple), 1, [("c", 0), ("a", 0), ("b", 0)]),
        "by position": (build(placed), 3, [("b", 2), ("a", 1)]),
        "temporal": (build(repeats, b), 3, [("a", 2), ("a", 0), ("b", 1)]),
        "temporal, any table, lag 2": (build(lagged), 5, [("a", 3), ("a", 4), ("a", 1)]),
        "full": (build(full, b), 2, [("b", 0), ("a", 1), ("a", 0)]),
        "windows": (build(a, window, whole), 3, [("s", 0), ("w", 1), ("a", 0)]),
        "crossed": (build(above, below), 2, [("a", 1), ("t", 0), ("a", 0), ("s", 0)]),
        "three classes": (build(three, third, prior=patterns), 2, [("w", 0), ("a", 1)]),
    }


WORLDS = small_worlds()


@pytest.mark.parametrize("name", WORLDS)
def test_slot_laws_equal_brute_force_over_all_votes(name):
    world, length, slots = WORLDS[name]
    found = slot_law(world, slots, length)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(found, brute_slot_law(world, slots, length), **EXACT)


@pytest.mark.parametrize("name", WORLDS)
def test_samples_follow_the_slot_law(name, rng):
    world, length, slots = WORLDS[name]
    n = 30_000
    votes, _ = world.sample(n, length, rng)
    seen = np.zeros([world.block(source).n_columns for source, _ in slots])
    codes = []
    for source, index in slots:
        coding = [-1, 1, 0] if world.block(source).n_classes == 2 else [1, 2, 3, 0]
        column = votes.column(source).reshape(n, -1)[:, index]
        codes.append(np.argmax(column[:, None] == np.array(coding), axis=1))
    np.add.at(seen, tuple(codes), 1 / n)
    law = slot_law(world, slots, length)
    assert (np.abs(seen - law) <= 5 * np.sqrt(law * (1 - law) / n) + 1e-12).all()


@pytest.mark.parametrize("name", WORLDS)
def test_labels_are_true_at_every_resolution(name, rng):
    world, length, _ = WORLDS[name]
    _, labels = world.sample(50, length, rng)
    elements = labels["element"].reshape(50, length)
    for resolution in world.resolutions:
        values = labels[resolution].reshape(50, -1)
        for row, pattern in zip(values, elements.tolist(), strict=True):
            pieces = oracle.bounds(resolution, length)
            places = [oracle.label(resolution, piece, pattern, world.n_classes) for piece in pieces]
            classes = oracle.class_values(world.n_classes) if isinstance(resolution, Element) else (-1, 1)
            assert row.tolist() == [classes[place] for place in places]


def test_votes_and_labels_together():
    world, length, _ = WORLDS["independent"]
    law = slot_law(world, [("a", 1)], length, tasks=[(Element(), 1)])
    labels = PRIOR.joint_law([("element", 1)], length)
    np.testing.assert_allclose(law, (TABLE * labels[:, None]).T, **EXACT)


def test_true_accuracies():
    found = WORLDS["copying pair"][0].accuracies()
    np.testing.assert_allclose(found["a"], TABLE, **EXACT)
    np.testing.assert_allclose(found["b"], 0.7 * TABLE + 0.3 * OTHER, **EXACT)
    world, length, _ = WORLDS["temporal"]
    law = sum(slot_law(world, [("a", i)], length, tasks=[(Element(), i)]) for i in range(length)).T
    np.testing.assert_allclose(world.accuracies(length)["a"], law / law.sum(axis=1, keepdims=True), **EXACT)
    assert WORLDS["by position"][0].accuracies()["a"].shape == (2, 2, 3)


# --- population sums -----------------------------------------------------------------------------------------


def plan_world():
    first, step = worlds.temporal(TABLE, 0.5)
    return World(
        prior=PRIOR,
        blocks=(
            Block(names=("a", "b"), table=worlds.copying_pair(TABLE, 0.5, OTHER)),
            TemporalBlock(name="t", first=first, step=step),
            Block(names="w", table=OTHER, resolution=Window(3, 2, "any")),
            Block(names="s", table=TABLE, resolution=Sequence("any")),
        ),
        lengths=Between(0, 6),
    )


ROWS = [
    pair("a", "b"),
    pair("a", "t", lag=1),
    pair("a", "a", lag=2),
    pair("b", "t", by_position=True),
    inside("a", "w"),
    inside("w", "s"),
    inside("t", "s", by_position=True),
    MomentRow(slots=(Slot("a"), Slot("b"), Slot("t", -1))),
]


def test_population_sums_are_what_counting_gives_on_average(rng):
    world, n = plan_world(), 40_000
    votes, _ = world.sample(n, rng=rng)
    plan = Plan.of(ROWS)
    lengths, counts = np.unique(votes.lengths, return_counts=True)
    exact, sampled = world.population(plan, lengths, counts), count(votes, plan)
    for row in plan.rows:
        expected, seen = exact.table(row), sampled.table(row)
        assert expected.shape == seen.shape
        assert expected.sum() == pytest.approx(seen.sum())
        # Votes of one sequence are dependent: allow for a variance up to 6 times that of independent ones.
        assert (np.abs(seen - expected) <= 5 * np.sqrt(6 * expected) + 1e-9).all()


def test_population_sums_are_sums_of_slot_laws():
    world = plan_world()
    moments = world.population([pair("a", "t", lag=1)], [3, 4], np.array([2, 1]))
    expected = sum(
        weight * slot_law(world, [("a", i), ("t", i + 1)], length)
        for length, weight in ((3, 2), (4, 1))
        for i in range(length - 1)
    )
    np.testing.assert_allclose(moments.counts[0][0], expected, **EXACT)
    assert moments.shapes.lengths.tolist() == [3, 4]


def test_spans(rng):
    shots = Spans("shot", "majority")
    world = World(
        prior=PRIOR,
        blocks=(Block(names="a", table=TABLE), Block(names="shot", table=OTHER, resolution=shots)),
        lengths=Between(1, 7),
        spans=Shots(mean=2),
    )
    votes, labels = world.sample(200, rng=rng)
    assert votes.layout(shots).n_tasks == len(labels[shots])
    spans = {"shot": SpanTable.from_lists([[(0, 2), (2, 3)], [(1, 4)]])}
    row = inside("a", "shot")
    moments = world.population([row], [3, 4], spans=spans)
    assert moments.table(row).sum() == pytest.approx(6)
    one = {"shot": SpanTable.from_lists([[(1, 4)]])}
    law = slot_law(world, [("a", 1), ("shot", 0)], 4, one)
    labels_law = oracle.law(PRIOR, [(Element(), 1), (shots, 0)], 4, {"shot": [(1, 4)]})
    np.testing.assert_allclose(law, TABLE.T @ labels_law @ OTHER, **EXACT)


def test_a_joint_prior_draws_its_own_window_labels(rng):
    window = Window(2, link="joint")
    table = np.zeros((2, 2, 2))
    table[0, 0, 1], table[1, 1, 0], table[0, 1, 1] = 0.5, 0.3, 0.2
    prior = Joint([("element", 0), ("element", 1), (window, 0)], table)
    world = World(
        prior=prior, blocks=(Block(names="a", table=TABLE), Block(names="w", table=OTHER, resolution=window)), lengths=2
    )
    _, labels = world.sample(4000, rng=rng)
    assert set(labels[window].tolist()) == {-1, 1}
    both = np.column_stack([labels["element"].reshape(-1, 2), labels[window]])
    assert {tuple(row) for row in both.tolist()} == {(-1, -1, 1), (1, 1, -1), (-1, 1, 1)}
    law = slot_law(world, [("a", 0), ("w", 0)], 2)
    np.testing.assert_allclose(law, TABLE.T @ table.sum(axis=1) @ OTHER, **EXACT)


# --- the world as a value --------------------------------------------------------------------------------------


def test_dependencies_are_what_a_user_would_declare():
    names = ("a", "b", "c")
    joint = Block(names=names, table=worlds.copying_path([TABLE] * 3, 0.5), edges=worlds.path(names))
    first, step = worlds.temporal(TABLE, 0.5)
    world = World(prior=PRIOR, blocks=(joint, TemporalBlock(name="t", first=first, step=step, lag=2)))
    assert world.dependencies == [("a", "b"), ("b", "c"), temporal_edge("t", lag=2)]
    assert {len(factor.parents) for factor in world.parameters().factors[:3]} == {0, 1}


def test_same_seed_same_sample():
    world = worlds.multiresolution()
    (first, one), (second, two) = (world.sample(20, rng=3) for _ in range(2))
    for a, b in zip(first.columns, second.columns, strict=True):
        assert (a == b).all()
    assert (one["element"] == two["element"]).all()
    assert (one.sequence(2) == one["element"][10:15]).all()


def test_permuting_blocks_permutes_the_law():
    blocks = (Block(names="a", table=TABLE), Block(names="b", table=OTHER))
    forward, backward = World(prior=PRIOR, blocks=blocks), World(prior=PRIOR, blocks=blocks[::-1])
    law = slot_law(forward, [("a", 0), ("b", 1)], 3)
    np.testing.assert_allclose(slot_law(backward, [("b", 1), ("a", 0)], 3), law.T, **EXACT)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: World(prior=PRIOR, blocks=()), GraphError, "sources with different names"),
        (lambda: World(prior=PRIOR, blocks=(Block(names="a", table=TABLE),) * 2), GraphError, "different names"),
        (lambda: build(Block(names="a", table=worlds.confusion(3, 0.8))), GraphError, "tables for 2 classes"),
        (lambda: Block(names="a", table=TABLE * 0.9), PriorError, "must sum to one for every label; found 0.9"),
        (lambda: Block(names="a", table=TABLE - 0.5), PriorError, "must hold probabilities"),
        (lambda: Block(names=("a", "b"), table=TABLE), GraphError, "2 equal ones for the votes"),
        (lambda: TemporalBlock(name="a", first=TABLE, step=np.ones((2, 2, 3, 3)) / 3, lag=0), GraphError, "lag 0"),
        (lambda: FullBlock(name="a", n_tasks=2, table=np.ones((3, 9)) / 9), GraphError, r"found the shape \(3, 9\)"),
        (
            lambda: build(CrossedBlock(name="a", parent="s", table=np.ones((2, 2, 3, 3)) / 3)),
            GraphError,
            "earlier block",
        ),
        (lambda: WORLDS["independent"][0].block("z"), GraphError, "no source 'z'"),
        (lambda: WORLDS["independent"][0].sample(3, [1, 2]), TaskError, r"3 sequences; found shape \(2,\)"),
        (lambda: WORLDS["full"][0].sample(3, 4), GraphError, "over 2 tasks"),
        (lambda: slot_law(WORLDS["independent"][0], [("a", 5)], 2), TaskError, "no task 5"),
        (lambda: slot_law(WORLDS["temporal"][0], [("a", 30)], 40), TaskError, "depend on 31 labels"),
        (lambda: plan_world().population([pair("a", "b")]), PriorError, "needs lengths="),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_edges_that_do_not_hold_are_refused():
    names = ("a", "b", "c")
    table = worlds.common_cause([TABLE, OTHER, TABLE], 0.5)
    with pytest.raises(GraphError, match="do not name"):
        World(prior=PRIOR, blocks=(Block(names=names, table=table, edges=worlds.path(names)),)).parameters()

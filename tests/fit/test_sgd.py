"""The SGD variant: the closed form's tables from exact moments, its neighbours on samples, and how a descent is run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dugong as dg
from dugong.estimators import SGD
from dugong.exceptions import GraphError
from dugong.fit.moments import estimate_centred, solve_tables
from dugong.fit.moments.equations import Given
from dugong.fit.paper import estimate_paper, paper_tables, plan_paper
from dugong.fit.passes import InMemory
from dugong.fit.sgd import estimate_agreements, estimate_sgd
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.priors import Markov, Patterns
from dugong.sums import count
from dugong.tasks import Sequence, Spans, SpanTable, Window
from dugong.worlds import (
    Block,
    CrossedBlock,
    FullBlock,
    TemporalBlock,
    World,
    accurate,
    copying_pair,
    copying_path,
    flipped,
    path,
    temporal,
    unipolar,
)
from dugong.worlds.standard import lopsided, multiresolution, ragged, rare, self_dependent

torch = pytest.importorskip("torch")

CLOSE = {"rtol": 0, "atol": 1e-3}
STICKY = Markov(positive=0.3, stay=0.86)
TABLES = [
    accurate(0.6, 0.95, 0.0, 0.0),
    accurate(0.85, 0.7, 0.1, 0.4),
    accurate(0.75, 0.8, 0.5, 0.2),
    accurate(0.9, 0.65, 0.3, 0.3),
    accurate(0.7, 0.9, 0.0, 0.5),
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def frames(n_sources: int) -> list[Block]:
    return [Block(names=(f"f{j}",), table=TABLES[j]) for j in range(n_sources)]


def design_of(world, *, sharing="tied", length=5, accuracies=None):
    graph = SourceGraph.of(world.source_names, world.dependencies)
    n_tasks = {info.name: length for info in world.sources}
    return make_design(world.sources, graph, sharing=sharing, pinned=accuracies or (), n_tasks=n_tasks)


def exact(world, lengths=5, counts=None, spans=None, sharing="tied", settings=None, **options):
    """Estimate from the exact moments of a world."""
    lengths = np.atleast_1d(lengths)
    weights = np.full(len(lengths), 1000.0) if counts is None else np.asarray(counts, dtype=float)
    design = design_of(world, sharing=sharing, length=int(lengths[0]), accuracies=options.get("accuracies"))
    moments = world.population(design.plan, lengths, weights, spans)
    return estimate_sgd(Given.under(world.prior, design, moments, **options), settings or SGD())


def check_accuracies(world, estimate, length=5) -> None:
    for name, table in world.accuracies(length).items():
        np.testing.assert_allclose(estimate.accuracies[name], table, err_msg=name, **CLOSE)


# --- exact moments ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prior", [STICKY, Markov(positive=0.03, stay=0.7)])
def test_asymmetric_sources_with_abstains(prior) -> None:
    extra = [Block(names=("liar",), table=flipped(TABLES[3])), Block(names=("alarm",), table=unipolar(0.6, 0.1))]
    world = World(prior=prior, blocks=(*frames(4), *extra))
    check_accuracies(world, exact(world))


def test_resolutions_and_ragged_lengths() -> None:
    world = World(
        prior=Markov(initial=[0.95, 0.05], transition=[[0.85, 0.15], [0.2, 0.8]]),
        blocks=(
            *frames(3),
            Block(names=("window",), table=TABLES[3], resolution=Window(3, 2, "any")),
            Block(names=("pair",), table=TABLES[4], resolution=Window(2, link="majority")),
            Block(names=("whole",), table=TABLES[1], resolution=Sequence("all")),
        ),
    )
    check_accuracies(world, exact(world, lengths=[1, 2, 4, 6], counts=[30, 10, 50, 60]))


def test_given_spans() -> None:
    table = SpanTable.from_lists([[(0, 2), (2, 5)], [(1, 4)], [(0, 1), (1, 3), (3, 6)]])
    world = World(
        prior=Markov(initial=[0.9, 0.1], transition=[[0.8, 0.2], [0.3, 0.7]]),
        blocks=(*frames(3), Block(names=("shot",), table=TABLES[4], resolution=Spans("shot", "majority"))),
    )
    estimate = exact(world, lengths=[5, 4, 6], spans={"shot": table})
    np.testing.assert_allclose(estimate.accuracies["shot"], TABLES[4], **CLOSE)


def test_a_pattern_prior() -> None:
    patterns = {(1, 1, 1): 0.2, (-1, -1, -1): 0.35, (-1, 1, 1): 0.25, (-1, -1, 1): 0.15, (1, -1, -1): 0.05}
    world = World(prior=Patterns(patterns), blocks=tuple(frames(4)))
    check_accuracies(world, exact(world, lengths=[2, 3], counts=[5, 10]), length=3)


def test_a_correlated_pair_and_a_path() -> None:
    pair, row = copying_pair(TABLES[3], 0.7, own=TABLES[4]), copying_path([TABLES[3], TABLES[4], TABLES[1]], 0.6)
    names = ("c", "d", "e")
    blocks = (Block(names=("a", "b"), table=pair), Block(names=names, table=row, edges=path(names)))
    world = World(prior=STICKY, blocks=(*frames(3), *blocks))
    estimate = exact(world)
    check_accuracies(world, estimate)
    np.testing.assert_allclose(estimate.correlations["a", "b"], pair, **CLOSE)
    np.testing.assert_allclose(estimate.correlations["c", "d"], row.sum(axis=3), **CLOSE)
    np.testing.assert_allclose(estimate.correlations["d", "e"], row.sum(axis=1), **CLOSE)


def test_a_source_that_repeats_itself() -> None:
    first, step = temporal(TABLES[3], 0.6)
    world = World(prior=STICKY, blocks=(*frames(3), TemporalBlock(name="echo", first=first, step=step)))
    estimate = exact(world)
    check_accuracies(world, estimate)
    factor = estimate.parameters["echo"]
    np.testing.assert_allclose(factor.first, first, **CLOSE)
    np.testing.assert_allclose(factor.step, step, **CLOSE)


def test_a_fine_source_that_follows_a_coarse_one() -> None:
    follow = 0.5 * np.eye(3)[np.newaxis, np.newaxis] + 0.5 * TABLES[1][:, np.newaxis, np.newaxis, :]
    table, window = np.broadcast_to(follow, (2, 2, 3, 3)), Window(2, link="majority")
    coarse = [Block(names=(f"w{j}",), table=TABLES[3 + j], resolution=window) for j in range(2)]
    world = World(prior=STICKY, blocks=(*frames(3), *coarse, CrossedBlock(name="follower", table=table, parent="w0")))
    estimate = exact(world, lengths=4)
    check_accuracies(world, estimate, length=4)
    factor = estimate.parameters["follower"]
    for fine, above in ((0, 0), (1, 0), (1, 1)):  # a negative element in a positive pair is impossible
        np.testing.assert_allclose(factor.table[fine, above], table[fine, above], **CLOSE)


def test_one_table_per_position_and_a_pair_by_position() -> None:
    rng = np.random.default_rng(5)
    tables = np.stack([accurate(*rng.uniform([0.6] * 2, 0.9)) for _ in range(3)])
    pairs = np.stack([copying_pair(table, 0.5) for table in tables])
    world = World(
        prior=Markov(initial=[0.8, 0.2], transition=[[0.9, 0.1], [0.3, 0.7]]),
        blocks=(
            *frames(3),
            Block(names=("p",), table=tables, by_position=True),
            Block(names=("a", "b"), table=pairs, by_position=True),
        ),
    )
    estimate = exact(world, lengths=3, sharing={"p": "task", "a": "task", "b": "task"})
    check_accuracies(world, estimate)
    np.testing.assert_allclose(estimate.correlations["a", "b"], pairs, **CLOSE)


def test_one_table_of_a_pair_seen_through_proxies_by_position() -> None:
    pair = copying_pair(TABLES[3], 0.7)
    prior = Markov(initial=[0.9, 0.1], transition=[[0.8, 0.2], [0.3, 0.7]])
    world = World(prior=prior, blocks=(*frames(3), Block(names=("a", "b"), table=pair)))
    by_position = {f"f{j}": "task" for j in range(3)}
    estimate = exact(world, lengths=[2, 3], counts=[300, 500], sharing=by_position)
    np.testing.assert_allclose(estimate.correlations["a", "b"], pair, **CLOSE)


@pytest.mark.parametrize("others", ["tied", "task"])
def test_a_full_table(others) -> None:
    table = np.random.default_rng(3).dirichlet(np.ones(27), size=8)
    world = World(
        prior=Markov(initial=[0.7, 0.3], transition=[[0.8, 0.2], [0.3, 0.7]]),
        blocks=(*frames(3), FullBlock(name="whole", table=table, n_tasks=3)),
    )
    levels = {"whole": "full"} | {f"f{j}": others for j in range(3)}
    estimate = exact(world, lengths=3, sharing=levels)
    np.testing.assert_allclose(estimate.accuracies["whole"], table, **CLOSE)


def test_one_source_over_time_and_a_pinned_one() -> None:
    check_accuracies(*alone(World(prior=STICKY, blocks=tuple(frames(1)))))
    two = World(prior=Markov(positive=0.4, stay=0.4), blocks=tuple(frames(2)))
    check_accuracies(two, exact(two, accuracies={"f0": TABLES[0]}))


def alone(world):
    return world, exact(world, lengths=6), 6


def test_signs() -> None:
    """Pinned liars stay liars; by the group rule the same votes are read the other way round; one by one by force."""
    liars = World(prior=STICKY, blocks=tuple(Block(names=(f"l{j}",), table=flipped(TABLES[j])) for j in range(3)))
    check_accuracies(liars, exact(liars, accuracies={"l0": flipped(TABLES[0])}))
    by_group = exact(liars)
    assert by_group.accuracies["l1"][1, 1] > by_group.accuracies["l1"][0, 1]
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("liar",), table=flipped(TABLES[3]))))
    forced = exact(world, signs="positive")
    assert forced.accuracies["liar"][1, 1] > forced.accuracies["liar"][0, 1]
    assert [note.where for note in forced.diagnostics.notes if note.kind == "flip"] == ["liar"]


def test_a_group_that_ends_up_worse_than_random_is_mirrored(monkeypatch) -> None:
    """A descent that begins on the wrong side ends in the mirror image, with the same loss."""
    monkeypatch.setattr("dugong.fit.sgd.slopes.TILT", -0.2)
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("liar",), table=flipped(TABLES[3]))))
    check_accuracies(world, exact(world))


def test_sources_that_share_their_parameters() -> None:
    world = World(
        prior=STICKY,
        blocks=(*(Block(names=(n,), table=TABLES[1]) for n in ("left", "right")), Block(names=("x",), table=TABLES[3])),
    )
    sources = tuple(replace(info, shares="eyes") if info.name != "x" else info for info in world.sources)
    design = make_design(sources, SourceGraph.of(world.source_names))
    moments = replace(world.population(design.plan, np.array([5]), np.array([100.0])), sources=sources)
    estimate = estimate_sgd(Given.under(world.prior, design, moments), SGD())
    check_accuracies(world, estimate)


# --- samples ---------------------------------------------------------------------------------------------------------
def both(world, n_sequences, settings=None, seed=1):
    """Closed form and descent from the same counts, and the truth."""
    votes, _ = world.sample(n_sequences, rng=seed)
    design = design_of(world)
    moments = count(votes, design.plan)
    given = Given.under(world.prior, design, moments)
    closed = estimate_centred(solve_tables(given))
    return closed, estimate_sgd(given, settings or SGD(), InMemory(votes=votes)), world.accuracies()


def mean_error(found, truth) -> float:
    return float(np.mean([np.abs(found[name] - table).mean() for name, table in truth.items()]))


def fitted(votes, prior, dependencies=(), **options):
    """The label model by both estimators."""
    return [
        dg.LabelModel(prior=prior, dependencies=dependencies, estimator=name, **options).fit(votes)
        for name in ("centred", "sgd")
    ]


def check_alike(models, votes, gold) -> None:
    """Differences far below the standard errors of the closed form, and labels that are as good to 1 %."""
    errors, (closed, found) = models[0].standard_errors_, models
    for own, raw, theirs in (
        (errors.accuracies, errors.raw, found.standard_errors_.raw),
        (errors.correlations, errors.raw_correlations, found.standard_errors_.raw_correlations),
    ):
        for key, error in own.items():
            known = error > 1e-9
            apart = (theirs[key] - raw[key])[known] / error[known]
            assert np.sqrt(np.mean(apart**2)) < (0.05 if isinstance(key, str) else 0.2), key
    brier = [np.mean((model.predict_proba(votes)[:, 1] - (gold == 1)) ** 2) for model in (closed, found)]
    assert abs(brier[1] / brier[0] - 1) < 0.01


ELEMENT_TABLES = {f"s{j}": "task" for j in range(8)}


@pytest.mark.parametrize("n_sequences", [150, 1500])
@pytest.mark.parametrize(
    ("make", "sharing"),
    [
        (lopsided, "tied"),
        (lopsided, ELEMENT_TABLES),
        (lambda seed: lopsided(n_sources=5, n_elements=3, seed=seed), {"s0": "full"}),
        (rare, "tied"),
        (rare, ELEMENT_TABLES),
        (multiresolution, "tied"),
        (self_dependent, "tied"),
        (ragged, "tied"),
    ],
    ids=["lopsided", "positions", "full", "rare", "rare positions", "resolutions", "temporal", "ragged"],
)
def test_agrees_with_the_closed_form_far_below_its_standard_errors(make, sharing, n_sequences) -> None:
    world = make(seed=31)
    votes, labels = world.sample(n_sequences, rng=32)
    check_alike(fitted(votes, world.prior, world.dependencies, sharing=sharing), votes, labels["element"])


def test_a_prior_that_expects_too_few_positives() -> None:
    """No valid table explains the votes then; both estimators leave the votes that were seen possible."""
    always = Markov(positive=0.1, stay=1.0)
    pair = Block(names=("a", "b"), table=copying_pair(accurate(0.85, 0.8), 0.6))
    first, step = temporal(accurate(0.8, 0.85), 0.4)
    echo = TemporalBlock(name="echo", first=first, step=step)
    others = [Block(names=(f"f{j}",), table=accurate(0.8, 0.9)) for j in range(2)]
    world = World(prior=always, blocks=(*others, pair, echo))
    votes, labels = world.sample(500, rng=33)
    models = fitted(votes, Markov(positive=0.02, stay=1.0), world.dependencies)
    assert all(model.diagnostics_.projections for model in models)
    scores = [model.score(votes, labels["element"]) for model in models]
    assert scores[0] > 0.8
    assert abs(scores[1] - scores[0]) < 0.01


@pytest.mark.parametrize("extra", ["never votes", "always +1", "duplicates", "never says -1", "two sources"])
def test_odd_sources_end_as_in_the_closed_form(extra) -> None:
    votes, _ = lopsided(n_sources=4, seed=34).sample(200, rng=35)
    table = np.stack(votes.columns, axis=1).reshape(200, 5, 4)
    first = table[:, :, :1]
    added = {
        "never votes": 0 * first,
        "always +1": 0 * first + 1,
        "duplicates": first,
        "never says -1": np.maximum(first, 0),
        "two sources": first[:, :, :0],
    }[extra]
    kept = table[:, :, :2] if extra == "two sources" else table
    odd = dg.Votes.from_dense(np.concatenate([kept, added], axis=2))
    closed, found = fitted(odd, Markov(positive=0.3, stay=0.86))
    for name, own in closed.accuracies_.items():
        np.testing.assert_allclose(found.accuracies_[name], own, rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        SGD(batches="moments", batch_size=5),
        SGD(batches="votes", batch_size=400, tolerance=1e-4),
        SGD(schedule="cosine", max_steps=500),
    ],
    ids=["rows", "votes", "cosine"],
)
def test_every_way_to_descend_ends_at_the_same_tables(settings) -> None:
    closed, found, truth = both(lopsided(n_sources=5, seed=1), 2000, settings)
    assert mean_error(found.accuracies, closed.accuracies) < 0.35 * mean_error(closed.accuracies, truth)


def test_the_seed_decides_the_batches() -> None:
    settings = SGD(batch_size=3, max_steps=60)
    world = lopsided(n_sources=4, seed=1)
    first, again, other = (both(world, 300, s)[1] for s in (settings, settings, replace(settings, seed=1)))
    np.testing.assert_array_equal(first.accuracies["s0"], again.accuracies["s0"])
    assert (first.accuracies["s0"] != other.accuracies["s0"]).any()


def test_the_label_model_by_name() -> None:
    world = lopsided(n_sources=4, seed=2)
    votes, labels = world.sample(1000, rng=3)
    models = [
        dg.LabelModel(prior=world.prior, dependencies=(), estimator=estimator).fit(votes)
        for estimator in ("centred", "sgd")
    ]
    gold = labels["element"]
    assert abs(models[0].score(votes, gold) - models[1].score(votes, gold)) < 0.005
    errors = [model.standard_errors_.accuracies["s0"] for model in models]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.05, atol=0)
    gap = np.abs(models[1].standard_errors_.raw["s0"] - models[1].accuracies_["s0"])  # one E/M step lies between
    assert (gap < errors[1]).all()


def test_few_long_sequences_use_their_own_balance() -> None:
    world = lopsided(seed=3, prior=Markov(positive=0.3, stay=0.986))
    votes, _ = world.sample(6, lengths=2000, rng=1)
    closed, found = (
        dg.LabelModel(prior=world.prior, dependencies=(), estimator=name).fit(votes) for name in ("centred", "sgd")
    )
    assert mean_error(found.accuracies_, closed.accuracies_) < 0.002
    assert any(note.kind == "balance" for note in found.diagnostics_.notes)


# --- reports and errors ----------------------------------------------------------------------------------------------
def test_the_convergence_report() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("a", "b"), table=copying_pair(TABLES[3], 0.7))))
    done = exact(world).diagnostics
    report = done.learned["sgd"]
    assert set(report) == {"same task", "correlations"}
    for stage in report.values():
        assert stage["converged"]
        assert stage["losses"][-1] == min(stage["losses"]) < 1e-9 < stage["losses"][0]
        assert len(stage["losses"]) >= stage["steps"] // SGD().patience
    assert max(map(abs, done.residuals.values())) < 0.05
    assert done.support["f0", "f1"] == 5000
    short = exact(world, settings=SGD(max_steps=7)).diagnostics
    assert not short.learned["sgd"]["same task"]["converged"]
    assert any("stopped at the most steps allowed" in note.text for note in short.notes)


def test_a_silent_source_is_found_silent() -> None:
    quiet = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("quiet",), table=quiet)))
    check_accuracies(world, exact(world))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max_steps >= 1"),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"schedule": "linear"}, "schedule= must be 'plateau'"),
        ({"batches": "rows"}, "batches= must be 'moments'"),
    ],
)
def test_settings_that_cannot_be(options, message) -> None:
    with pytest.raises(dg.GraphError, match=message):
        SGD(**options)


def test_streams_of_moments_hold_no_votes() -> None:
    world = World(prior=STICKY, blocks=tuple(frames(3)))
    with pytest.raises(dg.GraphError, match="only their moments are here"):
        exact(world, settings=SGD(batches="votes"))


def test_a_full_table_with_a_dependency_is_an_error() -> None:
    world = World(prior=STICKY, blocks=(*frames(3), Block(names=("a", "b"), table=copying_pair(TABLES[3], 0.5))))
    with pytest.raises(dg.GraphError, match="only one can be modelled"):
        exact(world, lengths=3, sharing={"a": "full"})


def test_without_torch_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setattr("dugong.fit.sgd.find_spec", lambda _: None)
    with pytest.raises(dg.MissingExtraError, match=r"dugong-ws\[torch\]"):
        exact(World(prior=STICKY, blocks=tuple(frames(3))))


# --- the paper's own losses ------------------------------------------------------------------------------------------
def by_the_letter(world, length=5):
    """Algorithm 1 and the descent on its own losses, from the exact moments of a world."""
    design = design_of(world, length=length)
    moments = world.population(plan_paper(design), np.array([length]), np.array([1000.0]))
    given = Given.under(world.prior, design, moments)
    descended, _ = estimate_agreements(given, SGD(losses="agreements"))
    return estimate_paper(paper_tables(given)), descended


def test_agreements_of_even_sources_are_exact() -> None:
    """Sources that err evenly on both classes, at two resolutions: the closed form and the truth."""
    blocks = [Block(names=(f"f{j}",), table=accurate(p, p, 0.0, 0.0)) for j, p in enumerate((0.9, 0.8, 0.7, 0.65))]
    blocks.append(Block(names=("whole",), table=accurate(0.85, 0.85, 0.0, 0.0), resolution=Sequence("any")))
    world = World(prior=Markov(positive=0.5, stay=0.8), blocks=tuple(blocks))
    letter, descended = by_the_letter(world)
    for name, table in world.accuracies(5).items():
        if name != "whole":  # E[y] of a whole sequence is not zero, so that Algorithm 1 is biased there
            np.testing.assert_allclose(descended.accuracies[name], table, err_msg=name, **CLOSE)
        np.testing.assert_allclose(descended.accuracies[name], letter.accuracies[name], err_msg=name, **CLOSE)


def test_agreements_of_lopsided_sources_have_the_bias_of_the_paper() -> None:
    """Three sources alike, .60 and .95: E[vote label] is .551, and .65 by raw products (docs/differences.md)."""
    blocks = tuple(Block(names=(f"f{j}",), table=accurate(0.6, 0.95, 0.0, 0.0)) for j in range(3))
    world = World(prior=Markov(positive=0.5, stay=0.8), blocks=blocks)
    letter, descended = by_the_letter(world)
    for name in world.source_names:
        np.testing.assert_allclose(descended.accuracies[name], letter.accuracies[name], err_msg=name, **CLOSE)
        right = descended.accuracies[name][[0, 1], [0, 1]].mean()
        assert 2 * right - 1 == pytest.approx(0.65, abs=0.01)


@pytest.mark.parametrize("batches", ["moments", "votes"])
def test_agreements_of_a_sample(batches) -> None:
    """Through the public door, as near to Algorithm 1 as a descent on a sample comes; notes say how it went."""
    blocks = tuple(Block(names=(f"f{j}",), table=accurate(p, p, 0.1, 0.1)) for j, p in enumerate((0.9, 0.8, 0.7)))
    world = World(prior=Markov(positive=0.5, stay=0.8), blocks=blocks)
    votes, _ = world.sample(2_000, 5, rng=0)
    options = {"prior": world.prior, "dependencies": ()}
    letter = dg.LabelModel(**options, estimator="paper").fit(votes)
    model = dg.LabelModel(**options, estimator=SGD(losses="agreements", batches=batches)).fit(votes)
    for name in votes.source_names:
        np.testing.assert_allclose(model.accuracies_[name], letter.accuracies_[name], rtol=0, atol=0.02)
    assert any(note.kind == "sgd" for note in model.diagnostics_.notes)
    with pytest.raises(GraphError, match="losses= must be 'centred' or 'agreements'; found 'squares'"):
        SGD(losses="squares")


@pytest.mark.parametrize("estimator", [SGD(max_steps=150), "centred", "paper", "em"])
@pytest.mark.parametrize("dependencies", [(), [("a", "b")], [dg.temporal("a", lag=1)]], ids=["none", "pair", "self"])
def test_what_was_fitted_on_one_part_labels_another(estimator, dependencies):
    """A sample in which a vote never contradicts a label does not make one that does impossible."""
    prior = Markov(positive=0.4, stay=0.8)
    for seed in (2, 34):
        rng = np.random.default_rng(seed)
        parts = [_part(rng, n, accuracy) for n, accuracy in ((int(rng.integers(6, 40)), 1.0), (60, 0.6))]
        model = dg.LabelModel(prior=prior, dependencies=dependencies, estimator=estimator).fit(parts[0])
        assert min(model.accuracies_["a"][0, 1], model.accuracies_["a"][1, 0]) < 0.01
        found = model.predict_proba(parts[1])
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-9)
        assert np.isfinite(model.log_likelihood(parts[1])).all()


def test_zeros_that_are_given_are_taken_at_their_word():
    votes = dg.Votes.from_dense(np.array([[[1, -1, 1]] * 4] * 8, dtype=np.int8), sources=list("abc"))
    certain = {name: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] for name in "ab"}
    model = dg.LabelModel(prior=Markov(positive=0.4, stay=0.8), dependencies=(), accuracies=certain)
    with pytest.raises(dg.DugongError, match="probability zero"):
        model.fit(votes).predict_proba(votes)


def _part(rng: np.random.Generator, n: int, accuracy: float) -> dg.Votes:
    truth = np.where(rng.random((n, 1, 1)) < 0.4, 1, -1)
    return dg.Votes.from_dense(np.where(rng.random((n, 5, 4)) < accuracy, truth, -truth), sources=list("abcd"))


@pytest.mark.parametrize(
    "window", [None, dg.Window(size=2), dg.Window(size=2, stride=1)], ids=["none", "apart", "over"]
)
@pytest.mark.parametrize("step", [1e-200, 1e-300])
def test_steps_that_are_hardly_possible_do_not_underflow(window, step):
    """Four changes, each less likely than any product of floating point numbers can say."""
    prior = Markov(initial=[0.5, 0.5], transition=[[1 - step, step], [step, 1 - step]])
    truth = np.array([[1, -1, 1, -1, 1, 1]] * 20)
    votes = {name: truth.reshape(-1) for name in "abc"}
    accuracies = {name: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] for name in "abc"}
    silent = 0.0
    if window is not None:
        votes["w"] = np.ones(20 * (3 if window.stride == 2 else 5), dtype=int)
        accuracies["w"] = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
        silent = len(votes["w"]) / 20 * np.log(0.5)
    heard = dg.Votes.from_tasks(votes, lengths=[6] * 20, resolutions={"w": window} if window else {})
    model = dg.LabelModel(prior=prior, dependencies=(), accuracies=accuracies).fit(heard)
    np.testing.assert_allclose(model.predict_proba(heard)[:, 1], truth.reshape(-1) > 0, rtol=0, atol=1e-12)
    expected = np.log(0.5) + 4 * np.log(step) + silent
    np.testing.assert_allclose(model.log_likelihood(heard), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.decode(heard), truth.reshape(-1))

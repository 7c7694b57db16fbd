"""Windows of any size and overlap: the group pass is exact, propagation is close, the choice between them right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dugong.infer import chain, engine, runs
from dugong.infer.choice import choose_engine
from dugong.infer.factors import flatten
from dugong.infer.grouped import WindowEngine, passes
from dugong.infer.grouped import _kernels as kernels
from dugong.infer.grouped.trios import refine
from dugong.infer.prepare import prepare, read_block
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Markov
from dugong.tasks import Element, Sequence, Spans, Window
from dugong.votes import SourceInfo, Votes

from . import oracle
from .cases import KINDS, Case, conditional, random_case, random_chain, random_spans, random_votes, temporal

seeds = st.integers(0, 10**6)
links = st.sampled_from(["any", "all", "majority"])


def window_case(seed, resolution_of, n_classes, kind, lag=0, longest=7) -> Case:
    """Element sources, one that repeats itself if there is a lag, and one source at a coarse resolution."""
    rng = np.random.default_rng(seed)
    of = None if n_classes == 2 else int(rng.integers(1, n_classes + 1))
    lengths = [*rng.integers(1, longest + 1, size=2).tolist(), 0, 1]
    resolution = resolution_of(of)
    sources = {"a": Element(), "w": resolution, "v": resolution}
    factors = [conditional(rng, name, where, n_classes) for name, where in sources.items()]
    if lag:
        factors.append(temporal(rng, "t", Element(), n_classes, lag))
        sources["t"] = Element()
    spans = {"shot": random_spans(rng, lengths)}
    votes = random_votes(rng, sources, lengths, n_classes, spans, missing=0.1)
    prior = random_chain(rng, n_classes, kind)
    return Case(votes=votes, parameters=Parameters(n_classes=n_classes, factors=tuple(factors)), prior=prior)


def prepared(case: Case, wanted=None, potentials=None):
    wanted = case.votes.resolutions if wanted is None else wanted
    return prepare(case.votes, flatten(case.votes, case.parameters), case.prior, tuple(wanted), potentials)


def apart(size, link, shape):
    """Windows without overlap, spans, or the whole sequence."""
    return {
        "window": lambda of: Window(size=size, link=link, of=of),
        "spans": lambda of: Spans(name="shot", link=link, of=of),
        "sequence": lambda of: Sequence(link=link, of=of),
    }[shape]


@given(
    seed=seeds,
    size=st.integers(1, 7),
    link=links,
    shape=st.sampled_from(["window", "spans", "sequence"]),
    n_classes=st.sampled_from([2, 3]),
    kind=st.sampled_from(KINDS),
    lag=st.integers(0, 2),
)
def test_group_pass_is_exact(seed, size, link, shape, n_classes, kind, lag) -> None:
    """Marginals, likelihoods, counts and best paths are those of enumeration, with potentials and without."""
    case = window_case(seed, apart(size, link, shape), n_classes, kind, lag, longest=6)
    potentials = np.random.default_rng(seed).normal(size=(case.votes.n_elements, n_classes)) if seed % 2 else None
    made = prepared(case, potentials=potentials)
    windows = WindowEngine(made)
    assert windows.fits()
    assert windows.exact
    found, likelihood = runs.smooth(windows, made.resolutions)
    expected, whole = oracle.marginals(case.votes, case.parameters, case.prior, made.resolutions, potentials=potentials)
    np.testing.assert_allclose(likelihood, whole, rtol=0, atol=1e-10)
    for resolution in made.resolutions:
        own = expected[resolution].reshape(found[resolution].shape)
        np.testing.assert_allclose(found[resolution], own, rtol=0, atol=1e-10)
    compare_counts(made, windows)


def compare_counts(made, windows, atol=1e-10) -> None:
    """Expected counts by cell, pairs and best paths against the product of automata."""
    owners = np.arange(made.votes.n_sequences) % 2
    product = chain.build(made)
    (cells, sums), (expected, whole) = (runs.count(one, owners, 2) for one in (windows, product))
    for own, other in zip(cells, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=atol)
    np.testing.assert_allclose(sums.transitions, whole.transitions, rtol=0, atol=atol)
    np.testing.assert_allclose(sums.initial, whole.initial, rtol=0, atol=atol)


@given(seed=seeds, size=st.integers(1, 6), link=links, n_classes=st.sampled_from([2, 3]), lag=st.integers(0, 1))
def test_best_paths_are_the_best(seed, size, link, n_classes, lag) -> None:
    case = window_case(seed, apart(size, link, "window"), n_classes, "markov", lag, longest=5)
    labels = runs.draw(WindowEngine(prepared(case)))[0]
    for sequence in range(case.votes.n_sequences):
        patterns = oracle.enumerate_patterns(case.votes, case.parameters, case.prior, sequence, [])
        law = {pattern.elements: pattern.probability for pattern in patterns}
        chosen = tuple(labels[case.votes.layout("element").rows(sequence)].tolist())
        assert law[chosen] >= max(law.values()) * (1 - 1e-9)


@pytest.mark.parametrize("link", ["any", "all", "majority"])
def test_samples_have_the_right_frequencies(link) -> None:
    case = window_case(11, apart(3, link, "window"), 3, "markov", 1, longest=7)
    made = prepared(case)
    drawn = runs.draw(WindowEngine(made), np.random.default_rng(0), 30_000)
    law, _ = runs.smooth(WindowEngine(made), made.resolutions)
    shares = np.stack([(drawn == k).mean(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(shares, law[Element()], rtol=0, atol=0.015)


@given(seed=seeds, size=st.integers(2, 40), link=links, room=st.integers(1, 9))
def test_checkpoints_change_nothing(seed, size, link, room) -> None:
    """Layers of a window that are filled again from every so-many-th one are the same."""
    case = window_case(seed, apart(size, link, "window"), 2, "markov", longest=60)
    made = prepared(case)
    all_kept = runs.smooth(WindowEngine(made), made.resolutions)
    drawn = runs.draw(WindowEngine(made), np.random.default_rng(1), 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "_ROOM", room * 8)
        some_kept = runs.smooth(WindowEngine(made), made.resolutions)
        np.testing.assert_array_equal(runs.draw(WindowEngine(made), np.random.default_rng(1), 3), drawn)
    for resolution in made.resolutions:
        np.testing.assert_array_equal(all_kept[0][resolution], some_kept[0][resolution])


@given(seed=seeds, size=st.integers(2, 5), stride=st.integers(1, 4), link=links, n_classes=st.sampled_from([2, 3]))
def test_windows_without_votes_are_read_off_exactly(seed, size, stride, link, n_classes) -> None:
    """Overlap costs nothing where nobody votes on the windows: each group is asked by itself."""
    case = random_case(seed, n_classes, "markov", "lag 1", longest=6)
    names = [info.name for info in case.votes.sources if info.resolution == Element()]
    case.votes = case.votes.select(sources=names)
    of = None if n_classes == 2 else 1
    asked = [Element(), Window(size=size, stride=min(size, stride), link=link, of=of), Sequence(link="majority", of=of)]
    made = prepared(case, asked)
    assert choose_engine(made).exact
    assert isinstance(choose_engine(made), WindowEngine)
    found, _ = runs.smooth(WindowEngine(made), made.resolutions)
    expected, _ = oracle.marginals(case.votes, case.parameters, case.prior, asked)
    for resolution in asked:
        np.testing.assert_allclose(found[resolution], expected[resolution], rtol=0, atol=1e-10)


@given(seed=seeds, size=st.integers(50, 400), odds=st.sampled_from([3.0, 60.0]))
@settings(max_examples=15)
def test_long_windows_agree_with_the_product(seed, size, odds) -> None:
    """Evidence far beyond the range of numbers inside a window, and votes on the window against it."""
    rng = np.random.default_rng(seed)
    window = Window(size=size, link="majority")
    votes = random_votes(rng, {"a": Element(), "w": window}, [600, 37], 2, {}, missing=0.0)
    likely = odds / (1 + odds)
    table = np.array([[likely, 1 - likely, 0.0], [1 - likely, likely, 0.0]])
    factors = (
        Conditional(source="a", resolution=Element(), table=table),
        Conditional(source="w", resolution=window, table=np.array([[0.9, 0.05, 0.05], [1e-9, 1 - 2e-9, 1e-9]])),
    )
    votes = Votes(
        sources=votes.sources,
        columns=tuple(np.where(column == 0, 1, column).astype(np.int8) for column in votes.columns),
        lengths=votes.lengths,
    )
    case = Case(
        votes=votes, parameters=Parameters(n_classes=2, factors=factors), prior=Markov(positive=0.3, stay=0.8).chain()
    )
    made = prepared(case)
    assert isinstance(choose_engine(made), WindowEngine)
    found, likelihood = runs.smooth(WindowEngine(made), made.resolutions)
    expected, whole = runs.smooth(chain.build(made), made.resolutions)
    np.testing.assert_allclose(likelihood, whole, rtol=1e-12, atol=0)
    for resolution in made.resolutions:
        np.testing.assert_allclose(found[resolution], expected[resolution], rtol=0, atol=1e-10)


def test_numbers_that_would_get_lost_go_to_the_product(rng) -> None:
    """Steps that never forget, and sharp contradictions: plain numbers do not hold them, the product does."""
    whole = Sequence(link="any")
    columns = np.concatenate([np.ones(500), -np.ones(501)]).astype(np.int8), np.array([1], dtype=np.int8)
    votes = Votes(
        sources=(SourceInfo(name="a"), SourceInfo(name="s", resolution=whole)),
        columns=columns,
        lengths=np.array([1001]),
    )
    sharp = np.array([[0.9999, 0.0001, 0.0], [0.0001, 0.9999, 0.0]])
    factors = tuple(Conditional(source=info.name, resolution=info.resolution, table=sharp) for info in votes.sources)
    case = Case(
        votes=votes,
        parameters=Parameters(n_classes=2, factors=factors),
        prior=random_chain(np.random.default_rng(0), 2, "stay"),
    )
    assert isinstance(choose_engine(prepared(case)), chain.ProductEngine)
    assert np.isfinite(engine.posterior(case.votes, case.parameters, case.prior)["element"]).all()


@given(
    seed=seeds,
    size=st.integers(5, 7),
    stride=st.integers(1, 2),
    link=links,
    n_classes=st.sampled_from([2, 3]),
    missing=st.integers(0, 1),
)
@settings(deadline=None, max_examples=40)
def test_a_window_beside_its_neighbours_is_exact_where_there_are_no_others(
    seed, size, stride, link, n_classes, missing
) -> None:
    """The middle one of three windows, the last of them cut or not: nothing is left to the sites of other windows."""
    rng = np.random.default_rng(seed)
    window = Window(size=size, stride=stride, link=link, of=None if n_classes == 2 else int(rng.integers(1, 4)))
    sources = {"a": Element(), "w": window}
    lengths = [size + 2 * stride - (missing if stride > 1 else 0)] * 2
    factors = tuple(conditional(rng, name, where, n_classes) for name, where in sources.items())
    votes = random_votes(rng, sources, lengths, n_classes, {}, missing=0.1)
    prior = random_chain(rng, n_classes, "markov")
    made = prepared(Case(votes=votes, parameters=Parameters(n_classes=n_classes, factors=factors), prior=prior))
    engine = WindowEngine(made)
    local, groups = engine.model(read_block(made, 0, 2))
    found = refine(local, groups, local.steps, [np.ones(local.steps.shape)] * len(groups))
    exact = runs.smooth(chain.build(made, 8192), votes.resolutions)[0][window][:, 1]
    seen = 0
    for group, positive in zip(groups, found, strict=True):
        middle = votes.layout(window).positions()[group.tasks] == 1
        chances = 1 - positive if group.negated else positive
        np.testing.assert_allclose(chances[middle], exact[group.tasks[middle]], rtol=0, atol=1e-10)
        seen += int(middle.sum())
    assert seen == 2


@given(seed=seeds, spread=st.sampled_from([0.0, 2.0, 150.0]), longest=st.integers(1, 9))
def test_sources_that_look_back_need_no_steps(seed, spread, longest) -> None:
    """Two labels and a source that repeats itself go through a kernel of their own: the same as the product."""
    rng = np.random.default_rng(seed)
    factors = (conditional(rng, "a", Element(), 2), temporal(rng, "t", Element(), 2, 1))
    lengths = [*rng.integers(1, longest + 1, size=3).tolist(), 0, 1]
    votes = random_votes(rng, {"a": Element(), "t": Element()}, lengths, 2, {}, missing=0.1)
    case = Case(votes=votes, parameters=Parameters(n_classes=2, factors=factors), prior=random_chain(rng, 2, "markov"))
    made = prepared(case, potentials=rng.normal(0, spread, (votes.n_elements, 2)) if spread else None)
    one, product = WindowEngine(made), chain.build(made)
    assert one._looks_back
    (found, likelihood), (expected, whole) = (runs.smooth(own, made.resolutions) for own in (one, product))
    np.testing.assert_allclose(likelihood, whole, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found[Element()], expected[Element()], rtol=0, atol=1e-10)
    compare_counts(made, one)


def test_numbers_far_from_one_change_nothing_for_sources_that_look_back(rng) -> None:
    """What an element is multiplied by, however far from one, moves the likelihood alone."""
    law, offsets = rng.dirichlet([1, 1], 2), np.array([0, 0, 7, 12])
    own, late = rng.random((12, 2)), rng.random((12, 4))
    scale = np.full((12, 1), 1.0)
    scale[[2, 3, 9]] = [[1e-75], [1e70], [1e-70]]

    def answer(first, second):
        made = np.zeros((12, 2)), np.zeros((12, 4)), np.zeros((3, 2, 2)), np.zeros(3)
        assert kernels.smooth_late(np.array([0.4, 0.6]), law, first, second, offsets, *made) == -1
        return made

    plain, scaled = answer(own, late), answer(own * scale, late * scale)
    for one, other in zip(plain[:3], scaled[:3], strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)
    moved = [0.0, *(2 * np.log(scale[a:b]).sum() for a, b in ((0, 7), (7, 12)))]
    np.testing.assert_allclose(scaled[3] - plain[3], moved, rtol=1e-12, atol=1e-9)

"""Kernels on their own, beside exact answers: the walk of the audit, matched marginals, messages that shrink."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dugong.infer import engine
from dugong.infer.blocks import block_bounds
from dugong.infer.chain import build
from dugong.infer.factors import flatten
from dugong.infer.grouped import WindowEngine
from dugong.infer.grouped import _kernels as grouped
from dugong.infer.grouped import audit as auditing
from dugong.infer.packed import _kernels as packed
from dugong.infer.prepare import prepare
from dugong.law.parameters import Conditional, Parameters
from dugong.priors import Joint, Markov
from dugong.priors.chain import LabelChain, TooManyStatesError
from dugong.tasks import Element, Spans, SpanTable, Window
from dugong.votes import SourceInfo, Votes
from dugong.worlds import confusion

from . import oracle
from .cases import Case, conditional, random_chain, random_votes


# --- the walk that audits overlapping windows ----------------------------------------------------------------------
def walk(sweeps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shares of states and of windows above their threshold, found and exact, of a sequence."""
    rng = np.random.default_rng(3)
    base = rng.uniform(0.2, 1.0, (9, 2, 2))
    total = base * rng.uniform(0.5, 1.5, base.shape)  # proposals may come from another chain
    base, total = base[4:], total[4:]
    windows = np.array([[0, 2, 0], [2, 5, 1], [1, 4, 1]])
    groups = np.array([[0, 2, 0], [2, 3, 0]])
    counted, logs = np.array([[False, True]]), np.log(np.array([[0.2, 1.0], [1.0, 0.3], [0.4, 1.0]]))
    states, tallies, positive = np.zeros(5, dtype=np.int8), np.zeros((5, 2)), np.zeros(3)
    grouped.walk(
        grouped.WalkSpace(base, total, windows, groups, counted, logs), np.zeros(3, dtype=np.int64), states, sweeps,
        np.array([1, 3]), 7, np.zeros(4 * (2 + 1)), np.zeros(3, dtype=np.int8), tallies, positive,
    )  # fmt: skip
    weights, above = np.zeros((5, 2)), np.zeros(3)
    for path in product((0, 1), repeat=5):
        before = (0, *path[:-1])
        counts = [sum(path[first:last]) for first, last, _ in windows]
        over = np.array(counts) > windows[:, 2]
        weight = np.prod([base[t, before[t], path[t]] for t in range(5)])
        weight *= np.exp(logs[np.arange(3), over.astype(int)].sum())
        weights[np.arange(5), path] += weight
        above += weight * over
    kept = tallies[0].sum()
    return tallies / kept, weights / weights[0].sum(), positive / kept, above / weights[0].sum()


def test_the_walk_goes_where_the_posterior_is() -> None:
    shares, exact, windows, above = walk(2500)
    np.testing.assert_allclose(shares, exact, rtol=0, atol=0.05)
    np.testing.assert_allclose(windows, above, rtol=0, atol=0.05)


def test_sequences_without_any_task_are_no_error() -> None:
    """Spans were given in one of them only; the labels of the others are exact, and the walk finds them."""
    rng = np.random.default_rng(0)
    spans = {name: SpanTable.from_lists([[(0, 3), (3, 9)], *[[] for _ in range(30)]]) for name in ("shot", "scene")}
    sources = {"a": Element(), **{name: Spans(name=name, link="majority") for name in spans}}
    votes = random_votes(rng, sources, [9] * 31, 2, spans, missing=0.0)
    factors = tuple(
        Conditional(source=name, resolution=where, table=confusion(2, 0.8, abstain=0.2))
        for name, where in sources.items()
    )
    factors = flatten(votes, Parameters(n_classes=2, factors=factors))
    engine = WindowEngine(prepare(votes, factors, Markov(positive=0.4, stay=0.8).chain(), votes.resolutions))
    assert auditing.audit(engine, np.random.default_rng(0)).error < 0.01


def window_engine(lengths: list[int]) -> WindowEngine:
    rng = np.random.default_rng(0)
    sources = {"a": Element(), "w": Window(size=3, stride=1, link="majority")}
    votes = random_votes(rng, sources, lengths, 2, {}, missing=0.0)
    factors = tuple(
        Conditional(source=name, resolution=where, table=confusion(2, 0.8, abstain=0.2))
        for name, where in sources.items()
    )
    parameters = Parameters(n_classes=2, factors=factors)
    return WindowEngine(
        prepare(votes, flatten(votes, parameters), Markov(positive=0.4, stay=0.8).chain(), votes.resolutions)
    )


def test_pieces_of_the_audit_are_whole_where_sequences_are_short() -> None:
    """Every window of a short sequence is in its piece, the last one too, and no element of another sequence."""
    pieces = auditing._choose(window_engine([6, 0, 9]))
    assert {len(local.steps) for local, _ in pieces} == {6, 9}
    for local, groups in pieces:
        ends = np.sort(np.concatenate([group.windows[:, 1] for group in groups]))
        assert ends.max() == len(local.steps)
        assert len(ends) == sum(1 for end in range(1, len(local.steps) + 1) if end >= 3)


def test_noise_of_two_walks_is_no_error() -> None:
    signs = np.resize([1.0, -1.0], 400)
    noise = np.random.default_rng(1).permutation(signs)
    real = np.full(400, 0.02)
    assert auditing._mean_error([np.stack([real, real])]) == pytest.approx(0.02)
    assert auditing._mean_error([np.stack([signs, -signs])]) == 0.0
    assert auditing._mean_error([np.stack([signs, noise])]) < 0.4
    assert auditing._mean_error([]) == 0.0


def wide_chain(n_states: int) -> LabelChain:
    """Many states, no two of which are one."""
    steps = np.random.default_rng(0).dirichlet(np.ones(n_states), n_states)
    return LabelChain(initial=steps[0], transition=steps, labels=np.arange(n_states) % 2, n_classes=2)


@pytest.mark.parametrize("lengths", [[3, 4, 0, 5, 1], [9], [0, 0, 0, 0], [1] * 12, []])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_blocks_cover_every_sequence_once(lengths: list[int], size: int) -> None:
    bounds = block_bounds(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), size)
    assert [one for begin, end in bounds for one in range(begin, end)] == list(range(len(lengths)))
    assert all(sum(max(one, 1) for one in lengths[begin : end - 1]) < size for begin, end in bounds)


# --- weights of elements under which a chain has given marginals ---------------------------------------------------
def chain_marginals(weights: np.ndarray, initial: np.ndarray, transition: np.ndarray) -> np.ndarray:
    n, n_classes = weights.shape
    found = np.zeros((n, n_classes))
    for path in product(range(n_classes), repeat=n):
        steps = [transition[path[t - 1], path[t]] for t in range(1, n)]
        found[np.arange(n), path] += initial[path[0]] * np.prod(steps) * weights[np.arange(n), path].prod()
    return found / found[0].sum()


@pytest.mark.parametrize("stay", [0.99, 0.5, 0.02])
def test_two_classes_have_their_marginals_at_once(stay: float) -> None:
    """Two rounds are enough, where scaling alone would take hundreds."""
    targets = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.999, 0.001]])
    initial, transition = np.array([0.3, 0.7]), np.array([[stay, 1 - stay], [1 - stay, stay]])
    weights = np.empty_like(targets)
    gap = packed.match(targets, np.array([0, 4]), initial, transition, 1e-12, 2, weights)
    assert gap < 1e-12
    np.testing.assert_allclose(chain_marginals(weights, initial, transition), targets, rtol=0, atol=1e-12)


def test_several_classes_have_their_marginals_after_some_rounds() -> None:
    rng = np.random.default_rng(4)
    targets, transition = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(3), 3)
    initial, weights = np.array([0.2, 0.3, 0.5]), np.empty((4, 3))
    gap = packed.match(targets, np.array([0, 4]), initial, transition, 1e-12, 2000, weights)
    assert gap < 1e-12
    np.testing.assert_allclose(chain_marginals(weights, initial, transition), targets, rtol=0, atol=1e-10)


# --- long sequences, single ones, and shapes -----------------------------------------------------------------------
def element_votes(n_elements: int, n_classes: int) -> Case:
    rng = np.random.default_rng(8)
    names = {f"s{i}": Element() for i in range(4)}
    factors = tuple(conditional(rng, name, Element(), n_classes) for name in names)
    votes = random_votes(rng, names, [n_elements], n_classes, {}, missing=0.1)
    parameters = Parameters(n_classes=n_classes, factors=factors)
    return Case(votes=votes, parameters=parameters, prior=random_chain(rng, n_classes, "markov"))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_messages_that_shrink_below_all_numbers_are_scaled(n_classes: int) -> None:
    """Three hundred elements of four sources have a likelihood of about e-1500; logarithms of sums do not mind."""
    case = element_votes(300, n_classes)
    found = engine.posterior(case.votes, case.parameters, case.prior, resolutions=[Element()])
    logs = np.zeros((300, n_classes))
    for flat in flatten(case.votes, case.parameters):
        column = case.votes.column(flat.factor.source)
        for k in range(n_classes):
            table = np.log(flat.factor.table[k])
            place = {vote: i for i, vote in enumerate(case.votes.classes)} | {0: n_classes}
            logs[:, k] += [table[place[vote]] if vote in place else 0.0 for vote in column.tolist()]
    step = np.log(case.prior.transition)
    forward, backward = np.log(case.prior.initial) + logs, np.zeros((300, n_classes))
    for t in range(1, 300):
        forward[t] = logs[t] + np.logaddexp.reduce(forward[t - 1][:, np.newaxis] + step, axis=0)
    for t in range(298, -1, -1):
        backward[t] = np.logaddexp.reduce(step + logs[t + 1] + backward[t + 1], axis=1)
    whole = float(np.logaddexp.reduce(forward[-1]))
    assert whole < -400
    np.testing.assert_allclose(found.log_likelihood, whole, rtol=1e-12)
    np.testing.assert_allclose(
        found.probabilities[Element()].reshape(300, -1)[:, -1], np.exp(forward + backward - whole)[:, -1], atol=1e-10
    )


def test_pairs_of_labels_of_a_single_sequence_are_counted() -> None:
    case = element_votes(4, 3)
    found = engine.expected_counts(case.votes, case.parameters, case.prior)
    expected = np.zeros((3, 3))
    patterns = oracle.enumerate_patterns(case.votes, case.parameters, case.prior, 0, [])
    for pattern in patterns:
        for pair in zip(pattern.elements[:-1], pattern.elements[1:], strict=True):
            expected[pair] += pattern.probability / sum(one.probability for one in patterns)
    np.testing.assert_allclose(found.transitions, expected, rtol=0, atol=1e-10)


def test_sequences_of_one_length_with_other_spans_are_apart() -> None:
    """Under a table of all patterns, which is worked out once for sequences of one shape."""
    rng = np.random.default_rng(6)
    spans = {"shot": SpanTable.from_lists([[(0, 2), (2, 3)], [(0, 1), (1, 3)]])}
    shot = Spans(name="shot", link="any")
    prior = Joint([("element", t) for t in range(3)], rng.dirichlet(np.ones(8)).reshape(2, 2, 2))
    columns = (rng.choice(np.array([-1, 1], dtype=np.int8), 6), np.array([1, -1, -1, 1], dtype=np.int8))
    sources = (SourceInfo(name="a"), SourceInfo(name="s", resolution=shot))
    votes = Votes(sources=sources, columns=columns, lengths=np.array([3, 3]), spans=spans)
    factors = tuple(
        Conditional(source=one.name, resolution=one.resolution, table=confusion(2, 0.8, abstain=0.2)) for one in sources
    )
    parameters = Parameters(n_classes=2, factors=factors)
    both = engine.posterior(votes, parameters, prior, resolutions=[Element()])
    for place in range(2):
        alone = engine.posterior(votes[np.array([place])], parameters, prior, resolutions=[Element()])
        np.testing.assert_allclose(both.log_likelihood[place], alone.log_likelihood[0], rtol=1e-12)


def test_a_prior_of_too_many_states_is_named_where_no_window_is() -> None:
    case = element_votes(5, 2)
    made = prepare(case.votes, flatten(case.votes, case.parameters), wide_chain(50), (Element(),))
    with pytest.raises(TooManyStatesError, match=r"at most 20 states per element; found 50: the prior .* needs 50"):
        build(made, 20)

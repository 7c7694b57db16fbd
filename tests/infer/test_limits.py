"""Long, ragged, extreme and impossible: every case has a defined outcome."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import GraphError, LabelError, PriorError, TaskError, VoteError
from dugong.infer import engine
from dugong.law.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Resolution, Sequence, Window
from dugong.tasks.layout import Layout
from dugong.votes import SourceInfo, Votes

from .cases import random_case

SHARP = np.array([[0.9999, 0.0001, 0.0], [0.0001, 0.9999, 0.0]])
PLAIN = np.array([[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]])
CHAIN = LabelChain(
    initial=np.array([0.7, 0.3]),
    transition=np.array([[0.9, 0.1], [0.2, 0.8]]),
    labels=np.array([0, 1]),
    n_classes=2,
)
STAY = LabelChain(initial=np.array([0.5, 0.5]), transition=np.eye(2), labels=np.array([0, 1]), n_classes=2)


def make_votes(rng, sources: dict[str, Resolution], lengths) -> Votes:
    lengths = np.asarray(lengths)
    sizes = [Layout.of(resolution, lengths).n_tasks for resolution in sources.values()]
    return Votes(
        sources=tuple(SourceInfo(name=name, resolution=r) for name, r in sources.items()),
        columns=tuple((2 * rng.integers(0, 2, size=size) - 1).astype(np.int8) for size in sizes),
        lengths=lengths,
    )


def same_table(votes: Votes, table: np.ndarray) -> Parameters:
    return Parameters(
        n_classes=2,
        factors=tuple(Conditional(source=info.name, resolution=info.resolution, table=table) for info in votes.sources),
    )


@pytest.mark.parametrize("coarse", [False, True])
def test_a_million_elements_with_sharp_sources(rng, coarse) -> None:
    window = Window(size=30, link="any")
    sources = {"a": Element(), "b": Element()} | ({"w": window} if coarse else {})
    votes = make_votes(rng, sources, [1_000_000])
    parameters = same_table(votes, SHARP)
    wanted = votes.resolutions
    found = engine.posterior(votes, parameters, CHAIN, resolutions=wanted)
    assert np.isfinite(found.log_likelihood).all()
    for law in found.probabilities.values():
        assert np.isfinite(law).all()
        np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if coarse:
        decoded = engine.decode(votes, parameters, CHAIN)
        assert decoded.shape == (1_000_000,)


def test_one_label_per_sequence_sums_all_evidence(rng) -> None:
    """Contradicting halves: what is lost in the first half must come back in the second."""
    n = 20_000
    column = np.concatenate([np.ones(n), -np.ones(n + 1)]).astype(np.int8)
    votes = Votes(sources=(SourceInfo(name="a"),), columns=(column,), lengths=np.array([2 * n + 1]))
    found = engine.posterior(votes, same_table(votes, SHARP), STAY)["element"]
    np.testing.assert_allclose(found, np.tile([0.9999, 0.0001], (2 * n + 1, 1)), rtol=0, atol=1e-8)


def test_evidence_that_was_lost_comes_back_at_every_resolution() -> None:
    """As above through the chain over products, whose states then differ by far more than a float can hold."""
    n = 20_000
    whole = Sequence(link="any")
    votes = Votes(
        sources=(SourceInfo(name="a"), SourceInfo(name="s", resolution=whole)),
        columns=(np.concatenate([np.ones(n), -np.ones(n + 1)]).astype(np.int8), np.array([1], dtype=np.int8)),
        lengths=np.array([2 * n + 1]),
    )
    tables = {"a": SHARP, "s": PLAIN}
    parameters = Parameters(
        n_classes=2,
        factors=tuple(
            Conditional(source=info.name, resolution=info.resolution, table=tables[info.name]) for info in votes.sources
        ),
    )
    odds = 9999 * PLAIN[0, 1] / PLAIN[1, 1]
    negative = odds / (1 + odds)
    found = engine.posterior(votes, parameters, STAY)
    np.testing.assert_allclose(found["element"][:, 0], negative, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found["sequence"], [[negative, 1 - negative]], rtol=0, atol=1e-8)
    counts = engine.expected_counts(votes, parameters, STAY)
    np.testing.assert_allclose(counts.transitions, 2 * n * np.diag([negative, 1 - negative]), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(counts.initial, [negative, 1 - negative], rtol=0, atol=1e-8)
    assert (engine.decode(votes, parameters, STAY) == -1).all()
    draws = engine.sample(votes, parameters, STAY, np.random.default_rng(0), 3)
    assert (draws == draws[:, :1]).all()


def test_a_hundred_thousand_sequences_of_mixed_lengths(rng) -> None:
    lengths = rng.integers(1, 501, size=100_000)
    votes = make_votes(rng, {"a": Element()}, lengths)
    found = engine.posterior(votes, same_table(votes, PLAIN), CHAIN, resolutions=["element"])
    law = found["element"]
    assert law.shape == (int(lengths.sum()), 2)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    some = [0, 77, 99_999]
    alone = engine.posterior(votes[some], same_table(votes, PLAIN), CHAIN)
    rows = np.concatenate([np.arange(s.start, s.stop) for s in map(votes.layout("element").rows, some)])
    np.testing.assert_allclose(alone["element"], law[rows], rtol=0, atol=1e-12)
    np.testing.assert_allclose(alone.log_likelihood, found.log_likelihood[some], rtol=0, atol=1e-10)


def test_empty_sequences(rng) -> None:
    votes = make_votes(rng, {"a": Element(), "w": Window(size=2)}, [0, 3, 0])
    parameters = same_table(votes, PLAIN)
    found = engine.posterior(votes, parameters, CHAIN)
    assert found["element"].shape == (3, 2)
    assert found["window2"].shape == (2, 2)
    assert found.log_likelihood[[0, 2]].tolist() == [0.0, 0.0]
    nothing = engine.posterior(votes[[0]], parameters, CHAIN)
    assert nothing["element"].shape == (0, 2)
    assert engine.decode(votes[[0]], parameters, CHAIN).shape == (0,)


@pytest.mark.parametrize("coarse", [False, True])
def test_threads_change_nothing(rng, coarse) -> None:
    sources = {"a": Element(), "b": Element()} | ({"s": Sequence(link="any")} if coarse else {})
    votes = make_votes(rng, sources, rng.integers(0, 60, size=9000))
    parameters = same_table(votes, PLAIN)
    one = engine.posterior(votes, parameters, CHAIN, n_threads=1)
    two = engine.posterior(votes, parameters, CHAIN, n_threads=3)
    for resolution, law in one.probabilities.items():
        np.testing.assert_array_equal(law, two.probabilities[resolution])
    np.testing.assert_array_equal(one.log_likelihood, two.log_likelihood)
    counts = [engine.expected_counts(votes, parameters, CHAIN, n_threads=n) for n in (1, 3)]
    np.testing.assert_array_equal(counts[0].transitions, counts[1].transitions)
    np.testing.assert_array_equal(counts[0].factors["a"]["table"], counts[1].factors["a"]["table"])
    draws = [engine.sample(votes, parameters, CHAIN, np.random.default_rng(3), 2, n_threads=n) for n in (1, 3)]
    np.testing.assert_array_equal(draws[0], draws[1])


def test_progress_reaches_the_end(rng) -> None:
    votes = make_votes(rng, {"a": Element()}, rng.integers(1, 60, size=5000))
    calls: list[tuple[int, int]] = []
    engine.posterior(votes, same_table(votes, PLAIN), CHAIN, progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (5000, 5000)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_too_many_states_names_the_declaration(rng) -> None:
    sliding = Window(size=16, stride=1, link="majority", name="sliding")
    votes = make_votes(rng, {"a": Element(), "s": sliding}, [100])
    with pytest.raises(TaskError, match=r"(?s)4096 states.*sliding \(size=16, stride=1.*shorter pieces"):
        engine.posterior(votes, same_table(votes, PLAIN), CHAIN, inference="exact")
    assert not engine.posterior(votes, same_table(votes, PLAIN), CHAIN).exact
    with pytest.raises(GraphError, match='"auto", "exact", "approximate"; found \'fast\''):
        engine.posterior(votes, same_table(votes, PLAIN), CHAIN, inference="fast")


def test_memory_is_not_asked_for_in_vain(rng) -> None:
    votes = make_votes(rng, {"a": Element(), "long": Sequence(link="majority")}, [400_000])
    with pytest.raises(TaskError, match=r"(?s)task of 400000 elements would take .* GB.*Cut the sequences"):
        engine.posterior(votes, same_table(votes, PLAIN), CHAIN)


def test_very_many_resolutions_are_refused_before_memory_is_asked_for(rng) -> None:
    """A product of automata would have a table of four to the power of 70."""
    coarse = {f"w{k}": Window(size=k + 2, stride=k + 1, link="any", name=f"w{k}") for k in range(70)}
    votes = make_votes(rng, {"a": Element(), **dict(list(coarse.items())[:12])}, [20])
    with pytest.raises(TaskError, match=r"(?s)at most 10 resolutions beside the elements; found 12.*approximate"):
        engine.posterior(votes, same_table(votes, PLAIN), CHAIN, inference="exact")
    assert not engine.posterior(votes, same_table(votes, PLAIN), CHAIN).exact
    votes = make_votes(rng, {"a": Element(), **coarse}, [20])
    with pytest.raises(GraphError, match=r"(?s)every two resolutions: at most 64.*found 70.*prior=\"learn\""):
        dg.LabelModel(prior=dg.priors.Markov(positive=0.3, stay=0.7), dependencies=()).fit(votes)


def test_any_in_the_last_g_needs_few_states(rng) -> None:
    """A sliding window over 200 elements would be 2 ** 200 states if they were not merged."""
    votes = make_votes(rng, {"a": Element(), "w": Window(size=200, stride=1, link="any")}, [1000])
    found = engine.posterior(votes, same_table(votes, PLAIN), CHAIN)
    np.testing.assert_allclose(found["window200"].sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_impossible_votes_name_the_sequence(rng) -> None:
    never = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    columns = (np.array([1, 1, 1, -1], dtype=np.int8),)
    votes = Votes(sources=(SourceInfo(name="a"),), columns=columns, lengths=np.array([2, 2]), ids=np.array(["x", "y"]))
    for question in (engine.posterior, engine.decode, engine.expected_counts):
        with pytest.raises(PriorError, match=r"'y'.*probability zero"):
            question(votes, same_table(votes, never), STAY)
    twice = Votes(sources=votes.sources * 1, columns=columns, lengths=np.array([2, 2]))
    contradiction = np.array([0, 0, -1, 0], dtype=np.int8)
    with pytest.raises(PriorError, match="known labels of that sequence"):
        engine.posterior(twice, same_table(twice, never), CHAIN, evidence=contradiction)


def test_zeros_in_tables_are_certainty(rng) -> None:
    never = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    votes = make_votes(rng, {"a": Element()}, [50])
    found = engine.posterior(votes, same_table(votes, never), CHAIN)["element"]
    np.testing.assert_allclose(found[:, 1], votes.column("a") == 1, rtol=0, atol=1e-14)


def test_joint_link_needs_a_table(rng) -> None:
    votes = make_votes(rng, {"a": Element(), "w": Window(size=2, link="joint")}, [4])
    with pytest.raises(TaskError, match=r"priors\.Joint"):
        engine.posterior(votes, same_table(votes, PLAIN), CHAIN)


def test_full_tables_need_short_sequences(rng) -> None:
    votes = make_votes(rng, {"a": Element(), "b": Element()}, [17])
    full = FullTable(source="a", resolution=Element(), n_tasks=2, table=np.full((4, 9), 1 / 9))
    other = Conditional(source="b", resolution=Element(), table=PLAIN)
    parameters = Parameters(n_classes=2, factors=(full, other))
    with pytest.raises(TaskError, match="at most 65536 label patterns"):
        engine.posterior(votes, parameters, CHAIN)
    short = make_votes(rng, {"a": Element(), "b": Element()}, [3])
    with pytest.raises(TaskError, match="2 tasks; found 3"):
        engine.posterior(short, parameters, CHAIN)


def test_votes_and_parameters_must_fit(rng) -> None:
    votes = make_votes(rng, {"a": Element(), "b": Element()}, [4])
    parameters = Parameters(n_classes=2, factors=(Conditional(source="a", resolution=Element(), table=PLAIN),))
    with pytest.raises(VoteError, match="found none for 'b'"):
        engine.posterior(votes, parameters, CHAIN)
    windows = make_votes(rng, {"a": Window(size=2)}, [4])
    with pytest.raises(VoteError, match="has parameters for element"):
        engine.posterior(windows, parameters, CHAIN)
    three = random_case(1, 3, "markov", "none", longest=3)
    with pytest.raises(PriorError, match="3 classes of the votes; found 2"):
        engine.posterior(three.votes, three.parameters, CHAIN)
    only = votes.select(sources=["a"])
    with pytest.raises(LabelError, match="shape"):
        engine.posterior(only, parameters, CHAIN, evidence=np.zeros(3, dtype=np.int8))
    with pytest.raises(LabelError, match="found 5"):
        engine.posterior(only, parameters, CHAIN, evidence=np.full(4, 5, dtype=np.int8))
    with pytest.raises(LabelError, match="groups"):
        engine.expected_counts(only, parameters, CHAIN, groups=np.zeros(3, dtype=np.int64))


def test_decode_needs_states_that_follow_from_labels(rng) -> None:
    votes = make_votes(rng, {"a": Element()}, [4])
    hidden = LabelChain(
        initial=np.array([0.5, 0.25, 0.25]),
        transition=np.full((3, 3), 1 / 3),
        labels=np.array([0, 1, 1]),
        n_classes=2,
    )
    assert np.isfinite(engine.posterior(votes, same_table(votes, PLAIN), hidden)["element"]).all()
    with pytest.raises(PriorError, match="states follow from the labels"):
        engine.decode(votes, same_table(votes, PLAIN), hidden)


def test_parameters_round_trip() -> None:
    for dependency in ("triangle", "lag 2", "crossed", "coarse lag"):
        case = random_case(12, 2, "markov", dependency, longest=4)
        again = Parameters.from_dict(case.parameters.to_dict())
        assert again.to_dict() == case.parameters.to_dict()
        one, two = (engine.log_likelihood(case.votes, p, case.prior) for p in (case.parameters, again))
        np.testing.assert_array_equal(one, two)


def test_parameters_are_checked() -> None:
    window = Window(size=4, stride=2)
    with pytest.raises(PriorError, match="sum to one"):
        Conditional(source="a", resolution=Element(), table=np.ones((2, 3)))
    with pytest.raises(PriorError, match="must hold probabilities; found -1"):
        Conditional(source="a", resolution=Element(), table=np.array([[2.0, -1.0], [0.5, 0.5]]))
    with pytest.raises(GraphError, match="3 axes"):
        Conditional(source="a", resolution=Element(), table=PLAIN, parents=("b",))
    with pytest.raises(GraphError, match="each once"):
        Conditional(source="a", resolution=Element(), table=np.full((2, 3, 3), 1 / 3), parents=("a",))
    with pytest.raises(GraphError, match="weight"):
        Conditional(source="a", resolution=Element(), table=PLAIN, weight=-1.0)
    with pytest.raises(GraphError, match="marginal of 'a'"):
        Conditional(source="a", resolution=Element(), table=PLAIN, marginal=np.full((2, 4), 0.25))
    with pytest.raises(GraphError, match="without overlaps"):
        Crossed(
            source="a",
            resolution=Element(),
            parent="w",
            parent_resolution=window,
            table=np.full((2, 2, 3, 3), 1 / 3),
        )
    with pytest.raises(GraphError, match="lag of 'a'"):
        Temporal(source="a", resolution=Element(), first=PLAIN, step=np.full((2, 2, 3, 3), 1 / 3), lag=0)
    with pytest.raises(GraphError, match="label patterns; found 5"):
        FullTable(source="a", resolution=Element(), n_tasks=2, table=np.full((5, 9), 1 / 9))
    child = Conditional(source="a", resolution=Element(), table=np.full((2, 3, 3), 1 / 3), parents=("b",))
    parent = Conditional(source="b", resolution=Element(), table=PLAIN)
    with pytest.raises(GraphError, match="must come before it"):
        Parameters(n_classes=2, factors=(child, parent))
    with pytest.raises(GraphError, match="whose tasks have 3 classes"):
        Parameters(n_classes=3, factors=(parent,))
    with pytest.raises(GraphError, match="one factor"):
        Parameters(n_classes=2, factors=(parent, parent))

"""Overlapping windows: propagation between groups is close to exact, and the audit knows how close."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import GraphError
from dugong.infer import chain, engine, runs
from dugong.infer.answers import audit_answers
from dugong.infer.choice import MixedEngine, choose_engine
from dugong.infer.factors import flatten
from dugong.infer.grouped import WindowEngine, local
from dugong.infer.grouped import audit as auditing
from dugong.infer.prepare import prepare
from dugong.law import Law
from dugong.law.parameters import Conditional, Parameters, Temporal
from dugong.priors import Markov
from dugong.tasks import Element, Layout, Sequence, Spans, Window
from dugong.worlds import Block, World, confusion

# stay, P(+1), accuracy on elements and on windows: informative and diffuse, sticky and not.
WORLDS = ((0.9, 0.3, 0.7, 0.85), (0.97, 0.3, 0.65, 0.9), (0.6, 0.4, 0.6, 0.8), (0.95, 0.1, 0.8, 0.95))
DIFFUSE = (0.5, 0.5, 0.55, 0.9)


def make_votes(seed, windows, belief, length=240, weight=1.0, n_sequences=1):
    """Votes of two sources on elements and one on each kind of window, their law, and the prior."""
    stay, positive, on_elements, on_windows = belief
    prior = Markov(positive=positive, stay=stay)
    tables = {"a": on_elements, "b": on_elements} | {f"w{i}": on_windows for i in range(len(windows))}
    where = {"a": Element(), "b": Element()} | {f"w{i}": window for i, window in enumerate(windows)}
    blocks = tuple(
        Block(names=(name,), table=confusion(2, tables[name], abstain=0.2), resolution=where[name]) for name in tables
    )
    votes, _ = World(prior=prior, blocks=blocks, lengths=length).sample(n_sequences, rng=seed)
    factors = tuple(
        Conditional(
            source=name,
            resolution=where[name],
            table=confusion(2, accuracy, abstain=0.2),
            weight=1.0 if isinstance(where[name], Element) else weight,
        )
        for name, accuracy in tables.items()
    )
    return votes, Parameters(n_classes=2, factors=factors), prior


def errors(votes, parameters, prior, most_states=8192):
    """Mean error of elements and of the coarser tasks, and the error of the log-likelihood."""
    wanted = votes.resolutions
    made = prepare(votes, flatten(votes, parameters), prior.chain(), wanted)
    windows = WindowEngine(made)
    assert not windows.exact
    near, about = runs.smooth(windows, wanted)
    exact, whole = runs.smooth(chain.build(made, most_states), wanted)
    gaps = [float(np.abs(near[one] - exact[one]).mean()) for one in wanted]
    return gaps[0], max(gaps[1:]), float(np.abs(about - whole).max())


@pytest.mark.parametrize(("size", "stride"), [(8, 4), (30, 10), (12, 1)])
def test_mean_errors_of_sliding_windows(size, stride) -> None:
    """At their word at most .015, and .005 with votes discounted by what neighbours share."""
    window = Window(size=size, stride=stride, link="majority")
    for weight, limit in ((1.0, 0.015), (stride / size, 0.005)):
        found = [errors(*make_votes(0, [window], world, 150, weight)) for world in WORLDS]
        assert np.mean([one[0] for one in found]) <= limit
        assert np.mean([one[1] for one in found]) <= limit
        assert np.mean([one[2] for one in found]) <= 0.1 * 150**0.5


def test_windows_beside_their_neighbours_are_nearer(monkeypatch) -> None:
    """Each of them counted with the one before and the one after halves the error of windows one element apart."""
    window = Window(size=9, stride=1, link="majority")
    cases = [make_votes(0, [window], world, 100) for world in (*WORLDS, DIFFUSE)]
    together = np.mean([errors(*case)[1] for case in cases])
    monkeypatch.setattr(local, "MOST_SHIFT", 0)
    alone = np.mean([errors(*case)[1] for case in cases])
    assert together < 0.6 * alone


def test_several_resolutions_at_once() -> None:
    """Two kinds of windows and the whole sequence, which a product could only just hold."""
    coarse = [Window(size=4, stride=2), Window(size=9, link="majority"), Sequence(link="majority")]
    found = [errors(*make_votes(seed, coarse, (0.8, 0.3, 0.7, 0.85), 30, n_sequences=5)) for seed in range(3)]
    assert np.mean([one[:2] for one in found]) <= 0.005


def test_sequences_do_not_depend_on_their_company() -> None:
    window = Window(size=12, stride=3, link="majority")
    votes, parameters, prior = make_votes(3, [window], WORLDS[2], 60, n_sequences=6)
    together = engine.posterior(votes, parameters, prior, inference="approximate")
    alone = engine.posterior(votes[[4]], parameters, prior, inference="approximate")
    assert not together.exact
    for resolution in (Element(), window):
        rows = votes.layout(resolution).rows(4)
        np.testing.assert_array_equal(together[resolution][rows], alone[resolution])
    np.testing.assert_allclose(together.log_likelihood[4], alone.log_likelihood[0], rtol=1e-12, atol=0)


def test_counts_paths_and_samples_follow_the_labels() -> None:
    """All answers come from one chain: counts of pairs fit the labels, samples too, and the path is a likely one."""
    window = Window(size=6, stride=2, link="majority")
    votes, parameters, prior = make_votes(1, [window], WORLDS[0], 80)
    question = votes, parameters, prior
    law = engine.posterior(*question, inference="approximate")["element"]
    counts = engine.expected_counts(*question, inference="approximate")
    np.testing.assert_allclose(counts.transitions.sum(axis=0), law[1:].sum(axis=0), rtol=0, atol=1e-8)
    drawn = engine.sample(*question, np.random.default_rng(0), 4000, inference="approximate")
    np.testing.assert_allclose((drawn == 1).mean(axis=0), law[:, 1], rtol=0, atol=0.04)
    path = engine.decode(*question, inference="approximate")
    exact = engine.decode(*question, inference="exact")
    assert (path == exact).mean() > 0.95


def test_a_source_that_repeats_itself_beside_windows() -> None:
    window = Window(size=6, stride=2, link="majority")
    votes, parameters, prior = make_votes(1, [window], WORLDS[0], 80)
    first = confusion(2, 0.7, abstain=0.2)
    step = np.broadcast_to(first[None, :, None], (2, 2, 3, 3)) * 0.5 + 0.5 * np.eye(3)
    factors = (Temporal(source="a", resolution=Element(), first=first, step=step), *parameters.factors[1:])
    gaps = errors(votes, Parameters(n_classes=2, factors=factors), prior)
    assert max(gaps[:2]) < 0.02


def test_neighbours_share_where_very_many_are_open() -> None:
    """Windows of 24, one element apart: three share each site, and their labels are near those of a site each."""
    window = Window(size=24, stride=1, link="majority")
    votes, parameters, prior = make_votes(2, [window], WORLDS[0], 200, weight=1 / 24)
    made = prepare(votes, flatten(votes, parameters), prior.chain(), votes.resolutions)
    shared, _ = runs.smooth(WindowEngine(made), votes.resolutions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "MOST_GROUPS", 24)
        apart, _ = runs.smooth(WindowEngine(made), votes.resolutions)
    for resolution in votes.resolutions:
        assert np.abs(shared[resolution] - apart[resolution]).mean() < 0.005


def test_the_audit_warns_when_it_should(monkeypatch) -> None:
    """In at least 95 % of the cases with a mean error above .01, and in at most 5 % of those below .005."""
    monkeypatch.setattr(auditing, "_UPDATES", 3_000_000)
    large, small = [], []
    for size, stride in ((12, 2), (9, 3), (30, 10)):
        window = Window(size=size, stride=stride, link="majority")
        for world in (*WORLDS[:3], DIFFUSE):
            case = make_votes(0, [window], world, 200)
            truth = max(errors(*case)[:2])
            made = prepare(case[0], flatten(*case[:2]), case[2].chain(), case[0].resolutions)
            warns = auditing.audit(WindowEngine(made), np.random.default_rng(0)).warns
            if truth > 0.01:
                large.append(warns)
            if truth < 0.005:
                small.append(warns)
    assert len(large) >= 3
    assert len(small) >= 3
    assert np.mean(large) >= 0.95
    assert np.mean(small) <= 0.05


# --- what users see ------------------------------------------------------------------------------------------------
def test_a_model_says_how_its_labels_are_found() -> None:
    window = Window(size=30, stride=5, link="majority")
    votes, _, prior = make_votes(0, [window, window], WORLDS[0], 400, n_sequences=3)
    model = dg.LabelModel(prior=prior, dependencies=()).fit(votes)
    notes = [note for note in model.diagnostics_.notes if note.kind == "inference"]
    assert len(notes) == 1
    assert "labels near window30 (size=30, stride=5, link='majority') are approximate, by about 0.0" in notes[0].text
    assert audit_answers(model.law_, votes) is not None
    with pytest.raises(dg.TaskError, match="exact inference takes at most 4096 states"):
        dg.LabelModel(prior=prior, dependencies=(), inference="exact").fit(votes)
    with pytest.raises(GraphError, match="inference= must be 'auto'"):
        dg.LabelModel(prior=prior, dependencies=(), inference="fast").fit(votes)


def test_exact_models_say_nothing() -> None:
    window = Window(size=30, link="majority")
    votes, parameters, prior = make_votes(0, [window, window], WORLDS[0], 300)
    model = dg.LabelModel(prior=prior, dependencies=(), inference="approximate").fit(votes)
    assert not [note for note in model.diagnostics_.notes if note.kind == "inference"]
    law = Law(parameters=parameters, prior=prior)
    assert audit_answers(law, votes) is None
    assert engine.posterior(votes, parameters, prior).exact


def test_small_products_stay_exact_unless_asked_otherwise() -> None:
    votes, parameters, prior = make_votes(0, [Window(size=4, stride=2)], WORLDS[0], 60)
    made = prepare(votes, flatten(votes, parameters), prior.chain(), votes.resolutions)
    assert isinstance(choose_engine(made), chain.ProductEngine)
    assert isinstance(choose_engine(made, "approximate"), WindowEngine)


WHOLES = (Sequence(link="majority"), Spans("piece", link="majority"))


def mixed_lengths(whole):
    """Sequences that the product is too wide for, and others, in any order."""
    rng = np.random.default_rng(0)
    lengths = np.array([300, 4, 20, 400, 0, 7, 350, 30])
    pieces = {"piece": [[(0, n)] if n else [] for n in lengths.tolist()]} if isinstance(whole, Spans) else {}
    window = Window(size=5, link="majority")
    _, parameters, prior = make_votes(0, [WHOLES[0], window], WORLDS[0], 20)
    factors = tuple(replace(one, resolution=whole) if one.source == "w0" else one for one in parameters.factors)
    where = {"a": Element(), "b": Element(), "w0": whole, "w1": window}
    # As many pieces as sequences with elements, so that both ways are laid out alike.
    sizes = {name: Layout.of(WHOLES[0] if one == whole else one, lengths).n_tasks for name, one in where.items()}
    columns = {name: rng.choice([-1, 0, 1], size).astype(np.int8) for name, size in sizes.items()}
    votes = dg.Votes.from_tasks(columns, lengths, resolutions=where, spans=pieces)
    return votes, replace(parameters, factors=factors), prior


@pytest.mark.parametrize("whole", WHOLES)
def test_a_sequence_gets_the_same_answer_alone_and_among_others(whole) -> None:
    """What is exact alone is exact in a batch, and what is approximate stays so: each is judged by its own shape."""
    votes, parameters, prior = mixed_lengths(whole)
    made = prepare(votes, flatten(votes, parameters), prior.chain(), votes.resolutions)
    chosen = choose_engine(made)
    assert isinstance(chosen, MixedEngine)
    assert chosen.small.tolist() == [False, True, True, False, True, True, False, True]
    together, best = engine.posterior(votes, parameters, prior), engine.decode(votes, parameters, prior)
    assert not together.exact
    for place in range(votes.n_sequences):
        alone = engine.posterior(votes[[place]], parameters, prior)
        assert alone.exact == chosen.small[place]
        np.testing.assert_allclose(alone.log_likelihood, together.log_likelihood[[place]], rtol=0, atol=1e-9)
        for one in votes.resolutions:
            rows = votes.layout(one).rows(place)
            np.testing.assert_allclose(alone.probabilities[one], together.probabilities[one][rows], rtol=0, atol=1e-9)
        rows = votes.layout("element").rows(place)
        np.testing.assert_array_equal(engine.decode(votes[[place]], parameters, prior), best[rows])


@pytest.mark.parametrize("whole", WHOLES)
def test_counts_and_draws_of_a_mixed_batch_are_those_of_its_sequences(whole) -> None:
    votes, parameters, prior = mixed_lengths(whole)
    together = engine.expected_counts(votes, parameters, prior)
    alone = [engine.expected_counts(votes[[place]], parameters, prior) for place in range(votes.n_sequences)]
    np.testing.assert_allclose(together.transitions, sum(one.transitions for one in alone), rtol=1e-9)
    for name, tables in together.factors.items():
        for key, table in tables.items():
            np.testing.assert_allclose(table, sum(one.factors[name][key] for one in alone), rtol=0, atol=1e-7)
    drawn = engine.sample(votes, parameters, prior, np.random.default_rng(0), 2_000)
    shares = engine.posterior(votes, parameters, prior).probabilities[Element()][:, 1]
    assert np.abs((drawn == 1).mean(axis=0) - shares).mean() < 0.02


def test_how_much_is_asked_at_once_decides_nothing() -> None:
    """Many sequences with a product that is wide, but not too wide, are as exact as one of them."""
    windows = [Window(size=15, link="majority"), Window(size=20, link="majority")]
    votes, parameters, prior = make_votes(0, windows, WORLDS[0], 4_000)
    many = dg.Votes.from_tasks(
        {name: np.tile(votes.column(name), 400) for name in votes.source_names},
        [4_000] * 400,
        resolutions={info.name: info.resolution for info in votes.sources},
    )
    for some in (votes, many):
        made = prepare(some, flatten(some, parameters), prior.chain(), some.resolutions)
        assert isinstance(choose_engine(made), chain.ProductEngine)

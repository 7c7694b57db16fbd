"""Tables by position where closed forms have none: what is learned, and sources that repeat themselves."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest

import dugong as dg
from dugong.estimators import EM
from dugong.exceptions import GraphError
from dugong.fit.positions import uneven
from dugong.infer.answers import posterior
from dugong.law import Law
from dugong.shards import VoteShards, fit_shards
from dugong.tasks import Element
from dugong.votes.concat import concat
from dugong.worlds import Block, TemporalBlock, World, accurate, confusion, temporal

PRIOR = dg.priors.Markov(initial=[0.95, 0.05], transition=[[0.75, 0.25], [0.1, 0.9]])


def world(seed, *, repeats=0, differ=True, n_sources=5, length=6) -> World:
    """Sources whose tables differ by position, but for some that repeat themselves."""
    rng = np.random.default_rng(seed)

    def table():
        return accurate(*rng.uniform(0.6, 0.95, 2), 0.1)

    blocks = []
    for j in range(n_sources - repeats):
        tables = np.stack([table() for _ in range(length)])
        blocks.append(Block(names=(f"s{j}",), table=tables if differ else tables[0], by_position=differ))
    for j in range(n_sources - repeats, n_sources):
        first, step = temporal(table(), 0.6)
        blocks.append(TemporalBlock(name=f"s{j}", first=first, step=step))
    return World(prior=PRIOR, blocks=tuple(blocks), lengths=length)


def ratios(one, votes, truth, *settings) -> list[float]:
    """Brier scores of labels over the one of who knows the law."""
    gold = truth["element"] == 1
    best = posterior(Law(parameters=one.parameters(), prior=one.prior), votes)[Element()]
    found = [best, *(dg.LabelModel(**given).fit(votes).predict_proba(votes) for given in settings)]
    scores = [float(((labels[:, 1] - gold) ** 2).mean()) for labels in found]
    return [score / scores[0] for score in scores[1:]]


@pytest.mark.parametrize("given", [{}, {"dependencies": ()}, {"prior": PRIOR}], ids=["nothing", "graph", "prior"])
def test_tables_by_position_with_something_learned(given) -> None:
    """A graph is taken at its word, and one table for all positions with it; learned defaults see what differs here."""
    one = world(1001)
    votes, truth = one.sample(2000, rng=1)
    by_position, tied = ratios(one, votes, truth, {**given, "sharing": "task"}, given)
    assert by_position < 1.04
    assert tied > 1.12 if "dependencies" in given else tied < 1.04


def test_what_differs_by_position_is_said() -> None:
    votes, _ = world(1001).sample(2000, rng=1)
    model = dg.LabelModel().fit(votes)
    (note,) = (note for note in model.diagnostics_.notes if note.kind == "positions")
    assert "accuracies differ by position" in note.text
    assert note.size > 2
    assert model.accuracies_["s0"].shape == (6, 2, 3)
    assert model.predict_proba(votes[:3]).shape == (18, 2)


@pytest.mark.parametrize("seed", range(4))
def test_agreement_is_uneven_only_where_positions_differ(seed) -> None:
    """The look that comes before a fit by position: labels that last are no reason for one."""
    steady = dg.priors.Markov(positive=0.3, stay=0.9)
    assert uneven(replace(world(seed), prior=steady).sample(2000, rng=seed)[0])
    assert not uneven(replace(world(seed, differ=False), prior=steady).sample(2000, rng=seed)[0])


def test_positions_are_found_over_shards_as_in_memory(tmp_path) -> None:
    """Under a trusted model too: the look at agreement is one at the votes, not at the specimen that shards show."""
    steady = dg.priors.Markov(positive=0.3, stay=0.9)
    votes, _ = replace(world(1001), prior=steady).sample(2000, rng=1)
    shards = VoteShards.write([votes[:1000], votes[1000:]], tmp_path / "votes")
    direct, streamed = dg.LabelModel().fit(votes), fit_shards(dg.LabelModel(), shards)
    for model in (direct, streamed):
        assert any(note.kind == "positions" for note in model.diagnostics_.notes)
    np.testing.assert_allclose(streamed.predict_proba(votes), direct.predict_proba(votes), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_errors_that_sources_share_are_not_taken_for_positions(seed) -> None:
    """Three sources read what is not the label a fourth of the time; positions are alike, and sequences short."""
    rng = np.random.default_rng(seed)
    truth = rng.random((800, 1)) < 0.4
    truth = (truth ^ (rng.random((800, 6)) < 0.2)).ravel()
    seen = np.where(rng.random(4800) < 0.25, ~truth, truth)
    columns = [np.where(rng.random(4800) < 0.9, seen if j < 3 else truth, rng.random(4800) < 0.4) for j in range(5)]
    votes = dg.Votes.from_dense(np.stack(columns, axis=1).astype(np.int8) * 2 - 1, lengths=[6] * 800)
    model = dg.LabelModel().fit(votes)
    assert not any(note.kind == "positions" for note in model.diagnostics_.notes)


def test_positions_that_are_alike_have_one_table() -> None:
    one = world(3, differ=False)
    votes, truth = one.sample(1000, rng=3)
    by_position, tied = ratios(one, votes, truth, {"sharing": "task"}, {})
    assert by_position < tied + 0.01


@pytest.mark.parametrize("estimator", ["centred", "em"])
def test_sources_that_repeat_themselves_keep_that_when_tables_are_by_position(estimator) -> None:
    one = world(5, repeats=2, n_sources=6)
    votes, truth = one.sample(3000, rng=5)
    told = {"prior": PRIOR, "dependencies": one.dependencies, "estimator": estimator}
    alone = {"prior": PRIOR, "dependencies": ()}
    by_position, tied, ignored = ratios(
        one, votes, truth, {**told, "sharing": "task"}, told, {**alone, "sharing": "task"}
    )
    assert by_position < 1.03
    assert min(tied, ignored) > by_position + 0.05


def test_one_source_by_position_that_repeats_itself() -> None:
    one = world(6, repeats=1)
    votes, _ = one.sample(300, rng=6)
    model = dg.LabelModel(prior=PRIOR, dependencies=one.dependencies, sharing={"s4": "task"}).fit(votes)
    assert model.accuracies_["s4"].shape == (6, 2, 3)
    assert model.accuracies_["s0"].shape == (2, 3)
    assert model.standard_errors_.accuracies["s4"].shape == (6, 2, 3)


def test_three_classes() -> None:
    rng = np.random.default_rng(0)
    prior = dg.priors.Markov(initial=[0.5, 0.3, 0.2], transition=np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    blocks = tuple(
        Block(
            names=(f"s{j}",),
            table=np.stack([confusion(3, rng.uniform(0.55, 0.95, 3), 0.1) for _ in range(4)]),
            by_position=True,
        )
        for j in range(5)
    )
    one = World(prior=prior, blocks=blocks, lengths=4)
    votes, truth = one.sample(3000, rng=0)
    gold = truth["element"][:, np.newaxis] == np.array(votes.classes)
    best = posterior(Law(parameters=one.parameters(), prior=prior), votes)[Element()]
    tied, by_position = (
        dg.LabelModel(dependencies=(), sharing=sharing).fit(votes).predict_proba(votes) for sharing in ("tied", "task")
    )
    tied, by_position, best = (((labels - gold) ** 2).sum() for labels in (tied, by_position, best))
    assert by_position < 1.03 * best < tied


def test_every_verb_knows_repetition_by_position(tmp_path) -> None:
    one = world(7, repeats=1)
    votes, _ = one.sample(60, rng=7)
    model = dg.LabelModel(prior=PRIOR, dependencies=one.dependencies, sharing="task").fit(votes)
    found = model.predict_proba(votes)
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(votes), found)
    explained = model.explain(votes, sequence=3, task=2)
    np.testing.assert_allclose(explained.probability, found[3 * 6 + 2, 1], rtol=1e-9)
    assert model.report(votes, n_sequences=2).versus
    assert "s4" in str(model.summary())


def test_shards_and_memory_give_the_same(tmp_path) -> None:
    one = world(8, repeats=1)
    votes, _ = one.sample(90, rng=8)
    pieces = [votes[np.arange(start, 90, 3)] for start in range(3)]
    shards, whole = VoteShards.write(pieces, tmp_path / "votes"), concat(pieces)
    settings = {"prior": PRIOR, "dependencies": one.dependencies, "sharing": "task"}
    streamed, direct = fit_shards(dg.LabelModel(**settings), shards), dg.LabelModel(**settings).fit(whole)
    for name, table in direct.accuracies_.items():
        np.testing.assert_allclose(streamed.accuracies_[name], table, rtol=0, atol=1e-8)


def test_full_tables_are_still_refused_where_anything_is_learned() -> None:
    votes, _ = world(9).sample(20, rng=9)
    with pytest.raises(GraphError, match='not sharing="full"'):
        dg.LabelModel(sharing="full").fit(votes)


def test_all_sources_over_whole_patterns_by_em() -> None:
    """Closed forms need a source that is not full; EM begins with tables in which every vote reads its own task."""
    blocks = tuple(Block(names=(f"s{j}",), table=accurate(0.7 + 0.05 * j, 0.85)) for j in range(4))
    one = World(prior=dg.priors.Markov(positive=0.3, stay=0.8), blocks=blocks, lengths=3)
    votes, truth = one.sample(6000, rng=0)
    full = {"prior": one.prior, "dependencies": (), "sharing": "full"}
    by_em, by_paper = ratios(one, votes, truth, {**full, "estimator": EM(max_iter=10)}, {**full, "estimator": "paper"})
    assert by_em < 1.12
    assert by_em < by_paper


@pytest.mark.parametrize("estimator", ["paper", "em"])
def test_all_sources_over_patterns_of_six_tasks_in_bounded_time(estimator) -> None:
    """The largest tables there are: 64 patterns of labels by 729 of votes, for each of four sources."""
    blocks = tuple(Block(names=(f"s{j}",), table=accurate(0.7 + 0.05 * j, 0.85)) for j in range(4))
    one = World(prior=dg.priors.Markov(positive=0.3, stay=0.8), blocks=blocks, lengths=6)
    votes, truth = one.sample(1000, rng=0)
    begin = process_time()
    model = dg.LabelModel(prior=one.prior, dependencies=(), sharing="full", estimator=estimator).fit(votes)
    found = model.predict_proba(votes)
    assert process_time() - begin < 30
    assert ((found[:, 1] > 0.5) == (truth["element"] == 1)).mean() > 0.85

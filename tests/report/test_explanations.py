"""What a report says about a label is what the model says about it: the same split, at every resolution."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.model import LabelModel
from dugong.report import summarize
from dugong.tasks import Element, Spans
from dugong.worlds import Block, Shots, World, accurate, sticky
from reports import binary_case, many_case, some_tasks, split


@pytest.mark.parametrize("lane", [0, 1, 2], ids=["element", "overlapping windows", "sequence"])
def test_binary_explanations_are_those_of_the_model(lane, rng):
    case = binary_case()
    found = summarize(case.model, case.votes, n_sequences=case.votes.n_sequences).sequences
    tracks = {track.place: track for track in found.tracks}
    resolution = case.votes.resolutions[lane]
    for sequence, task in some_tasks(case.votes, lane, 8, rng):
        expected = case.model.explain(case.votes, sequence, task, resolution)
        got = split(found, tracks[sequence], lane, task, target=1)
        assert got.total == pytest.approx(expected.log_odds, abs=1e-9)
        assert got.prior == pytest.approx(expected.prior, abs=1e-9)
        assert got.own == pytest.approx({one.source: one.log_odds for one in expected.own_votes}, abs=1e-9)
        assert got.neighbours == pytest.approx(expected.neighbours, abs=1e-9)


def test_explanations_of_learned_classes_are_those_of_the_model(rng):
    case = many_case()
    found = summarize(case.model, case.votes).sequences
    tracks = {track.place: track for track in found.tracks}
    for sequence, task in some_tasks(case.votes, 0, 8, rng):
        expected = case.model.explain(case.votes, sequence, task)
        got = split(found, tracks[sequence], 0, task, target=expected.target - 1)
        assert got.own == pytest.approx({one.source: one.log_odds for one in expected.own_votes}, abs=1e-9)
        assert got.prior == pytest.approx(expected.prior, abs=1e-9)
        assert got.neighbours == pytest.approx(expected.neighbours, abs=1e-6)
        assert got.averaging == pytest.approx(expected.averaging, abs=1e-6)
        assert got.total == pytest.approx(expected.log_odds, abs=1e-6)


def test_tables_by_position_and_given_spans_are_explained_too(rng):
    shots = Spans(name="shot", link="majority")
    blocks = tuple(Block(names=(f"s{j}",), table=accurate(0.7 + 0.04 * j, 0.8, 0.1)) for j in range(4))
    blocks += (Block(names=("shot",), table=accurate(0.8, 0.8, 0.1), resolution=shots),)
    world = World(prior=sticky(0.3, 0.8), blocks=blocks, lengths=12, spans=Shots(mean=4))
    votes, _ = world.sample(300, rng=1)
    model = LabelModel(prior=world.prior, dependencies=(), sharing={"s0": "task"}).fit(votes)
    found = summarize(model, votes, n_sequences=300).sequences
    assert found.voters[0].evidence.shape[0] == 12
    tracks = {track.place: track for track in found.tracks}
    for lane in (0, 1):
        for sequence, task in some_tasks(votes, lane, 5, rng):
            expected = model.explain(votes, sequence, task, votes.resolutions[lane])
            got = split(found, tracks[sequence], lane, task, target=1)
            assert got.own == pytest.approx({one.source: one.log_odds for one in expected.own_votes}, abs=1e-9)
            assert got.neighbours == pytest.approx(expected.neighbours, abs=1e-9)


def test_a_source_that_was_not_asked_says_nothing():
    case = binary_case()
    fewer = case.votes.select(sources=[name for name in case.votes.source_names if name != "voice"])
    found = summarize(case.model, fewer, n_sequences=3).sequences
    assert "voice" not in {voter.name for voter in found.voters}
    track = found.tracks[0]
    expected = case.model.explain(fewer, track.place, 4)
    got = split(found, track, 0, 4, target=1)
    assert got.own == pytest.approx({one.source: one.log_odds for one in expected.own_votes}, abs=1e-9)
    assert got.total == pytest.approx(expected.log_odds, abs=1e-9)


def test_tracks_hold_the_labels_of_the_model():
    case = binary_case()
    found = summarize(case.model, case.votes, case.gold, n_sequences=5).sequences
    labels, decoded = case.model.predict_proba(case.votes), case.model.decode(case.votes)
    for track in found.tracks:
        rows = case.votes.layout(Element()).rows(track.place)
        np.testing.assert_allclose(np.exp(track.lanes[0].log_probability), labels[rows], atol=1e-12)
        assert np.array_equal(2 * track.decoded - 1, decoded[rows])
        assert np.array_equal(2 * track.gold - 1, case.gold[rows])

"""The named worlds, and the broadcasts of the demo."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dugong import worlds
from dugong.sources import apply
from dugong.tasks import Element, Sequence, Window
from dugong.worlds import STANDARD, standard, tvnews_sources

EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.mark.parametrize("name", STANDARD)
def test_every_standard_world_samples_and_has_parameters(name):
    world = STANDARD[name]()
    assert world.name == name
    votes, labels = world.sample(300, rng=1)
    assert votes.source_names == world.source_names
    assert len(labels["element"]) == votes.n_elements
    assert set(world.parameters().sources) == set(world.source_names)
    again = STANDARD[name]().sample(300, rng=1)[0]
    assert all((a == b).all() for a, b in zip(votes.columns, again.columns, strict=True))


def test_lopsided_sources_are_as_described():
    tables = worlds.lopsided(10, seed=4).accuracies().values()
    for table in tables:
        abstain = table[:, 2]
        right = np.array([table[0, 0], table[1, 1]]) / (1 - abstain)
        assert ((right >= 0.6) & (right <= 0.9)).all()
        assert ((abstain >= 0) & (abstain <= 0.5)).all()


def test_an_element_keeps_its_label_or_is_redrawn():
    prior = worlds.sticky(0.3, 0.8)
    assert prior.stay == pytest.approx(0.8 + 0.2 * 0.3)
    assert prior.transition[0][1] == pytest.approx(0.2 * 0.3)


def test_the_multiresolution_world_of_the_quality_benchmark():
    world = worlds.multiresolution()
    where = [info.resolution for info in world.sources]
    assert where.count(Element()) == 7
    assert {Window(2, link="majority"), Window(3, link="majority"), Sequence("majority")} < set(where)
    assert world.dependencies == [("frame5", "copy5")]


def test_a_million_sequences_are_sampled_in_seconds():
    world = worlds.lopsided(10)
    world.sample(10)
    began = time.perf_counter()
    votes, _ = world.sample(1_000_000, 5)
    assert time.perf_counter() - began < 30
    assert votes.n_elements == 5_000_000


# --- TV news -----------------------------------------------------------------------------------------------


def test_real_sources_read_what_the_world_says():
    shows = standard.broadcasts(60, np.arange(60), rng=2)
    votes = apply(tvnews_sources.SOURCES, shows.frames, progress=False)
    assert votes.source_names == shows.votes.source_names
    for name in votes.source_names:
        assert (votes.column(name) == shows.votes.column(name)).all(), name


def test_three_percent_of_the_frames_are_interviews():
    shows = standard.broadcasts(2000, 30, rng=0)
    assert (shows.labels["element"] > 0).mean() == pytest.approx(0.03, abs=0.008)
    assert len(shows.frames) == 2000
    frame = shows.frames["broadcast-0000"][0]
    assert frame.second == 0
    assert 0 <= frame.brightness <= 1
    assert frame.caption


def test_sources_are_better_than_chance_at_three_resolutions():
    world = worlds.tv_news()
    assert {info.resolution.kind for info in world.sources} == {"element", "window", "sequence"}
    for table in world.accuracies().values():
        assert table[1, 1] - table[0, 1] > 0.25

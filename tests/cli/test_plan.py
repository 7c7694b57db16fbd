"""How many sequences are needed, by simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from command_line import Command
from dugong.cli.worlds import settings_of, world_of
from dugong.worlds import STANDARD, World, copying_path, lopsided, tv_news
from dugong.worlds.blocks import Block


def fitted(world: World, n_sequences: int = 3000) -> tuple[dg.LabelModel, dg.Votes]:
    votes, _ = world.sample(n_sequences, rng=5)
    return dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes), votes


def test_four_times_the_sequences_for_half_the_width(cli: Command) -> None:
    wide = cli("plan", "lopsided", "--sequences", 500, "--repeats", 4, "--width", 0.1, "--json").json
    narrow = cli("plan", "lopsided", "--sequences", 500, "--repeats", 4, "--width", 0.05, "--json").json
    assert narrow["needed"] == pytest.approx(4 * wide["needed"], rel=0.02)
    assert narrow["bound"] > 100 * narrow["needed"]
    assert narrow["needed"] == max(one["needed"] for one in narrow["sources"])


def test_the_plan_comes_true(cli: Command) -> None:
    plan = cli("plan", "lopsided", "--sequences", 400, "--repeats", 12, "--width", 0.05, "--json").json
    again = cli("plan", "lopsided", "--sequences", plan["needed"], "--repeats", 12, "--seed", 9, "--json").json
    widest = max(one["half_width"] for one in again["sources"])
    assert 0.025 < widest < 0.1


@pytest.mark.parametrize("name", STANDARD)
def test_a_fitted_model_is_a_world(name: str) -> None:
    model, votes = fitted(STANDARD[name]())
    world = world_of(model, votes.lengths)
    assert sorted(world.source_names) == sorted(votes.source_names)
    for source, factor in zip(model.parameters_.sources, model.parameters_.factors, strict=True):
        again = world.parameters()[source]
        assert type(again) is type(factor)
    again_votes, _ = world.sample(3000, rng=1)
    refitted = settings_of(model).fit(again_votes)
    for source, table in model.accuracies_.items():
        np.testing.assert_allclose(refitted.accuracies_[source], table, atol=0.3)


def test_dependent_sources_are_put_together_again() -> None:
    base = lopsided(n_sources=6)
    table = np.asarray(base.blocks[0].table)
    path = copying_path([table] * 3, 0.6)
    names = ("s0", "s1", "s2")
    block = Block(names=names, table=path, edges=(("s0", "s1"), ("s1", "s2")))
    model, _ = fitted(World(prior=base.prior, blocks=(block, *base.blocks[3:]), lengths=5), 20_000)
    world = world_of(model, 5)
    joint = world.block("s0")
    assert isinstance(joint, Block)
    assert set(joint.names) == set(names)
    np.testing.assert_allclose(joint.marginal(names)[0], path, atol=0.06)


def test_plan_of_a_model_file(cli: Command, tmp_path: Path) -> None:
    model, votes = fitted(tv_news(), 400)
    model.save(tmp_path / "model.json")
    votes.write(tmp_path / "votes.parquet")
    outcome = cli("plan", tmp_path / "model.json", "--votes", tmp_path / "votes.parquet", "--repeats", 3)
    assert outcome.code == 0, outcome.err
    assert "sequences for +-0.05" in outcome.out
    assert "Theorem 1 of the paper, a worst case, asks for" in outcome.out
    assert "interview_programme" in outcome.out


def test_what_cannot_be_planned(cli: Command, tmp_path: Path) -> None:
    outcome = cli("plan", "atlantis")
    assert (outcome.code, "give a model.json or one of the worlds" in outcome.err) == (2, True)
    outcome = cli("plan", tmp_path / "absent.json")
    assert (outcome.code, "there is no file" in outcome.err) == (1, True)
    votes = dg.Votes.from_tasks(
        {f"s{j}": np.array([1, -1, 1], dtype=np.int8) for j in range(3)},
        lengths=[4, 4],
        resolutions={f"s{j}": dg.Spans(name="shot") for j in range(3)},
        spans={"shot": [[(0, 2), (2, 4)], [(0, 4)]]},
    )
    known = {f"s{j}": [[0.8, 0.2, 0.0], [0.3, 0.7, 0.0]] for j in range(3)}
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.7), dependencies=(), accuracies=known).fit(votes)
    model.save(tmp_path / "model.json")
    outcome = cli("plan", tmp_path / "model.json")
    assert outcome.code == 1
    assert "spans cannot be simulated" in outcome.err

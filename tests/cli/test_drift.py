"""The verb `drift`, and what `run` says of new sequences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.drift import changed, draw

import dugong as dg
from dugong.cli.findings import drift_lines
from dugong.worlds.standard import lopsided


@pytest.fixture
def stream(tmp_path):
    world = lopsided(8, seed=2)
    model = dg.LabelModel(prior=world.prior, dependencies=()).fit(world.sample(600, rng=1)[0])
    model.save(tmp_path / "model.json")
    world.sample(200, rng=2)[0].write(tmp_path / "same.parquet")
    changed(world, 3).sample(300, rng=3)[0].write(tmp_path / "other.parquet")
    return tmp_path


def test_alarms_in_words_as_json_and_by_exit_code(stream, cli):
    model = str(stream / "model.json")
    calm = cli("drift", model, str(stream / "same.parquet"), "--strict")
    assert calm.code == 0
    assert "Nothing changed by more than chance in 200 sequences" in calm.out
    found = cli("drift", model, str(stream / "other.parquet"), "--json")
    assert found.code == 0
    assert found.json["alarm"] is True
    assert "s3" in {one["where"] for one in found.json["changes"] if one["alarm"]}
    assert cli("drift", model, str(stream / "other.parquet"), "--strict").code == 1


def test_a_folder_of_shards_is_compared_too(stream, cli):
    from dugong.shards import VoteShards

    votes = dg.Votes.read(stream / "other.parquet")
    VoteShards.write([votes[:150], votes[150:]], stream / "shards")
    assert cli("drift", str(stream / "model.json"), str(stream / "shards"), "--strict").code == 1


def test_lines_of_a_run_need_new_sequences_of_known_sources(stream):
    model, votes = dg.LabelModel.load(stream / "model.json"), dg.Votes.read(stream / "other.parquet")
    assert any("s3" in line and "new sequences" in line for line in drift_lines(model, votes))
    assert drift_lines(model, votes[:10]) == []
    assert drift_lines(model, None) == []
    more = replace(
        votes,
        sources=(*votes.sources, dg.votes.SourceInfo(name="new")),
        columns=(*votes.columns, np.zeros(votes.n_elements, np.int8)),
    )
    assert drift_lines(model, more) == drift_lines(model, votes)


def test_a_change_is_found_and_no_change_is_not():
    """The short form of `make bench-drift`."""
    found = np.array([draw(seed) for seed in range(12)]).sum(axis=0)
    assert found[0] >= 11
    assert found[1] <= 1

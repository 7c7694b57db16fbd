"""Windows over shards, here and on clusters: the grouped pass and propagation give the labels that one piece gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dugong as dg
from dugong.engines import Engine
from dugong.shards import VoteShards, fit_shards, label_shards
from dugong.votes.concat import concat
from dugong.worlds import Block, World, accurate, sticky

pytestmark = pytest.mark.filterwarnings("default")  # the engines and what they import warn about themselves
# One group of windows, which is exact; windows that overlap; and two resolutions of which one overlaps.
WINDOWS = {
    "apart": [dg.Window(size=16, link="majority")],
    "sliding": [dg.Window(size=12, stride=2, link="majority")],
    "several": [dg.Window(size=16, stride=4, link="majority"), dg.Sequence(link="majority")],
}


def make_shards(windows: list[dg.Resolution], folder: Path) -> tuple[VoteShards, dg.Votes, World]:
    blocks = [Block(names=(f"s{j}",), table=accurate(0.7 + 0.05 * j, 0.75, 0.1, 0.2)) for j in range(3)]
    blocks += [
        Block(names=(f"w{j}",), table=accurate(0.85, 0.8, 0.1, 0.1), resolution=where)
        for j, where in enumerate(windows)
    ]
    world = World(prior=sticky(0.3, 0.85), blocks=tuple(blocks), lengths=lambda n, rng: rng.integers(30, 70, n))
    parts = [concat([world.sample(12, rng=seed)[0]], keys=[f"day{seed}"]) for seed in range(4)]
    return VoteShards.write(parts, folder), concat(parts), world


@pytest.mark.parametrize("windows", list(WINDOWS))
def test_windows_on_an_engine_are_labelled_as_in_memory(engine: Engine, windows: str, tmp_path: Path) -> None:
    shards, whole, world = make_shards(WINDOWS[windows], tmp_path / "votes")
    settings = {"prior": world.prior, "dependencies": (), "inference": "auto"}
    here = dg.LabelModel(**settings).fit(whole)
    about = [note for note in here.diagnostics_.notes if note.kind == "inference"]
    assert bool(about) == (windows != "apart")  # otherwise propagation would not be what is tested
    there = fit_shards(dg.LabelModel(**settings), shards, engine=engine)
    for name, table in here.accuracies_.items():
        np.testing.assert_allclose(there.accuracies_[name], table, rtol=0, atol=1e-9)
    label_shards(here, shards, tmp_path / "labels", engine=engine)
    rows = pq.read_table(sorted((tmp_path / "labels").glob("*.parquet"))).to_pylist()
    for resolution in whole.resolutions:
        name, positive = resolution.name, here.predict_proba(whole, resolution)[:, 1]
        found = [row["p_1"] for row in rows if row["resolution"] == name]
        np.testing.assert_allclose(found, positive, rtol=0, atol=1e-9)
        np.testing.assert_allclose(there.predict_proba(whole, resolution)[:, 1], positive, rtol=0, atol=1e-9)

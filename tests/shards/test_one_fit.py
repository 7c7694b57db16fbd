"""The one fit: whatever is given or learned, votes in shards and votes in memory give the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.shards import Shard, VoteShards, fit_shards
from dugong.votes.concat import concat
from dugong.worlds import Block, World, accurate, confusion, copying_pair, sticky

CHAIN = dg.priors.Markov(initial=[0.5, 0.3, 0.2], transition=[[0.9, 0.06, 0.04], [0.08, 0.88, 0.04], [0.1, 0.05, 0.85]])
TWO = World(
    prior=sticky(0.3, 0.8),
    blocks=(
        *(Block(names=(f"s{j}",), table=accurate(0.75 + 0.04 * j, 0.8, 0.1, 0.2)) for j in range(3)),
        Block(names=("one", "two"), table=copying_pair(accurate(0.8, 0.7, 0.3, 0.3), 0.6)),
        Block(names=("window",), table=accurate(0.8, 0.85, 0.1), resolution=dg.Window(4, 3, "any")),
    ),
    lengths=lambda n, rng: rng.integers(1, 12, n),
)
THREE = World(
    prior=CHAIN,
    blocks=tuple(Block(names=(f"s{j}",), table=confusion(3, 0.6 + 0.06 * j, 0.1)) for j in range(4)),
    lengths=lambda n, rng: rng.integers(1, 12, n),
    class_names=("deep", "light", "wake"),
)
PAIR = [("one", "two")]
CASES = {
    "em": (TWO, {"prior": TWO.prior, "dependencies": PAIR, "estimator": "em"}),
    "learned prior": (TWO, {"dependencies": PAIR}),
    "repeating": (
        TWO,
        {"prior": TWO.prior, "dependencies": [dg.temporal("s0")], "estimator": dg.estimators.EM(max_iter=4)},
    ),
    "classes": (THREE, {"prior": CHAIN, "dependencies": ()}),
    "classes, learned prior": (THREE, {"dependencies": [("s0", "s1")]}),
    "classes, known table": (
        THREE,
        {"prior": CHAIN, "dependencies": (), "accuracies": {"s0": confusion(3, 0.6, 0.1)}, "estimator": "em"},
    ),
}


@pytest.fixture(params=list(CASES))
def case(request, tmp_path: Path):
    world, settings = CASES[request.param]
    parts = []
    for day, seed in (("mon", 1), ("tue", 2), ("wed", 3)):
        votes, _ = world.sample(60, rng=seed)
        parts.append(concat([votes], keys=[day]))
    return settings, VoteShards.write(parts, tmp_path / "votes"), concat(parts)


def test_shards_and_memory_give_the_same_model(case) -> None:
    settings, shards, whole = case
    streamed = fit_shards(dg.LabelModel(**settings), shards)
    direct = dg.LabelModel(**settings).fit(whole)
    assert not [note for note in streamed.diagnostics_.notes if note.kind == "sample"]
    for name, table in direct.accuracies_.items():
        np.testing.assert_allclose(streamed.accuracies_[name], table, rtol=0, atol=1e-9)
        for kind in ("accuracies", "raw"):
            expected = getattr(direct.standard_errors_, kind)[name]
            np.testing.assert_allclose(getattr(streamed.standard_errors_, kind)[name], expected, rtol=0, atol=1e-9)
    for resolution in whole.resolutions:
        expected = direct.predict_proba(whole, resolution)
        np.testing.assert_allclose(streamed.predict_proba(whole, resolution), expected, rtol=0, atol=1e-9)
    assert streamed.seen_.coverage == pytest.approx(direct.seen_.coverage, abs=1e-12)
    assert (streamed.seen_.n_sequences, streamed.seen_.n_elements) == (whole.n_sequences, whole.n_elements)


def test_a_fit_that_died_in_the_middle_of_em_continues(case, tmp_path: Path, monkeypatch) -> None:
    settings, shards, _ = case
    expected = fit_shards(dg.LabelModel(**settings), shards).law_.fingerprint
    reads, read = [], Shard.read

    def dies(self: Shard) -> dg.Votes:
        reads.append(self.name)
        if len(reads) == 11:  # in the third pass
            raise KeyboardInterrupt
        return read(self)

    monkeypatch.setattr(Shard, "read", dies)
    with pytest.raises(KeyboardInterrupt):
        fit_shards(dg.LabelModel(**settings), shards, keep=tmp_path / "keep")
    assert fit_shards(dg.LabelModel(**settings), shards, keep=tmp_path / "keep").law_.fingerprint == expected
    n_reads = len(reads)
    assert fit_shards(dg.LabelModel(**settings), shards, keep=tmp_path / "keep").law_.fingerprint == expected
    assert len(reads) - n_reads <= 4  # the specimen alone


def test_em_holds_one_shard_at_a_time(case, monkeypatch) -> None:
    import weakref

    settings, shards, _ = case
    columns: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []
    read = Shard.read

    def watched(self: Shard) -> dg.Votes:
        alive.append(sum(column() is not None for column in columns))
        votes = read(self)
        columns.append(weakref.ref(votes.columns[0]))
        return votes

    monkeypatch.setattr(Shard, "read", watched)
    fit_shards(dg.LabelModel(**settings), shards)
    assert len(alive) > 3 * len(shards)
    assert max(alive) <= 1

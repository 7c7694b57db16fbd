"""A fit over shards keeps its sums: it continues, counts what is new, and gives the same bytes as one without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dugong as dg
from dugong.shards import VoteShards, apply_shards, fit_shards, label_shards, summarize_shards
from dugong.shards.fitting import Kept
from dugong.shards.folder import Shard

PRIOR = dg.priors.Markov(positive=0.4, stay=0.85)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that were answered by reading votes, one by one."""
    asked: list[str] = []
    read, call = Shard.read, Kept.__call__
    inside: list[str] = []

    def watched_read(self: Shard) -> dg.Votes:
        asked.extend(f"{self.name} {form}" for form in inside)
        return read(self)

    def watched_call(self: Kept, shard: Shard) -> object:
        inside.append(self.form.name)
        try:
            return call(self, shard)
        finally:
            inside.pop()

    monkeypatch.setattr(Shard, "read", watched_read)
    monkeypatch.setattr(Kept, "__call__", watched_call)
    return asked


def fit(shards: VoteShards, file: Path, keep: object) -> bytes:
    model = dg.LabelModel(prior=PRIOR, dependencies=[("s0", "s1")])
    fit_shards(model, shards, keep=keep).save(file)
    return file.read_bytes()


def test_a_fit_that_died_continues(parts: list[dg.Votes], tmp_path: Path, counted: list[str], monkeypatch) -> None:
    shards, keep = VoteShards.write(parts, tmp_path / "votes"), tmp_path / "model.parts"
    expected = fit(shards, tmp_path / "plain.json", None)
    read = Shard.read

    def dies(self: Shard) -> dg.Votes:
        if self.name == "part-00004":
            raise KeyboardInterrupt
        return read(self)

    with monkeypatch.context() as patch:
        patch.setattr(Shard, "read", dies)
        with pytest.raises(KeyboardInterrupt):
            fit(shards, tmp_path / "kept.json", keep)
    counted.clear()
    assert fit(shards, tmp_path / "kept.json", keep) == expected
    assert counted == [
        *(f"part-{n:05d} moments" for n in (4, 5)),
        *(f"part-{n:05d} balance" for n in range(6)),
        *(f"part-{n:05d} counts" for n in range(6)),
    ]
    counted.clear()
    assert fit(shards, tmp_path / "again.json", keep) == expected
    assert counted == []


def test_new_shards_are_counted_alone_and_lost_ones_forgotten(
    parts: list[dg.Votes], tmp_path: Path, counted: list[str]
) -> None:
    keep = tmp_path / "keep"
    fit(VoteShards.write(parts[:4], tmp_path / "votes"), tmp_path / "a.json", keep)
    more = VoteShards.write(parts, tmp_path / "votes")
    counted.clear()
    assert fit(more, tmp_path / "a.json", keep) == fit(more, tmp_path / "b.json", None)
    assert [one for one in counted if "moments" in one] == ["part-00004 moments", "part-00005 moments"]
    fewer = VoteShards.write(parts[:2], tmp_path / "votes")
    assert fit(fewer, tmp_path / "a.json", keep) == fit(fewer, tmp_path / "b.json", None)
    assert {file.name.partition(".")[0] for file in keep.iterdir()} == {"part-00000", "part-00001"}


def test_damaged_sums_and_changed_votes_are_counted_again(
    parts: list[dg.Votes], tmp_path: Path, counted: list[str]
) -> None:
    shards, keep = VoteShards.write(parts, tmp_path / "votes"), tmp_path / "keep"
    expected = fit(shards, tmp_path / "a.json", keep)
    file = keep / "part-00001.moments.npz"
    file.write_bytes(file.read_bytes()[:200])
    (keep / "part-00002.balance.json").write_bytes(b"")  # as after a power cut
    counted.clear()
    assert fit(shards, tmp_path / "a.json", keep) == expected
    assert counted == ["part-00001 moments", "part-00002 balance"]
    parts[0].write(tmp_path / "votes" / "part-00003.parquet")
    changed = VoteShards.open(tmp_path / "votes")
    counted.clear()
    assert fit(changed, tmp_path / "a.json", keep) == fit(changed, tmp_path / "b.json", None)
    assert [one for one in counted if "moments" in one] == ["part-00003 moments"]


def test_progress(parts: list[dg.Votes], tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    model = dg.LabelModel(prior=PRIOR, dependencies=())
    fit_shards(model, VoteShards.write(parts, tmp_path / "v"), progress=lambda *now: told.append(now))
    assert told == [(what, done, 6) for what in ("moments", "balance", "counts") for done in (4, 6)]


@dg.source
def high(x):
    return 1 if x > 0.3 else -1


@dg.source
def higher(x):
    return 1 if x > 0.4 else -1


@dg.source
def low(x):
    return -1 if x < -0.2 else 0


@pytest.mark.parametrize("kind", ["memory://", "local://"])
def test_the_whole_job_at_a_url(kind: str, tmp_path: Path) -> None:
    """Votes, sums, model and labels at a URL are those of a folder, and a second run does nothing."""
    import numpy as np

    from dugong.paths import place_of

    data = {f"v{n:02d}": np.random.default_rng(n).normal(size=8).tolist() for n in range(40)}

    def job(root: str, **options: object) -> tuple[int, int, str]:
        done = apply_shards([high, higher, low], data, f"{root}/votes", shard_size=7, progress=False, **options)
        model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.4), dependencies=())
        fit_shards(model, VoteShards.open(f"{root}/votes"), keep=f"{root}/keep").save(f"{root}/model.json")
        labelled = label_shards(dg.LabelModel.load(f"{root}/model.json"), done.shards, f"{root}/labels")
        return done.n_kept, labelled.n_kept, str(summarize_shards(done.shards))

    def content(root: str) -> dict[str, bytes]:
        files = [file for part in ("votes", "labels") for file in place_of(f"{root}/{part}").glob("*")]
        return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in files}

    there, here = f"{kind}{tmp_path}/there", str(tmp_path / "here")
    (tmp_path / "here").mkdir()
    first = job(there)
    assert first == job(here)
    assert job(there) == (6, 6, first[2])
    assert content(there) == content(here)
    assert place_of(f"{there}/model.json").read_bytes() == (tmp_path / "here" / "model.json").read_bytes()
    half = place_of(f"{there}/votes/part-00003.parquet")
    whole = half.read_bytes()
    half_file = tmp_path / "half"
    half_file.write_bytes(whole[:300])
    half.upload(half_file)  # an upload that died in the middle, on storage that shows it
    assert job(there)[0] == 5
    assert half.read_bytes() == whole


def test_another_process_asks_the_same_questions(parts: list[dg.Votes], tmp_path: Path) -> None:
    """Python hashes words differently in every process; a question must not depend on it, or sums are never found."""
    VoteShards.write(parts[:2], tmp_path / "votes")
    stamps = []
    for seed in ("1", "2"):
        words = ["fit", tmp_path / "votes", "-o", tmp_path / "model.json", "--prior", "markov:positive=0.4,stay=0.85"]
        command = [sys.executable, "-m", "dugong", *map(str, words), "--dependencies", "none"]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        kept = sorted((tmp_path / "model.parts").glob("*.json"))
        stamps.append({file.name: file.read_bytes() for file in kept})
    assert any("moments" in name for name in stamps[0])
    assert stamps[0] == stamps[1]

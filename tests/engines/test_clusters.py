"""Dask, Ray and Spark on real local clusters: the same votes, moments and labels as here, and deaths that are told.

`make test-engines` installs the engines and runs this with them; `make test` runs it with local processes alone.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.engines import Engine, Serial, WorkerLostError, reduce_sums
from dugong.shards import VoteShards, apply_shards, fit_shards, label_shards

DATA = {f"v{n:02d}": np.random.default_rng(n).normal(size=(30, 3)) for n in range(20)}
pytestmark = pytest.mark.filterwarnings("default")  # the engines and what they import warn about themselves


def votes_of(place: int) -> dg.source:
    @dg.source(name=f"s{place}")
    def over(x):
        return 1 if x[place] > 0.1 else -1

    return over


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_the_whole_job_leaves_the_same_bytes_as_here_straggler_or_not(engine: Engine, tmp_path: Path) -> None:
    """One sequence takes far longer than all others: it is waited for, and everything is told and done in order."""
    slow = tmp_path / "slow"

    @dg.source
    def dawdles(x, slow=str(slow)):
        if x[0] == DATA["v05"][0][0] and Path(slow).exists():
            time.sleep(1.5)
        return 1 if x[1] > 0.2 else -1

    sources = [*(votes_of(place) for place in range(3)), dawdles]  # functions of a function: shipped by value
    for name, where in (("here", Serial()), ("there", engine)):
        folder, told = tmp_path / name, []
        done = apply_shards(sources, DATA, folder / "votes", shard_size=4, progress=told.append, engine=where)
        assert [now.sequence for now in told] == list(DATA)
        assert (told[-1].done, told[-1].elements, told[-1].kept) == (20, 600, 0)
        model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.5), dependencies=())
        fit_shards(model, done.shards, engine=where, keep=folder / "keep").save(folder / "model.json")
        label_shards(model, done.shards, folder / "labels", engine=where)
        slow.touch()
    assert done.report.sources[3].seconds > 1.5
    for part in ("votes", "keep", "labels"):
        assert files_of(tmp_path / "here" / part) == files_of(tmp_path / "there" / part)
    assert (tmp_path / "here" / "model.json").read_bytes() == (tmp_path / "there" / "model.json").read_bytes()


def test_a_dead_worker_is_told_and_the_job_can_be_resumed(engine: Engine, tmp_path: Path) -> None:
    flag = tmp_path / "healed"

    @dg.source
    def deadly(x, flag=str(flag)):
        return os._exit(7) if x[0] == DATA["v13"][0][0] and not Path(flag).exists() else 1

    sources = [votes_of(0), deadly]
    with pytest.raises(dg.SourceError, match=r"while it worked on sequence 'v13' \(source 'deadly'\)"):
        apply_shards(sources, DATA, tmp_path / "a", shard_size=4, progress=False, engine=engine)
    with pytest.raises(dg.VoteError, match="not complete"):
        VoteShards.open(tmp_path / "a")
    flag.touch()
    apply_shards(sources, DATA, tmp_path / "a", shard_size=4, progress=False, engine=engine)
    apply_shards(sources, DATA, tmp_path / "b", shard_size=4, progress=False)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_a_worker_that_is_killed_once_costs_no_more_than_another_try(engine: Engine, tmp_path: Path) -> None:
    def stumble(number: int) -> int:
        mark = tmp_path / "stumbled"
        if number == 5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
        return number

    if not hasattr(engine, "retries"):  # local processes and the local mode of Spark never try again
        with pytest.raises(WorkerLostError, match=r"while it worked on 4 or 5 or 6 or 7 \(5\)"):
            reduce_sums(engine, stumble, range(12), describe=str)
    assert reduce_sums(engine, stumble, range(12), describe=str) == sum(range(12))


def test_a_shard_that_kills_every_worker_is_named_and_labelling_resumes(engine: Engine, tmp_path: Path) -> None:
    shards = apply_shards([votes_of(place) for place in range(3)], DATA, tmp_path / "votes", shard_size=5).shards
    model = fit_shards(dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.5), dependencies=()), shards)

    class Deadly(dg.LabelModel):
        def labels(self, votes: dg.Votes, *options: object) -> object:
            return os._exit(5) if "v11" in votes.sequence_ids else super().labels(votes, *options)

    deadly = Deadly(**model.get_params())
    deadly.__dict__.update(model.__dict__)
    with pytest.raises(WorkerLostError, match=r"while it worked on shard part-00002\.parquet"):
        label_shards(deadly, shards, tmp_path / "a", engine=engine)
    assert (tmp_path / "a" / "UNFINISHED").exists()
    again = label_shards(model, shards, tmp_path / "a", engine=engine)
    assert (again.n_done + again.n_kept, again.n_kept >= 1) == (4, True)
    label_shards(model, shards, tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")

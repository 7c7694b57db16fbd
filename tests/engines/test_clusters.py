"""Dask, Ray and Spark on real local clusters: the same votes, moments and labels as here, and deaths that are told.

`make test-engines` installs the engines and runs this with them; `make test` runs it with local processes alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.engines import Engine, EngineError, Serial, WorkerLostError, named_engine, reduce_sums
from dugong.shards import VoteShards, apply_shards, fit_shards, label_shards

PACKAGES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}
WANTED = ["local", *os.environ.get("DUGONG_ENGINES", "").split()]  # the variable is set by `make test-engines`
DATA = {f"v{n:02d}": np.random.default_rng(n).normal(size=(30, 3)) for n in range(20)}
pytestmark = pytest.mark.filterwarnings("default")  # the engines and what they import warn about themselves


def votes_of(place: int) -> dg.source:
    @dg.source(name=f"s{place}")
    def over(x):
        return 1 if x[place] > 0.1 else -1

    return over


@pytest.fixture(params=WANTED)
def engine(request: pytest.FixtureRequest) -> Engine:
    return named_engine(request.param, n_jobs=2)


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_results_keep_their_order_and_errors_their_type(engine: Engine) -> None:
    def half(number: int) -> float:
        return 10 / number

    assert list(engine.map(half, range(1, 12))) == [10 / number for number in range(1, 12)]
    with pytest.raises(ZeroDivisionError):
        list(engine.map(half, [1, 0]))


def test_the_whole_job_leaves_the_same_bytes_as_here(engine: Engine, tmp_path: Path) -> None:
    for name, where in (("here", Serial()), ("there", engine)):
        folder = tmp_path / name
        sources = [votes_of(place) for place in range(3)]  # functions of a function: shipped by value
        done = apply_shards(sources, DATA, folder / "votes", shard_size=4, progress=False, engine=where)
        model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.5), dependencies=())
        fit_shards(model, done.shards, engine=where).save(folder / "model.json")
        label_shards(model, done.shards, folder / "labels", engine=where)
    for part in ("votes", "labels"):
        assert files_of(tmp_path / "here" / part) == files_of(tmp_path / "there" / part)
    assert (tmp_path / "here" / "model.json").read_bytes() == (tmp_path / "there" / "model.json").read_bytes()


def test_a_dead_worker_is_told_and_the_job_can_be_resumed(engine: Engine, tmp_path: Path) -> None:
    flag = tmp_path / "healed"

    @dg.source
    def deadly(x, flag=str(flag)):
        return os._exit(7) if x[0] == DATA["v13"][0][0] and not Path(flag).exists() else 1

    sources = [votes_of(0), deadly]
    with pytest.raises(dg.SourceError, match=r"while it worked on .*sequence 'v13'"):
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
        with pytest.raises(WorkerLostError, match=r"while it worked on .*5"):
            reduce_sums(engine, stumble, range(12), describe=str)
    assert reduce_sums(engine, stumble, range(12), describe=str) == sum(range(12))


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(EngineError, match=r"one of local, dask, ray, spark.*found 'slurm'"):
        named_engine("slurm")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package in ("dask", "distributed", "ray", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dg.MissingExtraError, match=rf"dugong-ws\[{name}\]"):
        list(named_engine(name).map(len, ["a"]))

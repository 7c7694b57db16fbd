"""Votes, shards and labels in an S3-compatible store: the same bytes as here, or an error in words."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.paths import place_of
from dugong.shards import apply_shards, fit_shards, label_shards
from store.faults import Faults, faulty_server

if os.environ.get("DUGONG_STORE") != "1":
    pytest.skip("needs an S3 server: make test-store", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("default")

DATA = {f"v{n:02d}": np.random.default_rng(n).normal(size=(20, 3)) for n in range(12)}
PRIOR = dg.priors.Markov(positive=0.4, stay=0.5)
KINDS = ("error", "slow", "reset", "cut")


@dg.source
def one(x):
    return 1 if x[0] > 0.1 else -1


@dg.source
def two(x):
    return 1 if x[1] > 0.1 else -1


@dg.source
def three(x):
    return 1 if x[2] > 0.1 else -1


@pytest.fixture(scope="module")
def faults() -> Iterator[Faults]:
    """A store behind a server that can hurt its answers, as fsspec knows it."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server, some = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False), Faults()
    server.start()
    with faulty_server(server.get_host_and_port()[1], some) as address:
        config = {"retries": {"max_attempts": 1}, "connect_timeout": 5, "read_timeout": 5}
        fsspec.config.conf["s3"] = {
            "endpoint_url": address, "key": "k", "secret": "s", "use_listings_cache": False,
            "client_kwargs": {"region_name": "us-east-1"}, "config_kwargs": config,
        }  # fmt: skip
        fsspec.filesystem("s3").call_s3("create_bucket", Bucket="bucket")
        yield some
    fsspec.config.conf.pop("s3")
    server.stop()


@pytest.fixture(autouse=True)
def healthy(faults: Faults) -> Iterator[None]:
    """No harm before and after a test."""
    faults.share, faults.n_hurt = 0.0, 0
    yield
    faults.share = 0.0


def job(folder: object) -> None:
    """Apply, fit and label in a folder; done again, it goes on."""
    done = apply_shards([one, two, three], DATA, place_of(f"{folder}/votes"), shard_size=4, progress=False)
    model = dg.LabelModel(prior=PRIOR, dependencies=())
    fit_shards(model, done.shards).save(f"{folder}/model.json")
    label_shards(model, done.shards, place_of(f"{folder}/labels"))


def files(folder: object) -> dict[str, bytes]:
    found = {}
    for part in ("votes", "labels"):
        for file in place_of(f"{folder}/{part}").glob("*.parquet"):
            found[f"{part}/{file.name}"] = file.read_bytes()
    return found | {"model.json": place_of(f"{folder}/model.json").read_bytes()}


def test_a_job_in_a_store_leaves_the_bytes_of_one_here(faults: Faults, tmp_path: Path) -> None:
    job(tmp_path)
    job("s3://bucket/calm")
    assert files("s3://bucket/calm") == files(tmp_path)
    assert len(files(tmp_path)) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_store_does_the_bytes_are_right_in_the_end(faults: Faults, kind: str, tmp_path: Path) -> None:
    """Every tenth answer is hurt: the job ends, or is refused in words and goes on when it is started again."""
    job(tmp_path)
    faults.kind, faults.share = kind, 0.1
    for _ in range(40):
        try:
            job(f"s3://bucket/{kind}")
        except dg.DugongError as error:
            assert "s3://bucket" in str(error)  # noqa: PT017 (tried again until it ends)
        else:
            break
    else:
        pytest.fail("the job never ended")
    assert faults.n_hurt > 0
    faults.share = 0.0
    assert files(f"s3://bucket/{kind}") == files(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_votes_are_read_whole_or_not_at_all(faults: Faults, kind: str) -> None:
    votes = dg.apply([one, two, three], DATA, progress=False)
    for ending in ("npz", "parquet"):
        faults.share = 0.0
        votes.write(f"s3://bucket/{kind}.{ending}")
        faults.kind, faults.share, faults.n_hurt = kind, 0.4, 0
        for _ in range(6):
            with contextlib.suppress(dg.DugongError):
                assert dg.Votes.read(f"s3://bucket/{kind}.{ending}").equals(votes)
        assert faults.n_hurt > 0


def test_a_store_that_always_fails_is_said(faults: Faults) -> None:
    faults.kind, faults.share = "error", 1.0
    with pytest.raises(dg.DugongError, match="s3://bucket/x"):
        dg.Votes.read("s3://bucket/x.npz")

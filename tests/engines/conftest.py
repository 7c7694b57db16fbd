"""Real local clusters, one of each kind for all tests of a file: starting them takes longer than the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dugong.engines import Engine, named_engine

WANTED = ["local", *os.environ.get("DUGONG_ENGINES", "").split()]  # the variable is set by `make test-engines`


@pytest.fixture(params=WANTED, scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine on a cluster of two workers that is there already."""
    with CLUSTERS[request.param]() as name:
        yield named_engine(name, n_jobs=2)


@contextmanager
def _local() -> Iterator[str]:
    yield "local"


@contextmanager
def _dask() -> Iterator[str]:
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        yield f"dask:{cluster.scheduler_address}"


@contextmanager
def _ray() -> Iterator[str]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield "ray"
    ray.shutdown()


@contextmanager
def _spark() -> Iterator[str]:
    import sys

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.log.level", "OFF").getOrCreate()
    yield "spark"
    session.stop()


CLUSTERS = {"local": _local, "dask": _dask, "ray": _ray, "spark": _spark}

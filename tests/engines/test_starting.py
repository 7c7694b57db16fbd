"""Engines by name: those that start their own workers, those that do not exist, those that are not installed."""

from __future__ import annotations

import os

import pytest

import dugong as dg
from dugong.engines import EngineError, named_engine

WANTED = ["local", *os.environ.get("DUGONG_ENGINES", "").split()]
pytestmark = pytest.mark.filterwarnings("default")  # the engines and what they import warn about themselves


@pytest.mark.parametrize("name", WANTED)
def test_results_keep_their_order_and_errors_their_type(name: str) -> None:
    def half(number: int) -> float:
        return 10 / number

    told = []
    with pytest.raises(ZeroDivisionError):
        told.extend(named_engine(name, n_jobs=2).map(half, [*range(1, 12), 0]))
    assert told == [10 / number for number in range(1, 12)]


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(EngineError, match=r"one of local, dask, ray, spark.*found 'slurm'"):
        named_engine("slurm")


@pytest.mark.parametrize("name", ["dask", "ray", "spark"])
def test_a_missing_package_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package in ("dask", "distributed", "ray", "pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dg.MissingExtraError, match=rf"dugong-ws\[{name}\]"):
        list(named_engine(name).map(len, ["a"]))

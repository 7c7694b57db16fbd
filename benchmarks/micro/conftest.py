"""The votes that all micro-benchmarks share, and the column that says how many times `sum()` a kernel takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dugong.votes import Votes
from dugong.worlds import World
from dugong.worlds.standard import lopsided

N_SEQUENCES, N_SOURCES = 200_000, 10


@pytest.fixture(scope="session")
def world() -> World:
    """The plain world of the other benchmarks."""
    return lopsided(N_SOURCES)


@pytest.fixture(scope="session")
def votes(world: World) -> Votes:
    """A million elements."""
    return world.sample(N_SEQUENCES, rng=3)[0]


@pytest.fixture(scope="session")
def floor(votes: Votes) -> float:
    """CPU seconds of numpy's `sum()` over these votes, the least of many."""
    matrix, times = np.stack(votes.columns), []
    for _ in range(50):
        start = time.process_time()
        matrix.sum()
        times.append(time.process_time() - start)
    return min(times)


@pytest.fixture
def against_floor(benchmark: Any, floor: float) -> Callable[[Callable[[], object]], None]:
    """Measure a function in CPU time and note its least time as a multiple of the floor."""

    def measure(work: Callable[[], object]) -> None:
        work()
        benchmark.pedantic(work, rounds=15)
        benchmark.extra_info["times sum()"] = benchmark.stats.stats.min / floor

    return measure


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Keep the file small: no single measurements."""
    for one in output_json["benchmarks"]:
        one["stats"].pop("data", None)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line per kernel: how many times `sum()` it takes."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    rows = [] if session is None else [one for one in session.benchmarks if one.extra_info]
    terminalreporter.write_sep("-", "times sum() over the same votes")
    for one in sorted(rows, key=lambda one: one.extra_info["times sum()"]):
        terminalreporter.write_line(f"{one.extra_info['times sum()']:8.2f}  {one.name}")

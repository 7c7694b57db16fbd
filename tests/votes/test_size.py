"""Fifty million votes: seconds, and at most three times their own memory."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from dugong.tasks import Window
from dugong.votes import Votes

N_VOTES = 50_000_000


@pytest.fixture(scope="module")
def block() -> np.ndarray:
    return np.random.default_rng(0).integers(-1, 2, (N_VOTES // 10, 10), dtype=np.int8)


def peak_and_seconds(job):
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        result = job()
        return result, tracemalloc.get_traced_memory()[1], time.perf_counter() - begin
    finally:
        tracemalloc.stop()


def test_load_validate_and_summarise(block):
    lengths = np.full(len(block) // 1000, 1000)
    votes, peak, seconds = peak_and_seconds(lambda: Votes.from_dense(block, lengths))
    assert peak + block.nbytes < 3 * N_VOTES
    assert seconds < 30
    summary, peak, seconds = peak_and_seconds(votes.summary)
    assert peak + N_VOTES < 3 * N_VOTES
    assert seconds < 30
    assert summary.sources[0].coverage == pytest.approx(2 / 3, abs=0.001)


def test_one_long_sequence_with_windows(block):
    elements = {f"e{place}": np.ascontiguousarray(block[:, place]) for place in range(2)}
    windows = {"w": block[: len(block) - 29, 2].copy()}
    n_votes = 3 * len(block)
    votes, peak, _ = peak_and_seconds(
        lambda: Votes.from_tasks({**elements, **windows}, [len(block)], resolutions={"w": Window(30, 1)})
    )
    assert peak < 2 * n_votes
    _, peak, seconds = peak_and_seconds(votes.summary)
    assert peak < 2 * n_votes
    assert seconds < 30


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_files_are_small_and_quick(block, tmp_path, kind):
    part = block[: len(block) // 10]
    votes = Votes.from_dense(part, [len(part)])
    path = tmp_path / f"votes.{kind}"
    begin = time.perf_counter()
    votes.write(path)
    again, peak, _ = peak_and_seconds(lambda: Votes.read(path))
    assert time.perf_counter() - begin < 30
    assert again.equals(votes)
    assert path.stat().st_size < 0.4 * part.nbytes
    assert peak < 2 * part.nbytes

"""Sums over items have one fixed tree, whoever computes them."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.engines import Processes, Serial, WorkerLostError, reduce_sums

ODD = np.random.default_rng(0).normal(size=37) * 10.0 ** np.arange(37)


def value(place: int) -> float:
    return float(ODD[place])


def test_sums_of_floats_are_identical_on_every_engine() -> None:
    first = reduce_sums(Serial(), value, range(37))
    assert first == reduce_sums(Processes(n_jobs=2), value, iter(range(37)))
    assert first == pytest.approx(ODD.sum(), rel=1e-12)


def test_one_item_is_its_own_sum() -> None:
    assert reduce_sums(Serial(), value, [3]) == ODD[3]


def test_a_lost_worker_is_reported_with_its_items() -> None:
    import os

    def die(place: int) -> int:
        return os._exit(3) if place == 5 else place

    with pytest.raises(WorkerLostError, match=r"exit code 3 while it worked on item 4 or item 5 \(item 5\)"):
        reduce_sums(Processes(n_jobs=2), die, range(6), describe=lambda place: f"item {place}")

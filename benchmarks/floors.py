"""Kernels against the floor: numpy's `sum()` over the same int8 votes, CPU seconds, the best of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

import dugong as dg
from dugong.infer.engine import posterior
from dugong.sums import MomentRow, Plan, Slot, assign_groups, count, pair
from dugong.worlds.standard import lopsided


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """CPU seconds of the fastest of some runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure_floors(n_sequences: int = 1_000_000) -> dict[str, float]:
    """CPU seconds of the floor and of every stage on the plain world."""
    world = lopsided(10)
    votes, _ = world.sample(n_sequences, rng=3)
    matrix = np.stack(votes.columns)
    names = votes.source_names
    rows = [MomentRow(slots=(Slot(name),)) for name in names] + [pair(a, b) for a, b in combinations(names, 2)]
    plan, grouping, parameters = Plan.of(rows), assign_groups(votes), world.parameters()
    found = {"sum() of the votes": best(matrix.sum, 15)}
    del matrix
    found["assign groups"] = best(lambda: assign_groups(votes, n_threads=1), 15)
    found["count moments"] = best(lambda: count(votes, plan, grouping, n_threads=1), 15)
    model = dg.LabelModel(prior=world.prior, dependencies=(), n_threads=1)
    found["fit"] = best(lambda: model.fit(votes), 15)
    found["element labels"] = best(
        lambda: posterior(votes, parameters, world.prior, resolutions=["element"], n_threads=1)
    )
    found["fit + labels"] = found["fit"] + best(lambda: model.predict_proba(votes))
    learning = dg.LabelModel(n_threads=1)
    learned = best(lambda: learning.fit(votes)) + best(lambda: learning.predict_proba(votes))
    found["fit + labels, all learned"] = learned
    columns, lengths = tuple(np.array(column) for column in votes.columns), np.array(votes.lengths)
    found["validate votes"] = best(lambda: dg.Votes(sources=votes.sources, columns=columns, lengths=lengths))
    return found

"""How cost grows: CPU seconds and memory by sequences, length, sources and classes, with fitted exponents."""

from __future__ import annotations

import tracemalloc

import numpy as np

import dugong as dg
from benchmarks.floors import best
from dugong.priors import Markov
from dugong.worlds import Block, World
from dugong.worlds.blocks import confusion
from dugong.worlds.standard import lopsided

# Sequences, length, sources, classes. More than two classes go through expected counts instead of the closed form.
AXES = ("n", "T", "m", "K")
GRIDS = {
    "n": [(n, 5, 10, 2) for n in (50_000, 200_000, 800_000)],
    "T": [(20_000, length, 10, 2) for length in (5, 20, 80)],
    "m": [(50_000, 5, m, 2) for m in (5, 10, 20)],
    "K": [(5_000, 5, 8, n_classes) for n_classes in (3, 6, 12)],
}
STAGES = ("fit", "labels", "memory")


def measure_scaling() -> dict[str, dict[str, object]]:
    """CPU seconds of fit and of labels and MB beside the votes along each axis, and the exponents of growth."""
    found: dict[str, dict[str, object]] = {}
    for place, (axis, sizes) in enumerate(GRIDS.items()):
        values = [size[place] for size in sizes]
        costs = dict(zip(STAGES, zip(*(_cost(*size) for size in sizes), strict=True), strict=True))
        found[axis] = {"values": values, **{stage: list(costs[stage]) for stage in STAGES}}
        found[axis] |= {f"{stage}_exponent": slope(values, list(costs[stage])) for stage in STAGES}
    return found


def _cost(n_sequences: int, length: int, n_sources: int, n_classes: int) -> tuple[float, float, float]:
    world = lopsided(n_sources) if n_classes == 2 else many_classes(n_sources, n_classes)
    votes, _ = world.sample(n_sequences, lengths=length, rng=5)
    model = dg.LabelModel(prior=world.prior, dependencies=(), n_threads=1)
    fit, labels = best(lambda: model.fit(votes), 3), best(lambda: model.predict_proba(votes), 3)
    tracemalloc.start()
    model.fit(votes).predict_proba(votes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return fit, labels, peak / 2**20


def many_classes(n_sources: int, n_classes: int) -> World:
    """Sources of different accuracy that abstain on a third of the elements."""
    stay = np.eye(n_classes) * 0.8 + 0.2 / n_classes
    prior = Markov(initial=np.full(n_classes, 1 / n_classes), transition=stay)
    right = np.linspace(0.6, 0.9, n_sources)
    blocks = [Block(names=(f"s{j}",), table=confusion(n_classes, right[j], 0.3)) for j in range(n_sources)]
    return World(prior=prior, blocks=tuple(blocks), lengths=5, name="many classes")


def slope(values: list[int], costs: list[float]) -> float:
    """Exponent of a power law through the points."""
    return float(np.polyfit(np.log(values), np.log(costs), 1)[0])

"""How cost grows with the number of sequences, their length and the number of sources: fitted exponents."""

from __future__ import annotations

import numpy as np

import dugong as dg
from benchmarks.floors import best
from dugong.worlds.standard import lopsided

GRIDS = {
    "n": [(n, 5, 10) for n in (25_000, 100_000, 400_000)],
    "T": [(20_000, length, 10) for length in (5, 20, 80)],
    "m": [(50_000, 5, m) for m in (5, 10, 20)],
}


def measure_scaling() -> dict[str, dict[str, object]]:
    """CPU seconds of fit and of labels along each axis, and the exponent of the labels' and the fit's growth."""
    found: dict[str, dict[str, object]] = {}
    for axis, sizes in GRIDS.items():
        fits, labels = [], []
        for n, length, m in sizes:
            world = lopsided(m)
            votes, _ = world.sample(n, lengths=length, rng=5)
            model = dg.LabelModel(prior=world.prior, dependencies=(), n_threads=1)
            fits.append(best(lambda model=model, votes=votes: model.fit(votes), 3))  # type: ignore[misc]
            labels.append(best(lambda model=model, votes=votes: model.predict_proba(votes), 3))  # type: ignore[misc]
        values = [size["nTm".index(axis)] for size in sizes]
        found[axis] = {"values": values, "fit": fits, "labels": labels}
        found[axis] |= {"fit_exponent": slope(values, fits), "labels_exponent": slope(values, labels)}
    return found


def slope(values: list[int], seconds: list[float]) -> float:
    """Exponent of a power law through the points."""
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])

"""Sums of residual products against the same by plain loops: blocks, silences, repetitions, lags."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.fit.learned.residuals import _kernels as kernels

SILENT, LENGTH = 2, 4
IS_WRONG = np.array([[False, True], [True, False], [True, True]])


def case(seed: int) -> dict[str, np.ndarray]:
    """Some 3,000 elements in ragged sequences: more than one tile, blocks of 1 to 4 elements."""
    rng = np.random.default_rng(seed)
    place = np.concatenate([np.arange(length) for length in rng.integers(1, 12, 500)])
    weights = rng.dirichlet(np.ones(4), len(place)).T.reshape(2, 2, -1).transpose(0, 2, 1).copy()
    weights[rng.random(weights.shape) < 0.3] = 0.0
    return {
        "codes": rng.integers(-1, 3, (len(place), 3)).astype(np.int8),
        "place": place,
        "weights": weights,
        "rates": rng.uniform(0.1, 0.9, (2, 3, 2)),
        "earlier": rng.uniform(0.1, 0.9, (2, 3, 2)),
        "repeats": np.array([[0.0, 0.4, 0.3], [0.0, 0.2, 0.3]]),
        "lags": np.array([1, 1, 2]),
    }


def residual(c, rates, repeats, about, i, j, y, b):
    """One residual and its standard deviation."""
    z = c["codes"][i, j]
    if z < 0 or (z == SILENT and about == kernels.ERRORS):
        return 0.0, 0.0
    past = c["codes"][i - c["lags"][j], j] if c["place"][i] >= c["lags"][j] else -1
    rate = kernels.expect(past, repeats[b, j], SILENT, rates[0, j, y], rates[1, j, y], IS_WRONG[max(past, 0), y])[about]
    event = z != SILENT if about == kernels.SPEAKING else IS_WRONG[z, y]
    return float(event) - rate, np.sqrt(rate * (1 - rate))


def plain(c, about, lag):
    """(4, m, m) by loops."""
    sums, none = np.zeros((4, 3, 3)), np.zeros((2, 3))
    blocks = np.cumsum(c["place"] % LENGTH == 0)
    inside = np.zeros((blocks[-1] + 1, 3, 3))
    for b, i, y in np.argwhere(c["weights"] >= 1e-6):
        w = c["weights"][b, i, y]
        now = [residual(c, c["rates"], c["repeats"], about, i, j, y, b) for j in range(3)]
        then = [residual(c, c["earlier"], none, about, i - lag, j, y, b) for j in range(3)] if lag else now
        inside[blocks[i]] += w * np.outer([one for one, _ in now], [one for one, _ in then])
        sums[1] += w * np.outer([spread for _, spread in now], [spread for _, spread in then])
    sums[0], sums[2], sums[3] = inside.sum(axis=0), (inside**2).sum(axis=0), (inside**4).sum(axis=0)
    return sums


@pytest.mark.parametrize("about", [kernels.ERRORS, kernels.SPEAKING])
@pytest.mark.parametrize("lag", [0, 1, 3])
def test_sums_are_those_of_plain_loops(about, lag):
    c = case(seed=lag)
    c["weights"][:, c["place"] < lag] = 0.0
    pairs = np.tri(3, dtype=np.bool_) if lag == 0 else np.ones((3, 3), dtype=np.bool_)
    sums = np.zeros((4, 3, 3))
    kernels.add_products(
        c["codes"], c["place"], c["weights"], c["rates"], c["earlier"], lag, IS_WRONG, SILENT, about,
        c["repeats"], c["lags"], LENGTH, pairs, sums,
    )  # fmt: skip
    np.testing.assert_allclose(sums, plain(c, about, lag) * pairs, rtol=1e-10, atol=1e-10)

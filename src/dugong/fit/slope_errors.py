"""Standard errors of tables from the equations alone: what their own variances say about the solution.

In: solved slopes. Out: an approximate standard error for every table entry, found without groups of sequences. So it
depends on the counts alone, not on the order of sequences or on shards. Votes count as independent from element to
element, which is optimistic (.6 to 1 times the jackknife's error in simulated worlds); intervals are the jackknife's.
"""

from __future__ import annotations

import numpy as np

from dugong.fit.equations import N_INDICATORS, marginal
from dugong.fit.slopes import Slopes
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row, Slot
from dugong.types import FloatArray


def table_errors(design: Design, moments: Moments, laws: Laws, slopes: Slopes) -> dict[str, FloatArray]:
    """Standard errors of P(vote | label), in the shape of the table, for all sources whose slopes were solved."""
    spread = slope_variances(slopes)
    return {
        info.name: _table_error(design, moments, laws, slopes, spread, info.name)
        for info in design.sources
        if design.levels[info.name] != "full" and spread[slopes.unknowns.of_key(design.key(info.name))].any()
    }


def _table_error(
    design: Design, moments: Moments, laws: Laws, slopes: Slopes, spread: FloatArray, name: str
) -> FloatArray:
    """``P(z | w) = P(z) + beta_z (w - E y)``: the errors of both terms."""
    by_position = design.levels[name] == "task"
    votes, places = marginal(design, moments, name), slopes.unknowns.of_key(design.key(name))
    counts = moments.table(Row(slots=(Slot(name),), by_position=by_position)).reshape(len(votes), -1).sum(axis=1)
    chance, slope = votes * (1 - votes), spread[places]
    # That of abstaining would need covariances of equations; like all of them it goes with the variance of its votes.
    unit = slope.sum(axis=1, keepdims=True) / np.maximum(chance[:, :N_INDICATORS].sum(axis=1, keepdims=True), 1e-300)
    slope = np.hstack([slope, unit * chance[:, N_INDICATORS:]])
    mean = laws.mean(design.info(name).resolution, by_position=by_position)[: len(votes)]
    shift = np.array([-1.0, 1.0]) - mean[:, np.newaxis]
    rate = chance / np.maximum(counts, 1.0)[:, np.newaxis]
    error = np.sqrt(shift[:, :, np.newaxis] ** 2 * slope[:, np.newaxis] + rate[:, np.newaxis])
    return np.asarray(error if by_position else error[0])


def slope_variances(slopes: Slopes) -> FloatArray:
    """Variances of the solved slopes, each equation with its own variance; zero for slopes that were not solved."""
    equations, beta = slopes.equations, slopes.beta
    solved = np.zeros(len(beta), dtype=np.bool_)
    for stage in slopes.stages:
        solved |= stage.solved
    useful = equations.only(equations.variance > 0)
    jacobian = np.zeros((len(useful.value), len(beta)))
    weight = useful.scale / np.sqrt(useful.variance)
    rows = np.arange(len(weight))
    np.add.at(jacobian, (rows, useful.left), weight * beta[useful.right])
    np.add.at(jacobian, (rows, useful.right), weight * beta[useful.left])
    inner, variances = jacobian[:, solved], np.zeros(len(beta))
    variances[solved] = np.diag(np.linalg.pinv(inner.T @ inner, hermitian=True))
    return variances

"""The slopes again, with each group of sequences left out in turn: all replicates at once.

The replicates start from the full solution, where a few Gauss-Newton steps are as good as a new solution. Only counts
change between them; unknowns, rows and signs are those of the full solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from dugong.fit.equations import N_INDICATORS, covariances, make_equations
from dugong.fit.slopes import Slopes, SolvedStage
from dugong.fit.solve import Equations
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row
from dugong.types import FloatArray, IntArray

_STEPS = 3


def replicate_slopes(
    design: Design, moments: Moments, laws: Sequence[Laws], slopes: Slopes, groups: IntArray
) -> FloatArray:
    """Slopes without each of the given groups, shape (n_groups, n_unknowns); `laws` are those without each group."""
    beta = np.tile(slopes.beta, (len(groups), 1))
    for stage in slopes.stages:
        equations, origins = make_equations(design, moments, laws[0], slopes.unknowns, stage.rows)
        values, variances = _replicated(moments, origins, groups)
        scales = _scales(moments, laws, origins, equations)
        member = stage.solved | stage.known
        touched = stage.solved[equations.left] | stage.solved[equations.right]
        usable = touched & member[equations.left] & member[equations.right]
        usable &= (equations.scale != 0) & (equations.variance > 0)
        chosen = Equations(
            left=equations.left[usable],
            right=equations.right[usable],
            value=values[:, usable],
            scale=scales[:, usable],
            variance=variances[:, usable],
        )
        beta = _solve(chosen, beta, stage)
    return beta


def left_out(moments: Moments, row: Row, groups: IntArray) -> FloatArray:
    """Counts of a row without each of the given groups, shape (n_groups, positions or 1, C, ...)."""
    counts = np.asarray(moments.counts[moments.plan.place(row)], dtype=np.float64)
    rest = counts.sum(axis=0) - counts[groups]
    return np.asarray(rest if row.by_position else rest[:, np.newaxis])


def _replicated(moments: Moments, origins: Iterable[Row], groups: IntArray) -> tuple[FloatArray, FloatArray]:
    """Covariances and their variances of every equation in every replicate, two (n_groups, n_equations) arrays."""
    tables = [left_out(moments, row, groups) for row, _ in groupby(origins)]
    values, variances = [], []
    for shape, alike in groupby(tables, key=lambda table: table.shape):
        stacked = np.stack(list(alike), axis=1)  # (n_groups, n_rows, positions, C, C')
        value, variance = covariances(stacked.reshape(-1, *shape[2:]))
        values.append(value.reshape(len(groups), -1))
        variances.append(variance.reshape(len(groups), -1))
    if not values:
        return np.zeros((len(groups), 0)), np.zeros((len(groups), 0))
    return np.concatenate(values, axis=1), np.concatenate(variances, axis=1)


def _scales(moments: Moments, laws: Sequence[Laws], origins: list[Row], equations: Equations) -> FloatArray:
    """Cov(y, y') of every equation under the laws of every replicate, (n_groups, n_equations)."""
    if all(law is laws[0] for law in laws):
        return np.broadcast_to(equations.scale, (len(laws), len(equations.scale)))
    where = {info.name: info.resolution for info in moments.sources}
    known: dict[tuple[object, ...], FloatArray] = {}  # most rows ask for the same covariance
    parts = []
    for row, same in groupby(origins):
        size = len(list(same)) // N_INDICATORS**2
        first, second = (where[name] for name in row.sources)
        key = (row.relation, first, second, row.slots[1].offset - row.slots[0].offset, row.by_position, size)
        if key not in known:
            found = np.stack([law.pair(row, first, second).covariance[:size] for law in laws])
            known[key] = np.repeat(found, N_INDICATORS**2, axis=1)
        parts.append(known[key])
    return np.concatenate(parts, axis=1)


def _solve(equations: Equations, beta: FloatArray, stage: SolvedStage) -> FloatArray:
    """A few Gauss-Newton steps on ``value = scale * beta[left] * beta[right]`` for the unknowns of a stage.

    All replicates at once: values, scales and variances are (n_groups, n_equations), `beta` (n_groups, n_unknowns).
    """
    columns = np.flatnonzero(stage.solved)
    place = np.full(beta.shape[1], len(columns))
    place[columns] = np.arange(len(columns))
    weight = np.divide(1.0, equations.variance, out=np.zeros_like(equations.variance), where=equations.variance > 0)
    left, right, size = place[equations.left], place[equations.right], len(columns) + 1
    diagonal = np.arange(size)
    beta = beta.copy()
    for _ in range(_STEPS):
        by_left = equations.scale * beta[:, equations.right]
        by_right = equations.scale * beta[:, equations.left]
        residual = equations.value - by_left * beta[:, equations.left]
        gradient = _sums(left, weight * by_left * residual, size)
        gradient += _sums(right, weight * by_right * residual, size)
        cross = _sums(left * size + right, weight * by_left * by_right, size * size).reshape(-1, size, size)
        normal = cross + cross.transpose(0, 2, 1)
        normal[:, diagonal, diagonal] += _sums(left, weight * by_left**2, size)
        normal[:, diagonal, diagonal] += _sums(right, weight * by_right**2, size)
        inner = normal[:, :-1, :-1]
        ridge = 1e-12 * np.maximum(inner.max(axis=(1, 2), initial=0.0), 1e-300)
        inner[:, diagonal[:-1], diagonal[:-1]] += ridge[:, np.newaxis]
        beta[:, columns] += np.linalg.solve(inner, gradient[:, :-1, np.newaxis])[:, :, 0]
    return beta


def _sums(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sums of the values by place, for every row of `values`; shape (n_rows, size)."""
    rows = np.arange(len(values))[:, np.newaxis] * size
    found = np.bincount((rows + places).reshape(-1), values.reshape(-1), len(values) * size)
    return np.asarray(found, dtype=np.float64).reshape(-1, size)

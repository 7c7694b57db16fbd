"""The moment equations ``covariance = scale * beta_u * beta_v`` and their solution.

Start: the logarithms of the equations form the linear system M l = q of the paper (Algorithm 1), solved by
weighted least squares; signs follow the strongest equations. Finish: damped Gauss-Newton on the equations
themselves, each weighted by its precision, so that rows near zero do no harm. One sign per connected group
of unknowns stays free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from dugong.types import AnyArray, BoolArray, FloatArray, IntArray

_MAX_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equations:
    """One row per equation: ``value ~ scale * beta[left] * beta[right]`` with variance `variance` of the value."""

    left: IntArray
    right: IntArray
    value: FloatArray
    scale: FloatArray
    variance: FloatArray

    def only(self, keep: AnyArray) -> Equations:
        """Some of the equations."""
        return Equations(
            left=self.left[keep],
            right=self.right[keep],
            value=self.value[keep],
            scale=self.scale[keep],
            variance=self.variance[keep],
        )


def solve(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, float]:
    """Solve for the free entries of `beta`, the others held; returns beta and a condition number.

    The sign of each connected group that touches no fixed entry is arbitrary.
    """
    start, condition = solve_logs(equations, beta, free)
    return refine(equations, start, free), condition


def solve_logs(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, float]:
    """Algorithm 1 of the paper as it stands: M l = q by weighted least squares over all pairs, then signs."""
    chosen = equations.only(_usable(equations, free))
    start, condition = _log_start(chosen, beta, free)
    return _with_signs(chosen, start, free), condition


def refine(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    """Gauss-Newton from a start that is close already (the jackknife)."""
    return _gauss_newton(equations.only(_usable(equations, free)), beta, free)


def _usable(equations: Equations, free: BoolArray) -> BoolArray:
    open_rows = free[equations.left] | free[equations.right]
    return np.asarray(open_rows & (equations.scale != 0) & (equations.variance > 0))


def _log_start(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, float]:
    ratio = np.abs(equations.value / equations.scale)
    good = ratio > 0
    ratio, left, right = ratio[good], equations.left[good], equations.right[good]
    # The variance of log|x| is var(x) / x^2: an equation that is lost in noise has next to no weight here.
    weight = equations.value[good] ** 2 / equations.variance[good]
    known = np.where(free, 0.0, np.log(np.maximum(np.abs(beta), 1e-300)))
    target = np.log(ratio) - known[left] - known[right]
    incidence = np.zeros((len(ratio), len(beta)))
    rows = np.arange(len(ratio))
    np.add.at(incidence, (rows, left), free[left].astype(float))
    np.add.at(incidence, (rows, right), free[right].astype(float))
    columns = np.flatnonzero(free)
    design = incidence[:, columns] * np.sqrt(weight)[:, np.newaxis]
    solution, _, _, singular = np.linalg.lstsq(design, target * np.sqrt(weight), rcond=1e-10)
    magnitudes = beta.copy()
    magnitudes[columns] = np.exp(np.clip(solution, -40, 1))
    touched = np.zeros(len(beta), dtype=np.bool_)
    touched[np.concatenate([left, right])] = True
    magnitudes[free & ~touched] = 0.0
    condition = float(singular[0] / singular[-1]) if len(singular) and singular[-1] > 0 else np.inf
    return magnitudes, condition


def _with_signs(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    """Signs along a spanning forest of the strongest equations; fixed entries keep theirs."""
    n = len(beta)
    strength = np.abs(equations.value) / np.sqrt(equations.variance)
    agree = np.sign(equations.value * equations.scale)
    useful = (equations.left != equations.right) & (agree != 0)
    left, right = equations.left[useful], equations.right[useful]
    low, high = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((-strength[useful], high, low))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    order = order[first]
    # Fixed entries hang on one extra node, so that all of them start from their own known sign.
    fixed = np.flatnonzero(~free)
    rows = np.concatenate([low[order], fixed])
    columns = np.concatenate([high[order], np.full(len(fixed), n)])
    costs = np.concatenate([1.0 / (1e-12 + strength[useful][order]), np.full(len(fixed), 1e-15)])
    relations = np.concatenate([agree[useful][order], np.where(beta[fixed] < 0, -1.0, 1.0)])
    tree = minimum_spanning_tree(coo_matrix((costs, (rows, columns)), shape=(n + 1, n + 1)).tocsr())
    relation = coo_matrix((relations, (rows, columns)), shape=(n + 1, n + 1)).tocsr()
    relation = relation + relation.T
    signs = np.zeros(n + 1)
    roots = [n] if len(fixed) else []
    _, labels = connected_components(tree, directed=False)
    roots += [int(np.flatnonzero(labels == label)[0]) for label in range(labels.max() + 1)]
    for root in roots:
        if signs[root] != 0:
            continue
        signs[root] = 1.0
        nodes, parents = breadth_first_order(tree, root, directed=False)
        for node in nodes[1:]:
            signs[node] = signs[parents[node]] * relation[parents[node], node]
    return np.where(free, np.abs(beta) * np.where(signs[:n] == 0, 1.0, signs[:n]), beta)


def _gauss_newton(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    columns = np.flatnonzero(free)
    place = np.full(len(beta), -1)
    place[columns] = np.arange(len(columns))
    if not len(columns) or not len(equations.value):
        return beta
    weight = 1.0 / np.sqrt(equations.variance)
    damping, cost = 1e-6, _cost(equations, beta, weight)
    for _ in range(_MAX_STEPS):
        residual = (equations.value - equations.scale * beta[equations.left] * beta[equations.right]) * weight
        jacobian = np.zeros((len(residual), len(columns)))
        for own, other in ((equations.left, equations.right), (equations.right, equations.left)):
            rows = np.flatnonzero(free[own])
            np.add.at(jacobian, (rows, place[own[rows]]), (equations.scale * beta[other] * weight)[rows])
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ residual
        diagonal = np.diag(normal) + 1e-12 * max(float(normal.max()), 1e-300)
        moved = False
        while damping < 1e8:
            step = np.linalg.solve(normal + damping * np.diag(diagonal), gradient)
            trial = beta.copy()
            trial[columns] += step
            trial_cost = _cost(equations, trial, weight)
            if trial_cost <= cost:
                moved = True
                damping = max(damping / 10, 1e-15)
                break
            damping *= 10
        if not moved:
            return beta
        size = float(np.abs(trial - beta).max())
        beta, cost = trial, trial_cost
        if size < 1e-13:
            return beta
    return beta


def _cost(equations: Equations, beta: FloatArray, weight: FloatArray) -> float:
    residual = (equations.value - equations.scale * beta[equations.left] * beta[equations.right]) * weight
    return float(residual @ residual)

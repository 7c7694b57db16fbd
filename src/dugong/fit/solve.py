"""The moment equations ``covariance = scale * beta_u * beta_v`` and their solution.

Start: the logarithms of the equations form the linear system M l = q of the paper (Algorithm 1), solved by
weighted least squares; signs follow the strongest equations. Finish: damped Gauss-Newton on the equations
themselves, each weighted by its precision, so that rows near zero do no harm. One sign per connected group
of unknowns stays free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    agree = np.sign(equations.value * equations.scale)
    useful = np.flatnonzero((equations.left != equations.right) & (agree != 0))
    strength = np.abs(equations.value[useful]) / np.sqrt(equations.variance[useful])
    order = useful[np.argsort(-strength, kind="stable")]
    signs = _Signs(len(beta))
    for entry in np.flatnonzero(~free).tolist():
        signs.join(entry, signs.fixed, -1.0 if beta[entry] < 0 else 1.0)
    pairs = zip(equations.left[order].tolist(), equations.right[order].tolist(), agree[order].tolist(), strict=True)
    for left, right, sign in pairs:
        signs.join(left, right, sign)
    found = np.array([signs.find(entry)[1] for entry in range(len(beta))])
    return np.where(free, np.abs(beta) * found, beta)


class _Signs:
    """Groups of entries whose signs are known relative to each other; later news that disagree are ignored.

    One more entry, `fixed`, stands for all whose sign is known; a group is named by it, or else by its first entry.
    """

    def __init__(self, n_entries: int) -> None:
        self.fixed = n_entries
        self.parent = list(range(n_entries + 1))
        self.sign = [1.0] * (n_entries + 1)

    def find(self, entry: int) -> tuple[int, float]:
        """Name of the group of an entry, and its sign relative to that."""
        path, root = [], entry
        while self.parent[root] != root:
            path.append(root)
            root = self.parent[root]
        sign = 1.0
        for one in reversed(path):
            sign *= self.sign[one]
            self.parent[one], self.sign[one] = root, sign
        return root, sign

    def join(self, first: int, second: int, sign: float) -> None:
        """Note that two entries have the same sign (1) or opposite ones (-1), unless that is known already."""
        (a, sign_a), (b, sign_b) = self.find(first), self.find(second)
        if a == b:
            return
        if b != self.fixed and (a == self.fixed or a < b):
            a, b = b, a
        self.parent[a], self.sign[a] = b, sign_a * sign_b * sign


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

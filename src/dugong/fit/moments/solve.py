"""Numbers behind the moment equations ``value = scale * beta_u * beta_v``: solving them, and how well they are solved.

Start: the logarithms of the equations form the linear system M l = q of the paper (Algorithm 1), solved by
weighted least squares; signs follow the strongest equations. Finish: damped Gauss-Newton on the equations
themselves, each weighted by its precision, so that rows near zero do no harm. One sign per connected group
of unknowns stays free; `dugong.fit.moments.stages` chooses it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dugong.fit.moments.equations import Equations
from dugong.types import BoolArray, FloatArray, IntArray

_MAX_STEPS = 100
_SETTLED = 1e-11  # steps that change no digit that anybody reads
# Replicates start from the solution of the whole sample, from where three steps are as good as a new solution.
_REPLICATE_STEPS = 3
# Added to the diagonal, in units of the largest entry: unknowns that nothing determines then stay where they are.
_RIDGE = 1e-12


def solve(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, float]:
    """Solve for the free entries of `beta`, the others held; returns beta and a condition number.

    The sign of each connected group that touches no fixed entry is arbitrary.
    """
    start, condition = solve_logs(equations, beta, free)
    return gauss_newton(equations, start, free), condition


def solve_logs(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, float]:
    """Algorithm 1 of the paper as it stands: M l = q by weighted least squares over all pairs, then signs."""
    good = equations.useful & (equations.value != 0)
    left, right = equations.left[good], equations.right[good]
    ratio = np.abs(equations.value[good] / equations.scale[good])
    # The variance of log|x| is var(x) / x^2: an equation that is lost in noise has next to no weight here.
    weight = equations.value[good] ** 2 / equations.variance[good]
    known = np.where(free, 0.0, np.log(np.maximum(np.abs(beta), 1e-300)))
    target = np.log(ratio) - known[left] - known[right]
    columns = np.flatnonzero(free)
    solution, condition = _least_squares(left, right, weight, target, free)
    magnitudes = beta.copy()
    # Slopes are at most one half; far below that they are noise, and their logarithms may be anything.
    magnitudes[columns] = np.exp(np.clip(solution, -40, 1))
    touched = np.zeros(len(beta), dtype=np.bool_)
    touched[np.concatenate([left, right])] = True
    magnitudes[free & ~touched] = 0.0
    return _with_signs(equations, magnitudes, free), condition


def _least_squares(
    left: IntArray, right: IntArray, weight: FloatArray, target: FloatArray, free: BoolArray
) -> tuple[FloatArray, float]:
    """L of the free unknowns from M l = q, and the condition number of M with its weights.

    M of the paper has a one in a row for each of its two unknowns, and a two for a source with itself. There is a row
    for every pair of sources: M'WM is small where M is large, and steps of refinement give back what it loses.
    """
    n_free = int(free.sum())
    place = np.where(free, np.cumsum(free) - 1, n_free)  # the last is cut off in the end
    ends = [place[left], place[right]]
    size = n_free + 1
    normal = np.zeros((size, size))
    for one in ends:
        for other in ends:
            normal += np.bincount(one * size + other, weight, size * size).reshape(size, size)
    normal = normal[:n_free, :n_free]
    # In units of its diagonal, as sources differ by orders of magnitude in what is known about them.
    unit = 1 / np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    inverse = np.linalg.pinv(unit[:, np.newaxis] * normal * unit, rcond=1e-12, hermitian=True)
    solution = np.zeros(size)
    for _ in range(3):
        missing = weight * (target - solution[ends[0]] - solution[ends[1]])
        gradient = sum(np.bincount(one, missing, size) for one in ends)
        solution[:n_free] += unit * (inverse @ (unit * np.asarray(gradient)[:n_free]))
    values = np.linalg.eigvalsh(normal)
    determined = n_free > 0 and values[0] > n_free * np.finfo(np.float64).eps * values[-1]
    return solution[:n_free], float(np.sqrt(values[-1] / values[0])) if determined else np.inf


def _with_signs(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    """Signs along a spanning tree of the strongest equations; fixed entries keep theirs."""
    n, entries = len(beta), np.arange(len(beta))
    agree = np.sign(equations.value * equations.scale)
    useful = np.flatnonzero((equations.left != equations.right) & (agree != 0) & equations.useful)
    # Strongest first, because noise turns the signs of weak equations round: what they say is needed only where
    # nothing stronger does.
    strength = np.abs(equations.value[useful]) / np.sqrt(equations.variance[useful])
    order = useful[np.argsort(-strength, kind="stable")]
    # One more node has a known sign. Before all others it is joined to the fixed entries, and after all others to any
    # entry, so that a group without a fixed one hangs on its first entry, which is then positive.
    held = np.flatnonzero(~free)
    left = np.concatenate([held, equations.left[order], entries])
    right = np.concatenate([np.full(len(held), n), equations.right[order], np.full(n, n)])
    sign = np.concatenate([np.where(beta[held] < 0, -1.0, 1.0), agree[order], np.ones(n)])
    # Kruskal's tree, with the sign of every entry beside that of the others in its group.
    found, group, parts = np.ones(n + 1), np.arange(n + 1), n + 1
    for one, other, same in zip(left.tolist(), right.tolist(), sign.tolist(), strict=True):
        if group[one] == group[other]:
            continue
        joins = group == group[other]
        found[joins] *= found[one] * same * found[other]
        group[joins], parts = group[one], parts - 1
        if parts == 1:
            break
    found *= found[n]
    return np.where(free, np.abs(beta) * found[:n], beta)


def gauss_newton(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    """Gauss-Newton steps, damped until each of them lowers the cost (Levenberg and Marquardt)."""
    columns = np.flatnonzero(free)
    if not len(columns) or not len(equations.left):
        return beta
    # The start from logarithms is near, so that hardly any damping is needed at first.
    system, damping = NormalEquations(equations, free), 1e-6
    state = system.look(beta)
    for _ in range(_MAX_STEPS):
        normal, gradient = system.normal(state)
        diagonal = np.diagonal(normal)
        ridge = np.eye(len(columns)) * (diagonal + _RIDGE * max(float(normal.max()), 1e-300))
        trial, found = beta, None
        while damping < 1e8 and (found is None or found.cost > state.cost):
            step = np.linalg.solve(normal + damping * ridge, gradient)
            if np.abs(step).max() < _SETTLED:  # costs so near cannot be told apart
                return beta
            trial = beta.copy()
            trial[columns] += step
            found = system.look(trial)
            damping = max(damping / 10, 1e-15) if found.cost <= state.cost else damping * 10
        if found is None or found.cost > state.cost:  # no step lowers it: the minimum, as far as numbers can tell
            return beta
        beta, state = trial, found
    return beta


def refine_replicates(equations: Equations, beta: FloatArray, free: BoolArray) -> FloatArray:
    """A few undamped steps from a solution nearby, for all replicates at once.

    Values, scales and variances are (n_replicates, n_equations), `beta` (n_replicates, n_unknowns).
    """
    columns, beta, system = np.flatnonzero(free), beta.copy(), NormalEquations(equations, free)
    diagonal = np.arange(len(columns))
    for _ in range(_REPLICATE_STEPS):
        normal, gradient = system.normal(system.look(beta))
        ridge = _RIDGE * np.maximum(normal.max(axis=(1, 2), initial=0.0), 1e-300)
        normal[:, diagonal, diagonal] += ridge[:, np.newaxis]
        beta[:, columns] += np.linalg.solve(normal, gradient[..., np.newaxis])[..., 0]
    return beta


class Looked(NamedTuple):
    """Equations at some values: derivatives by both unknowns, what is left by precision, and the sum of its squares."""

    by_left: FloatArray
    by_right: FloatArray
    weighted: FloatArray
    cost: float


class NormalEquations:
    """Equations laid out once for all steps: where the products of every one of them are added up."""

    def __init__(self, equations: Equations, free: BoolArray) -> None:
        n_free = int(free.sum())
        # Unknowns that are held share one more row and column, which is cut off in the end.
        place, self.size = np.where(free, np.cumsum(free) - 1, n_free), n_free + 1
        left, right = place[equations.left], place[equations.right]
        self.ends = np.concatenate([left, right])
        self.cells = np.concatenate([left, right, left, right]) * self.size + np.concatenate([right, left, left, right])
        self.equations, says = equations, equations.variance > 0
        self.precision = np.divide(1.0, equations.variance, out=np.zeros_like(equations.variance), where=says)

    def look(self, beta: FloatArray) -> Looked:
        """What the equations say at some values."""
        equations = self.equations
        left, right = beta[..., equations.left], beta[..., equations.right]
        by_left = equations.scale * right
        residual = equations.value - by_left * left
        weighted = self.precision * residual
        cost = float(weighted @ residual) if residual.ndim == 1 else np.nan
        return Looked(by_left=by_left, by_right=equations.scale * left, weighted=weighted, cost=cost)

    def normal(self, at: Looked) -> tuple[FloatArray, FloatArray]:
        """J'WJ and J'Wr of the free unknowns: J the derivatives of the equations, W their precisions, r what is left.

        Returns
        -------
        (..., n_free, n_free) and (..., n_free), with the leading axes of the values
        """
        own, other = self.precision * at.by_left, self.precision * at.by_right
        gradient = _sums(self.ends, (at.by_left * at.weighted, at.by_right * at.weighted), self.size)
        cross = own * at.by_right
        normal = _sums(self.cells, (cross, cross, own * at.by_left, other * at.by_right), self.size**2)
        normal = normal.reshape(*gradient.shape, self.size)
        return normal[..., :-1, :-1], gradient[..., :-1]


def _sums(places: IntArray, values: tuple[FloatArray, ...], size: int) -> FloatArray:
    """Sums by place along the last axis of all values one after the other; shape (..., size)."""
    joined = np.concatenate(values, axis=-1)
    if joined.ndim == 1:
        return np.bincount(places, joined, size).astype(np.float64, copy=False)
    flat = joined.reshape(int(np.prod(joined.shape[:-1])), joined.shape[-1])  # -1 would fail without equations
    rows = np.arange(len(flat))[:, np.newaxis] * size
    found = np.bincount((rows + places).reshape(-1), flat.reshape(-1), len(flat) * size)
    return np.asarray(found, dtype=np.float64).reshape(*joined.shape[:-1], size)

"""The stages of the SGD variant: accuracies on the same task, across resolutions, across time; then correlations.

As in the closed form, what an earlier stage has settled is held in the later ones, because rows across resolutions and
time lean on the prior. One sign per connected group of sources is free: a group that ended up worse than random on
average is mirrored and descends again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.estimate.design import settled_keys
from dugong.estimate.sgd_accuracies import AccuracyProblem
from dugong.estimate.sgd_correlations import CorrelationProblem
from dugong.estimate.sgd_descent import Trace, descend
from dugong.estimate.sgd_joints import make_joints
from dugong.estimate.sgd_settings import SGD
from dugong.estimate.sgd_tables import AccuracyTables, SgdTables
from dugong.estimate.sgd_units import Bank, PairUnits, make_pairs
from dugong.moments import Row
from dugong.types import BoolArray, FloatArray
from dugong.votes import Votes

_LEAST = 1e-3
_SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """Tables after some stages, the units that they explain, and how each descent went."""

    tables: AccuracyTables
    units: PairUnits
    traces: dict[str, Trace]
    open_tables: BoolArray


def solve_accuracies(tables: AccuracyTables, settings: SGD, rng: np.random.Generator, votes: Votes | None) -> Solved:
    """All accuracies, stage after stage; `tables.found` is replaced."""
    design, bank = tables.design, tables.bank
    found, known = np.where(bank.pinned[:, None, None], bank.known, bank.start()), bank.pinned.copy()
    stages = {"same task": design.same, "across resolutions": design.across, "across time": design.lagged}
    traces: dict[str, Trace] = {}
    rows: list[Row] = []
    for stage, extra in stages.items():
        rows += extra
        units = make_pairs(design, tables.moments, tables.laws, bank, rows)
        fresh = settled(units, known, bank.spoken.sum(axis=1) > 1) & ~known
        if not fresh.any():
            continue
        within, touched = known | fresh, fresh[units.left] | fresh[units.right]
        chosen = units.only(within[units.left] & within[units.right] & touched)
        problem = AccuracyProblem(bank, chosen, tables.moments, found, fresh, settings.device)
        traces[stage] = descend(problem, settings, rng, votes)
        found = problem.tables().detach().cpu().numpy().astype(np.float64)
        flipped = mirrored(bank, chosen, found, fresh, known)
        if flipped is not None:
            problem = AccuracyProblem(bank, chosen, tables.moments, flipped, fresh, settings.device)
            traces[f"{stage}, mirrored"] = descend(problem, settings, rng, votes)
            found = problem.tables().detach().cpu().numpy().astype(np.float64)
        known = known | fresh
    level = np.broadcast_to(bank.rates[:, np.newaxis], found.shape)
    found = np.where(known[:, None, None], found, level)
    return Solved(tables=with_accuracies(tables, found), units=units, traces=traces, open_tables=known & ~bank.pinned)


def solve_correlations(
    tables: AccuracyTables, settings: SGD, rng: np.random.Generator, votes: Votes | None
) -> tuple[SgdTables, dict[str, Trace]]:
    """All joint tables, given the accuracies."""
    joints, traces = make_joints(tables), {}
    found: list[FloatArray] = []
    if joints:
        problem = CorrelationProblem(joints, tables.moments, settings.consistency, settings.device)
        traces["correlations"] = descend(problem, settings, rng, votes)
        found = [table.detach().cpu().numpy().astype(np.float64) for table in problem.tables()]
    return (
        SgdTables(
            design=tables.design,
            moments=tables.moments,
            laws=tables.laws,
            bank=tables.bank,
            found=tables.found,
            accuracies=tables.accuracies,
            joints={units.key: table for units, table in zip(joints, found, strict=True)},
            label_laws={units.key: units.chances for units in joints},
            first_votes={u.key.names[0]: float(u.totals.max()) for u in joints if u.key.kind == "first"},
        ),
        traces,
    )


def with_accuracies(tables: AccuracyTables, found: FloatArray) -> AccuracyTables:
    """The same with other accuracies."""
    return AccuracyTables(
        design=tables.design,
        moments=tables.moments,
        laws=tables.laws,
        bank=tables.bank,
        found=found,
        accuracies=tables.accuracies,
    )


def settled(units: PairUnits, fixed: BoolArray, varies: BoolArray) -> BoolArray:
    """Tables whose size the units determine: an odd cycle of pairs, or a path to something fixed."""
    near: dict[str, set[str]] = {str(table): set() for table in range(len(fixed))}
    useful = units.useful & varies[units.left] & varies[units.right]
    for a, b in zip(units.left[useful], units.right[useful], strict=True):
        near[str(a)].add(str(b))
        near[str(b)].add(str(a))
    found = settled_keys(near, {str(table) for table in np.flatnonzero(fixed)})
    return np.array([str(table) in found for table in range(len(fixed))], dtype=np.bool_) & varies


def slopes(found: FloatArray) -> FloatArray:
    """Half the difference between the two rows of every table, (n_tables, C)."""
    return np.asarray((found[:, 1] - found[:, 0]) / 2)


def reflected(bank: Bank, found: FloatArray) -> FloatArray:
    """Every table with its slopes turned round: the same vote rates, the same covariances with other such tables."""
    mean = bank.chances @ _SIGNS
    shift = _SIGNS - mean[:, np.newaxis]
    return np.asarray(bank.rates[:, np.newaxis] - slopes(found)[:, np.newaxis] * shift[:, :, np.newaxis])


def mirrored(
    bank: Bank, units: PairUnits, found: FloatArray, fresh: BoolArray, anchored: BoolArray
) -> FloatArray | None:
    """Tables with every group turned round that is worse than random on average; None if there is none."""
    direction = slopes(found)[:, 1] - slopes(found)[:, 0]
    turn = np.zeros(bank.size, dtype=np.bool_)
    for group in _groups(units, fresh | anchored):
        if not anchored[group].any() and direction[group].sum() < 0:
            turn[group] = True
    if not turn.any():
        return None
    valid = np.where(bank.spoken[:, np.newaxis], np.maximum(reflected(bank, found), _LEAST), 0.0)
    return np.where(turn[:, None, None], valid / valid.sum(axis=2, keepdims=True), found)


def _groups(units: PairUnits, members: BoolArray) -> list[list[int]]:
    """Connected groups of tables."""
    near: dict[int, set[int]] = {int(table): set() for table in np.flatnonzero(members)}
    for a, b in zip(units.left[units.useful], units.right[units.useful], strict=True):
        near[int(a)].add(int(b))
        near[int(b)].add(int(a))
    groups, seen = [], set()
    for root in near:
        if root not in seen:
            group, queue = {root}, [root]
            while queue:
                fresh = near[queue.pop()] - group
                group |= fresh
                queue += fresh
            seen |= group
            groups.append(sorted(group))
    return groups

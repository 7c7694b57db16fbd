"""The stages of the SGD variant: slopes on the same task, across resolutions, across time; then correlations.

As in the closed form, what an earlier stage has settled is held in the later ones, because rows across resolutions and
time lean on the prior. One sign per connected group of slopes is free: a group that is worse than random on average is
turned round, which leaves its loss as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dugong.fit.equations import N_INDICATORS, Unknowns, informative, marginal
from dugong.fit.result import Note
from dugong.fit.sgd.correlations import CorrelationProblem
from dugong.fit.sgd.descent import Trace, descend
from dugong.fit.sgd.joints import make_joints
from dugong.fit.sgd.pairs import PairRows, make_pairs
from dugong.fit.sgd.settings import SGD
from dugong.fit.sgd.slopes import SlopeProblem, to_numpy
from dugong.fit.sgd.tables import AccuracyTables, SgdTables
from dugong.fit.slopes import Slopes
from dugong.graph import determined
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row
from dugong.types import BoolArray, FloatArray
from dugong.votes import Votes

# A tilt of every source towards being right: enough to choose between the two mirror images.
TILT = 0.2
_DIRECTION = np.array([-1.0, 1.0])


def solve_slopes(
    design: Design,
    moments: Moments,
    laws: Laws,
    settings: SGD,
    rng: np.random.Generator,
    *,
    votes: Votes | None,
    signs: str,
    accuracies: Mapping[str, FloatArray],
) -> tuple[Slopes, dict[str, Trace]]:
    """All slopes, stage after stage, and how each descent went."""
    unknowns = Unknowns.of(design, moments)
    varies = informative(design, moments, unknowns)
    beta, pinned = _begin(design, moments, unknowns, accuracies)
    known, rows, traces = pinned, list[Row](), dict[str, Trace]()
    stages = {"same task": design.same, "across resolutions": design.across, "across time": design.lagged}
    for stage, extra in stages.items():
        rows += extra
        pairs = make_pairs(design, moments, laws, unknowns, rows)
        fresh = _settled(pairs, known) & varies & ~known
        if not fresh.any():
            continue
        left, right, within = pairs.equations.left, pairs.equations.right, known | fresh
        chosen = pairs.only(pairs.useful & within[left] & within[right] & (fresh[left] | fresh[right]))
        problem = SlopeProblem(chosen, moments, beta, fresh, settings.device)
        traces[stage] = descend(problem, settings, rng, votes)
        beta, known = _mirrored(chosen, to_numpy(problem.probabilities()), known), within
    beta = np.where(known, beta, 0.0)
    outcome = _describe_signs(unknowns, beta, f"rule {signs!r}{', with pinned accuracies' if pinned.any() else ''}")
    beta, notes = (beta, []) if signs == "group" else _force_positive(unknowns, beta, pinned)
    found = Slopes(unknowns=unknowns, beta=beta, equations=pairs.equations, origins=pairs.origins, signs=outcome)
    return replace(found, notes=tuple(notes)), traces


def solve_correlations(
    tables: AccuracyTables, settings: SGD, rng: np.random.Generator, votes: Votes | None
) -> tuple[SgdTables, dict[str, Trace]]:
    """All joint tables, given the accuracies."""
    joints, traces = make_joints(tables), {}
    found: list[FloatArray] = []
    if joints:
        problem = CorrelationProblem(joints, tables.moments, settings.consistency, settings.device)
        traces["correlations"] = descend(problem, settings, rng, votes)
        found = [to_numpy(table) for table in problem.parameters]
    return (
        SgdTables(
            design=tables.design,
            moments=tables.moments,
            laws=tables.laws,
            slopes=tables.slopes,
            accuracies=tables.accuracies,
            joints={units.key: table for units, table in zip(joints, found, strict=True)},
            first_votes={u.key.names[0]: float(u.totals.max()) for u in joints if u.key.kind == "first"},
        ),
        traces,
    )


def _begin(
    design: Design, moments: Moments, unknowns: Unknowns, accuracies: Mapping[str, FloatArray]
) -> tuple[FloatArray, BoolArray]:
    """Slopes that are pinned by known tables, the others tilted a little towards sources that are right."""
    beta, pinned = np.zeros(unknowns.size), np.zeros(unknowns.size, dtype=np.bool_)
    for info in design.sources:
        if design.levels[info.name] == "full":
            continue
        places = unknowns.of_key(design.key(info.name))
        beta[places] = TILT / 2 * _DIRECTION * marginal(design, moments, info.name)[:, :N_INDICATORS]
    for name, table in accuracies.items():
        places, known = unknowns.of_key(design.key(name)), np.asarray(table)[..., :N_INDICATORS]
        beta[places], pinned[places] = (known[..., 1, :] - known[..., 0, :]) / 2, True
    return beta, pinned


def _settled(pairs: PairRows, fixed: BoolArray) -> BoolArray:
    """Slopes whose size the equations determine: an odd cycle of tables, or a path to something fixed."""
    table = np.arange(len(fixed)) // N_INDICATORS
    useful = pairs.equations.only(pairs.useful)
    settled = determined(table[useful.left], table[useful.right], np.bincount(table, fixed) > 0)
    return np.asarray(settled[table])


def _mirrored(pairs: PairRows, beta: FloatArray, anchored: BoolArray) -> FloatArray:
    """Slopes with every connected group turned round that is worse than random on average and touches nothing known."""
    left, right = pairs.equations.left, pairs.equations.right
    links = coo_array((np.ones(len(left)), (left, right)), shape=(len(beta), len(beta)))
    n_groups, group = connected_components(links, directed=False)
    direction = np.bincount(group, beta * np.resize(_DIRECTION, len(beta)), n_groups)
    held = np.bincount(group, anchored, n_groups) > 0
    return np.where(((direction < 0) & ~held)[group], -beta, beta)


def _describe_signs(unknowns: Unknowns, beta: FloatArray, how: str) -> dict[str, str]:
    sums = {key: float((beta[unknowns.of_key(key)] * _DIRECTION).sum()) for key in unknowns.first}
    return {key: f"{'+' if direction >= 0 else '-'} ({how})" for key, direction in sums.items()}


def _force_positive(unknowns: Unknowns, beta: FloatArray, pinned: BoolArray) -> tuple[FloatArray, list[Note]]:
    """Turn single tables round that are worse than random."""
    result, notes = beta.copy(), []
    for key in unknowns.first:
        places = unknowns.of_key(key)
        wrong = ((beta[places] * _DIRECTION).sum(axis=1) < 0) & ~pinned[places[:, 0]]
        if wrong.any():
            result[places[wrong]] *= -1
            text = f"the sign of {key!r} was flipped to positive"
            notes.append(Note(kind="flip", where=key, size=float(wrong.sum()), text=text))
    return result, notes

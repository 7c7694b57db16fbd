"""Slopes of all sources: staged solution of the moment equations, and the choice of signs.

Stage one uses rows on the same task only; unknowns that these do not determine are then solved through rows across
resolutions, and last across time, with everything solved before held fixed (METHOD 3.3, "Which rows").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.equations import N_INDICATORS, Unknowns, informative, make_equations
from dugong.fit.result import Note
from dugong.fit.solve import Equations, refine, solve
from dugong.graph import determined
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row
from dugong.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedStage:
    """Rows that were looked at together, and the unknowns that were solved from them."""

    rows: tuple[Row, ...]
    solved: BoolArray
    known: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slopes:
    """Solved slopes ``beta`` of ``E[1[vote = z] | y] = alpha_z + beta_z y`` for all sources."""

    unknowns: Unknowns
    beta: FloatArray
    equations: Equations
    origins: tuple[Row, ...]
    condition: Mapping[str, float] = field(default_factory=dict)
    signs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    stages: tuple[SolvedStage, ...] = ()

    def of(self, key: str) -> FloatArray:
        """Slopes of one source, (positions, N_INDICATORS)."""
        return np.asarray(self.beta[self.unknowns.of_key(key)])


def find_slopes(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    start: Slopes | None = None,
) -> Slopes:
    """Solve for the slopes of all sources that are not pinned; `start` is a solution nearby (for the jackknife)."""
    unknowns = Unknowns.of(design, moments)
    beta, pinned = _pin(design, unknowns, accuracies or {})
    varies = informative(design, moments, unknowns)
    known, condition = pinned.copy(), {}
    rows: list[Row] = []
    solved: list[SolvedStage] = []
    stages = {"same task": design.same, "across resolutions": design.across, "across time": design.lagged}
    for stage, extra in stages.items():
        if not extra and stage != "same task":
            continue
        rows += extra
        equations, origins = make_equations(design, moments, laws, unknowns, rows)
        open_now = _settled(unknowns, equations, known, varies) & ~known
        if not open_now.any():
            continue
        chosen = _among(equations, open_now | known)
        if start is None:
            beta, condition[stage] = solve(chosen, beta, open_now)
            beta = _group_signs(chosen, beta, open_now, known)
        else:
            beta[open_now] = start.beta[open_now]
            beta = refine(chosen, beta, open_now)
        solved.append(SolvedStage(rows=tuple(rows), solved=open_now, known=known))
        known = known | open_now
    beta[~varies & ~pinned] = 0.0
    outcome: dict[str, str] = _describe_signs(unknowns, beta, signs, pinned)
    notes: list[Note] = []
    if signs == "positive":
        beta, notes = _force_positive(unknowns, beta, pinned)
    elif signs != "group":
        raise GraphError(f'signs must be "group" or "positive"; found {signs!r}.')
    return Slopes(
        unknowns=unknowns,
        beta=beta,
        equations=equations,
        origins=tuple(origins),
        condition=condition,
        signs=outcome,
        notes=tuple(notes),
        stages=tuple(solved),
    )


def _pin(design: Design, unknowns: Unknowns, accuracies: Mapping[str, FloatArray]) -> tuple[FloatArray, BoolArray]:
    beta, pinned = np.zeros(unknowns.size), np.zeros(unknowns.size, dtype=np.bool_)
    for name, table in accuracies.items():
        places = unknowns.of_key(design.key(name))
        slope = (np.asarray(table)[..., 1, :N_INDICATORS] - np.asarray(table)[..., 0, :N_INDICATORS]) / 2
        beta[places], pinned[places] = slope, True
    return beta, pinned


def _settled(unknowns: Unknowns, equations: Equations, fixed: BoolArray, varies: BoolArray) -> BoolArray:
    """Unknowns whose size the equations determine: an odd cycle, or a path to something fixed."""
    block = np.arange(unknowns.size) // N_INDICATORS
    useful = (equations.scale != 0) & (equations.variance > 0)
    known = np.bincount(block, fixed) > 0
    settled = determined(block[equations.left[useful]], block[equations.right[useful]], known)
    return np.asarray(settled[block] & varies)


def _among(equations: Equations, members: BoolArray) -> Equations:
    return equations.only(members[equations.left] & members[equations.right])


def _group_signs(equations: Equations, beta: FloatArray, solved: BoolArray, anchored: BoolArray) -> FloatArray:
    """Flip every connected group of new unknowns whose sum of (beta_+ - beta_-) is negative."""
    near: dict[int, set[int]] = {int(i): set() for i in np.flatnonzero(solved | anchored)}
    useful = (equations.scale != 0) & (equations.variance > 0)
    for a, b in zip(equations.left[useful], equations.right[useful], strict=True):
        near[int(a)].add(int(b))
        near[int(b)].add(int(a))
    result, seen = beta.copy(), set()
    for root in near:
        if root in seen:
            continue
        members, queue = {root}, [root]
        while queue:
            for other in near[queue.pop()] - members:
                members.add(other)
                queue.append(other)
        seen |= members
        group = np.array(sorted(members))
        direction = np.where(group % N_INDICATORS == 1, 1.0, -1.0)
        if not anchored[group].any() and float((result[group] * direction).sum()) < 0:
            result[group] *= -1
    return result


def _describe_signs(unknowns: Unknowns, beta: FloatArray, rule: str, pinned: BoolArray) -> dict[str, str]:
    outcome = {}
    for key in unknowns.first:
        slopes = beta[unknowns.of_key(key)]
        direction = float((slopes[:, 1] - slopes[:, 0]).sum())
        outcome[key] = (
            f"{'+' if direction >= 0 else '-'} (rule {rule!r}{', with pinned accuracies' if pinned.any() else ''})"
        )
    return outcome


def _force_positive(unknowns: Unknowns, beta: FloatArray, pinned: BoolArray) -> tuple[FloatArray, list[Note]]:
    result, notes = beta.copy(), []
    for key in unknowns.first:
        places = unknowns.of_key(key)
        wrong = (result[places[:, 1]] - result[places[:, 0]] < 0) & ~pinned[places[:, 0]]
        if wrong.any():
            result[places[wrong]] *= -1
            text = f"the sign of {key!r} was flipped to positive"
            notes.append(Note(kind="flip", where=key, size=float(wrong.sum()), text=text))
    return result, notes

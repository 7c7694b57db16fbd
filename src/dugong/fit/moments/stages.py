"""The staged solution that all closed forms and the SGD variant share, and the choice of signs.

Stage one uses rows on the same task only; unknowns that these do not determine are then solved through rows across
resolutions, and last across time, with everything solved before held fixed, because such rows lean on the prior
(METHOD 3.3, "Which rows"). An estimator supplies its unknowns, the equations of some rows, and how they are solved.

Signs: equations are about products of two unknowns, so that every connected group of them may be turned round as a
whole. Of the two mirror images the one is taken in which sources are better than random on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from dugong.fit.moments.equations import EquationForm, Equations, Given, Unknowns, make_equations
from dugong.fit.result import Note
from dugong.graph import connected, determined
from dugong.sums import MomentRow
from dugong.types import BoolArray, FloatArray

# What a believed source counts in the choice of signs: of two that contradict each other it decides, and a single weak
# one does not turn round what many others say.
_BELIEVED = 2.0

Equate = Callable[[Given, Unknowns, Sequence[MomentRow]], Equations]
Solve = Callable[[Equations, FloatArray, BoolArray], tuple[FloatArray, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolvedStage:
    """Rows that were looked at together, and the unknowns that were solved from them."""

    name: str
    rows: tuple[MomentRow, ...]
    solved: BoolArray
    known: BoolArray

    def chosen(self, equations: Equations) -> Equations:
        """Those of the equations of its rows that say something about what is solved, given what is known."""
        left, right, member = equations.left, equations.right, self.solved | self.known
        keep = equations.useful & member[left] & member[right] & (self.solved[left] | self.solved[right])
        parts = {name: getattr(equations, name)[..., keep] for name in ("value", "scale", "variance", "total")}
        return replace(equations, left=left[keep], right=right[keep], kept=equations.kept[keep], **parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Solved unknowns of all sources, and how they came about.

    Attributes
    ----------
    unknowns : where those of each source stand
    beta : (..., n_unknowns) their values
    equations : all equations that were looked at
    rows : the rows that they are from
    condition : condition number by stage
    signs : what the sign rule found, by name
    notes : what should be known about it
    stages : the stages in which something was solved
    """

    unknowns: Unknowns
    beta: FloatArray
    equations: Equations
    rows: tuple[MomentRow, ...] = ()
    condition: Mapping[str, float] = field(default_factory=dict)
    signs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    stages: tuple[SolvedStage, ...] = ()

    def of(self, key: str) -> FloatArray:
        """Unknowns of one source, (..., positions, width)."""
        return np.asarray(self.beta[..., self.unknowns.places[key]])

    def residuals(self) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], int]]:
        """The largest standardised residual of the equations of every pair of sources, and its number of votes."""
        equations = self.equations
        # An equation without a variance says nothing, so that its residual is zero rather than infinite.
        spread = np.sqrt(np.where(equations.variance > 0, equations.variance, np.inf))
        standard = (equations.value - equations.scale * self.beta[equations.left] * self.beta[equations.right]) / spread
        largest, support = dict[tuple[str, str], float](), dict[tuple[str, str], int]()
        # Equations of one row lie next to each other.
        ends = np.searchsorted(equations.kept, np.cumsum([0, *(size for _, size in equations.rows)]))
        for (row, _), (begin, end) in zip(equations.rows, pairwise(ends.tolist()), strict=True):
            if begin < end:
                pair, own = (row.sources[0], row.sources[1]), standard[begin:end]
                # Of equal ones the last.
                value = float(own[::-1][np.abs(own[::-1]).argmax()])
                if abs(value) >= abs(largest.get(pair, 0.0)):
                    largest[pair] = value
                support.setdefault(pair, int(equations.total[begin:end].sum() / self.unknowns.form.width**2))
        return largest, support


def solve_stages(given: Given, form: EquationForm, solve: Solve, equate: Equate = make_equations) -> Solution:
    """Solve for all unknowns that the rows of a design determine.

    Parameters
    ----------
    solve : equations, values and which of them are free, to better values and a condition number, if there is one
    equate : from what is given and the unknowns to the equations of some rows
    """
    design, signs, unknowns = given.design, given.signs, Unknowns.of(given.design, given.moments, form)
    # What is pinned is known from the start; every stage adds what it has solved, and later ones hold it.
    beta, pinned, varies = form.known(given, unknowns)
    known, condition, table = pinned, dict[str, float](), unknowns.table
    believed, forced = unknowns.direction, set(unknowns.places) if signs == "positive" else set[str]()
    if given.beliefs:
        believed, upright = _believed(given, unknowns)
        forced |= upright
    rows, stages = list[MomentRow](), list[SolvedStage]()
    for name, extra in design.stages.items():
        if not extra and name != "same task":
            continue
        rows += extra
        equations = equate(given, unknowns, rows)
        # Known unknowns settle their neighbours, because one factor of a product gives the other; so does an odd cycle.
        # Tables, not single slopes: both indicators of a vote are determined together or not at all. An equation whose
        # value is exactly zero says that a product vanishes, but not which factor.
        telling = equations.useful & (equations.value != 0)
        left, right = table[equations.left[telling]], table[equations.right[telling]]
        fresh = determined(left, right, np.bincount(table, known) > 0)[table] & varies & ~known
        if not fresh.any():
            continue
        stage = SolvedStage(name=name, rows=tuple(rows), solved=fresh, known=known)
        chosen = stage.chosen(equations)
        beta, found = solve(chosen, beta, fresh)
        if found is not None:
            condition[name] = found
        # Signs are chosen stage by stage, because a later stage leans on the signs of what it holds.
        beta = turn_groups(chosen, beta, known, believed)
        stages.append(stage)
        known = known | fresh
    # What nothing determines says nothing about labels: its votes are then as likely under either.
    beta = np.where(known, beta, 0.0)
    rule = f"rule {signs!r}{', with pinned accuracies' if pinned.any() else ''}"
    # The sum of slopes in the right direction, not E[vote * label]: with rare positives the latter is positive for
    # either mirror image (METHOD 3.3).
    right = beta * unknowns.direction
    outcome = {key: f"{'+' if right[own].sum() >= 0 else '-'} ({rule})" for key, own in unknowns.places.items()}
    lost, notes = varies & ~known, list[Note]()
    if lost.any():
        notes += _undetermined(unknowns, lost)
    if forced:
        beta, flips = _force_positive(unknowns, beta, pinned, forced)
        notes += flips
    return Solution(
        unknowns=unknowns,
        beta=beta,
        equations=equations,
        rows=tuple(rows),
        condition=condition,
        signs=outcome,
        notes=tuple(notes),
        stages=tuple(stages),
    )


def turn_groups(equations: Equations, beta: FloatArray, anchored: BoolArray, direction: FloatArray) -> FloatArray:
    """Turn every connected group round that is worse than random on average and touches nothing known."""
    telling = equations.value != 0
    group = connected(equations.left[telling], equations.right[telling], len(beta))
    average = np.bincount(group, beta * direction)
    # A group that touches something known has its signs from there.
    held = np.bincount(group, anchored) > 0
    return np.where(((average < 0) & ~held)[group], -beta, beta)


def _believed(given: Given, unknowns: Unknowns) -> tuple[FloatArray, set[str]]:
    """Directions in which sources that are believed to be right count more; and tables that must not be worse."""
    keys, beliefs = given.design.keys, given.beliefs
    upright = {keys[name] for name, one in beliefs.items() if one.upright} & set(unknowns.places)
    forced = {keys[name] for name, one in beliefs.items() if one.better_than_chance} & set(unknowns.places)
    direction = unknowns.direction.copy()
    for name in upright:
        direction[unknowns.places[name]] *= _BELIEVED
    return direction, forced


def _force_positive(
    unknowns: Unknowns, beta: FloatArray, pinned: BoolArray, forced: set[str]
) -> tuple[FloatArray, list[Note]]:
    """Turn single tables round that are worse than random, where that cannot be."""
    result, notes, right = beta.copy(), [], beta * unknowns.direction
    for key, places in unknowns.places.items():
        if key not in forced:
            continue
        wrong = (right[places].sum(axis=1) < 0) & ~pinned[places[:, 0]]
        if wrong.any():
            result[places[wrong]] *= -1
            text = f"the sign of {key!r} was flipped to positive"
            notes.append(Note(kind="flip", where=key, size=float(wrong.sum()), text=text))
    return result, notes


def _undetermined(unknowns: Unknowns, lost: BoolArray) -> list[Note]:
    notes = []
    for key, places in unknowns.places.items():
        missing = int(lost[places].any(axis=1).sum())
        if missing:
            text = f"the votes determine no accuracy of {key!r}: it is taken to say nothing about the label"
            notes.append(Note(kind="undetermined", where=key, size=float(missing), text=text))
    return notes

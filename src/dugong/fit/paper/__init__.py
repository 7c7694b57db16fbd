"""Algorithm 1 of the paper, by its own name: agreements, M l = q, signs, B e = r, Bayes.

In: moments, a prior, the design. Out: an `Estimate`. It is exact for sources without a preference for one
class (an Ising model without singleton potentials, the case of the paper's appendix) and biased elsewhere:
the centred estimator is the default. Binary tasks only.

Differs from the paper: all independent pairs enter, weighted by their precision, instead of one triplet;
agreements are means given that the sources vote, with a rate of voting that does not depend on the label
(docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from dugong.exceptions import TaskError
from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.equations import Equations, Given, Unknowns, make_equations
from dugong.fit.moments.solve import solve_logs
from dugong.fit.moments.stages import Equate, Solve, solve_stages
from dugong.fit.paper.agreements import AGREEMENTS, solve_anchors
from dugong.fit.paper.joints import PaperTables
from dugong.fit.result import Estimate
from dugong.graph.design import Design, full_pair_rows
from dugong.sums import MomentRow, Plan
from dugong.types import IntArray

# Cells of all tables of pairs: four million are half a minute, and every group of sequences has its own.
MOST_CELLS = 1 << 22


def plan_paper(design: Design) -> Plan:
    """Rows that have to be counted: those of the design, and all pairs with a full table."""
    full = [info.name for info in design.sources if design.levels[info.name] == "full"]
    pairs = dict.fromkeys(row for name in full for row in full_pair_rows(design, name))
    n_cells = sum(3 ** len(row.slots) for row in pairs)
    if n_cells > MOST_CELLS:
        raise TaskError(
            f'the estimator "paper" counts all votes of a source with sharing="full" beside all those of every other: '
            f"at most {MOST_CELLS:,} cells; these would be {n_cells:,}.\n"
            '  Use sharing="full" for fewer sources, shorter sequences, or estimator="centred" or "em".'
        )
    return Plan.of([*design.plan.rows, *pairs])


def estimate_paper(tables: PaperTables) -> Estimate:
    """All tables, repaired where they are not valid."""
    return Assembly(tables).estimate()


def paper_tables(given: Given, equate: Equate = make_equations, solve: Solve = solve_logs) -> PaperTables:
    """Solve for the agreements from counts of `plan_paper(design)`; the tables follow from them on demand.

    `solve`: M l = q by default, or a descent on the same equations.
    """
    if given.moments.n_classes != 2:
        raise TaskError(
            f'the estimator "paper" needs tasks with two classes; found {given.moments.n_classes}.\n'
            '  Use estimator="centred" or "em".'
        )
    solved = solve_stages(given, AGREEMENTS, solve, equate)
    return PaperTables(given=given, solved=solved, anchors=solve_anchors(given, solved))


def tables_without(given: Given, groups: IntArray) -> Iterator[PaperTables]:
    """The same without each of some groups of sequences; their equations are made together, as those of all pairs."""
    each = replace(given, moments=given.moments.without(groups))
    made: dict[int, Equations] = {}  # by the number of rows, which every stage adds to

    def equate(place: int, _: Given, unknowns: Unknowns, rows: Sequence[MomentRow]) -> Equations:
        if len(rows) not in made:
            made[len(rows)] = make_equations(each, unknowns, rows)
        return made[len(rows)].replicate(place)

    for place, group in enumerate(groups.tolist()):
        yield paper_tables(replace(given, moments=given.moments.without(group)), partial(equate, place))

"""Algorithm 1 of the paper, by its own name: agreements, M l = q, signs, B e = r, Bayes.

In: moments, a prior, the design. Out: an `Estimate`. It is exact for sources without a preference for one
class (an Ising model without singleton potentials, the case of the paper's appendix) and biased elsewhere:
the centred estimator is the default. Binary tasks only.

Differs from the paper: all independent pairs enter, weighted by their precision, instead of one triplet;
agreements are means given that the sources vote, with a rate of voting that does not depend on the label
(docs/differences.md).
"""

from __future__ import annotations

from dugong.exceptions import TaskError
from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.equations import Given
from dugong.fit.paper.agreements import find_agreements, solve_anchors
from dugong.fit.paper.joints import PaperTables
from dugong.fit.result import Estimate
from dugong.graph.design import Design, full_pair_rows
from dugong.sums import Plan


def plan_paper(design: Design) -> Plan:
    """Rows that have to be counted: those of the design, and all pairs with a full table."""
    full = [info.name for info in design.sources if design.levels[info.name] == "full"]
    return Plan.of([*design.plan.rows, *(row for name in full for row in full_pair_rows(design, name))])


def estimate_paper(given: Given) -> Estimate:
    """Estimate all tables from counts of `plan_paper(design)`."""
    tables = paper_tables(given)
    return Assembly(tables).estimate(tables.solved)


def paper_tables(given: Given) -> PaperTables:
    """Solve for the agreements; the tables follow from them on demand."""
    if given.moments.n_classes != 2:
        raise TaskError(
            f'the estimator "paper" needs tasks with two classes; found {given.moments.n_classes}.\n'
            '  Use estimator="centred" or "em".'
        )
    solved = find_agreements(given)
    return PaperTables(
        design=given.design,
        moments=given.moments,
        laws=given.laws,
        solved=solved,
        anchors=solve_anchors(given.design, given.moments, solved),
        accuracies=given.accuracies,
    )

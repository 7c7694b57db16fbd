"""Who is estimated again without each group of sequences: estimates from moments, and tables from expected counts.

The jackknife itself is `dugong.fit.errors.jackknife`. (METHOD 3.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from dugong.fit.em import read_accuracies, read_correlations
from dugong.fit.errors import RawTables, StandardErrors, jackknife
from dugong.fit.fitting import Fitted
from dugong.fit.moments.assemble import raw_tables
from dugong.fit.moments.centred import replicate_tables
from dugong.fit.moments.joints import CentredTables
from dugong.fit.paper import paper_tables
from dugong.graph.design import Design
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.sums import Moments, Row, Slot
from dugong.types import FloatArray, IntArray


def moment_errors(
    design: Design,
    moments: Moments,
    fitted: Fitted,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> StandardErrors:
    """Standard errors of all accuracies and correlations of an estimate from moments.

    Parameters
    ----------
    fitted : the estimate from all groups, with the laws and slopes that it was made from
    signs, accuracies : as given to the estimator
    """
    known = accuracies or {}

    def without(groups: IntArray) -> RawTables:
        if fitted.slopes is None:
            left_out = (moments.without(int(group)) for group in groups)
            each = [paper_tables(design, one, fitted.laws, signs=signs, accuracies=known) for one in left_out]
            return RawTables.stack([raw_tables(tables) for tables in each])
        whole = CentredTables(design=design, moments=moments, laws=fitted.laws, slopes=fitted.slopes, accuracies=known)
        # Where the sample's own class balance was used, a replicate has one of its own.
        balances = {where: means[groups] for where, means in fitted.balances.items()}
        laws = fitted.laws.with_balance(balances) if balances else fitted.laws
        return raw_tables(replicate_tables(whole, laws, groups))

    full = RawTables(accuracies=fitted.estimate.raw, correlations=fitted.estimate.raw_correlations)
    return jackknife(full, group_sizes(design, moments), without)


def group_sizes(design: Design, moments: Moments) -> FloatArray:
    """Votes that were asked for in every group, shape (n_groups,)."""
    names = [info.name for info in design.sources]
    return moments.sizes(Row(slots=(Slot(name),), by_position=design.levels[name] == "task") for name in names)


def count_errors(
    parameters: Parameters, counts: ExpectedCounts, edges: Iterable[tuple[str, str]] = ()
) -> StandardErrors:
    """Standard errors of tables that come from the expected counts of one exact E-step (EM, learned defaults).

    The soft labels themselves are held fixed, so these errors leave out what the labels owe to the tables.

    Parameters
    ----------
    counts : with a leading axis over groups of sequences
    """

    def tables(change: Callable[[FloatArray], FloatArray]) -> RawTables:
        changed = _each(counts, change)
        return RawTables(
            accuracies=read_accuracies(parameters, changed), correlations=read_correlations(parameters, changed, edges)
        )

    def rest(group: int) -> RawTables:
        return tables(lambda table: table.sum(axis=0) - table[group])

    # Every element is either the first of its sequence or has one before it: these counts are elements.
    sizes = np.asarray(counts.initial.sum(axis=-1) + counts.transitions.sum(axis=(-2, -1)))
    full = tables(lambda table: table.sum(axis=0))
    return jackknife(full, sizes, lambda some: RawTables.stack([rest(int(group)) for group in some]))


def _each(counts: ExpectedCounts, change: Callable[[FloatArray], FloatArray]) -> ExpectedCounts:
    """Counts of which every array was changed; rounding makes none of a factor negative."""
    return ExpectedCounts(
        factors={
            source: {name: np.maximum(change(table), 0.0) for name, table in tables.items()}
            for source, tables in counts.factors.items()
        },
        initial=change(counts.initial),
        transitions=change(counts.transitions),
        log_likelihood=change(counts.log_likelihood),
    )

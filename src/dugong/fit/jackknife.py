"""Who is estimated again without each group of sequences: estimates from moments, and tables from expected counts.

The jackknife itself is `dugong.fit.errors.jackknife`. (METHOD 3.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from dugong.fit.em import read_accuracies, read_correlations
from dugong.fit.errors import RawTables, StandardErrors, jackknife
from dugong.fit.fitting import Fitted
from dugong.fit.moments.assemble import raw_tables
from dugong.fit.moments.centred import centred_tables, replicate_tables
from dugong.fit.moments.joints import CentredTables
from dugong.fit.paper import paper_tables
from dugong.graph.design import Design
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.sums import Moments
from dugong.types import FloatArray, IntArray


def moment_errors(fitted: Fitted) -> StandardErrors:
    """Standard errors of all accuracies and correlations of an estimate from moments."""
    given, estimate = fitted.given, fitted.estimate
    whole = paper_tables(given) if fitted.slopes is None else centred_tables(given, fitted.slopes)

    def without(groups: IntArray) -> RawTables:
        if not isinstance(whole, CentredTables):
            left_out = (given.moments.without(int(group)) for group in groups)
            return RawTables.stack([raw_tables(paper_tables(replace(given, moments=one))) for one in left_out])
        # Where the sample's own class balance was used, a replicate has one of its own.
        balances = {where: means[groups] for where, means in fitted.balances.items()}
        laws = given.laws.with_balance(balances) if balances else given.laws
        return raw_tables(replicate_tables(whole, laws, groups))

    errors = jackknife(raw_tables(whole), group_sizes(given.design, given.moments), without)
    return errors.around(estimate.raw, estimate.raw_correlations)


def group_sizes(design: Design, moments: Moments) -> FloatArray:
    """Votes that were asked for in every group, shape (n_groups,)."""
    return moments.sizes(design.single(info.name) for info in design.sources)


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

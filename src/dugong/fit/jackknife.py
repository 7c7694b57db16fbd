"""Who is estimated again without each group of sequences: estimates from moments, and tables from expected counts.

The jackknife itself is `dugong.fit.errors.jackknife`. (METHOD 3.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from dugong.fit.errors import RawTables, StandardErrors, jackknife
from dugong.fit.fitting import Fitted
from dugong.fit.moments.assemble import raw_tables
from dugong.fit.moments.centred import replicate_tables
from dugong.fit.moments.joints import CentredTables
from dugong.fit.paper import paper_tables
from dugong.fit.readout import read_accuracies, read_correlations
from dugong.graph.design import Design
from dugong.infer.engine import expected_counts
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.priors import Prior
from dugong.sums import Grouping, Moments, Row, Slot
from dugong.sums.groups import FEW
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes


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
    votes: Votes,
    parameters: Parameters,
    prior: Prior,
    grouping: Grouping,
    edges: Iterable[tuple[str, str]] = (),
    *,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> StandardErrors:
    """Standard errors of tables that come from the expected counts of one exact E-step (EM, learned defaults).

    The soft labels themselves are held fixed, so these errors leave out what the labels owe to the tables.
    """
    few = votes.n_sequences < FEW  # then groups are blocks inside sequences, and these are counted as a whole
    groups = 1 + np.arange(votes.n_sequences) if few else grouping.base
    n_groups = 1 + votes.n_sequences if few else grouping.n_groups
    counts = expected_counts(
        votes, parameters, prior, groups=groups, n_groups=n_groups, evidence=evidence, n_threads=n_threads
    )

    def tables(change: Callable[[FloatArray], FloatArray]) -> RawTables:
        changed = _each(counts, change)
        return RawTables(
            accuracies=read_accuracies(parameters, changed), correlations=read_correlations(parameters, changed, edges)
        )

    def rest(group: int) -> RawTables:
        return tables(lambda table: table.sum(axis=0) - table[group])

    sizes = np.bincount(groups, votes.lengths.astype(np.float64), n_groups).astype(np.float64)
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

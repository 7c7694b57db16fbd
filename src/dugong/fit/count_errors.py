"""Standard errors of tables that come from expected counts (EM, learned defaults).

The counts of one exact E-step are kept apart by group of sequences; leaving each group out in turn gives the spread.
The soft labels themselves are held fixed, so these errors leave out what the labels owe to the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import itemgetter

import numpy as np

from dugong.fit.assemble import RawTables
from dugong.fit.em import read_accuracies, read_correlations
from dugong.fit.errors import StandardErrors
from dugong.fit.jackknife import spread, unknown_errors
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.types import FloatArray


def count_errors(
    parameters: Parameters, counts: ExpectedCounts, edges: Iterable[tuple[str, str]] = ()
) -> StandardErrors:
    """Delete-one-group standard errors of accuracies and correlations.

    Parameters
    ----------
    counts : with a leading axis over groups of sequences; group 0 is what no group was drawn for
    """
    full = _tables(parameters, _each(counts, lambda table: table.sum(axis=0)), edges)
    # Every element is either the first of its sequence or has one before it: these counts are elements.
    sizes = counts.initial.sum(axis=-1) + counts.transitions.sum(axis=(-2, -1))
    left_out = (1 + np.flatnonzero(sizes[1:] > 0)).tolist()
    if len(left_out) < 2:
        return unknown_errors(full, len(left_out))
    without = _each(counts, lambda table: table.sum(axis=0) - table)
    replicates = [_tables(parameters, _each(without, itemgetter(place)), edges) for place in left_out]
    return spread(full, replicates, np.asarray(sizes[left_out] / max(sizes.sum(), 1.0)))


def around(
    errors: StandardErrors,
    accuracies: Mapping[str, FloatArray],
    correlations: Mapping[tuple[str, str], FloatArray],
) -> StandardErrors:
    """The same standard errors around the tables that are shown, where these are not the mean of the soft labels."""
    return replace(
        errors,
        raw={name: accuracies[name] for name in errors.raw},
        raw_correlations={edge: correlations.get(edge, table) for edge, table in errors.raw_correlations.items()},
    )


def _tables(parameters: Parameters, counts: ExpectedCounts, edges: Iterable[tuple[str, str]]) -> RawTables:
    return RawTables(
        accuracies=read_accuracies(parameters, counts), correlations=read_correlations(parameters, counts, edges)
    )


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

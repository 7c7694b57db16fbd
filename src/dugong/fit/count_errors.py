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
from dugong.fit.errors import StandardErrors
from dugong.fit.jackknife import spread, unknown_errors
from dugong.fit.readout import read_accuracies, read_correlations
from dugong.infer.engine import expected_counts
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.priors import Prior
from dugong.sums import Grouping
from dugong.sums.groups import FEW
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes


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
    """Delete-one-group standard errors of accuracies and correlations."""
    few = votes.n_sequences < FEW
    labels = np.arange(votes.n_sequences) if few else grouping.base
    groups, members = np.unique(labels, return_inverse=True)
    counts = expected_counts(votes, parameters, prior, groups=members, evidence=evidence, n_threads=n_threads)
    full = _tables(parameters, _each(counts, lambda table: table.sum(axis=0)), edges)
    sizes = np.bincount(members, weights=votes.lengths.astype(np.float64))
    left_out = [place for place, group in enumerate(groups) if (few or group > 0) and sizes[place] > 0]
    if len(left_out) < 2:
        return unknown_errors(full, len(left_out))
    without = _each(counts, lambda table: table.sum(axis=0) - table)
    replicates = [_tables(parameters, _each(without, itemgetter(place)), edges) for place in left_out]
    return spread(full, replicates, sizes[left_out] / max(sizes.sum(), 1.0))


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

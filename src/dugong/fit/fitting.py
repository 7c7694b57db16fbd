"""Estimates from moments, whichever estimator makes them, and standard errors of these and of tables from counts.

In: what an estimate is made from (`Given`), and passes over the votes. Out: a `Fitted`: the estimate at the prior's
class balance or, where that is uncertain, at the sample's own. The jackknife is that of `dugong.fit.errors`; here is
what it estimates again without each group of sequences. (METHOD 3.3 and 3.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.em import read_accuracies, read_correlations
from dugong.fit.errors import RawTables, StandardErrors, jackknife
from dugong.fit.moments import estimate_centred, replicate_tables, solve_tables
from dugong.fit.moments.assemble import Assembly, JointTables, raw_tables
from dugong.fit.moments.equations import Given
from dugong.fit.moments.joints import CentredTables
from dugong.fit.paper import estimate_paper, paper_tables, plan_paper, tables_without
from dugong.fit.passes import LabelSums, Passes
from dugong.fit.result import Estimate, Note
from dugong.fit.settings import Centred, Estimator, Paper
from dugong.fit.sgd import estimate_agreements, estimate_sgd
from dugong.fit.sgd.settings import SGD
from dugong.graph.design import Design
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Parameters
from dugong.priors import sample_balance_covariance
from dugong.sums import Laws, Plan
from dugong.tasks import Element
from dugong.types import FloatArray, IntArray

# Probability by which the prior leaves the sample's own class balance uncertain, below which it is not re-estimated.
NEGLIGIBLE_BALANCE = 0.001
# Share of positives by which sample and prior must differ, and in standard deviations, before something must be wrong.
CONTRADICTION, IMPOSSIBLE = 0.1, 5.0
_CENTRED = Centred()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """An estimate with what it was made from.

    Attributes
    ----------
    tables : what the slopes of the centred equations say, of which the standard errors are; the paper's estimator has
        no slopes, and its own tables
    balance : that of the sample, where it was used
    """

    estimate: Estimate
    tables: JointTables
    balance: LabelSums | None = None


def plan_for(design: Design, estimator: Estimator) -> Plan:
    """The rows that an estimator needs counted."""
    letter = isinstance(estimator, Paper) or (isinstance(estimator, SGD) and estimator.losses == "agreements")
    return plan_paper(design) if letter else design.plan


def fit_moments(given: Given, estimator: Estimator = _CENTRED, passes: Passes | None = None) -> Fitted:
    """Estimate with the prior's class balance; then, where that is uncertain, once more with the sample's own.

    Parameters
    ----------
    passes : goes over the votes behind the moments again; without it the balance stays the prior's
    """
    if isinstance(estimator, SGD) and estimator.losses == "agreements":  # as the paper prints them
        descended, letter = estimate_agreements(given, estimator, passes)
        return Fitted(estimate=descended, tables=letter)
    if isinstance(estimator, Paper):
        letter = paper_tables(given)
        return Fitted(estimate=estimate_paper(letter), tables=letter)
    tables, shapes, error = solve_tables(given), given.moments.shapes, 0.0
    notes, sums = list[Note](), None
    if passes is not None and passes.rereadable and shapes.counts.sum():
        # Standard deviation, under the prior, of the share of positives in such a sample.
        error = float(np.sqrt(sample_balance_covariance(given.laws.prior, shapes.lengths, shapes.counts)[1, 1]))
    if passes is not None and error > NEGLIGIBLE_BALANCE:
        # Of a first estimate nobody reads more than its parameters.
        first = estimate_sgd(given, estimator, passes) if isinstance(estimator, SGD) else Assembly(tables)
        sums = passes.balance(Law(parameters=first.parameters, prior=given.laws.prior))
        notes = _about_balance(sums, given.laws, error)
        given = given.with_laws(given.laws.with_balance(sums.means()))
        tables = solve_tables(given, tables.solved)
    # A descent solves the same equations with the same weights. One for every group would cost minutes, so its standard
    # errors are those of the closed form.
    estimate = estimate_sgd(given, estimator, passes) if isinstance(estimator, SGD) else estimate_centred(tables)
    return Fitted(estimate=estimate.noted(*notes), tables=tables, balance=sums)


def _about_balance(sums: LabelSums, laws: Laws, error: float) -> list[Note]:
    """The class balance of the sample in words; a warning where it cannot be that which the prior expects."""
    means = sums.means()
    listed = ", ".join(f"{where.name} {(1 + mean) / 2:.1%}" for where, mean in means.items())
    text = f"share of positive labels in this sample, by resolution: {listed}"
    notes = [Note(kind="balance", text=text)]
    found, expected = means[Element()], float(laws.mean(Element())[0])
    gap = abs(found - expected) / 2
    if gap < max(CONTRADICTION, IMPOSSIBLE * error):
        return notes
    text = (
        f"votes and prior contradict each other: {(1 + found) / 2:.1%} of the elements would be positive, the prior "
        f"says {(1 + expected) / 2:.1%} (plus or minus {error:.1%} in such a sample). Most likely sources depend on "
        "each other in ways that were not declared, or the prior is of other data: labels may then be worse than the "
        'vote. Try dependencies="learn"'
    )
    return [*notes, Note(kind="contradiction", text=text, size=gap)]


# --- standard errors: who is estimated again without each group of sequences -----------------------------------------


def moment_errors(fitted: Fitted) -> StandardErrors:
    """Standard errors of all accuracies and correlations of an estimate from moments."""
    estimate, whole, given = fitted.estimate, fitted.tables, fitted.tables.given

    def without(groups: IntArray) -> RawTables:
        if not isinstance(whole, CentredTables):
            return RawTables.stack([raw_tables(one) for one in tables_without(given, groups)])
        # Where the sample's own class balance was used, a replicate has one of its own.
        without = {} if fitted.balance is None else fitted.balance.without_groups()
        balances = {where: means[groups] for where, means in without.items()}
        laws = given.laws.with_balance(balances) if balances else given.laws
        return raw_tables(replicate_tables(whole, laws, groups))

    errors = jackknife(raw_tables(whole), given.sizes(), without)
    return errors.around(estimate.raw, estimate.raw_correlations)


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
        # Rounding makes none of them negative.
        factors = {
            source: {name: np.maximum(change(table), 0.0) for name, table in own.items()}
            for source, own in counts.factors.items()
        }
        changed = replace(counts, factors=factors)
        return RawTables(
            accuracies=read_accuracies(parameters, changed), correlations=read_correlations(parameters, changed, edges)
        )

    def rest(group: int) -> RawTables:
        return tables(lambda table: table.sum(axis=0) - table[group])

    # Every element is either the first of its sequence or has one before it: these counts are elements.
    sizes = np.asarray(counts.initial.sum(axis=-1) + counts.transitions.sum(axis=(-2, -1)))
    full = tables(lambda table: table.sum(axis=0))
    return jackknife(full, sizes, lambda some: RawTables.stack([rest(int(group)) for group in some]))

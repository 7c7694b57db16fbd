"""The default estimator: centred moments, right for lopsided sources and abstains (METHOD 3.3 and 3.4).

In: moments, a prior, the design. Out: an `Estimate`. ``Cov(f, g) = beta_f beta_g Cov(y, y')`` needs no
symmetry of the sources; correlations, self-dependence and full tables follow through unbiased proxies.

Differs from the paper: the paper's factorisation of raw agreements needs sources without a preference for
one class; see docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.equations import (
    N_INDICATORS,
    Unknowns,
    informative,
    make_equations,
    marginal,
    pinned_slopes,
)
from dugong.fit.moments.joints import CentredTables
from dugong.fit.moments.solve import normal_equations, refine_replicates, solve
from dugong.fit.moments.stages import Solution, solve_stages
from dugong.fit.result import Estimate, Note
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row, Slot
from dugong.types import FloatArray, IntArray


def estimate_centred(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> tuple[Estimate, Solution]:
    """Estimate all tables from counts; also returns the slopes, from which the jackknife starts."""
    slopes = find_slopes(design, moments, laws, signs=signs, accuracies=accuracies)
    tables = CentredTables(design=design, moments=moments, laws=laws, slopes=slopes, accuracies=accuracies or {})
    return Assembly(tables).estimate(slopes, _repetitions(tables)), slopes


def find_slopes(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> Solution:
    """Slopes ``beta`` of ``E[1[vote = z] | y] = alpha_z + beta_z y`` for all sources that are not pinned."""
    unknowns = Unknowns.of(design, moments)
    start, pinned = pinned_slopes(design, unknowns, accuracies or {})
    return solve_stages(
        design,
        unknowns,
        lambda rows: make_equations(design, moments, laws, unknowns, rows),
        solve,
        start=start,
        pinned=pinned,
        varies=informative(design, moments, unknowns),
        signs=signs,
    )


def replicate_tables(whole: CentredTables, laws: Laws, groups: IntArray) -> CentredTables:
    """The tables without each of some groups in turn, all at once; `laws` are those without each group.

    Only counts change between replicates; unknowns, rows, stages and signs are those of the whole sample.
    """
    design, left_out, slopes = whole.design, whole.moments.without_each(groups), whole.slopes
    beta = np.tile(slopes.beta, (len(groups), 1))
    for stage in slopes.stages:
        equations = make_equations(design, left_out, laws, slopes.unknowns, stage.rows)
        beta = refine_replicates(stage.chosen(equations), beta, stage.solved)
    return replace(whole, moments=left_out, laws=laws, slopes=replace(slopes, beta=beta), whole=whole)


def table_errors(design: Design, moments: Moments, laws: Laws, slopes: Solution) -> dict[str, FloatArray]:
    """Approximate standard errors of P(vote | label) by source, in the shape of the table, from the equations alone.

    They depend on the counts alone, not on the order of sequences or on shards. Votes count as independent from
    element to element, which is optimistic (.6 to 1 times the jackknife's error in simulated worlds); intervals are
    the jackknife's. Sources whose slopes were not solved have none.
    """
    spread = slope_variances(slopes)
    return {
        info.name: _table_error(design, moments, laws, spread[slopes.unknowns.places[design.key(info.name)]], info.name)
        for info in design.sources
        if design.levels[info.name] != "full" and spread[slopes.unknowns.places[design.key(info.name)]].any()
    }


def _table_error(design: Design, moments: Moments, laws: Laws, slope: FloatArray, name: str) -> FloatArray:
    """``P(z | w) = P(z) + beta_z (w - E y)``: the errors of both terms; `slope` are variances of beta."""
    by_position = design.levels[name] == "task"
    votes = marginal(design, moments, name)
    counts = moments.placed(Row(slots=(Slot(name),), by_position=by_position)).sum(axis=1)
    chance = votes * (1 - votes)
    # That of abstaining would need covariances of equations; like all of them it goes with the variance of its votes.
    unit = slope.sum(axis=1, keepdims=True) / np.maximum(chance[:, :N_INDICATORS].sum(axis=1, keepdims=True), 1e-300)
    slope = np.hstack([slope, unit * chance[:, N_INDICATORS:]])
    mean = laws.mean(design.info(name).resolution, by_position=by_position)[: len(votes)]
    shift = np.array([-1.0, 1.0]) - mean[:, np.newaxis]
    rate = chance / np.maximum(counts, 1.0)[:, np.newaxis]
    error = np.sqrt(shift[:, :, np.newaxis] ** 2 * slope[:, np.newaxis] + rate[:, np.newaxis])
    return np.asarray(error if by_position else error[0])


def slope_variances(slopes: Solution) -> FloatArray:
    """Variances of the solved slopes, each equation with its own variance; zero for slopes that were not solved."""
    solved = np.zeros(slopes.unknowns.size, dtype=np.bool_)
    for stage in slopes.stages:
        solved |= stage.solved
    normal, _ = normal_equations(slopes.equations, slopes.beta, solved)
    variances = np.zeros(len(solved))
    # A pseudo-inverse, because slopes that nothing but a held one determines leave directions open.
    variances[solved] = np.diag(np.linalg.pinv(normal, hermitian=True))
    return variances


def _repetitions(tables: CentredTables) -> list[Note]:
    """How far the transition tables were drawn towards copying."""
    shares = {name: tables.shrunken(name, lag)[1] for name, lag in tables.design.graph.temporal.items()}
    return [
        Note(
            kind="repetition",
            where=name,
            size=1 - share,
            text=f"of what {name!r} does beside copying its last vote {share:.0%} was kept; the rest is within noise",
        )
        for name, share in shares.items()
    ]

"""The default estimator: centred moments, right for lopsided sources and abstains (METHOD 3.3 and 3.4).

In: moments, a prior, the design. Out: an `Estimate`. ``Cov(f, g) = beta_f beta_g Cov(y, y')`` needs no
symmetry of the sources; correlations, self-dependence and full tables follow through unbiased proxies.

Differs from the paper: the paper's factorisation of raw agreements needs sources without a preference for
one class; see docs/differences.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.equations import CENTRED, N_INDICATORS, Given, make_equations
from dugong.fit.moments.joints import CentredTables
from dugong.fit.moments.solve import NormalEquations, gauss_newton, refine_replicates, solve
from dugong.fit.moments.stages import Solution, solve_stages
from dugong.fit.result import Estimate, Note
from dugong.sums import Laws
from dugong.types import FloatArray, IntArray


def estimate_centred(tables: CentredTables) -> Estimate:
    """The estimate that solved slopes make; its notes say how far transition tables were drawn towards copying."""
    shares = {name: tables.shrunken(name, lag)[1] for name, lag in tables.given.design.graph.temporal.items()}
    text = "of what {!r} does beside copying its last vote {:.0%} was kept; the rest is within noise"
    notes = [
        Note(kind="repetition", where=name, size=1 - share, text=text.format(name, share))
        for name, share in shares.items()
    ]
    return Assembly(tables).estimate(notes)


def solve_tables(given: Given, near: Solution | None = None) -> CentredTables:
    """All tables that follow from slopes ``beta`` of ``E[1[vote = z] | y] = alpha_z + beta_z y``, on demand.

    Parameters
    ----------
    near : slopes from the same counts under other laws, so near that their stages and signs hold here as well
    """
    # A sign that a rule has forced is no solution, from which steps could begin.
    if near is None or given.signs != "group" or given.beliefs:
        slopes = solve_stages(given, CENTRED, solve)
    else:
        beta = near.beta
        for stage in near.stages:
            beta = gauss_newton(stage.chosen(make_equations(given, near.unknowns, stage.rows)), beta, stage.solved)
        slopes = replace(near, beta=beta, equations=make_equations(given, near.unknowns, near.rows))
    return CentredTables(given=given, solved=slopes)


def replicate_tables(whole: CentredTables, laws: Laws, groups: IntArray) -> CentredTables:
    """The tables without each of some groups in turn, all at once; `laws` are those without each group.

    Only counts change between replicates; unknowns, rows, stages and signs are those of the whole sample.
    """
    given, slopes = replace(whole.given, moments=whole.given.moments.without(groups), laws=laws), whole.solved
    # The solution of the whole sample is so near to every replicate that its signs and stages hold there too.
    beta = np.tile(slopes.beta, (len(groups), 1))
    for stage in slopes.stages:
        # Under a copy, because what is counted for these equations is as large as they are, and not asked for again.
        equations = make_equations(replace(given), slopes.unknowns, stage.rows)
        beta = refine_replicates(stage.chosen(equations), beta, stage.solved)
    return CentredTables(given=given, solved=replace(slopes, beta=beta), whole=whole)


def table_errors(tables: CentredTables) -> dict[str, FloatArray]:
    """Approximate standard errors of P(vote | label) by source, in the shape of the table, from the equations alone.

    They depend on the counts alone, not on the order of sequences or on shards. Votes count as independent from
    element to element, which is optimistic (.6 to 1 times the jackknife's error in simulated worlds); intervals are
    the jackknife's. Sources whose slopes were not solved have none.
    """
    given, slopes = tables.given, tables.solved
    solved = np.zeros(slopes.unknowns.size, dtype=np.bool_)
    for stage in slopes.stages:
        solved |= stage.solved
    system = NormalEquations(slopes.equations, solved)
    normal, _ = system.normal(system.look(slopes.beta))
    spread, design = np.zeros(len(solved)), given.design
    # A pseudo-inverse, because slopes that nothing but a held one determines leave directions open.
    spread[solved] = np.diag(np.linalg.pinv(normal, hermitian=True))
    names = [info.name for info in design.sources if design.levels[info.name] != "full"]
    found = {name: spread[slopes.unknowns.places[design.keys[name]]] for name in names}
    told = [name for name, variances in found.items() if variances.any()]
    alike: dict[tuple[object, ...], list[str]] = {}
    for name in told:
        kind = design.infos[name].resolution, design.levels[name], given.votes()[name].shape
        alike.setdefault(kind, []).append(name)
    errors: dict[str, FloatArray] = {}
    for some in alike.values():
        errors |= zip(some, _errors_alike(given, some, np.stack([found[name] for name in some])), strict=True)
    return {name: errors[name] for name in told}


def _errors_alike(given: Given, names: list[str], slope: FloatArray) -> FloatArray:
    """``P(z | w) = P(z) + beta_z (w - E y)``: the errors of both terms; `slope` are variances of beta.

    Of sources with one resolution and as many positions.
    """
    design, by_position = given.design, given.design.levels[names[0]] == "task"
    votes = np.stack([given.votes()[name] for name in names])
    counts = np.stack([given.moments.placed(design.singles[name]) for name in names]).sum(axis=2)
    chance = votes * (1 - votes)
    # That of abstaining would need covariances of equations; like all of them it goes with the variance of its votes.
    unit = slope.sum(axis=2, keepdims=True) / np.maximum(chance[..., :N_INDICATORS].sum(axis=2, keepdims=True), 1e-300)
    slope = np.concatenate([slope, unit * chance[..., N_INDICATORS:]], axis=2)
    mean = given.laws.mean(design.infos[names[0]].resolution, by_position=by_position)[: votes.shape[1]]
    shift = np.array([-1.0, 1.0]) - mean[:, np.newaxis]
    # The vote rate has an error of its own, independent of that of the slope to first order.
    rate = chance / np.maximum(counts, 1.0)[..., np.newaxis]
    error = np.sqrt(shift[:, :, np.newaxis] ** 2 * slope[:, :, np.newaxis] + rate[:, :, np.newaxis])
    return np.asarray(error if by_position else error[:, 0])

"""The default estimator: centred moments, right for lopsided sources and abstains (METHOD 3.3 and 3.4).

In: moments, a prior, the design. Out: an `Estimate`. ``Cov(f, g) = beta_f beta_g Cov(y, y')`` needs no
symmetry of the sources; correlations, self-dependence and full tables follow through unbiased proxies.

Differs from the paper: the paper's factorisation of raw agreements needs sources without a preference for
one class; see docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.fit.assemble import Assembly
from dugong.fit.joints import CentredTables
from dugong.fit.result import Diagnostics, Estimate, Note
from dugong.fit.slopes import Slopes, find_slopes
from dugong.graph.design import Design
from dugong.law.parameters import Parameters
from dugong.sums import Laws, Moments
from dugong.types import FloatArray


def estimate_centred(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    start: Slopes | None = None,
) -> tuple[Estimate, Slopes]:
    """Estimate all tables from counts; also returns the slopes, from which the jackknife starts."""
    tables = centred_tables(design, moments, laws, signs=signs, accuracies=accuracies, start=start)
    built = Assembly(tables)
    estimate = Estimate(
        parameters=Parameters(n_classes=moments.n_classes, factors=tuple(built.factors)),
        accuracies=built.accuracies,
        correlations=built.correlations,
        raw=built.raw,
        raw_correlations=built.raw_correlations,
        diagnostics=_diagnose(moments, tables, built),
    )
    return estimate, tables.slopes


def centred_tables(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    start: Slopes | None = None,
) -> CentredTables:
    """Solve for the slopes; the tables follow from them on demand."""
    slopes = find_slopes(design, moments, laws, signs=signs, accuracies=accuracies, start=start)
    return CentredTables(design=design, moments=moments, laws=laws, slopes=slopes, accuracies=accuracies or {})


def _diagnose(moments: Moments, tables: CentredTables, built: Assembly) -> Diagnostics:
    slopes = tables.slopes
    residuals, support = standard_residuals(moments, slopes)
    return Diagnostics(
        notes=(*slopes.notes, *_repetitions(tables), *built.all_notes()),
        residuals=residuals,
        support=support,
        signs=slopes.signs,
        condition=slopes.condition,
        projections=built.projections,
    )


def standard_residuals(
    moments: Moments, slopes: Slopes
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], int]]:
    """The largest standardised residual of the equations of every pair of sources, and its number of votes."""
    equations = slopes.equations
    predicted = equations.scale * slopes.beta[equations.left] * slopes.beta[equations.right]
    spread = np.sqrt(np.where(equations.variance > 0, equations.variance, np.inf))
    standard = (equations.value - predicted) / spread
    residuals: dict[tuple[str, str], float] = {}
    support: dict[tuple[str, str], int] = {}
    for row, value in zip(slopes.origins, standard, strict=True):
        pair = (row.sources[0], row.sources[1])
        if abs(value) >= abs(residuals.get(pair, 0.0)):
            residuals[pair] = float(value)
        support[pair] = int(moments.table(row).sum()) if pair not in support else support[pair]
    return residuals, support


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

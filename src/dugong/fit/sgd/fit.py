"""The paper's SGD variant (section 3.1): accuracies and correlations as variables, constraints as l2 losses.

In: moments, a prior, the design, `SGD` settings. Out: an `Estimate`, as from the closed forms. The constraints are the
covariances of all rows of the plan, vote rates, moments of dependent votes with proxies, and consistency between
correlations and accuracies; the start is a slight tilt towards sources that are right. Needs the extra `torch`.

Differs from the paper: centred moments are matched instead of raw agreements, so that lopsided sources and abstains are
no bias (docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import GraphError, MissingExtraError, TaskError
from dugong.fit.errors import StandardErrors
from dugong.fit.fitting import Fitted, fit_balanced
from dugong.fit.jackknife import moment_errors
from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.centred import estimate_centred
from dugong.fit.passes import InMemory, Passes
from dugong.fit.result import Estimate, Note
from dugong.fit.sgd.joints import AccuracyTables
from dugong.fit.sgd.settings import SGD
from dugong.graph.design import Design
from dugong.priors import Prior
from dugong.sums import Laws, Moments
from dugong.types import FloatArray
from dugong.votes import Votes

if TYPE_CHECKING:
    from dugong.fit.sgd.descent import Trace


def fit_sgd(
    design: Design,
    moments: Moments,
    prior: Prior,
    settings: SGD,
    *,
    passes: Passes | None = None,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Fitted:
    """Estimate with the prior's class balance; then, where that is uncertain, once more with the sample's own.

    Parameters
    ----------
    passes : goes over the votes behind the moments again; without it the balance stays the prior's
    """
    votes = passes.votes if isinstance(passes, InMemory) else None

    def solve(laws: Laws) -> tuple[Estimate, None]:
        return estimate_sgd(design, moments, laws, settings, votes=votes, signs=signs, accuracies=accuracies), None

    return fit_balanced(solve, Laws(prior, moments.shapes, class_names), moments, passes)


def sgd_errors(
    design: Design,
    moments: Moments,
    fitted: Fitted,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> StandardErrors:
    """Standard errors of the closed form from the same moments, around the tables that the descent found.

    Both solve the same equations with the same weights; a descent for every group would cost minutes.
    """
    closed, slopes = estimate_centred(design, moments, fitted.laws, signs=signs, accuracies=accuracies)
    errors = moment_errors(design, moments, replace(fitted, estimate=closed, slopes=slopes), accuracies=accuracies)
    return errors.around(fitted.estimate.raw, fitted.estimate.raw_correlations)


def estimate_sgd(
    design: Design,
    moments: Moments,
    laws: Laws,
    settings: SGD,
    *,
    votes: Votes | None = None,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> Estimate:
    """Estimate all tables from counts of the design's plan.

    Parameters
    ----------
    votes : the votes behind the moments, for ``batches="votes"``
    signs : {"group", "positive"}
        "group": connected sources are better than random on average; "positive": every one is.
    accuracies : known P(vote | label) by source, taken as they are
    """
    _check(design, moments, settings, votes)
    from dugong.fit.sgd.correlations import solve_correlations
    from dugong.fit.sgd.slopes import solve_slopes

    known, rng = accuracies or {}, np.random.default_rng(settings.seed)
    slopes, traces = solve_slopes(design, moments, laws, settings, rng, votes=votes, signs=signs, accuracies=known)
    accurate = AccuracyTables(design=design, moments=moments, laws=laws, slopes=slopes, accuracies=known)
    tables, more = solve_correlations(accurate, settings, rng, votes)
    traces |= more
    learned = {
        "sgd": {stage: trace.to_dict() for stage, trace in traces.items()},
        "device": settings.device,
        "seed": settings.seed,
    }
    return Assembly(tables).estimate(slopes, [_report(stage, trace) for stage, trace in traces.items()], learned)


def _check(design: Design, moments: Moments, settings: SGD, votes: Votes | None) -> None:
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", 'estimator="sgd"')
    if moments.n_classes != 2:
        raise TaskError(
            f'the estimator "sgd" needs tasks with two classes; found {moments.n_classes}.\n'
            '  Use estimator="centred" or "em".'
        )
    if settings.batches == "votes" and votes is None:
        raise GraphError(
            'SGD(batches="votes") reads the votes again and again, and only their moments are here.\n'
            '  Use fit(votes), or batches="moments".'
        )
    for name, level in design.levels.items():
        if level == "full" and (design.graph.neighbours(name) or name in design.graph.temporal):
            raise GraphError(
                f'source {name!r} has sharing="full" and a declared dependency; only one can be modelled.\n'
                '  Use sharing="tied" or "task" for it, or leave the dependency out.'
            )


def _report(stage: str, trace: Trace) -> Note:
    ending = "converged" if trace.converged else "stopped at the most steps allowed"
    text = f"SGD ({stage}) lowered the loss from {trace.losses[0]:.3g} to {trace.losses[-1]:.3g} in {trace.steps} steps"
    return Note(kind="sgd", where=stage, size=trace.losses[-1], text=f"{text} and {ending}")

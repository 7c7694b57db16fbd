"""The paper's SGD variant (section 3.1): accuracies and correlations as variables, constraints as l2 losses.

In: moments, a prior, the design, `SGD` settings. Out: an `Estimate`, as from the closed forms. The constraints are the
covariances of all rows of the plan, vote rates, moments of dependent votes with proxies, and consistency between
correlations and accuracies; the start is a slight tilt towards sources that are right. Needs the extra `torch`.

Differs from the paper: centred moments are matched instead of raw agreements, so that lopsided sources and abstains are
no bias (docs/differences.md). ``SGD(losses="agreements")`` has the paper's own losses, and their bias.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import GraphError, MissingExtraError, TaskError
from dugong.fit.moments.assemble import Assembly
from dugong.fit.moments.equations import Equations, Given
from dugong.fit.paper import estimate_paper, paper_tables
from dugong.fit.paper.agreements import sum_products
from dugong.fit.paper.joints import PaperTables
from dugong.fit.result import Estimate, Note
from dugong.fit.sgd.joints import AccuracyTables
from dugong.fit.sgd.settings import SGD
from dugong.graph.design import Design
from dugong.progress import FitProgress
from dugong.sums import Moments
from dugong.types import BoolArray, FloatArray
from dugong.votes import Votes

if TYPE_CHECKING:
    from dugong.fit.sgd.descent import LossProblem, Trace


def estimate_sgd(
    given: Given, settings: SGD, votes: Votes | None = None, progress: FitProgress | None = None
) -> Estimate:
    """Estimate all tables from counts of the design's plan.

    Parameters
    ----------
    votes : the votes behind the moments, for ``batches="votes"``
    progress : is told the steps of every descent
    """
    _check(given.design, given.moments, settings, votes)
    # Here, because torch takes seconds to import and is an extra.
    from dugong.fit.sgd.correlations import solve_correlations
    from dugong.fit.sgd.descent import descend
    from dugong.fit.sgd.slopes import solve_slopes

    rng = np.random.default_rng(settings.seed)

    def lower(problem: LossProblem) -> Trace:
        return descend(problem, settings, rng, votes, progress)

    slopes, traces = solve_slopes(given, settings, lower)
    tables, more = solve_correlations(AccuracyTables.of(given, slopes), settings, lower)
    traces |= more
    learned = {
        "sgd": {stage: trace.to_dict() for stage, trace in traces.items()},
        "device": settings.device,
        "seed": settings.seed,
    }
    return Assembly(tables).estimate(slopes, [_report(stage, trace) for stage, trace in traces.items()], learned)


def estimate_agreements(
    given: Given, settings: SGD, votes: Votes | None = None, progress: FitProgress | None = None
) -> tuple[Estimate, PaperTables]:
    """The paper's own losses: products of votes against products of agreements, lowered step by step.

    What follows from the agreements is that of Algorithm 1. Counts must be of the paper's plan.
    """
    _check(given.design, given.moments, settings, votes)
    from dugong.fit.sgd.descent import descend
    from dugong.fit.sgd.slopes import TILT, SlopeProblem, to_numpy

    rng, traces = np.random.default_rng(settings.seed), list["Trace"]()

    def solve(equations: Equations, beta: FloatArray, free: BoolArray) -> tuple[FloatArray, None]:
        start = np.where(free, TILT, beta)
        problem = SlopeProblem(equations, given.moments, start, free, settings.device, _products)
        traces.append(descend(problem, settings, rng, votes, progress))
        return to_numpy(problem.probabilities()), None

    tables = paper_tables(given, solve=solve)
    estimate, names = estimate_paper(tables), [stage.name for stage in tables.solved.stages]
    notes = [_report(name, trace) for name, trace in zip(names, traces, strict=True)]
    return replace(estimate, diagnostics=estimate.diagnostics.noted(*notes)), tables


def _products(table: FloatArray) -> FloatArray:
    """Sums of products of two votes by position, (positions, 1)."""
    return sum_products(table[:, :2, :2])[:, np.newaxis]


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
    # Said before the descent, which takes a while; the closed forms say it when they assemble factors.
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

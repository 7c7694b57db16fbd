"""The paper's SGD variant (section 3.1): accuracies and correlations as variables, constraints as l2 losses.

In: moments, a prior, the design, `SGD` settings. Out: an `Estimate`, as from the closed forms. The constraints are the
covariances of all rows of the plan, vote rates, moments of dependent votes with proxies, and consistency between
correlations and accuracies; the start is a slight tilt towards sources that are right. Needs the extra `torch`.

Differs from the paper: centred moments are matched instead of raw agreements, so that lopsided sources and abstains are
no bias (docs/differences.md). ``SGD(losses="agreements")`` has the paper's own losses, and their bias.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import GraphError, MissingExtraError, TaskError
from dugong.fit.moments.assemble import Assembly, full_and_dependent
from dugong.fit.moments.equations import Given
from dugong.fit.moments.joints import SourceTables
from dugong.fit.paper import estimate_paper, paper_tables
from dugong.fit.paper.agreements import AGREEMENTS
from dugong.fit.paper.joints import PaperTables
from dugong.fit.passes import InMemory, Passes
from dugong.fit.result import Estimate, Note
from dugong.fit.sgd.settings import SGD
from dugong.graph.design import Design
from dugong.sums import Moments
from dugong.votes import Votes

if TYPE_CHECKING:
    from dugong.fit.sgd.descent import Descend, Trace


def estimate_sgd(given: Given, settings: SGD, passes: Passes | None = None) -> Estimate:
    """Estimate all tables from counts of the design's plan.

    Parameters
    ----------
    passes : go over the votes behind the moments, for ``batches="votes"``; and who is told the steps of every descent
    """
    lower = _descend(given, settings, passes)
    # Here, because torch takes seconds to import and is an extra.
    from dugong.fit.sgd.correlations import solve_correlations
    from dugong.fit.sgd.slopes import solve_slopes

    slopes, traces = solve_slopes(given, settings, lower)
    tables, more = solve_correlations(SourceTables(given=given, solved=slopes), settings, lower)
    traces |= more
    learned = {
        "sgd": {stage: trace.to_dict() for stage, trace in traces.items()},
        "device": settings.device,
        "seed": settings.seed,
    }
    return Assembly(tables).estimate([_report(stage, trace) for stage, trace in traces.items()], learned)


def estimate_agreements(given: Given, settings: SGD, passes: Passes | None = None) -> tuple[Estimate, PaperTables]:
    """The paper's own losses: products of votes against products of agreements, lowered step by step.

    What follows from the agreements is that of Algorithm 1. Counts must be of the paper's plan.
    """
    lower = _descend(given, settings, passes)
    from dugong.fit.sgd.slopes import TILT, descending

    solve, traces = descending(given.moments, settings, lower, AGREEMENTS, TILT)
    tables = paper_tables(given, solve=solve)
    estimate, names = estimate_paper(tables), [stage.name for stage in tables.solved.stages]
    notes = [_report(name, trace) for name, trace in zip(names, traces, strict=True)]
    return estimate.noted(*notes), tables


def _descend(given: Given, settings: SGD, passes: Passes | None) -> Descend:
    """What lowers a loss, once it is clear that it can."""
    votes = passes.votes if isinstance(passes, InMemory) else None
    progress = None if passes is None else passes.progress
    _check(given.design, given.moments, settings, votes)
    from dugong.fit.sgd.descent import descend

    return partial(descend, settings=settings, rng=np.random.default_rng(settings.seed), votes=votes, progress=progress)


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
            raise full_and_dependent(name)


def _report(stage: str, trace: Trace) -> Note:
    ending = "converged" if trace.converged else "stopped at the most steps allowed"
    text = f"SGD ({stage}) lowered the loss from {trace.losses[0]:.3g} to {trace.losses[-1]:.3g} in {trace.steps} steps"
    return Note(kind="sgd", where=stage, size=trace.losses[-1], text=f"{text} and {ending}")

"""The two ways to a fitted model: with a given prior and given dependencies, or with what is missing learned.

In: votes and settings that have been resolved. Out: a `Fit`, the same from both ways, which is all that a label model
keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dugong.fit.balance import InMemory, Passes
from dugong.fit.em import EM, Ties, expectation_maximisation
from dugong.fit.errors import StandardErrors
from dugong.fit.finish import finish, inside
from dugong.fit.fitting import Fitted, balance_matters, fit_centred, fit_paper, refine
from dugong.fit.jackknife import count_errors, moment_errors
from dugong.fit.learned import Learned, Method, choose_part, learn
from dugong.fit.moments.centred import find_slopes, table_errors
from dugong.fit.readout import read_accuracies, read_correlations
from dugong.fit.result import Estimate
from dugong.fit.settings import Estimator, Paper
from dugong.fit.sgd.fit import fit_sgd, sgd_errors
from dugong.fit.sgd.settings import SGD
from dugong.graph import SourceGraph
from dugong.graph.design import Design
from dugong.graph.identify import identify
from dugong.infer.engine import expected_counts
from dugong.law.law import Law
from dugong.law.parameters import Conditional, Parameters
from dugong.law.unseen import allow_unseen
from dugong.priors import Prior
from dugong.sums import Grouping, Moments, assign_groups
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes

# With known labels a closed-form estimate is followed by a few exact E/M steps that use them.
_STEPS_WITH_GOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """What fitting found.

    Attributes
    ----------
    law : what answers questions about labels
    estimate : tables for people, and how they came about
    errors : standard errors of the tables
    graph : the source graph, given or learned
    """

    law: Law
    estimate: Estimate
    errors: StandardErrors
    graph: SourceGraph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wishes:
    """Settings of a label model that both ways share.

    Attributes
    ----------
    estimator : settings of the estimator
    signs : {"group", "positive"}
    accuracies : known tables by source
    n_threads : int, optional
    """

    estimator: Estimator
    signs: str = "group"
    accuracies: Mapping[str, FloatArray]
    n_threads: int | None = None


def fit_given(
    design: Design,
    moments: Moments,
    votes: Votes,
    prior: Prior,
    wishes: Wishes,
    *,
    evidence: Int8Array | None = None,
    grouping: Grouping | None = None,
    passes: Passes | None = None,
) -> Fit:
    """Closed forms, then EM where it is asked for or labels are known.

    Without a grouping `votes` only says what is voted on: the fit is from moments, and from `passes` if there are any.
    """
    identify(design, prior, moments.shapes, moments=moments, class_names=votes.class_names).check()
    if grouping is not None:
        passes = InMemory(votes=votes, prior=prior, grouping=grouping, n_threads=wishes.n_threads)
    fitted = _first(design, moments, votes, prior, wishes, passes)
    spread = sgd_errors if isinstance(wishes.estimator, SGD) else moment_errors
    errors = spread(design, moments, fitted, signs=wishes.signs, accuracies=wishes.accuracies)
    estimate, pure = fitted.estimate, isinstance(wishes.estimator, Paper)
    if not pure:
        slopes = fitted.slopes or find_slopes(design, moments, fitted.laws, accuracies=wishes.accuracies)
        estimate = inside(estimate, table_errors(design, moments, fitted.laws, slopes))
    ties = _ties(votes, estimate.parameters, wishes)
    if isinstance(wishes.estimator, EM) or evidence is not None:
        settings = wishes.estimator if isinstance(wishes.estimator, EM) else EM(max_iter=_STEPS_WITH_GOLD)
        estimate, prior = refine(
            estimate, votes, design, prior, settings, ties=ties, evidence=evidence, n_threads=wishes.n_threads
        )
    elif not pure and passes is not None and balance_matters(prior, moments):
        estimate = finish(estimate, passes, design, ties)
    law = Law(parameters=allow_unseen(estimate.parameters), prior=prior)
    return Fit(law=law, estimate=estimate, errors=errors, graph=design.graph)


def _ties(votes: Votes, parameters: Parameters, wishes: Wishes) -> Ties:
    """Which tables are known, and which sources share one: those whose votes depend on their label alone."""
    shares = {info.name: info.shares or info.name for info in votes.sources}
    plain = [f.source for f in parameters.factors if isinstance(f, Conditional) and not f.parents]
    return Ties(keys={name: shares[name] for name in plain}, known=frozenset(wishes.accuracies))


def _first(
    design: Design, moments: Moments, votes: Votes, prior: Prior, wishes: Wishes, passes: Passes | None
) -> Fitted:
    """The estimate from moments."""
    common: dict[str, Any] = {
        "signs": wishes.signs,
        "accuracies": wishes.accuracies,
        "class_names": votes.class_names,
    }
    if isinstance(wishes.estimator, Paper):
        return fit_paper(design, moments, prior, **common)
    if isinstance(wishes.estimator, SGD):
        return fit_sgd(design, moments, prior, wishes.estimator, passes=passes, **common)
    return fit_centred(design, moments, prior, passes=passes, **common)


def fit_learned(
    votes: Votes,
    prior: Prior | None,
    graph: SourceGraph | None,
    wishes: Wishes,
    groups: Sequence[object] | None = None,
    *,
    evidence: Int8Array | None = None,
    method: Method = "residuals",
) -> Fit:
    """Learn what was not given: prior, dependencies (by `method`), and how far the model may be trusted."""
    part = choose_part(votes, evidence, groups)
    learned = learn(
        part.votes,
        prior=prior,
        graph=graph,
        evidence=part.evidence,
        accuracies=wishes.accuracies,
        method=method,
        n_threads=wishes.n_threads,
    )
    if isinstance(wishes.estimator, EM) and learned.trust > 0:
        learned = _raised(learned, votes, wishes.estimator, wishes, evidence)
    errors = count_errors(
        part.votes,
        learned.parameters,
        learned.prior,
        assign_groups(part.votes, part.groups, n_threads=wishes.n_threads),
        learned.graph.edges,
        evidence=part.evidence,
        n_threads=wishes.n_threads,
    )
    errors = errors.around(learned.accuracies, learned.correlations)
    estimate = Estimate(
        parameters=learned.parameters,
        accuracies=learned.accuracies,
        correlations=learned.correlations,
        raw=errors.raw,
        raw_correlations=errors.raw_correlations,
        diagnostics=learned.diagnostics,
    )
    law = replace(learned.law, parameters=allow_unseen(learned.parameters))
    return Fit(law=law, estimate=estimate, errors=errors, graph=learned.graph)


def _raised(learned: Learned, votes: Votes, settings: EM, wishes: Wishes, evidence: Int8Array | None) -> Learned:
    """The exact part of a learned model after EM."""
    ties, threads = _ties(votes, learned.parameters, wishes), wishes.n_threads
    result = expectation_maximisation(
        votes, learned.parameters, learned.prior, settings, ties=ties, evidence=evidence, n_threads=threads
    )
    counts = expected_counts(votes, result.parameters, result.prior, evidence=evidence, n_threads=threads)
    accuracies = read_accuracies(result.parameters, replace(counts, factors=ties.pool(counts)))
    return replace(
        learned,
        law=replace(learned.law, parameters=result.parameters, prior=result.prior),
        accuracies={**accuracies, **{name: learned.accuracies[name] for name in ties.known}},
        correlations=read_correlations(result.parameters, counts, learned.graph.edges),
    )

"""From votes to a label model of which nothing was given: the algorithm of the defaults, step by step.

Read a sample of the votes, learn the robust answer; search for edges between sources and of sources with themselves,
and for the law of the labels; test what the fitted model leaves unexplained, and trust it accordingly; last, exact
rounds with every source at every resolution. A given prior takes the place of the step that learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dugong.fit.em import read_correlations
from dugong.fit.learned.case import Case, prepare_case
from dugong.fit.learned.coarse import discounted_parameters
from dugong.fit.learned.exact import Exact
from dugong.fit.learned.factors import coarse_factors, forest_factors
from dugong.fit.learned.notes import describe_learned
from dugong.fit.learned.reading import graph_of, strengths_of
from dugong.fit.learned.result import Learned, Robust, as_markov
from dugong.fit.learned.robust import Views, fit_views, look, vote_shares
from dugong.fit.learned.rounds import Setting, tables_of
from dugong.fit.learned.sample import thin
from dugong.fit.learned.search import Finding, Method, search
from dugong.fit.learned.settings import FEWEST_SOURCES, VOTES_PER_CELL
from dugong.fit.learned.tables import make_tables
from dugong.graph import SourceGraph
from dugong.law.law import Law
from dugong.priors import Prior
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes

Progress = Callable[[int, int], None]
_STAGES = 4


def learn(
    votes: Votes,
    *,
    prior: Prior | None = None,
    evidence: Int8Array | None = None,
    accuracies: Mapping[str, FloatArray] | None = None,
    method: Method = "residuals",
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn a label model from votes alone.

    Parameters
    ----------
    votes : Votes
    prior : Prior, optional
        Learned (a Markov chain) unless given.
    evidence : (n_elements,) class values of known labels, 0 = unknown; optional
    accuracies : known tables P(vote | label) by source, kept as they are; optional
    method : {"residuals", "low-rank"}
        How the graph is learned: by what a fit leaves unexplained, or from the inverse covariance of the votes.
    progress : callable (stages done, stages in all), optional
    """
    tell = progress or (lambda _done, _total: None)
    case = prepare_case(votes, prior, evidence, accuracies or {}, n_threads)
    tell(1, _STAGES)
    everything = tuple(info.name for info in case.sources)
    views = fit_views(
        case.folded,
        case.background,
        given=case.law,
        possible=case.possible,
        pinned=case.pinned_tables(everything),
    )
    tell(2, _STAGES)
    setting = case.setting()
    finding = None
    if setting.panel.n_sources >= FEWEST_SOURCES:
        similar = views.similar[np.ix_(case.on_elements, case.on_elements)]
        shares = vote_shares(setting.folded.rows, similar, case.background)
        finding = search(setting, shares, case.background, similar, method)
    tell(3, _STAGES)
    learned = _finish(case, views, setting, finding)
    tell(_STAGES, _STAGES)
    return learned


def _finish(case: Case, views: Views, setting: Setting, finding: Finding | None) -> Learned:
    trust = finding.trust if finding is not None else 0.0
    robust = Robust(
        sources=case.sources,
        coding=case.panel.coding,
        views=views,
        parameters=discounted_parameters(case.votes, case.sources, views, case.folded, case.pinned),
        prior=as_markov(views.law) if case.prior is None else case.prior,
        trust=trust,
    )
    graph, strengths = _found_graph(case, finding)
    if finding is None or trust == 0:
        law = Law(parameters=robust.parameters, prior=robust.prior, tempering=robust)
        accuracies = {name: robust.parameters[name].table for name in case.names}  # type: ignore[union-attr]
        correlations = _sample_correlations(case, setting, views, graph)
    else:
        exact = _exact(case, setting, finding)
        law = Law(parameters=exact.parameters, prior=exact.prior, tempering=robust)
        accuracies = case.accuracies(exact)
        correlations = read_correlations(exact.parameters, exact.counts, graph.edges)
    return Learned(
        law=law,
        graph=graph,
        strengths=strengths,
        accuracies=accuracies,
        correlations=correlations,
        diagnostics=describe_learned(case, robust, law.prior, finding, strengths),
    )


def _found_graph(case: Case, finding: Finding | None) -> tuple[SourceGraph, dict[tuple[str, str], float]]:
    if finding is None:
        return SourceGraph(names=case.names), {}
    parents, repeats = finding.structure()
    graph = graph_of(case.names, case.element_names, parents, repeats)
    return graph, strengths_of(graph, case.element_names, finding.strength, repeats)


def _exact(case: Case, setting: Setting, finding: Finding) -> Exact:
    parents, repeats = finding.structure()
    tables, _ = tables_of(setting, replace(finding.state, repeats=repeats), setting.folded.everywhere(), parents)
    edges = {place: tables.edges[tables.slots[place]] for place in np.flatnonzero(parents >= 0).tolist()}
    cells = case.votes.n_elements / VOTES_PER_CELL
    factors = forest_factors(case.element_names, parents, repeats, tables.single, edges, cells)
    factors += coarse_factors(case.votes, case.sources, case.pinned)
    return case.exact_rounds(factors, finding.state.law, len(setting.panel))


def _sample_correlations(
    case: Case, setting: Setting, views: Views, graph: SourceGraph
) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of learned edges, with the labels of the robust answer."""
    if not graph.edges:
        return {}
    found, names, folded = {}, case.element_names, setting.folded
    weights = folded.summed(look(thin(case.panel), views))
    for first, second in graph.edges:
        parents = np.full(len(names), -1, dtype=np.int64)
        parents[names.index(second)] = names.index(first)
        tables = make_tables(folded.rows, weights, folded.everywhere(), parents, setting.pinned)
        found[first, second] = tables.single[names.index(first)][:, :, np.newaxis] * tables.edges[0]
    return found

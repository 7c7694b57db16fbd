"""From votes to a label model of which nothing was given: the algorithm of the defaults, step by step.

Read a sample of the votes, learn the robust answer; search for edges between sources and of sources with themselves,
and for the law of the labels; test what the fitted model leaves unexplained, and trust it accordingly; last, exact
rounds with every source at every resolution. A given graph or prior takes the place of the step that learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.estimate.design import make_design
from dugong.estimate.learned.bio import Possible, bio_steps
from dugong.estimate.learned.coarse import discounted_parameters
from dugong.estimate.learned.copies import content_order
from dugong.estimate.learned.exact import Exact, run_exact
from dugong.estimate.learned.factors import coarse_factors, flat_table, forest_factors, graph_factors
from dugong.estimate.learned.forest import no_edges, strongest_forest
from dugong.estimate.learned.panel import Coding, Panel, Reader
from dugong.estimate.learned.reading import graph_of, strengths_of
from dugong.estimate.learned.repeats import Repeats
from dugong.estimate.learned.result import Learned, Robust, as_markov
from dugong.estimate.learned.robust import Law, Shares, Views, fit_views, look, vote_shares
from dugong.estimate.learned.rounds import Setting, State, first_state, run_rounds, tables_of
from dugong.estimate.learned.sample import read_sample
from dugong.estimate.learned.search import Finding, search
from dugong.estimate.learned.settings import (
    FEWEST_SOURCES,
    MOST_TRUST,
    ROUNDS_ALONE,
    ROUNDS_CHAIN,
    ROUNDS_EXACT,
    ROUNDS_LARGE,
    ROUNDS_MORE,
)
from dugong.estimate.learned.tables import make_tables
from dugong.estimate.learned.words import describe_given, describe_learned
from dugong.estimate.readout import read_accuracies, read_correlations
from dugong.exceptions import GraphError, NotIdentifiableError
from dugong.graph import SourceGraph
from dugong.infer.engine import with_evidence
from dugong.infer.parameters import Parameters
from dugong.priors import Prior, pair_law
from dugong.tasks import Element
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, implied_background

Progress = Callable[[int, int], None]
_STAGES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """The votes in a canonical order, and what is known before anything is learned; `names` in the given order."""

    names: tuple[str, ...]
    votes: Votes
    panel: Panel
    sources: tuple[SourceInfo, ...]
    prior: Prior | None
    law: Law | None
    possible: Possible | None
    background: int | None
    pinned: Mapping[str, FloatArray]
    evidence: Int8Array | None
    n_threads: int | None

    @property
    def on_elements(self) -> IntArray:
        """Places of the sources that vote on elements."""
        return np.array([p for p, s in enumerate(self.sources) if isinstance(s.resolution, Element)], dtype=np.int64)

    @property
    def element_names(self) -> tuple[str, ...]:
        """Names of the sources that vote on elements."""
        return tuple(self.sources[place].name for place in self.on_elements)

    def pinned_tables(self, names: tuple[str, ...]) -> FloatArray | None:
        """Known tables of sources on elements, NaN where there is none."""
        coding = self.panel.coding
        tables = np.full((len(names), coding.n_classes, coding.n_columns), np.nan)
        for place, name in enumerate(names):
            if name in self.pinned and name in self.element_names:
                tables[place] = self.pinned[name]
        return None if np.isnan(tables).all() else tables

    def setting(self) -> Setting:
        """What the rounds on elements need."""
        names = self.element_names
        return Setting(
            panel=self.panel.columns(self.on_elements),
            given=self.law,
            possible=self.possible,
            pinned=self.pinned_tables(names),
        )


def learn(
    votes: Votes,
    *,
    prior: Prior | None = None,
    graph: SourceGraph | None = None,
    evidence: Int8Array | None = None,
    accuracies: Mapping[str, FloatArray] | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn a label model from votes alone.

    Parameters
    ----------
    votes : Votes
    prior : Prior, optional
        Learned (a Markov chain) unless given.
    graph : SourceGraph, optional
        Learned unless given, and what it does not explain is discounted. A given graph is taken at its word.
    evidence : (n_elements,) class values of known labels, 0 = unknown; optional
    accuracies : known tables P(vote | label) by source, kept as they are; optional
    progress : callable (stages done, stages in all), optional
    """
    tell = progress or (lambda _done, _total: None)
    case = _prepare(votes, prior, evidence, accuracies or {}, n_threads)
    tell(1, _STAGES)
    if graph is not None:
        learned = _with_graph(case, graph)
        tell(_STAGES, _STAGES)
        return learned
    everything = tuple(info.name for info in case.sources)
    views, _ = fit_views(
        case.panel,
        case.background,
        given=case.law,
        possible=case.possible,
        pinned=case.pinned_tables(everything),
    )
    tell(2, _STAGES)
    setting = case.setting()
    finding = None
    if setting.panel.n_sources >= FEWEST_SOURCES:
        finding = search(setting, _element_shares(case, setting, views), case.background)
    tell(3, _STAGES)
    learned = _finish(case, views, setting, finding)
    tell(_STAGES, _STAGES)
    return learned


# --- preparing -----------------------------------------------------------------------------------------------------
def _prepare(
    votes: Votes,
    prior: Prior | None,
    evidence: Int8Array | None,
    pinned: Mapping[str, FloatArray],
    n_threads: int | None,
) -> Case:
    with_evidence(votes, Parameters(n_classes=votes.n_classes, factors=()), evidence)
    coding = Coding.of(votes)
    for name, table in pinned.items():
        _check_pinned(votes.sources[votes.index(name)], np.shape(table), coding)
    panel = read_sample(Reader(votes, votes.sources, coding, evidence))
    order = content_order(panel, votes.source_names)
    background = implied_background(votes)
    return Case(
        names=votes.source_names,
        votes=votes.select(sources=[votes.source_names[place] for place in order]),
        panel=panel.columns(order),
        sources=tuple(votes.sources[place] for place in order),
        prior=prior,
        law=None if prior is None else _law_of(prior, votes),
        possible=None if prior is not None else _possible(votes, panel),
        background=None if background is None else votes.classes.index(background),
        pinned={name: np.asarray(table, dtype=np.float64) for name, table in pinned.items()},
        evidence=evidence,
        n_threads=n_threads,
    )


def _check_pinned(info: SourceInfo, shape: tuple[int, ...], coding: Coding) -> None:
    wanted = (coding.n_classes, coding.n_columns) if isinstance(info.resolution, Element) else (2, 3)
    if shape != wanted:
        raise GraphError(
            f"the known table of {info.name!r} must be P(vote | label) with one row per class and one column per vote, "
            f"abstain after the classes, shape {wanted}; found {shape}."
        )


def _law_of(prior: Prior, votes: Votes) -> Law:
    """A given prior as a law of neighbours: its class balance and its mean transitions over these sequences."""
    lengths, counts = np.unique(votes.lengths[votes.lengths > 0], return_counts=True)
    n_classes = votes.n_classes
    if not len(lengths):
        even = np.full(n_classes, 1 / n_classes)
        return Law(balance=even, initial=even, transition=np.tile(even, (n_classes, 1)))
    element = Element()
    balance = np.diag(pair_law(prior, "same", element, element, lengths, counts, lag=0)).copy()
    transition = np.tile(balance, (n_classes, 1))
    if lengths[-1] > 1:
        pairs = pair_law(prior, "same", element, element, lengths, counts, lag=1)
        rows = pairs.sum(axis=1, keepdims=True)
        transition = np.where(rows > 0, pairs / np.where(rows > 0, rows, 1.0), transition)
    return Law(balance=balance, initial=balance, transition=transition)


def _possible(votes: Votes, panel: Panel) -> Possible | None:
    """BIO constraints, unless known labels contradict them."""
    possible = bio_steps(votes.class_names)
    if possible is None:
        return None
    known, before = panel.known[1:], panel.known[:-1]
    both = (known >= 0) & (before >= 0) & ~panel.starts[1:]
    first = panel.known[panel.starts & (panel.known >= 0)]
    broken = not possible.steps[before[both], known[both]].all() or not possible.first[first].all()
    return None if broken else possible


def _element_shares(case: Case, setting: Setting, views: Views) -> Shares:
    places = case.on_elements
    return vote_shares(setting.panel, views.similar[np.ix_(places, places)], case.background)


# --- learned graph -------------------------------------------------------------------------------------------------
def _finish(case: Case, views: Views, setting: Setting, finding: Finding | None) -> Learned:
    robust = Robust(
        sources=case.sources,
        coding=case.panel.coding,
        views=views,
        parameters=discounted_parameters(case.votes, case.sources, views, case.panel, case.pinned),
        prior=as_markov(views.law) if case.prior is None else case.prior,
    )
    names = case.element_names
    trust = MOST_TRUST * finding.trust if finding is not None else 0.0
    graph, strengths = _found_graph(case, finding)
    if finding is None or trust == 0:
        labels = look(case.panel, views).copy()
        return Learned(
            n_classes=case.votes.n_classes,
            parameters=robust.parameters,
            prior=robust.prior,
            robust=robust,
            trust=0.0,
            graph=graph,
            strengths=strengths,
            accuracies={name: robust.parameters[name].table for name in case.names},  # type: ignore[union-attr]
            correlations=_sample_correlations(setting, labels, graph, names),
            diagnostics=describe_learned(case.votes, robust, finding, 0.0, names, bio=case.possible is not None),
        )
    exact = _exact(case, setting, finding)
    return Learned(
        n_classes=case.votes.n_classes,
        parameters=exact.parameters,
        prior=exact.prior,
        robust=robust,
        trust=trust,
        graph=graph,
        strengths=strengths,
        accuracies=_accuracies(case, exact),
        correlations=read_correlations(exact.parameters, exact.counts, graph.edges),
        diagnostics=describe_learned(case.votes, robust, finding, trust, names, bio=case.possible is not None),
    )


def _found_graph(case: Case, finding: Finding | None) -> tuple[SourceGraph, dict[tuple[str, str], float]]:
    if finding is None:
        return SourceGraph(names=case.names), {}
    parents, repeats = finding.structure()
    graph = graph_of(case.names, case.element_names, parents, repeats)
    return graph, strengths_of(graph, case.element_names, finding.strength, repeats)


def _exact(case: Case, setting: Setting, finding: Finding) -> Exact:
    parents, repeats = finding.structure()
    tables, _ = tables_of(setting, replace(finding.state, repeats=repeats), setting.everywhere(), parents)
    edges = {place: tables.edges[tables.slots[place]] for place in np.flatnonzero(parents >= 0).tolist()}
    factors = forest_factors(case.element_names, parents, repeats, tables.single, edges)
    factors += coarse_factors(case.votes, case.sources, case.pinned)
    return run_exact(
        case.votes,
        Parameters(n_classes=case.votes.n_classes, factors=tuple(factors)),
        as_markov(finding.state.law) if case.prior is None else case.prior,
        ROUNDS_EXACT if len(case.panel) == case.votes.n_elements else ROUNDS_LARGE,
        learn_prior=case.prior is None,
        pinned=frozenset(case.pinned),
        evidence=case.evidence,
        n_threads=case.n_threads,
    )


def _accuracies(case: Case, exact: Exact) -> dict[str, FloatArray]:
    found = read_accuracies(exact.parameters, exact.counts) | dict(case.pinned)
    return {name: found[name] for name in case.names}


def _sample_correlations(
    setting: Setting, labels: FloatArray, graph: SourceGraph, names: tuple[str, ...]
) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of learned edges, with the labels of the robust answer."""
    found = {}
    for first, second in graph.edges:
        parents = np.full(len(names), -1, dtype=np.int64)
        parents[names.index(second)] = names.index(first)
        tables = make_tables(setting.panel, labels, setting.everywhere(), parents, setting.pinned)
        found[first, second] = tables.single[names.index(first)][:, :, np.newaxis] * tables.edges[0]
    return found


# --- given graph ---------------------------------------------------------------------------------------------------
def _with_graph(case: Case, graph: SourceGraph) -> Learned:
    """The exact model of a given graph: its prior and tables by likelihood, from a start without its cycles."""
    design = make_design(case.sources, graph, pinned=case.pinned)
    setting = case.setting()
    components = {name: number for name, number in graph.components().items() if name in case.element_names}
    if case.prior is None and len(set(components.values())) < FEWEST_SOURCES and case.evidence is None:
        raise NotIdentifiableError(
            f"a prior can be learned from at least {FEWEST_SOURCES} groups of sources on elements that are independent "
            f"of each other; found {len(set(components.values()))}.\n"
            '  Give a prior, such as priors.Markov(positive=0.1, stay=0.9), or use dependencies="learn".'
        )
    state = _graph_rounds(case, setting, graph)
    names = case.element_names
    single = make_tables(setting.panel, state.labels, setting.everywhere(), None, setting.pinned).single
    tables = {name: single[place] for place, name in enumerate(names)}
    for info in case.sources:
        if info.name not in tables:
            tables[info.name] = case.pinned.get(info.name, flat_table(case.votes, info))
    exact = run_exact(
        case.votes,
        Parameters(n_classes=case.votes.n_classes, factors=tuple(graph_factors(design, tables))),
        as_markov(state.law) if case.prior is None else case.prior,
        ROUNDS_EXACT if len(case.panel) == case.votes.n_elements else ROUNDS_LARGE,
        learn_prior=case.prior is None,
        pinned=frozenset(case.pinned),
        evidence=case.evidence,
        n_threads=case.n_threads,
    )
    return Learned(
        n_classes=case.votes.n_classes,
        parameters=exact.parameters,
        prior=exact.prior,
        robust=None,
        trust=1.0,
        graph=graph,
        accuracies=_accuracies(case, exact),
        correlations=read_correlations(exact.parameters, exact.counts, graph.edges),
        diagnostics=describe_given(case.votes, exact.prior, learned_prior=case.prior is None),
    )


def _graph_rounds(case: Case, setting: Setting, graph: SourceGraph) -> State:
    """Rounds on elements with a spanning forest of the given edges."""
    names = case.element_names
    strength = np.zeros((len(names), len(names)))
    for first, second in graph.edges:
        if first in names and second in names:
            j, k = names.index(first), names.index(second)
            strength[j, k] = strength[k, j] = 1.0
    forest = strongest_forest(strength, 0.5) if len(names) else no_edges(0)
    shares = vote_shares(setting.panel, np.zeros(strength.shape), case.background)
    state = first_state(setting, shares.share, shares.use)
    state = run_rounds(setting, state, shares.use, ROUNDS_ALONE, parents=forest.parents, chain=False)
    everywhere = setting.everywhere()
    again = np.array([0.3 if name in graph.temporal else 0.0 for name in names])
    state = replace(first_state(setting, state.labels, everywhere), repeats=Repeats.about(again))
    rounds = ROUNDS_CHAIN + ROUNDS_MORE
    return run_rounds(setting, state, everywhere, rounds, parents=forest.parents, chain=True)

"""From votes to a label model of which nothing was given: the algorithm of the defaults, step by step.

Read a sample of the votes; search for edges between sources and of sources with themselves, and for the law of the
labels; ask how far the fitted model may be trusted, by predicting every source from its peers; learn the answer that
takes its place where it is not; last, exact rounds with every source at every resolution. A given prior takes the
place of the step that learns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from dugong.fit.beliefs import AnyBelief
from dugong.fit.em import read_correlations
from dugong.fit.learned.answer import ElementAnswer, finish_answer, first_answer, outlasting
from dugong.fit.learned.case import Case, prepare_case
from dugong.fit.learned.coarse import CoarseRules, describe_coarse, learn_coarse, table_of
from dugong.fit.learned.crossing import find_crossings
from dugong.fit.learned.exact import Exact
from dugong.fit.learned.factors import coarse_factors, flat_table, forest_factors
from dugong.fit.learned.families import family_weights
from dugong.fit.learned.notes import describe_learned
from dugong.fit.learned.peers import learn_exponents, make_trial
from dugong.fit.learned.result import Learned
from dugong.fit.learned.sample import in_order, thin
from dugong.fit.learned.search import GraphFinding, Method, search
from dugong.fit.learned.settings import (
    CROWD,
    FEWEST_SOURCES,
    LEARNED_FROM,
    OPPOSITE,
    RIDGE_SHARE,
    TRUSTED,
    VOTES_PER_CELL,
)
from dugong.fit.learned.tables import make_tables, mute_unseen
from dugong.fit.learned.tempering import Peers
from dugong.fit.learned.trust import Trust, find_trust
from dugong.fit.learned.views import VOTES
from dugong.graph import SourceGraph, temporal
from dugong.law import Law
from dugong.law.parameters import Conditional, Factor, Parameters
from dugong.priors import Markov, Prior
from dugong.progress import FitProgress
from dugong.tasks import Element
from dugong.types import FloatArray, Int8Array
from dugong.votes import SourceInfo, Votes

_STAGES = 4


def learn(
    votes: Votes,
    *,
    prior: Prior | None = None,
    evidence: Int8Array | None = None,
    accuracies: Mapping[str, FloatArray] | None = None,
    beliefs: Mapping[str, AnyBelief] | None = None,
    method: Method = "residuals",
    n_threads: int | None = None,
    progress: FitProgress | None = None,
) -> Learned:
    """Learn a label model from votes alone.

    Parameters
    ----------
    votes : Votes
    prior : Prior, optional
        Learned (a Markov chain) unless given.
    evidence : (n_elements,) class values of known labels, 0 = unknown; optional
    accuracies : known tables P(vote | label) by source, kept as they are; optional
    beliefs : what is believed about sources; optional
    method : {"residuals", "low-rank"}
        How the graph is learned: by what a fit leaves unexplained, or from the inverse covariance of the votes.
    progress : is told the stages, and the steps of a stage that may be long; optional
    """
    heard = progress or (lambda *_: None)
    tell = partial(heard, "learn")
    case = prepare_case(votes, prior, evidence, accuracies or {}, beliefs or {}, n_threads)
    tell(1, _STAGES)
    weights = family_weights(case.similar) * _counted(case)
    setting, fixed = case.setting, case.setting.fixed
    part = in_order(thin(case.folded, LEARNED_FROM))
    first = first_answer(part, case.sources, weights, case.background, fixed)
    lasting = outlasting(first, part)
    tell(2, _STAGES)
    finding, related = None, case.similar
    testable, unsearched = bool((weights > 0).sum() >= FEWEST_SOURCES), _unsearched(case)
    if testable and not unsearched:
        finding = search(setting, case.background, weights, method, partial(heard, "low-rank"))
        same = finding.root[:, np.newaxis] == finding.root
        related = np.maximum(same, related)  # given the label they still tell of each other
    tell(3, _STAGES)
    exponents = first.exponents
    trust = Trust(share=0.0, untested=unsearched or f"fewer than {FEWEST_SOURCES} sources say something of their own")
    if testable:
        trial = make_trial(part, related, first.sayings, exponents, lasting, fixed)
        if finding is not None:
            trust = find_trust(
                setting, finding, part, trial, exponents, coarse=bool(case.coarse), nameless=_nameless(case)
            )
        # Where the model answers alone, exponents would not be used, but for the first tables of sources on windows.
        alone = trust.share >= TRUSTED and not case.coarse
        if case.background is None and len(trial.targets.votes) and not alone:
            # Exponents that suit some sources need not suit others: few sources are few observations of them, however
            # many votes they have.
            n_sources = len(np.unique(trial.targets.sources))
            exponents = learn_exponents(trial, exponents, RIDGE_SHARE / max(n_sources - 2, 1))
    whole = trust.share < TRUSTED or bool(case.coarse)
    if whole:
        first = first_answer(case.folded, case.sources, weights, case.background, fixed)
    agreement = case.agreements.beyond_chance(weights)
    answer = finish_answer(first, case.folded if whole else part, exponents, lasting, fixed, agreement)
    learned = _finish(case, answer, finding, trust)
    tell(_STAGES, _STAGES)
    return learned


def _counted(case: Case) -> FloatArray:
    """One for every source on elements; zero for one of two opposites that windows and sequences speak against.

    Peers find a source that is turned round where there are three. Two that contradict each other would cancel out.
    Zero, too, for a source that always does the same, unless all of them do.
    """
    codes = case.folded.rows.codes
    varied = (codes != codes[:1]).any(axis=0)
    kept = np.asarray(varied if varied.any() else np.ones(len(varied)), dtype=np.float64)
    if len(kept) != 2 or case.spread or case.votes.n_classes != 2 or not case.coarse:
        return kept
    columns = [
        np.where(np.abs(case.votes.column(name)) == 1, case.votes.column(name), 0) for name in case.element_names
    ]
    both = (columns[0] != 0) & (columns[1] != 0)
    if not both.any() or (columns[0] == columns[1])[both].mean() > 1 - OPPOSITE:
        return kept
    support = [sum(_agreement(case.votes, column, info) for info in case.coarse) for column in columns]
    for place in (0, 1):
        kept[place] *= not support[place] < 0 < support[1 - place]
    return kept


def _agreement(votes: Votes, column: Int8Array, info: SourceInfo) -> float:
    """Correlation of votes on windows or sequences with the mean of what a source says about their elements."""
    starts, stops = votes.layout(info.resolution).flat_bounds()
    total = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
    mean, said = (total[stops] - total[starts]) / np.maximum(stops - starts, 1), votes.column(info.name)
    spoken = np.abs(said) == 1
    if not (mean[spoken].any() and np.ptp(mean[spoken]) and np.ptp(said[spoken])):
        return 0.0
    return float(np.corrcoef(mean[spoken], said[spoken])[0, 1])


def _unsearched(case: Case) -> str:
    """Why no model is searched for, in words; empty if one is."""
    if case.spread:
        return "no source votes on single elements"
    rows, sizes = case.folded.rows, case.folded.sizes
    if float((sizes @ (rows.codes < 0)).sum()) > CROWD * sizes.sum() * len(case.sources):  # pairs share too little
        return "most sources were not asked about most elements"
    # A model is tested where sources speak, and would mostly answer elsewhere.
    heard = sizes @ rows.spoken().any(axis=1)
    return "most elements have no vote" if case.background is None and heard < CROWD * sizes.sum() else ""


def _nameless(case: Case) -> list[list[int]]:
    """Groups of classes that could change places: no vote on elements, known label or given value tells them apart."""
    rows, background = case.folded.rows, case.background
    if case.prior is not None or case.setting.fixed.possible is not None or case.pinned or case.beliefs:
        return []
    said = rows.coding.split[np.unique(rows.codes[rows.codes >= 0])] > 0
    named = [*np.unique(rows.known[rows.known >= 0]), *([] if background is None else [background])]
    about = [tuple(column) for column in np.vstack([said, np.eye(case.votes.n_classes)[named] > 0]).T]
    return [[place for place, own in enumerate(about) if own == one] for one in dict.fromkeys(about)]


def _finish(case: Case, answer: ElementAnswer, finding: GraphFinding | None, trust: Trust) -> Learned:
    """The law, exact where it is trusted, and what is said about it."""
    graph, strengths = _found_graph(case, finding)
    before, rules = None, CoarseRules()
    if case.coarse:
        before = Peers(answer=answer).without_coarse(case.votes, case.evidence, case.n_threads)
        rules = learn_coarse(before, case.votes, case.coarse, case.pinned, case.beliefs)
    exact, tempering = None, None
    if finding is not None and trust.share > 1 - TRUSTED:
        assert finding.tables is not None
        single, slots, parents = finding.tables.single, finding.tables.slots, finding.parents
        edges = {place: finding.tables.edges[slots[place]] for place in np.flatnonzero(parents >= 0).tolist()}
        cells = case.votes.n_elements / VOTES_PER_CELL
        factors = forest_factors(case.element_names, parents, finding.repeats, single, edges, cells)
        if case.coarse:
            weights = {one.name: one.exact_weight for one in rules.sources}
            factors += coarse_factors(case.votes, case.pinned, weights)
        start = case.prior or Markov(initial=finding.state.law.initial, transition=finding.state.law.transition)
        exact = case.exact_rounds(factors, start, len(case.setting.folded.which))
        if case.coarse and not case.spread:
            exact, across = _crossed(case, exact)
            graph, strengths = _joined(graph, across), strengths | across
    elif case.prior is not None and len(case.sources) < FEWEST_SOURCES and not case.spread:
        exact, trust = _at_its_word(case, answer, rules), Trust(share=1.0)
    if exact is None:
        trust, tempering = replace(trust, share=0.0), Peers(answer=answer, coarse=rules)
        prior = case.prior or Markov(initial=answer.law.initial, transition=answer.law.transition)
        accuracies = _accuracies(case, answer, rules)
        law = Law(parameters=_discounted(case, answer, rules, accuracies), prior=prior, tempering=tempering)
        correlations = _sample_correlations(case, answer, graph)
    else:
        if trust.share < TRUSTED:
            tempering = Peers(answer=answer, coarse=rules, trust=trust.share)
        law = Law(parameters=exact.parameters, prior=exact.prior, tempering=tempering)
        accuracies = case.accuracies(exact)
        correlations = read_correlations(exact.parameters, exact.counts, graph.edges) if graph.edges else {}
    used = tempering is not None
    coarse = [] if before is None else describe_coarse(rules, before, case.votes, used=used)
    return Learned(
        law=law,
        graph=graph,
        strengths=strengths,
        accuracies=accuracies,
        correlations=correlations,
        diagnostics=describe_learned(case, answer, law, trust, strengths, coarse),
    )


def _crossed(case: Case, exact: Exact) -> tuple[Exact, dict[tuple[str, str], float]]:
    """The exact model with dependence across resolutions, if there is any: no model is trusted that leaves it out."""
    parameters, across = find_crossings(case, exact)
    if not across:
        return exact, {}
    return case.exact_rounds(list(parameters.factors), exact.prior, len(case.setting.folded.which)), across


def _joined(graph: SourceGraph, across: Mapping[tuple[str, str], float]) -> SourceGraph:
    """The graph with edges across resolutions; who follows another source no longer repeats itself."""
    follows = {fine for _, fine in across}
    lags = {name: lag for name, lag in graph.temporal.items() if name not in follows}
    return replace(graph, edges=(*graph.edges, *across), temporal=lags)


def _at_its_word(case: Case, answer: ElementAnswer, rules: CoarseRules) -> Exact:
    """The exact model of independent sources under a given prior, where too few vote on elements to test anything.

    A given prior is a word about labels in time, and nothing speaks against it: leaving the dependencies out gives what
    declaring that there are none does.
    """
    whole = replace(answer, exponents=np.where(np.arange(5) == VOTES, answer.sayings.effect, answer.exponents))
    assert case.prior is not None
    factors = _discounted(case, whole, rules, _accuracies(case, whole, rules)).factors
    return case.exact_rounds(list(factors), case.prior, len(case.folded.which))


def _accuracies(case: Case, answer: ElementAnswer, rules: CoarseRules) -> dict[str, FloatArray]:
    """P(vote | label) of every source, silence included, under the labels of the answer."""
    labels = case.folded.summed(answer.look(case.folded))
    single = make_tables(case.folded.rows, labels, case.folded.every, None, case.setting.fixed.pinned).single
    every = np.arange(single.shape[2])
    found = {
        info.name: mute_unseen(table, ~np.isin(every, codes))
        for info, table, codes in zip(case.sources, single, case.folded.rows.codes.T, strict=True)
    }
    if case.spread:
        labels = Peers(answer=answer).without_coarse(case.votes, case.evidence, case.n_threads)
        found = {info.name: table_of(labels, case.votes, info) for info in case.sources}
    found |= {one.name: one.learned.table for one in rules.sources}
    for info in case.votes.sources:
        found.setdefault(info.name, case.pinned.get(info.name, flat_table(case.votes, info)))
    return {name: np.asarray(case.pinned.get(name, found[name])) for name in case.names}


def _discounted(case: Case, answer: ElementAnswer, rules: CoarseRules, tables: Mapping[str, FloatArray]) -> Parameters:
    """Independent factors of these tables, with what a vote of each source counts in the answer as weight."""
    counts = answer.exponents[VOTES] / answer.sayings.effect * answer.sayings.weights
    factors: list[Factor] = [
        Conditional(source=info.name, resolution=Element(), table=tables[info.name], weight=float(count))
        for info, count in zip(case.sources, counts, strict=True)
        if not case.spread
    ]
    factors += coarse_factors(case.votes, tables, {one.name: one.counts for one in rules.sources})
    return Parameters(n_classes=case.votes.n_classes, factors=tuple(factors))


def _found_graph(case: Case, finding: GraphFinding | None) -> tuple[SourceGraph, dict[tuple[str, str], float]]:
    if finding is None:
        return SourceGraph(names=case.names), {}
    parents, repeats, names = finding.parents, finding.repeats, case.element_names
    edges = [(names[parent], names[child]) for child, parent in enumerate(parents.tolist()) if parent >= 0]
    lags = [temporal(names[place], int(repeats.lags[place])) for place in np.flatnonzero(repeats.rates[0]).tolist()]
    graph = SourceGraph.of(case.names, [*edges, *lags])
    # Residual correlation of every learned edge, and of a source with itself.
    found = {(a, b): float(finding.strength[names.index(a), names.index(b)]) for a, b in graph.edges}
    return graph, found | {(name, name): float(repeats.rates[0, names.index(name)]) for name in graph.temporal}


def _sample_correlations(case: Case, answer: ElementAnswer, graph: SourceGraph) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of learned edges, with the labels of the answer."""
    if not graph.edges:
        return {}
    found, names, setting, folded = {}, case.element_names, case.setting, case.setting.folded
    weights = folded.summed(answer.look(folded))
    for first, second in graph.edges:
        parents = np.full(len(names), -1, dtype=np.int64)
        parents[names.index(second)] = names.index(first)
        tables = make_tables(folded.rows, weights, folded.every, parents, setting.fixed.pinned)
        found[first, second] = tables.single[names.index(first)][:, :, np.newaxis] * tables.edges[0]
    return found

"""The exact model of a given graph: taken at its word, without a discount.

In: a case and its source graph. Out: a `Learned` whose prior (unless given) and tables are fitted by likelihood: rounds
on elements with a spanning forest of the edges first, then exact rounds with all of the graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dugong.exceptions import NotIdentifiableError
from dugong.fit.learned.case import Case
from dugong.fit.learned.factors import flat_table, graph_factors
from dugong.fit.learned.forest import no_edges, strongest_forest
from dugong.fit.learned.notes import describe_given
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.result import Learned
from dugong.fit.learned.rounds import Setting, State, first_state, run_rounds
from dugong.fit.learned.settings import FEWEST_SOURCES, ROUNDS_ALONE, ROUNDS_CHAIN, ROUNDS_MORE, SETTLED
from dugong.fit.learned.tables import make_tables
from dugong.fit.learned.views import vote_shares
from dugong.fit.readout import read_correlations
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.law.law import Law


def learn_with_graph(case: Case, graph: SourceGraph) -> Learned:
    """The exact model of a given graph: its prior and tables by likelihood, from a start without its cycles."""
    design = make_design(case.votes.sources, graph, pinned=case.pinned)
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
    folded = setting.folded
    single = make_tables(folded.rows, state.weights, folded.everywhere(), None, setting.pinned).single
    tables = {name: single[place] for place, name in enumerate(names)}
    for info in case.votes.sources:
        if info.name not in tables:
            tables[info.name] = case.pinned.get(info.name, flat_table(case.votes, info))
    exact = case.exact_rounds(graph_factors(design, tables), state.law, len(setting.panel))
    return Learned(
        law=Law(parameters=exact.parameters, prior=exact.prior),
        graph=graph,
        accuracies=case.accuracies(exact),
        correlations=read_correlations(exact.parameters, exact.counts, graph.edges),
        diagnostics=describe_given(exact.prior),
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
    folded = setting.folded
    shares = vote_shares(folded.rows, np.ones(len(names)), case.background)
    state = first_state(setting, folded.weighted(shares.share), shares.use)
    state = run_rounds(setting, state, shares.use, ROUNDS_ALONE, parents=forest.parents, chain=False)
    everywhere = folded.everywhere()
    again = np.array([0.3 if name in graph.temporal else 0.0 for name in names])
    lags = np.array([graph.temporal.get(name, 1) for name in names], dtype=np.int64)
    state = replace(first_state(setting, state.weights, everywhere), repeats=Repeats.about(again, lags))
    rounds = ROUNDS_CHAIN + ROUNDS_MORE
    return run_rounds(setting, state, everywhere, rounds, parents=forest.parents, chain=True, settled=SETTLED)

"""Dependence across resolutions: a source on elements and one on windows that read the same detector.

In: a case and an exact model in which both are independent given the labels. Out: the model with the edges that the
votes ask for. Pairs whose errors go together are tried one after the other: the source on elements may then depend on
the vote about the window that contains it, and the edge stays if that explains the votes better than its free numbers
would by chance (the Bayesian information criterion). The paper has such pairs in section 2.2, over the union of what
both cover.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dugong.fit.em import Ties
from dugong.fit.learned.case import Case
from dugong.fit.learned.exact import Exact, run_exact
from dugong.fit.learned.factors import crossed
from dugong.fit.learned.part import choose_part
from dugong.infer.engine import posterior
from dugong.law.parameters import Conditional, Crossed, Factor, Parameters, Temporal
from dugong.tasks import Element, Sequence, Spans, Window
from dugong.types import MISSING, FloatArray, IntArray
from dugong.votes import SourceInfo, Votes

_ELEMENTS = 1 << 14  # that pairs are tried on
_ROUNDS = 3  # of expectation and maximisation with an edge that is tried
_SUSPECT = 4.0  # standard errors of a residual correlation above which a pair is tried
_TRIED = 3  # pairs at most, the most suspect ones, for every edge that is found


def find_crossings(case: Case, exact: Exact) -> tuple[Parameters, dict[tuple[str, str], float]]:
    """The factors with edges across resolutions, and the correlation of the errors of each pair."""
    part = choose_part(case.votes, case.evidence, most=_ELEMENTS)
    found: dict[tuple[str, str], float] = {}
    parameters = exact.parameters
    while True:
        suspects = _suspects(part.votes, parameters, exact, [s for s in case.coarse if _apart(s)], case.ties.known)
        before = None
        for strength, fine, coarse in suspects[:_TRIED]:
            tried = _with_edge(parameters, fine, coarse)
            if before is None:
                before = _trial(part.votes, parameters, exact, case.ties)
            if _trial(part.votes, tried, exact, case.ties) - before > _price(tried[fine], part.votes):
                parameters, found[coarse.name, fine] = tried, strength
                break
        else:
            return parameters, found


def _trial(votes: Votes, parameters: Parameters, exact: Exact, ties: Ties) -> float:
    """Log-likelihood of some votes after a few rounds, labels in time as they were found."""
    return run_exact(votes, parameters, exact.prior, _ROUNDS, learn_prior=False, ties=ties).likelihoods[-1]


def _apart(info: SourceInfo) -> bool:
    """Whether the tasks of a resolution do not overlap: an element then follows at most one vote."""
    where = info.resolution
    return isinstance(where, Sequence | Spans) or (isinstance(where, Window) and where.stride == where.size)


def _suspects(
    votes: Votes, parameters: Parameters, exact: Exact, coarse: list[SourceInfo], known: frozenset[str]
) -> list[tuple[float, str, SourceInfo]]:
    """Pairs whose errors go together by more than noise, the strongest first."""
    followed = {p for f in parameters.factors if isinstance(f, Conditional) for p in f.parents}
    free = [f for f in parameters.factors if _may_follow(f, followed | known)]
    if not free or not coarse:
        return []
    wanted = tuple(dict.fromkeys([Element(), *(info.resolution for info in coarse)]))
    labels = posterior(votes, parameters, exact.prior, resolutions=wanted).probabilities
    pairs = []
    for info in coarse:
        starts, stops = votes.layout(info.resolution).flat_bounds()
        above = _errors(votes, parameters[info.name], labels[info.resolution])
        for factor in free:
            below = _window_sums(_errors(votes, factor, labels[Element()]), starts, stops)
            strength = float((below * above).sum() / max(np.sqrt((below**2).sum() * (above**2).sum()), 1e-300))
            if abs(strength) * np.sqrt(len(above)) > _SUSPECT:
                pairs.append((strength, factor.source, info))
    return sorted(pairs, key=lambda pair: (-abs(pair[0]), pair[1], pair[2].name))


def _may_follow(factor: Factor, taken: set[str] | frozenset[str]) -> bool:
    plain = isinstance(factor, Temporal) or (isinstance(factor, Conditional) and not factor.parents)
    return plain and isinstance(factor.resolution, Element) and factor.weight == 1 and factor.source not in taken


def _errors(votes: Votes, factor: Factor, labels: FloatArray) -> FloatArray:
    """Votes as numbers, less what their labels lead to expect; 0 where nobody was asked."""
    table = _single(factor)
    values = np.append(np.arange(1, len(table) + 1.0), 0.0) if len(table) > 2 else np.array([-1.0, 1.0, 0.0])
    column = votes.column(factor.source)
    spoken = (column != MISSING) & (np.abs(column) <= len(table))
    expected = labels @ (table[:, : len(values)] @ values)
    return np.asarray(np.where(spoken, column - expected, 0.0))


def _single(factor: Factor) -> FloatArray:
    """P(vote | label) of a source, near enough to look for what it leaves unexplained."""
    if isinstance(factor, Temporal):
        return factor.first
    assert isinstance(factor, Conditional | Crossed)
    return factor.table if factor.marginal is None else factor.marginal


def _window_sums(values: FloatArray, starts: IntArray, stops: IntArray) -> FloatArray:
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[stops] - total[starts])


def _with_edge(parameters: Parameters, fine: str, coarse: SourceInfo) -> Parameters:
    """The same with a factor that follows a coarser source, and does so without any effect as yet."""
    info = SourceInfo(name=fine, resolution=parameters[fine].resolution)
    edge = crossed(info, coarse, _single(parameters[fine]), parameters[coarse.name].n_columns)
    others = tuple(one for one in parameters.factors if one.source != fine)
    return replace(parameters, factors=(*others, edge))


def _price(factor: Factor, votes: Votes) -> float:
    """What the free numbers of an edge would gain by chance, and more: half a logarithm of the votes for each."""
    assert isinstance(factor, Crossed)
    n_free = (factor.table.size - factor.table.shape[0] * factor.n_columns) * (1 - 1 / factor.n_columns)
    return float(n_free * np.log(max(votes.n_elements, 2)) / 2)

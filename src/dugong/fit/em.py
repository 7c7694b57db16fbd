"""Maximum likelihood by expectation-maximisation: the one E/M step of the house (METHOD 3.7).

The E-step is exact and a pass over the votes. The M-step counts, with pseudo-votes that pull every table towards the
start; a damped step still never lowers the penalised likelihood, because that is concave in each table. It stops when
the gain per vote is negligible, long before tables that the votes do not support begin to drift. Known tables stay as
they are, and sources that share a table are counted together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dugong.contract import typed
from dugong.exceptions import GraphError
from dugong.fit.beliefs import AnyBelief, hold
from dugong.fit.passes import Passes
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.priors import Markov
from dugong.types import FloatArray

_TABLES = ("table", "first", "step")
_FLOOR = 1e-12  # of a probability in a logarithm: an empty cell then costs much, but not everything


@typed(GraphError)
@dataclass(frozen=True, slots=True, kw_only=True)
class EM:
    """Settings of expectation-maximisation.

    Parameters
    ----------
    max_iter : int
        Most steps.
    tolerance : float
        Stop when the penalised log-likelihood per vote gains less than this.
    pseudo_votes : float
        Weight, in votes per row of a table, of the start (and of the given transition matrix).
    damping : float
        Share of the old tables that stays at each step; 0 is plain EM.
    learn_prior : bool
        Whether a Markov prior's initial law and transitions are re-estimated too.
    """

    max_iter: int = 50
    tolerance: float = 1e-6
    pseudo_votes: float = 4.0
    damping: float = 0.0
    learn_prior: bool = False

    def __post_init__(self) -> None:
        if self.max_iter < 1 or self.tolerance < 0 or self.pseudo_votes < 0 or not 0 <= self.damping < 1:
            raise GraphError(
                "EM needs max_iter >= 1, tolerance >= 0, pseudo_votes >= 0 and 0 <= damping < 1; found "
                f"{self.max_iter}, {self.tolerance}, {self.pseudo_votes} and {self.damping}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """What the votes do not decide source by source.

    Attributes
    ----------
    keys : name of the tables of sources that may share them; those whose tables have the same shapes do
    known : sources whose tables are given
    beliefs : what is believed about sources
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    beliefs: Mapping[str, AnyBelief] = field(default_factory=dict)

    def pool(self, counts: ExpectedCounts, parameters: Parameters) -> ExpectedCounts:
        """The same counts, those of sources that share a table added up, with what is believed about them."""
        sums: dict[object, Mapping[str, FloatArray]] = {}
        places: dict[str, object] = {}
        for source, tables in counts.factors.items():
            # Sources may share a name and still differ in columns; only tables of one shape are one table.
            shapes = tuple((name, table.shape) for name, table in tables.items())
            place = places[source] = (self.keys.get(source, (source,)), shapes)
            sums[place] = (
                {name: sums[place][name] + table for name, table in tables.items()} if place in sums else tables
            )
        factors = {source: sums[place] for source, place in places.items()}
        factors |= {name: hold(factors[name], parameters[name], one) for name, one in self.beliefs.items()}
        return replace(counts, factors=factors)


FREE = Ties()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EMResult:
    """Where EM ended: a law, the counts under it, and the penalised log-likelihood before every step and at the end."""

    law: Law
    counts: ExpectedCounts
    ties: Ties
    objective: tuple[float, ...]
    converged: bool


def expectation_maximisation(
    data: Passes,
    start: Law,
    settings: EM,
    *,
    ties: Ties = FREE,
    then: Callable[[Law, ExpectedCounts], Law] | None = None,
) -> EMResult:
    """Raise the likelihood of the votes, starting from `start`; factors of weight other than one are not allowed.

    `then` changes the law of every M-step further, where tables lean on something else than the start: steps are then
    judged by the likelihood alone, without the pull of the start.
    """
    if any(factor.weight != 1 for factor in start.parameters.factors):
        raise GraphError("EM maximises a likelihood; discounted factors (weight other than 1) have none.")
    law, objective = start, []
    # Per vote, because the likelihood of a large set moves by whole units when its tables move in the last digits.
    enough = settings.tolerance * max(data.contents().n_votes, 1)
    for step in range(settings.max_iter + 1):
        counts = data.counts(law)
        objective.append(float(counts.log_likelihood) + (_log_penalty(law, start, settings) if then is None else 0.0))
        if data.progress is not None:
            data.progress("em", step, settings.max_iter)
        # The last E-step is under the law that is returned, so its counts serve for the tables that people read.
        converged = step > 0 and objective[-1] - objective[-2] < enough
        if converged or step == settings.max_iter:
            break
        law = maximise(counts, law, start, settings, ties)
        law = law if then is None else then(law, counts)
    return EMResult(law=law, counts=counts, ties=ties, objective=tuple(objective), converged=converged)


# --- the M-step ----------------------------------------------------------------------------------------------------
def maximise(counts: ExpectedCounts, law: Law, start: Law, settings: EM, ties: Ties = FREE) -> Law:
    """The law whose tables explain the expected counts best, pulled towards those of `start`."""
    # Towards the start and not the step before: the pull would otherwise fade, and rare votes drift to certainties.
    anchors = {factor.source: factor for factor in start.parameters.factors}
    pooled = ties.pool(counts, law.parameters).factors
    factors = tuple(
        factor
        if factor.source in ties.known
        else _updated(factor, anchors[factor.source], pooled[factor.source], settings)
        for factor in law.parameters.factors
    )
    found = replace(law, parameters=replace(law.parameters, factors=factors))
    if not (settings.learn_prior and isinstance(law.prior, Markov)):
        return found
    seen = {"initial": counts.initial, "transition": counts.transitions}
    return replace(found, prior=_updated(law.prior, start.prior, seen, settings))


def _updated(old: Any, anchor: Any, counts: Mapping[str, FloatArray], settings: EM) -> Any:
    """A factor or a Markov chain with tables that maximise counts and pseudo-votes; a share of the old ones stays."""
    changes: dict[str, Any] = {}
    for name, seen in counts.items():
        # A factor without a marginal leaves a vote out where a parent was not asked: these counts have no table.
        if getattr(old, name, None) is not None:
            table = np.asarray(getattr(old, name))
            best = normalised(seen + settings.pseudo_votes * np.asarray(getattr(anchor, name)), table)
            changes[name] = (1 - settings.damping) * best + settings.damping * table
    return Markov(**changes) if isinstance(old, Markov) else replace(old, **changes)


def normalised(counts: FloatArray, fallback: FloatArray) -> FloatArray:
    """Counts as a law over the last axis; `fallback` where nothing was counted."""
    # A row of zeros is a label or a vote of a parent that never occurs: the counts say nothing about it.
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), fallback)


def _log_penalty(law: Law, start: Law, settings: EM) -> float:
    """Log of the Dirichlet penalty, up to a constant: pseudo-votes times the cross-entropy to the start."""
    penalty = 0.0
    for factor, anchor in zip(law.parameters.factors, start.parameters.factors, strict=True):
        for name in _TABLES:
            table = getattr(factor, name, None)
            # A marginal only stands in for its table where a parent was not asked: the table alone is penalised.
            if table is not None:
                penalty += _cross_entropy(getattr(anchor, name), table)
    if settings.learn_prior and isinstance(law.prior, Markov) and isinstance(start.prior, Markov):
        penalty += _cross_entropy(np.asarray(start.prior.initial), np.asarray(law.prior.initial))
        penalty += _cross_entropy(np.asarray(start.prior.transition), np.asarray(law.prior.transition))
    return settings.pseudo_votes * penalty


def _cross_entropy(anchor: FloatArray, table: FloatArray) -> float:
    return float((anchor * np.log(np.maximum(table, _FLOOR))).sum())


# --- tables for people ---------------------------------------------------------------------------------------------
def read_accuracies(parameters: Parameters, counts: ExpectedCounts) -> dict[str, FloatArray]:
    """P(vote | label) by source from expected counts, (K, C); by position and over patterns as the factor has them."""
    return {factor.source: read_accuracy(factor, counts) for factor in parameters.factors}


def read_correlations(
    parameters: Parameters, counts: ExpectedCounts, edges: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], FloatArray]:
    """P(vote a, vote b | label) of the given pairs that share a factor, (K, C_a, C_b)."""
    found: dict[tuple[str, str], FloatArray] = {}
    factors = {factor.source: factor for factor in parameters.factors}
    for first, second in edges:
        for child, parent in ((second, first), (first, second)):
            factor = factors[child]
            if isinstance(factor, Conditional) and parent in factor.parents:
                table = _pair(factor, counts.factors[child]["table"], parent)
                found[first, second] = table if child == second else np.swapaxes(table, -1, -2)
    return found


def read_accuracy(factor: Factor, counts: ExpectedCounts) -> FloatArray:
    """P(vote | label) of one source from expected counts."""
    seen = counts.factors[factor.source]
    if isinstance(factor, FullTable):
        return normalised(seen["table"], factor.table)
    if isinstance(factor, Temporal):
        # Votes with one before them are in the steps, first votes are not; people ask about all of them.
        lead = int(factor.by_position)
        return normalised(seen["step"].sum(axis=(lead, lead + 2)) + seen["first"], factor.first)
    if isinstance(factor, Crossed):
        between: tuple[int, ...] = (1, 2)
    else:
        lead = 1 + factor.by_position
        between = tuple(range(lead, lead + len(factor.parents)))
    total = seen["table"].sum(axis=between) + seen.get("marginal", 0.0)
    return normalised(total, factor.table.mean(axis=between))


def _pair(factor: Conditional, seen: FloatArray, parent: str) -> FloatArray:
    lead = 1 + factor.by_position
    others = tuple(lead + place for place, name in enumerate(factor.parents) if name != parent)
    total = seen.sum(axis=others)
    mass = total.sum(axis=(-2, -1), keepdims=True)
    return np.asarray(total / np.where(mass > 0, mass, 1.0))

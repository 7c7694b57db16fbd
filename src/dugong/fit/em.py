"""Maximum likelihood by expectation-maximisation, from a start that is close already (METHOD 3.7).

The E-step is exact (infer.engine). The M-step counts, with pseudo-votes that pull every table towards the start; a
damped step still never lowers the penalised likelihood, because that is concave in each table. It stops when the gain
per vote is negligible, long before tables that the votes do not support begin to drift. Known tables stay as they
are, and sources that share a table are counted together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dugong.exceptions import GraphError
from dugong.infer.engine import expected_counts
from dugong.law.parameters import Factor, Parameters
from dugong.law.results import ExpectedCounts
from dugong.priors import Markov, Prior
from dugong.types import MISSING, FloatArray, Int8Array
from dugong.votes import Votes

_TABLES = ("table", "first", "step", "marginal")
_FLOOR = 1e-12


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
    keys : name of the table of sources that may share one; only of sources that depend on their label alone
    known : sources whose tables are given
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()

    def pool(self, counts: ExpectedCounts) -> dict[str, Mapping[str, FloatArray]]:
        """Counts by source, those of sources that share a table added up."""
        sums: dict[object, FloatArray] = {}
        for source, tables in counts.factors.items():
            for name, table in tables.items():
                key = (self.keys.get(source, source), name, table.shape)
                sums[key] = sums[key] + table if key in sums else table
        return {
            source: {name: sums[self.keys.get(source, source), name, table.shape] for name, table in tables.items()}
            for source, tables in counts.factors.items()
        }


FREE = Ties()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EMResult:
    """Where EM ended: parameters, prior, and the penalised log-likelihood before every step and at the end."""

    parameters: Parameters
    prior: Prior
    objective: tuple[float, ...]
    converged: bool


def expectation_maximisation(
    votes: Votes,
    start: Parameters,
    prior: Prior,
    settings: EM,
    *,
    ties: Ties = FREE,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> EMResult:
    """Raise the likelihood of the votes, starting from `start`; factors of weight other than one are not allowed."""
    if any(factor.weight != 1 for factor in start.factors):
        raise GraphError("EM maximises a likelihood; discounted factors (weight other than 1) have none.")
    parameters, law = start, prior
    n_votes = max(sum(int((column != MISSING).sum()) for column in votes.columns), 1)
    objective: list[float] = []
    for step in range(settings.max_iter + 1):
        counts = expected_counts(votes, parameters, law, evidence=evidence, n_threads=n_threads)
        objective.append(float(counts.log_likelihood) + _log_penalty(parameters, law, start, prior, settings))
        if progress is not None:
            progress(step, objective[-1])
        if len(objective) > 1 and objective[-1] - objective[-2] < settings.tolerance * n_votes:
            return EMResult(parameters=parameters, prior=law, objective=tuple(objective), converged=True)
        if step < settings.max_iter:
            parameters = maximise(counts, parameters, start, settings, ties)
            law = _maximise_prior(counts, law, prior, settings)
    return EMResult(parameters=parameters, prior=law, objective=tuple(objective), converged=False)


def maximise(
    counts: ExpectedCounts, parameters: Parameters, start: Parameters, settings: EM, ties: Ties = FREE
) -> Parameters:
    """The M-step: tables that explain the expected counts best, pulled towards those of `start`."""
    anchors, pooled = {factor.source: factor for factor in start.factors}, ties.pool(counts)
    factors = tuple(
        factor if factor.source in ties.known else _update(factor, anchors[factor.source], pooled, settings)
        for factor in parameters.factors
    )
    return replace(parameters, factors=factors)


def _maximise_prior(counts: ExpectedCounts, law: Prior, prior: Prior, settings: EM) -> Prior:
    if not (settings.learn_prior and isinstance(law, Markov) and isinstance(prior, Markov)):
        return law
    weight, damping = settings.pseudo_votes, settings.damping
    return Markov(
        initial=_blend(np.array(law.initial), counts.initial, np.array(prior.initial), weight, damping),
        transition=_blend(np.array(law.transition), counts.transitions, np.array(prior.transition), weight, damping),
    )


def _update(factor: Factor, anchor: Factor, counts: Mapping[str, Mapping[str, FloatArray]], settings: EM) -> Factor:
    changes: dict[str, Any] = {}
    for name, seen in counts[factor.source].items():
        table = getattr(factor, name, None)
        if table is not None and name in _TABLES:
            changes[name] = _blend(table, seen, getattr(anchor, name), settings.pseudo_votes, settings.damping)
    return replace(factor, **changes)


def _blend(old: FloatArray, counts: FloatArray, anchor: FloatArray, weight: float, damping: float) -> FloatArray:
    """Maximise counts + pseudo-votes along the last axis, then keep a share of the old table."""
    total = counts + weight * anchor
    mass = total.sum(axis=-1, keepdims=True)
    best = np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), old)
    return (1 - damping) * best + damping * old


def _log_penalty(parameters: Parameters, law: Prior, start: Parameters, prior: Prior, settings: EM) -> float:
    """Log of the Dirichlet penalty, up to a constant: pseudo-votes times the cross-entropy to the start."""
    penalty = 0.0
    for factor, anchor in zip(parameters.factors, start.factors, strict=True):
        for name in _TABLES:
            table = getattr(factor, name, None)
            if table is not None and name != "marginal":
                penalty += float((getattr(anchor, name) * np.log(np.maximum(table, _FLOOR))).sum())
    if settings.learn_prior and isinstance(law, Markov) and isinstance(prior, Markov):
        penalty += float((np.asarray(prior.initial) * np.log(np.maximum(law.initial, _FLOOR))).sum())
        penalty += float((np.asarray(prior.transition) * np.log(np.maximum(law.transition, _FLOOR))).sum())
    return settings.pseudo_votes * penalty

"""Questions about labels, answered by a law: probabilities, best paths, samples, likelihoods.

In: a `Law` and votes of its sources. Out: labels. This is the only place that knows whether a law is tempered: then a
chain with soft evidence, which follows from the votes, answers every question in place of the votes' own factors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dugong.infer import engine
from dugong.infer.choice import MixedEngine
from dugong.infer.grouped import WindowEngine
from dugong.infer.grouped.audit import Audit, audit
from dugong.infer.potentials import silenced, with_scores
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Parameters
from dugong.priors import Prior
from dugong.tasks import Element, Resolution
from dugong.tasks.layout import ranges
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes


def posterior(
    law: Law,
    votes: Votes,
    resolutions: tuple[Resolution, ...] = (Element(),),
    *,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> Mapping[Resolution, FloatArray]:
    """P(label | all votes of the sequence) of every task of some resolutions, (n_tasks, n_classes) each.

    Parameters
    ----------
    evidence : (n_elements,) class values of known labels, 0 = unknown; optional
    """
    if law.groups and (parts := _by_group(law, votes)):
        rows: dict[Resolution, FloatArray] = {}
        for own, chosen in parts:
            known = None if evidence is None else evidence[_tasks(votes, Element(), chosen)]
            for where, found in posterior(own, votes[chosen], resolutions, evidence=known, n_threads=n_threads).items():
                whole = rows.setdefault(where, np.empty((votes.layout(where).n_tasks, found.shape[1])))
                whole[_tasks(votes, where, chosen)] = found
        return rows
    votes, parameters, prior, potentials = _basis(law, votes, evidence, n_threads)
    return engine.posterior(
        votes,
        parameters,
        prior,
        resolutions=resolutions,
        evidence=evidence,
        potentials=potentials,
        inference=law.inference,
        n_threads=n_threads,
    ).probabilities


def decode(law: Law, votes: Votes, *, evidence: Int8Array | None = None, n_threads: int | None = None) -> Int8Array:
    """The most likely labels of every sequence as a whole, as class values, (n_elements,)."""
    best: Int8Array = sample(law, votes, None, evidence=evidence, n_threads=n_threads)[0]
    return best


def sample(
    law: Law,
    votes: Votes,
    rng: np.random.Generator | None,
    n_draws: int = 1,
    *,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> Int8Array:
    """Labels of whole sequences drawn given the votes, as class values, (n_draws, n_elements).

    Without `rng`, the most likely ones.
    """
    if law.groups and (parts := _by_group(law, votes)):
        draws = np.empty((n_draws, votes.n_elements), dtype=np.int8)
        for own, chosen in parts:
            known = None if evidence is None else evidence[_tasks(votes, Element(), chosen)]
            drawn = sample(own, votes[chosen], rng, n_draws, evidence=known, n_threads=n_threads)
            draws[:, _tasks(votes, Element(), chosen)] = drawn
        return draws
    votes, parameters, prior, potentials = _basis(law, votes, evidence, n_threads)
    if evidence is not None:
        potentials = engine.rule_out(votes, evidence, potentials)
    return engine.sample(
        votes, parameters, prior, rng, n_draws, potentials=potentials, inference=law.inference, n_threads=n_threads
    )


def log_likelihood(law: Law, votes: Votes, *, n_threads: int | None = None) -> FloatArray:
    """Log P(votes) of every sequence, (n_sequences,)."""
    if law.groups and (parts := _by_group(law, votes)):
        found = np.empty(votes.n_sequences)
        for own, chosen in parts:
            found[chosen] = log_likelihood(own, votes[chosen], n_threads=n_threads)
        return found
    votes, parameters = with_scores(law.read(votes), law.parameters, law.soft)
    return engine.log_likelihood(votes, parameters, law.prior, inference=law.inference, n_threads=n_threads)


def expected_counts(
    law: Law,
    votes: Votes,
    *,
    groups: IntArray | None = None,
    n_groups: int = 1,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> ExpectedCounts:
    """How often every cell of every table is expected to occur: an exact E-step; scores have no counts of their own."""
    votes, parameters = law.read(votes) if law.thresholds else votes, law.parameters
    if law.soft:
        votes, parameters = with_scores(votes, parameters, law.soft)
    found = engine.expected_counts(
        votes,
        parameters,
        law.prior,
        groups=groups,
        n_groups=n_groups,
        evidence=evidence,
        inference=law.inference,
        n_threads=n_threads,
    )
    return replace(found, factors={one.source: found.factors[one.source] for one in law.parameters.factors})


# --- groups that differ --------------------------------------------------------------------------------------------
def _by_group(law: Law, votes: Votes) -> list[tuple[Law, IntArray]]:
    """Every law that answers for some of the sequences, and which sequences these are.

    Nothing where one law answers for all. Unknown groups go together.
    """
    if votes.groups is None:
        return []
    names, parts = np.where(np.isin(votes.groups, list(law.groups)), votes.groups, ""), []
    for name in np.unique(names).tolist():
        chosen = np.flatnonzero(names == name)
        # Without groups of its own, or the question would come back to here.
        parts.append((replace(law.of_group(name), groups={}), chosen))
    return parts


def _tasks(votes: Votes, resolution: Resolution, sequences: IntArray) -> IntArray:
    """Places of the tasks of some sequences."""
    offsets = votes.layout(resolution).offsets
    return ranges(offsets[:-1][sequences], np.diff(offsets)[sequences])


def audit_answers(law: Law, votes: Votes, seed: int = 0) -> Audit | None:
    """How far labels of all resolutions with votes are from exact ones, by sampling; None where they are exact.

    Raises
    ------
    TaskError
        If the law must answer exactly, and cannot.
    """
    engine_of = (
        None if law.tempering is not None else engine.engine_for(votes, law.parameters, law.prior, law.inference)
    )
    if isinstance(engine_of, MixedEngine):
        engine_of = engine_of.windows
    if not isinstance(engine_of, WindowEngine) or engine_of.exact:
        return None
    return audit(engine_of, np.random.default_rng(seed))


def _basis(
    law: Law, votes: Votes, evidence: Int8Array | None, n_threads: int | None
) -> tuple[Votes, Parameters | None, Prior, FloatArray | None]:
    """What the engine is asked with: the law's own factors, or the evidence of its tempering; and scores."""
    votes = law.read(votes) if law.thresholds else votes
    if law.tempering is None:
        votes, parameters = with_scores(votes, law.parameters, law.soft) if law.soft else (votes, law.parameters)
        return votes, parameters, law.prior, None
    prior, potentials = law.tempering.chain(law, votes, evidence, n_threads)
    if not any(one.source in votes.scores for one in law.soft):
        return votes, None, prior, potentials
    # What the votes say is in the potentials: of their factors only what scores add to them is left.
    votes, parameters = with_scores(votes, silenced(law.parameters), law.soft)
    return votes, parameters, prior, potentials

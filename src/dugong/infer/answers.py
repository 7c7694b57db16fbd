"""Questions about labels, answered by a law: probabilities, best paths, samples, likelihoods.

In: a `Law` and votes of its sources. Out: labels. This is the only place that knows whether a law is tempered: then a
chain with soft evidence, which follows from the votes, answers every question in place of the votes' own factors.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.infer import engine
from dugong.infer.grouped import WindowEngine
from dugong.infer.grouped.audit import Audit, audit
from dugong.law.law import Law
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.priors import Prior
from dugong.tasks import Element, Resolution
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
    parameters, prior, potentials = _basis(law, votes, evidence, n_threads)
    found = engine.posterior(
        votes,
        parameters,
        prior,
        resolutions=resolutions,
        evidence=evidence,
        potentials=potentials,
        inference=law.inference,
        n_threads=n_threads,
    )
    return found.probabilities


def decode(law: Law, votes: Votes, *, n_threads: int | None = None) -> Int8Array:
    """The most likely labels of every sequence as a whole, as class values, (n_elements,)."""
    parameters, prior, potentials = _basis(law, votes, None, n_threads)
    return engine.decode(votes, parameters, prior, potentials=potentials, inference=law.inference, n_threads=n_threads)


def sample(
    law: Law, votes: Votes, rng: np.random.Generator, n_draws: int = 1, *, n_threads: int | None = None
) -> Int8Array:
    """Labels of whole sequences drawn given the votes, as class values, (n_draws, n_elements)."""
    parameters, prior, potentials = _basis(law, votes, None, n_threads)
    return engine.sample(
        votes, parameters, prior, rng, n_draws, potentials=potentials, inference=law.inference, n_threads=n_threads
    )


def log_likelihood(law: Law, votes: Votes, *, n_threads: int | None = None) -> FloatArray:
    """Log P(votes) of every sequence, (n_sequences,)."""
    return engine.log_likelihood(votes, law.parameters, law.prior, inference=law.inference, n_threads=n_threads)


def expected_counts(
    law: Law,
    votes: Votes,
    *,
    groups: IntArray | None = None,
    n_groups: int = 1,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> ExpectedCounts:
    """How often every cell of every table is expected to occur: an exact E-step."""
    return engine.expected_counts(
        votes,
        law.parameters,
        law.prior,
        groups=groups,
        n_groups=n_groups,
        evidence=evidence,
        inference=law.inference,
        n_threads=n_threads,
    )


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
    if not isinstance(engine_of, WindowEngine) or engine_of.exact:
        return None
    return audit(engine_of, np.random.default_rng(seed))


def _basis(
    law: Law, votes: Votes, evidence: Int8Array | None, n_threads: int | None
) -> tuple[Parameters | None, Prior, FloatArray | None]:
    """What the engine is asked with: the law's own factors, or no factors and the soft evidence of its tempering."""
    if law.tempering is None:
        return law.parameters, law.prior, None
    prior, potentials = law.tempering.chain(law, votes, evidence, n_threads)
    return None, prior, potentials

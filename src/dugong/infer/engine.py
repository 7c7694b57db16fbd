"""From parameters to labels: answers about the labels given all votes of a sequence.

In: votes, the law of the votes (`Parameters`) and a prior. Out: marginals at any resolution, the most likely labels,
samples, log-likelihoods, expected counts. The engine is chosen by what is asked: enumeration for joint tables and
full tables, the packed chain where labels alone are the state, and what `choice` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, TypedDict, Unpack

import numpy as np

from dugong.exceptions import LabelError, PriorError
from dugong.infer import enumerate as enumerated
from dugong.infer import packed, runs
from dugong.infer.blocks import BLOCK, Progress, Sums
from dugong.infer.choice import choose_engine, choose_smoother, is_short
from dugong.infer.factors import FlatFactor, flatten, fold_counts
from dugong.infer.potentials import check_potentials
from dugong.infer.prepare import prepare
from dugong.law import ExpectedCounts, Posterior
from dugong.law.parameters import Conditional, FullTable, Parameters
from dugong.priors.chain import LabelChain
from dugong.priors.joint import Joint
from dugong.tasks import Element, Resolution
from dugong.tasks.layout import ranges
from dugong.types import MISSING, FloatArray, Inference, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, replace_unchecked

_KNOWN = "known labels"


class HasChain(Protocol):
    """A prior: anything that can be written as a label chain."""

    def chain(self) -> LabelChain:
        """The law of the labels as a chain."""


AnyPrior = HasChain | LabelChain | Joint


class QuestionOptions(TypedDict, total=False):
    """What every question may be asked with.

    Attributes
    ----------
    n_threads : int, optional
        As many as numba would use by default. Results are the same for any number, bit for bit.
    evidence : (n_elements,) class values, 0 = unknown, optional
        Known labels of some elements. Log-likelihoods are then of the votes and these labels together.
    potentials : (n_elements, K) log-potentials, optional
        Soft evidence: added to what the votes say about each element. They need not be normalised; the
        log-likelihood is then that of the votes times the exponential of the potentials.
    inference : {"auto", "exact", "approximate"}
        "auto" approximates only where windows overlap so much, or coarse resolutions are so many, that exact answers
        would take long: `Posterior.exact` says whether it did. "exact" refuses instead.
    """

    n_threads: int | None
    evidence: Int8Array | None
    potentials: FloatArray | None
    inference: Inference


def posterior(
    votes: Votes,
    parameters: Parameters | None,
    prior: AnyPrior,
    *,
    resolutions: Iterable[str | Resolution] | None = None,
    progress: Progress | None = None,
    **asked: Unpack[QuestionOptions],
) -> Posterior:
    """P(label | all votes of the sequence) for every task of the wanted resolutions.

    Parameters
    ----------
    parameters : Parameters or None
        None if the votes are not to be read: the labels then follow from the prior, known labels and potentials.
    resolutions : names or objects, optional
        All resolutions of the votes by default. Any `Window` or `Sequence` may be asked for, and `Spans` whose
        pieces came with the votes, whether or not a source votes there.
    progress : callable (sequences done, sequences in all), optional
    asked : as in `QuestionOptions`

    Raises
    ------
    PriorError
        If a sequence is impossible under the model.
    TaskError
        If the resolutions need more than 4,096 states per element; the message names the cause.
    """
    wanted = votes.resolutions if resolutions is None else tuple(dict.fromkeys(map(votes.resolution, resolutions)))
    question, chain = _read(votes, parameters, prior, **asked)
    if chain is None:
        return enumerated.posterior(question, wanted)
    votes, factors, _, potentials = question
    threads = asked.get("n_threads")
    # Most calls: where labels alone are the state, the packed chain does far less per element.
    if packed.fits(factors, chain, wanted):
        marginals, likelihood = packed.smooth(
            votes, factors, chain, potentials=potentials, n_threads=threads, progress=progress
        )
        return Posterior(probabilities={Element(): marginals}, log_likelihood=likelihood)
    engine = choose_smoother(prepare(votes, factors, chain, wanted, potentials), asked.get("inference", "auto"))
    found, likelihood = runs.smooth(engine, wanted, n_threads=threads, progress=progress)
    return Posterior(probabilities=found, log_likelihood=likelihood, exact=engine.exact)


def log_likelihood(
    votes: Votes, parameters: Parameters | None, prior: AnyPrior, **asked: Unpack[QuestionOptions]
) -> FloatArray:
    """Log P(votes) of every sequence, shape (n_sequences,); an estimate where inference is approximate."""
    # Elements only, because every further resolution would widen the state without changing P(votes).
    return posterior(votes, parameters, prior, resolutions=[Element()], **asked).log_likelihood


def decode(votes: Votes, parameters: Parameters | None, prior: AnyPrior, **asked: Unpack[QuestionOptions]) -> Int8Array:
    """The most likely joint labels of every sequence (Viterbi), as class values, shape (n_elements,)."""
    best: Int8Array = sample(votes, parameters, prior, None, 1, **asked)[0]
    return best


def sample(
    votes: Votes,
    parameters: Parameters | None,
    prior: AnyPrior,
    rng: np.random.Generator | None,
    n_draws: int,
    **asked: Unpack[QuestionOptions],
) -> Int8Array:
    """Joint labels drawn from the posterior, as class values, shape (n_draws, n_elements).

    Without a generator, the most likely ones.
    """
    question, chain = _read(votes, parameters, prior, **asked)
    if chain is None:
        places = enumerated.draw(question, rng, n_draws)
    else:
        if rng is None:
            _check_unifilar(chain)
        made = prepare(question.votes, question.factors, chain, (), question.potentials)
        engine = choose_engine(made, asked.get("inference", "auto"))
        places = runs.draw(engine, rng, n_draws, asked.get("n_threads"))
    return np.asarray(np.array(votes.classes, dtype=np.int8)[places])


def expected_counts(
    votes: Votes,
    parameters: Parameters | None,
    prior: AnyPrior,
    *,
    groups: IntArray | None = None,
    n_groups: int = 1,
    **asked: Unpack[QuestionOptions],
) -> ExpectedCounts:
    """Sufficient statistics of every factor and of the prior, expected given the votes: an exact E-step.

    Parameters
    ----------
    groups : (n_sequences,) integers 0..G-1, optional
        Counts are then kept apart by group of sequences: every result has a leading axis of length G.
    n_groups : int
        G is at least this, whichever groups occur.
    asked : as in `QuestionOptions`
    """
    question, chain = _read(votes, parameters, prior, **asked)
    votes, factors, law, potentials = question
    owners = np.zeros(votes.n_sequences, dtype=np.int64) if groups is None else np.asarray(groups, dtype=np.int64)
    if owners.shape != (votes.n_sequences,) or (len(owners) and owners.min() < 0):
        raise LabelError(
            f"groups must be one number from 0 on per sequence, shape {(votes.n_sequences,)}; "
            f"found shape {owners.shape}."
        )
    if groups is not None and votes.n_elements > BLOCK:
        # The sequences of a group one after the other, so that a block has few groups, and small sums.
        order = np.argsort(owners, kind="stable")
        if potentials is not None:
            potentials = potentials[ranges(votes.layout("element").offsets[:-1][order], votes.lengths[order])]
        votes, owners = votes[order], owners[order]
    n_groups, threads = max(n_groups, int(owners.max(initial=0)) + 1), asked.get("n_threads")
    # By cell of every flat table, and of labels and pairs.
    if chain is None:
        cells, sums = enumerated.count(enumerated.LabelQuestion(votes, factors, law, potentials), owners, n_groups)
    elif packed.fits(factors, chain, ()):
        cells, sums = packed.count(votes, factors, chain, owners, n_groups, potentials=potentials, n_threads=threads)
    else:
        engine = choose_smoother(prepare(votes, factors, chain, (), potentials), asked.get("inference", "auto"))
        cells, sums = runs.count(engine, owners, n_groups, threads)
    return _expected(factors, cells, sums, by_group=groups is not None)


def _read(
    votes: Votes, parameters: Parameters | None, prior: AnyPrior, **asked: Unpack[QuestionOptions]
) -> tuple[enumerated.LabelQuestion, LabelChain | None]:
    """What is known about the labels; the prior again as a chain, None where patterns have to be enumerated."""
    if unknown := asked.keys() - QuestionOptions.__annotations__.keys():
        raise TypeError(f"unknown options {sorted(unknown)}; known are {sorted(QuestionOptions.__annotations__)}")
    evidence, potentials = asked.get("evidence"), asked.get("potentials")
    if potentials is not None:
        potentials = check_potentials(potentials, votes.n_elements, votes.n_classes)
    factors: tuple[FlatFactor, ...] = ()
    if parameters is not None:
        if evidence is not None:
            votes, parameters = with_evidence(votes, parameters, evidence)
        factors = flatten(votes, parameters)
    elif evidence is not None:
        potentials = rule_out(votes, evidence, potentials)
    law = prior if isinstance(prior, Joint | LabelChain) else prior.chain()
    if law.n_classes != votes.n_classes:
        raise PriorError(
            f"the prior must be over the {votes.n_classes} classes of the votes; found {law.n_classes} classes."
        )
    # A factor about whole patterns fits into no chain either.
    whole = any(isinstance(flat.factor, FullTable) for flat in factors)
    chain = None if whole or isinstance(law, Joint) else law
    return enumerated.LabelQuestion(votes, factors, law, potentials), chain


def rule_out(votes: Votes, evidence: Int8Array, potentials: FloatArray | None) -> FloatArray:
    """Potentials that leave only the known label of an element."""
    known = check_known(votes, evidence)[:, None]
    found = np.zeros((len(known), votes.n_classes)) if potentials is None else potentials
    return np.where((known == 0) | (known == np.array(votes.classes)), found, -np.inf)


def engine_for(
    votes: Votes, parameters: Parameters, prior: AnyPrior, inference: Inference = "auto"
) -> runs.Smoother | None:
    """The engine that answers about all resolutions with votes; None for those that are always exact."""
    if all(isinstance(one, Element) for one in votes.resolutions) or is_short(votes, votes.resolutions, inference):
        return None
    question, chain = _read(votes, parameters, prior)
    if chain is None:
        return None
    return choose_smoother(prepare(votes, question.factors, chain, votes.resolutions), inference)


def with_evidence(votes: Votes, parameters: Parameters, evidence: Int8Array) -> tuple[Votes, Parameters]:
    """Known labels as one more source, which is never wrong and is asked only where it knows."""
    known = check_known(votes, evidence)
    # Not asked rather than abstain: an abstention of a source that is never wrong would be impossible.
    column = np.where(known == 0, MISSING, known).astype(np.int8)
    table = np.hstack([np.eye(votes.n_classes), np.zeros((votes.n_classes, 1))])
    sure = Conditional(source=_KNOWN, resolution=Element(), table=table)
    return (
        replace_unchecked(votes, sources=(*votes.sources, SourceInfo(name=_KNOWN)), columns=(*votes.columns, column)),
        replace(parameters, factors=(*parameters.factors, sure)),
    )


def check_known(votes: Votes, evidence: Int8Array) -> Int8Array:
    """Known labels, or an error that says why they are none."""
    known = np.asarray(evidence)
    if known.shape != (votes.n_elements,):
        raise LabelError(
            f"known labels must be given for every element, shape {(votes.n_elements,)} (0 = unknown); "
            f"found shape {known.shape}."
        )
    bad = ~np.isin(known, (0, *votes.classes))
    if bad.any():
        raise LabelError(
            f"known labels must be 0 (unknown) or one of the classes {votes.classes}; "
            f"found {known[bad][0]} at element {int(np.argmax(bad))}."
        )
    return known


def _check_unifilar(law: LabelChain) -> None:
    """Viterbi finds the best path of states: labels must determine it."""
    starts = np.bincount(law.labels[law.initial > 0], minlength=law.n_classes)
    steps = np.zeros((law.n_states, law.n_classes), dtype=np.int64)
    origin, target = np.nonzero(law.transition)
    np.add.at(steps, (origin, law.labels[target]), 1)
    if starts.max() > 1 or steps.max() > 1:
        raise PriorError(
            "decoding needs a chain whose states follow from the labels; found a state with two followers of the "
            "same label.\n  Use the marginals of `posterior`, or a Markov or Patterns prior."
        )


def _expected(
    factors: tuple[FlatFactor, ...], cells: list[FloatArray], sums: Sums, *, by_group: bool
) -> ExpectedCounts:
    # All in one layout, so that sums over them have the same bits whether or not they have been in a file.
    found = ExpectedCounts(
        factors={
            flat.factor.source: {key: np.ascontiguousarray(one) for key, one in fold_counts(flat, own).items()}
            for flat, own in zip(factors, cells, strict=True)
            if flat.factor.source != _KNOWN
        },
        initial=sums.initial,
        transitions=sums.transitions,
        log_likelihood=sums.log_likelihood,
    )
    if by_group:
        return found
    return ExpectedCounts(
        factors={name: {key: own[0] for key, own in tables.items()} for name, tables in found.factors.items()},
        initial=found.initial[0],
        transitions=found.transitions[0],
        log_likelihood=np.asarray(found.log_likelihood[0]),
    )

"""A first law for EM: what one would guess about sources before their votes are compared.

In: what the votes are like. Out: a `Law` under which every source is right more often than not and speaks as often as
it does, whatever the label; so the first E-step takes a vote. Dependencies begin as none and are filled by the M-steps.
Nothing here depends on which votes met which, so it is the same for votes in one piece and in shards.
"""

from __future__ import annotations

import numpy as np

from dugong.exceptions import GraphError, NotIdentifiableError
from dugong.fit.learned.factors import graph_factors
from dugong.fit.passes import Contents, Passes
from dugong.fit.settings import FitOptions
from dugong.law import Law
from dugong.law.parameters import Parameters
from dugong.priors import Markov
from dugong.tasks import Element
from dugong.tasks.bio import Possible, bio_steps
from dugong.types import ABSTAIN, FloatArray
from dugong.votes import SourceInfo, Votes, allowed_classes, class_indices, implied_background

# Better than chance with any number of classes, and far from certain, because the first E-step should weigh votes and
# not believe them. Where EM ends hardly depends on it: the start is a pull of a few pseudo-votes.
_RIGHT = 0.7  # P(the vote is right | somebody votes), before anything is known
_FEWEST_GROUPS = 3  # independent groups of sources on elements from which a prior can be learned


def first_law(data: Passes, contents: Contents, options: FitOptions) -> Law:
    """The law before the first E-step, with everything that was given at its place."""
    votes = data.votes
    design = options.design(votes)
    if options.prior is None and data.evidence is None:
        _check_learnable(votes, design.graph.components())
    # A class that nobody votes for must be what silence is about; there is no other evidence for it.
    background = implied_background(votes, contents.codes)
    tables = {info.name: _guess(votes, info, contents, background) for info in votes.sources}
    for name, known in options.accuracies.items():
        _check_known(name, known, tables[name].shape)
    factors = tuple(graph_factors(design, tables | dict(options.accuracies)))
    return Law(
        parameters=Parameters(n_classes=votes.n_classes, factors=factors),
        prior=options.prior or _first_prior(votes, data),
        inference=options.inference,
    )


def _guess(votes: Votes, info: SourceInfo, contents: Contents, background: int | None) -> FloatArray:
    """P(vote | label) of a source that is right with the same probability whatever the label, (K, C)."""
    on_elements = isinstance(info.resolution, Element)
    classes = votes.classes if on_elements else (-1, 1)
    codes = [*classes, *(votes.partial if on_elements else ())]
    columns = class_indices(votes, np.array(codes, dtype=np.int8), len(classes))
    table = np.zeros((len(classes), max(len(classes), int(columns.max())) + 1))
    for code, column in zip(codes, columns, strict=True):
        meant = allowed_classes(votes, code) if on_elements else {code}
        right = np.array([value in meant for value in classes])
        table[:, column] = np.where(right, _RIGHT, (1 - _RIGHT) / (len(classes) - 1))
    spoken = np.full(len(classes), contents.coverage(info.name))
    if on_elements and background is not None:
        # All sources together being silent counts as one vote for the background, because they speak of the others.
        silent, place = 1 - spoken, classes.index(background)
        spoken = 1 - silent * ((1 - _RIGHT) / _RIGHT) ** (1 / votes.n_sources)
        spoken[place] = 1 - silent[place]
    table *= (spoken / table.sum(axis=1))[:, np.newaxis]
    table[:, len(classes)] = 1 - spoken
    return table


def _first_prior(votes: Votes, data: Passes) -> Markov:
    """Every class as often as the others, staying half of the time and redrawn else; impossible steps stay so."""
    n_classes, possible = votes.n_classes, _possible(votes, data)
    initial = np.ones(n_classes) if possible is None else possible.first.astype(np.float64)
    steps = np.ones((n_classes, n_classes)) if possible is None else possible.steps.astype(np.float64)
    # Half-way between staying and redrawing, because sequences without any persistence would need no chain.
    redrawn = steps / steps.sum(axis=1, keepdims=True)
    return Markov(initial=initial / initial.sum(), transition=(np.eye(n_classes) + redrawn) / 2)


def _possible(votes: Votes, data: Passes) -> Possible | None:
    """BIO constraints, unless known labels contradict them."""
    possible = bio_steps(votes.class_names)
    if possible is None or data.evidence is None:
        return possible
    known = data.sample()
    assert known.evidence is not None
    labels = class_indices(known.votes, known.evidence, votes.n_classes)
    labels = np.where(known.evidence == ABSTAIN, np.int8(-1), labels)
    starts = np.zeros(len(labels), dtype=np.bool_)
    starts[known.votes.layout("element").offsets[:-1][known.votes.lengths > 0]] = True
    first, both = labels[starts & (labels >= 0)], ~starts[1:] & (labels[1:] >= 0) & (labels[:-1] >= 0)
    holds = possible.first[first].all() and possible.steps[labels[:-1][both], labels[1:][both]].all()
    return possible if holds else None


def _check_learnable(votes: Votes, components: dict[str, int]) -> None:
    groups = {components[info.name] for info in votes.sources if isinstance(info.resolution, Element)}
    if len(groups) < _FEWEST_GROUPS:
        raise NotIdentifiableError(
            f"a prior can be learned from at least {_FEWEST_GROUPS} groups of sources on elements that are independent "
            f"of each other; found {len(groups)}.\n"
            '  Give a prior, such as priors.Markov(positive=0.1, stay=0.9), or use dependencies="learn".'
        )


def _check_known(name: str, table: FloatArray, wanted: tuple[int, ...]) -> None:
    if table.shape != wanted:
        raise GraphError(
            f"the known table of {name!r} must be P(vote | label) with one row per class and one column per vote, "
            f"abstain after the classes, shape {wanted}; found {table.shape}."
        )

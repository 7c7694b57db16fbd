"""A naive oracle: every label pattern of a sequence, one by one, in plain Python. Slow, and easy to believe."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from dugong.law.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.priors import Joint
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Resolution
from dugong.types import MISSING
from dugong.votes import Votes


@dataclass
class Pattern:
    """One value of all labels of a sequence, and its joint probability with the votes."""

    elements: tuple[int, ...]
    labels: dict[Resolution, list[int]]
    probability: float


def enumerate_patterns(
    votes, parameters, prior, sequence, resolutions, evidence=None, potentials=None
) -> list[Pattern]:
    """All patterns of one sequence."""
    length = int(votes.lengths[sequence])
    bounds = {r: _bounds(votes, r, sequence) for r in {Element(), *resolutions, *_used(parameters)}}
    given = {name: _columns(votes, name, sequence) for name in votes.source_names}
    known = [0] * length if evidence is None else evidence[votes.layout("element").rows(sequence)].tolist()
    found = []
    for elements, free, prior_weight in _prior_patterns(prior, length, votes):
        weight = prior_weight
        labels = {
            resolution: [_label(votes, resolution, elements, free, i, b) for i, b in enumerate(own)]
            for resolution, own in bounds.items()
        }
        for label, value in zip(elements, known, strict=True):
            if value != 0 and votes.classes.index(value) != label:
                weight = 0.0
        if potentials is not None:
            own = potentials[votes.layout("element").rows(sequence)]
            weight *= float(np.exp(sum(own[t, label] for t, label in enumerate(elements))))
        for factor in parameters.factors:
            if factor.source in given and weight > 0:
                weight *= _factor(given, factor, labels, bounds)
        found.append(Pattern(elements=elements, labels=labels, probability=weight))
    return found


def marginals(votes, parameters, prior, resolutions, evidence=None, potentials=None):
    """P(label | votes) of all tasks by resolution, and the log-likelihood of every sequence."""
    rows, likelihood = {resolution: [] for resolution in resolutions}, []
    for sequence in range(votes.n_sequences):
        patterns = enumerate_patterns(votes, parameters, prior, sequence, resolutions, evidence, potentials)
        total = sum(pattern.probability for pattern in patterns)
        likelihood.append(np.log(total) if votes.lengths[sequence] else 0.0)
        for resolution in resolutions:
            for task in range(len(patterns[0].labels[resolution])):
                law = np.zeros(votes.n_classes if resolution == Element() else 2)
                for pattern in patterns:
                    law[pattern.labels[resolution][task]] += pattern.probability
                rows[resolution].append(law / total)
    return {resolution: np.array(own) for resolution, own in rows.items()}, np.array(likelihood)


def _used(parameters: Parameters) -> list[Resolution]:
    parents = [f.parent_resolution for f in parameters.factors if isinstance(f, Crossed)]
    return [*(factor.resolution for factor in parameters.factors), *parents]


def _bounds(votes: Votes, resolution: Resolution, sequence: int) -> list[tuple[int, int]]:
    layout = votes.layout(resolution)
    starts, stops = layout.bounds()
    rows = layout.rows(sequence)
    return list(zip(starts[rows].tolist(), stops[rows].tolist(), strict=True))


def _prior_patterns(prior, length, votes):
    if isinstance(prior, Joint):
        table = prior.table()
        for cell in itertools.product(*(range(size) for size in table.shape)):
            elements = tuple(cell[prior.tasks.index(("element", t))] for t in range(length))
            free = {task: cell[axis] for axis, task in enumerate(prior.tasks)}
            yield elements, free, float(table[cell])
        return
    chain = prior if isinstance(prior, LabelChain) else prior.chain()
    for elements in itertools.product(range(votes.n_classes), repeat=length):
        law = None
        for label in elements:
            law = chain.initial if law is None else law @ chain.transition
            law = np.where(chain.labels == label, law, 0.0)
        yield elements, {}, 1.0 if law is None else float(law.sum())


def _label(votes, resolution, elements, free, index, bounds):
    if resolution == Element():
        return elements[bounds[0]]
    if (resolution, index) in free:
        return free[resolution, index]
    positive = 1
    if votes.n_classes > 2:
        names = votes.class_names or ()
        positive = names.index(resolution.of) if resolution.of in names else int(resolution.of) - 1
    inside = [elements[t] == positive for t in range(*bounds)]
    if resolution.link == "any":
        return int(any(inside))
    if resolution.link == "all":
        return int(all(inside))
    return int(sum(inside) > len(inside) - sum(inside))


def _columns(votes, source, sequence):
    """Columns in its table of all votes of a source on a sequence, None where it was not asked."""
    info = votes.sources[votes.index(source)]
    rows = votes.layout(info.resolution).rows(sequence)
    binary = votes.n_classes == 2 or info.resolution != Element()
    found = []
    for vote in votes.column(source)[rows].tolist():
        if vote == MISSING:
            found.append(None)
        elif binary:
            found.append({-1: 0, 1: 1, 0: 2}[vote])
        else:
            found.append(votes.n_classes if vote == 0 else vote - 1 if vote <= votes.n_classes else vote)
    return found


def _vote(given, source, index):
    """One vote, None if it was not asked or there is no such task or source."""
    return None if source not in given or index is None or index < 0 else given[source][index]


def _factor(given, factor, labels, bounds):
    """Likelihood of all votes of one source in one sequence."""
    own = labels[factor.resolution]
    if isinstance(factor, FullTable):
        return _full(given, factor, own)
    product = 1.0
    for task, label in enumerate(own):
        vote = given[factor.source][task]
        if vote is not None:
            product *= _one(given, factor, vote, (task, label, own, labels, bounds)) ** factor.weight
    return product


def _one(given, factor, vote, inside):
    task, label, own, labels, bounds = inside
    if isinstance(factor, Conditional):
        table, marginal = factor.table, factor.marginal
        if factor.by_position:
            position = min(task, len(table) - 1)
            table, marginal = table[position], None if marginal is None else marginal[position]
        parents = [_vote(given, parent, task) for parent in factor.parents]
        if any(parent is None for parent in parents):
            return 1.0 if marginal is None else marginal[label, vote]
        return table[(label, *parents, vote)]
    if isinstance(factor, Temporal):
        position = min(task, len(factor.first) - 1)
        first, step = (one[position] if factor.by_position else one for one in (factor.first, factor.step))
        before = _vote(given, factor.source, task - factor.lag)
        if before is None:
            return first[label, vote]
        return step[own[task - factor.lag], label, before, vote]
    begin = bounds[factor.resolution][task][0]
    coarse = [i for i, (a, b) in enumerate(bounds[factor.parent_resolution]) if a <= begin < b]
    parent = _vote(given, factor.parent, coarse[0] if coarse else None)
    if parent is None:
        return 1.0 if factor.marginal is None else factor.marginal[label, vote]
    return factor.table[label, labels[factor.parent_resolution][coarse[0]], parent, vote]


def _full(given, factor, own):
    """Votes that were not asked are summed out."""
    row = 0
    for label in own:
        row = row * factor.n_classes + label
    seen = given[factor.source]
    total = 0.0
    for pattern in itertools.product(range(factor.n_columns), repeat=len(own)):
        if all(known is None or known == vote for known, vote in zip(seen, pattern, strict=True)):
            column = 0
            for vote in pattern:
                column = column * factor.n_columns + vote
            total += factor.table[row, column]
    return total**factor.weight

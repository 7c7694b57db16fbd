"""What a single vote says about the label of its own task, as tables that explanations look up.

In: the factors of a model. Out: per source log P(vote | label, votes of its parents on the same task), discounted by
its weight, with one more row for "not asked". These are the numbers that `infer.explain` credits to own votes: votes
are added to an otherwise empty sequence, so a source that repeats itself counts as on the first task of a sequence,
and one that follows a coarser source as where that one was not asked.
"""

from __future__ import annotations

import numpy as np

from dugong.infer.factors import flatten
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Temporal
from dugong.report.material import Material, label_names
from dugong.report.track import VoterInfo
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array, read_only
from dugong.votes import Votes, class_indices, code_name

NOT_ASKED = "not asked"


def make_voters(material: Material) -> tuple[VoterInfo, ...]:
    """One entry per source, in the order of the votes."""
    votes = material.votes
    tables = {flat.factor.source: (flat.factor, flat.table) for flat in flatten(votes, material.model.law_.parameters)}
    lanes = list(material.probabilities)
    found = []
    for source in votes.sources:
        factor, table = tables[source.name]
        codes = code_names(votes, source.resolution, factor.n_columns)
        parents = factor.parents if isinstance(factor, Conditional) else ()
        present = tuple(votes.index(name) for name in parents if name in votes.source_names)
        evidence = _own_evidence(factor, table)
        found.append(
            VoterInfo(
                name=source.name,
                lane=lanes.index(source.resolution),
                codes=codes,
                classes=_code_classes(votes, source.resolution, len(codes)),
                evidence=None if evidence is None else _without_absent(evidence, factor, votes),
                parents=present,
            )
        )
    return tuple(found)


def order_of_credit(material: Material) -> tuple[int, ...]:
    """Places of the sources in elimination order: parents before those who depend on them."""
    votes = material.votes
    return tuple(votes.index(name) for name in material.model.law_.parameters.sources if name in votes.source_names)


def code_names(votes: Votes, resolution: Resolution, n_columns: int) -> tuple[str, ...]:
    """Names of the votes in the order of table columns, and "not asked" at the end."""
    labels = label_names(votes, resolution)
    partial = [code_name(votes, code, resolution) for code in votes.partial] if isinstance(resolution, Element) else []
    names = [*labels, "abstain", *partial]
    return (*names[:n_columns], *["?"] * (n_columns - len(names)), NOT_ASKED)


def code_places(votes: Votes, place: int, n_codes: int) -> Int8Array:
    """The votes of a source as places in its list of codes."""
    source = votes.sources[place]
    n_classes = votes.n_classes if isinstance(source.resolution, Element) else 2
    places = class_indices(votes, votes.columns[place], n_classes)
    return np.where(places < 0, n_codes - 1, places).astype(np.int8)


def _code_classes(votes: Votes, resolution: Resolution, n_codes: int) -> tuple[int, ...]:
    n_labels = len(label_names(votes, resolution))
    return tuple(place if place < n_labels else -1 for place in range(n_codes))


def _own_evidence(factor: Factor, table: FloatArray) -> FloatArray | None:
    """(positions, codes of the parents ..., codes, labels) log-likelihoods; None if there is no such table."""
    if isinstance(factor, FullTable):
        return None
    if isinstance(factor, Temporal):
        law: FloatArray | None = factor.first
    elif isinstance(factor, Crossed):
        law = factor.marginal
    else:
        return logs_of(table)
    n_codes, n_classes = factor.n_columns + 1, factor.n_classes
    law = np.ones((1, n_classes, n_codes - 1)) if law is None else law.reshape(-1, n_classes, n_codes - 1)
    alone = np.ones((len(law), n_codes, n_classes))
    alone[:, :-1] = law.swapaxes(1, 2) ** factor.weight
    return logs_of(alone)


def _without_absent(evidence: FloatArray, factor: Factor, votes: Votes) -> FloatArray:
    """Drop the axes of parents that are not among the votes: they were never asked."""
    parents = factor.parents if isinstance(factor, Conditional) else ()
    table = evidence
    for axis in reversed(range(len(parents))):
        if parents[axis] not in votes.source_names:
            table = np.take(table, -1, axis=1 + axis)
    return read_only(table)


def logs_of(table: FloatArray) -> FloatArray:
    """Logarithms of probabilities; those of zeros are minus infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))

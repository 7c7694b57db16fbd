"""The sources: one by one, which depend on which, and how often any two of them agree.

One by one: what they cover, whom they meet, how good the model thinks they are, and how good gold says they are.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from math import isfinite

import numpy as np

from dugong.law.parameters import Crossed, Temporal
from dugong.metrics.elements import ratio
from dugong.report.material import Material
from dugong.report.values import Agreement, ClassRow, Dependencies, EdgeRow, SourceRow
from dugong.summary import ClassAccuracy, SourceAccuracy, plain_table
from dugong.sums import Plan, count, pair
from dugong.sums.groups import Grouping
from dugong.tasks import Element
from dugong.types import FloatArray, read_only
from dugong.votes import Votes
from dugong.votes.summary import SourceSummary

REPEATS = "repeats itself"
ERRORS = "correlation of the errors of two sources (or of a source with its own earlier errors), from 0 upwards"
PAIRS = "share of vote pairs that independence given the label would misplace, from 0 upwards"


def make_source(material: Material, seen: SourceSummary, learned: SourceAccuracy) -> SourceRow:
    """What was observed of a source beside what was learned about it."""
    return SourceRow(
        name=seen.name,
        resolution=seen.resolution,
        n_tasks=seen.n_tasks,
        asked=seen.n_asked / seen.n_tasks if seen.n_tasks else 0.0,
        coverage=seen.coverage,
        overlaps=seen.overlaps,
        conflicts=seen.conflicts,
        accuracy=learned.accuracy,
        empirical=seen.accuracy,
        weight=float(material.model.law_.parameters[seen.name].weight),
        classes=tuple(_class(part, grouped=material.model.standard_errors_.n_groups > 1) for part in learned.classes),
        notes=learned.notes,
    )


def _class(part: ClassAccuracy, *, grouped: bool) -> ClassRow:
    """Without at least two groups of sequences there is no spread, and no interval."""
    votes = 1 - part.abstains
    interval = part.interval if grouped and all(map(isfinite, part.interval or (np.nan,))) else None
    row = asdict(part) | {"interval": interval}
    return ClassRow(**row, right_if_votes=part.right / votes if votes > 1e-9 else None)


def make_dependencies(material: Material) -> Dependencies:
    """Dependent pairs, sources that repeat themselves, and sources that follow a coarser one; strongest first."""
    model, present = material.model, set(material.votes.source_names)
    strengths = model.diagnostics_.strengths
    if strengths:
        found = [_edge(first, second, value) for (first, second), value in strengths.items()]
    else:
        found = [*_pairs(material), *_others(material)]
    shown = [one for one in found if one.first in present and one.second in present]
    return Dependencies(
        edges=tuple(sorted(shown, key=lambda one: -abs(one.strength))),
        measure=ERRORS if strengths else PAIRS,
        learned=isinstance(model.dependencies, str),
    )


def _edge(first: str, second: str, strength: float, kind: str | None = None) -> EdgeRow:
    kind = kind or (REPEATS if first == second else "pair")
    words = {
        "pair": f"{first} and {second} are dependent given the label",
        REPEATS: f"{first} depends on its own earlier votes",
        "follows": f"{first} follows {second} on the task that contains its own",
    }[kind]
    return EdgeRow(first=first, second=second, kind=kind, strength=strength, words=f"{words} (strength {strength:.2f})")


def _pairs(material: Material) -> list[EdgeRow]:
    model = material.model
    crossed = {frozenset((one.source, one.parent)) for one in model.law_.parameters.factors if isinstance(one, Crossed)}
    found = []
    for (first, second), table in model.correlations_.items():
        balance = model.seen_.balance[first]
        joint = _of_pair(table, len(balance))
        if joint is not None and frozenset((first, second)) not in crossed:
            alone = joint.sum(axis=2)[:, :, None] * joint.sum(axis=1)[:, None, :]
            found.append(_edge(first, second, float(balance @ (0.5 * np.abs(joint - alone).sum(axis=(1, 2))))))
    return found


def _others(material: Material) -> list[EdgeRow]:
    model, found = material.model, []
    for factor in model.law_.parameters.factors:
        if isinstance(factor, Temporal):
            moved = _misplaced(factor.first, np.einsum("...kkuv->...kuv", factor.step))
            strength = float((moved @ model.seen_.balance[factor.source]).mean())
            found.append(_edge(factor.source, factor.source, strength))
        elif isinstance(factor, Crossed):
            parent = np.asarray(model.accuracies_[factor.parent])
            moved = _misplaced(parent.reshape(-1, *parent.shape[-2:]).mean(axis=0), factor.table)
            found.append(_edge(factor.source, factor.parent, float(moved.mean()), "follows"))
    return found


def _misplaced(law: FloatArray, given: FloatArray) -> FloatArray:
    """How much of P(u) P(v | u) independence would misplace, by all that comes before these two axes."""
    mixed = np.einsum("...u,...uv->...v", law, given)
    return np.asarray(0.5 * np.einsum("...u,...uv->...", law, np.abs(given - mixed[..., np.newaxis, :])))


def _of_pair(table: FloatArray, n_classes: int) -> FloatArray | None:
    """P(both votes | label), (K, C, C), the mean over positions; None of a pair at two resolutions."""
    if table.ndim < 3 or table.shape[-3] != n_classes:
        return None
    return np.asarray(table.reshape(-1, *table.shape[-3:]).mean(axis=0))


def make_agreement(material: Material) -> Agreement:
    """Observed agreement, excess over the model, and standardised residuals."""
    votes = material.votes
    equal, both = _count_equal(votes, material.model.n_threads)
    observed = ratio(equal, both)
    excess = observed - _expected(material)
    np.fill_diagonal(excess, np.nan)
    return Agreement(
        names=votes.source_names,
        resolutions=tuple(source.resolution.name for source in votes.sources),
        observed=read_only(observed),
        excess=read_only(excess),
        standardised=read_only(_standardised(material)),
        n_pairs=read_only(both),
    )


def _count_equal(votes: Votes, n_threads: int | None) -> tuple[FloatArray, FloatArray]:
    """Tasks with equal votes, and tasks on which both vote, for all pairs of sources at one resolution."""
    equal, both = np.zeros((2, votes.n_sources, votes.n_sources))
    asked = list(enumerate(votes.sources))
    rows = {(i, j): pair(a.name, b.name) for i, a in asked for j, b in asked[i:] if a.resolution == b.resolution}
    zeros = np.zeros(votes.n_sequences, dtype=np.int64)
    together = Grouping(base=zeros, blocks=zeros + 1, n_groups=1)  # nothing is said of how sequences differ
    counted = count(votes, Plan.of(rows.values()), together, n_threads=n_threads)
    for (i, j), row in rows.items():
        classes = slice(0, votes.n_classes if isinstance(votes.sources[i].resolution, Element) else 2)
        table = counted.table(row)[classes, classes]
        equal[i, j] = equal[j, i] = np.trace(table)
        both[i, j] = both[j, i] = table.sum()
    return equal, both


def _expected(material: Material) -> FloatArray:
    votes, model = material.votes, material.model
    expected = np.full((votes.n_sources, votes.n_sources), np.nan)
    for i, first in enumerate(votes.sources):
        balance = model.seen_.balance[first.name]
        for j, second in enumerate(votes.sources[:i]):
            if first.resolution == second.resolution:
                joint = _joint(material, first.name, second.name, balance)
                expected[i, j] = expected[j, i] = np.nan if joint is None else _equal_share(joint, balance)
    return expected


def _joint(material: Material, first: str, second: str, balance: FloatArray) -> FloatArray | None:
    """P(both votes | label), (K, C, C); None if a table is over whole patterns."""
    model = material.model
    with suppress(KeyError):
        found = _of_pair(model.correlations_[first, second], len(balance))
        if found is not None:
            return found
    tables = [plain_table(model.accuracies_[name], balance) for name in (first, second)]
    if tables[0] is None or tables[1] is None:
        return None
    return np.asarray(tables[0][:, :, None] * tables[1][:, None, :])


def _equal_share(joint: FloatArray, balance: FloatArray) -> float:
    classes = slice(0, len(balance))
    votes = joint[:, classes, classes]
    both = float(balance @ votes.sum(axis=(1, 2)))
    return float(balance @ np.einsum("kcc->k", votes)) / both if both > 0 else np.nan


def _standardised(material: Material) -> FloatArray:
    votes = material.votes
    found = np.full((votes.n_sources, votes.n_sources), np.nan)
    for names, value in material.model.diagnostics_.residuals.items():
        if set(names) <= set(votes.source_names):
            i, j = map(votes.index, names)
            found[i, j] = found[j, i] = value
    return found

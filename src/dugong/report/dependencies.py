"""The dependencies between sources, each with its strength.

A learned graph comes with strengths: the correlation of errors that the labels do not explain. For a given graph,
strength is the total variation between what two votes do together and what they would do if they were independent given
the label, averaged over labels: the share of vote pairs that independence would misplace. For a source that repeats
itself the label stays the same between the two votes; for one that follows a coarser source, over both labels of the
coarser task.
"""

from __future__ import annotations

import numpy as np

from dugong.law.parameters import Crossed, Temporal
from dugong.report.material import Material
from dugong.report.values import Dependencies, EdgeRow
from dugong.types import FloatArray

REPEATS = "repeats itself"
ERRORS = "correlation of the errors of two sources (or of a source with its own earlier errors), from 0 upwards"
PAIRS = "share of vote pairs that independence given the label would misplace, from 0 upwards"


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
    return [
        _edge(first, second, _pair_strength(table, model.seen_.balance[first]))
        for (first, second), table in model.correlations_.items()
        if frozenset((first, second)) not in crossed and _is_joint(table, model.seen_.balance[first])
    ]


def _others(material: Material) -> list[EdgeRow]:
    model, found = material.model, []
    for factor in model.law_.parameters.factors:
        if isinstance(factor, Temporal):
            found.append(_edge(factor.source, factor.source, _repeats(factor, model.seen_.balance[factor.source])))
        elif isinstance(factor, Crossed):
            strength = _follows(factor, model.accuracies_[factor.parent])
            found.append(_edge(factor.source, factor.parent, strength, "follows"))
    return found


def _is_joint(table: FloatArray, balance: FloatArray) -> bool:
    return table.ndim >= 3 and table.shape[-3] == len(balance)


def _pair_strength(table: FloatArray, balance: FloatArray) -> float:
    joint = table.reshape(-1, *table.shape[-3:]).mean(axis=0)
    alone = joint.sum(axis=2)[:, :, None] * joint.sum(axis=1)[:, None, :]
    return float(balance @ (0.5 * np.abs(joint - alone).sum(axis=(1, 2))))


def _repeats(factor: Temporal, balance: FloatArray) -> float:
    same = np.einsum("kkuv->kuv", factor.step)
    mixed = np.einsum("ku,kuv->kv", factor.first, same)
    moved = 0.5 * np.einsum("ku,kuv->k", factor.first, np.abs(same - mixed[:, None, :]))
    return float(balance @ moved)


def _follows(factor: Crossed, parent: FloatArray) -> float:
    law = np.asarray(parent).reshape(-1, *parent.shape[-2:]).mean(axis=0)
    mixed = np.einsum("cu,kcuv->kcv", law, factor.table)
    moved = 0.5 * np.einsum("cu,kcuv->kc", law, np.abs(factor.table - mixed[:, :, None, :]))
    return float(moved.mean())

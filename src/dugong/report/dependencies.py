"""The dependencies between sources that the model uses, each with its strength.

Strength is the total variation between what two votes do together and what they would do if they were independent
given the label, averaged over labels: the share of vote pairs that independence would misplace. 0 is independence; a
copy that never abstains reaches (number of its different votes - 1) / (that number) at most. For a source that repeats
itself the label stays the same between the two votes; for one that follows a coarser source, over both labels of the
coarser task.
"""

from __future__ import annotations

import numpy as np

from dugong.infer.parameters import Crossed, Temporal
from dugong.report.material import Material
from dugong.report.values import EdgeRow
from dugong.types import FloatArray


def make_edges(material: Material) -> tuple[EdgeRow, ...]:
    """Dependent pairs, sources that repeat themselves, and sources that follow a coarser one; strongest first."""
    model = material.model
    present = set(material.votes.source_names)
    found = [
        _pair(first, second, _pair_strength(table, model.seen_.balance[first]))
        for (first, second), table in model.correlations_.items()
        if first in present and second in present and _is_joint(table, model.seen_.balance[first])
    ]
    for factor in model.parameters_.factors:
        if factor.source not in present:
            continue
        if isinstance(factor, Temporal):
            found.append(_repeats(factor, model.seen_.balance[factor.source]))
        elif isinstance(factor, Crossed) and factor.parent in present:
            found.append(_follows(factor, model.accuracies_[factor.parent]))
    known = {frozenset((one.first, one.second)): one for one in sorted(found, key=lambda one: one.kind == "pair")}
    return tuple(sorted(known.values(), key=lambda one: -one.strength))


def _is_joint(table: FloatArray, balance: FloatArray) -> bool:
    return table.ndim >= 3 and table.shape[-3] == len(balance)


def _pair_strength(table: FloatArray, balance: FloatArray) -> float:
    joint = table.reshape(-1, *table.shape[-3:]).mean(axis=0)
    alone = joint.sum(axis=2)[:, :, None] * joint.sum(axis=1)[:, None, :]
    return float(balance @ (0.5 * np.abs(joint - alone).sum(axis=(1, 2))))


def _pair(first: str, second: str, strength: float) -> EdgeRow:
    words = f"{first} and {second} are dependent given the label (strength {strength:.2f})"
    return EdgeRow(first=first, second=second, kind="pair", strength=strength, words=words)


def _repeats(factor: Temporal, balance: FloatArray) -> EdgeRow:
    same = np.einsum("kkuv->kuv", factor.step)
    mixed = np.einsum("ku,kuv->kv", factor.first, same)
    moved = 0.5 * np.einsum("ku,kuv->k", factor.first, np.abs(same - mixed[:, None, :]))
    strength = float(balance @ moved)
    ago = "the task before" if factor.lag == 1 else f"{factor.lag} tasks earlier"
    words = f"{factor.source} depends on its own vote {ago} (strength {strength:.2f})"
    return EdgeRow(first=factor.source, second=factor.source, kind="repeats itself", strength=strength, words=words)


def _follows(factor: Crossed, parent: FloatArray) -> EdgeRow:
    law = np.asarray(parent).reshape(-1, *parent.shape[-2:]).mean(axis=0)
    mixed = np.einsum("cu,kcuv->kcv", law, factor.table)
    moved = 0.5 * np.einsum("cu,kcuv->kc", law, np.abs(factor.table - mixed[:, :, None, :]))
    strength = float(moved.mean())
    words = f"{factor.source} follows {factor.parent} on the task that contains its own (strength {strength:.2f})"
    return EdgeRow(first=factor.source, second=factor.parent, kind="follows", strength=strength, words=words)

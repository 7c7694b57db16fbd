"""From agreements to the joint tables of the paper's estimator: generalized agreements a(U, V), then B e = r.

A generalized agreement ``a(U, V)`` is the product of the votes in U and the labels in V. With a further
source k on every task of V, independent of the votes in U, ``E[votes in U * votes of k on V] = E[a(U, V)]
E[a_k(V, V)]``: the left side is counted, the last factor is known, and the row satisfies the paper's parity
condition, because a_k(V, V) has 2 |V| terms. Products of the votes of dependent sources (phi) and patterns
of one source (full tables) differ only in U and V.

Differs from the paper: in every row one of the two agreements is of the kind a_k(V, V). Rows where neither
is do not factorise, even without singleton potentials (docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dugong.fit.paper_agreements import mean_product
from dugong.fit.walsh import joint_from_products
from dugong.types import FloatArray

Subset = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """One counted row: votes on the first axes, then those of a further source on every task.

    Attributes
    ----------
    counts : (C, ..., C) contingency table, `n_votes` axes of votes and one axis per task
    anchor : (2, ..., 2) E[a_k(V, V)] of the further source by V; index 1 on an axis means that the task is
    in V
    """

    counts: FloatArray
    anchor: FloatArray


def agreements(witnesses: Sequence[Witness], n_votes: int, label_law: FloatArray) -> FloatArray:
    """E[a(U, V)] for all U and V, shape (2,) * n_votes + (2,) * n_tasks; votes in U are given.

    Parameters
    ----------
    label_law : (2, ..., 2) P(labels) under the prior, one axis per task
    """
    n_tasks = label_law.ndim
    expected = np.zeros((2,) * (n_votes + n_tasks))
    alone = max((w.counts for w in witnesses), key=lambda counts: float(counts.sum()))
    for inside in product((0, 1), repeat=n_votes):
        votes = [axis for axis in range(n_votes) if inside[axis]]
        for labels in product((0, 1), repeat=n_tasks):
            if not any(labels):
                expected[inside + labels] = mean_product(alone, votes)[0] if votes else 1.0
            elif not votes:
                expected[inside + labels] = _label_product(label_law, labels)
            else:
                expected[inside + labels] = _solve_one(witnesses, votes, labels)
    return expected


def _label_product(label_law: FloatArray, labels: Subset) -> float:
    value = label_law
    for chosen in labels:
        value = np.tensordot(np.array([-1.0, 1.0] if chosen else [1.0, 1.0]), value, axes=(0, 0))
    return float(value)


def _solve_one(witnesses: Sequence[Witness], votes: list[int], labels: Subset) -> float:
    """Least squares over all further sources k of ``E[votes in U * votes of k on V] = x E[a_k(V, V)]``."""
    upper = lower = 0.0
    for witness in witnesses:
        first = witness.counts.ndim - len(labels)
        tasks = [first + task for task, chosen in enumerate(labels) if chosen]
        value, support = mean_product(witness.counts, [*votes, *tasks])
        anchor = float(witness.anchor[labels])
        upper += support * anchor * value
        lower += support * anchor**2
    return upper / lower if lower > 0 else 0.0


def joint_with_silence(expected: FloatArray, alone: FloatArray) -> FloatArray:
    """P(labels, votes) from E[a(U, V)] and the rates of abstaining, which do not depend on labels.

    Parameters
    ----------
    expected : (2,) * n_votes + (2,) * n_tasks, from `agreements`
    alone : (C, ..., C) counts of the votes

    Returns
    -------
    (2,) * n_tasks + (C, ..., C)
    """
    n_votes = alone.ndim
    n_tasks = expected.ndim - n_votes
    law = alone / max(float(alone.sum()), 1.0)
    joint = np.zeros((*(2,) * n_tasks, *alone.shape))
    for silence in product(*(range(1, size) for size in alone.shape)):
        # Column 1 stands for "votes"; 2 and beyond are ways to say nothing.
        speaks = [column == 1 for column in silence]
        cells = tuple(slice(0, 2) if s else column for s, column in zip(speaks, silence, strict=True))
        rate = float(law[cells].sum())
        heard = expected[tuple(slice(None) if s else 0 for s in speaks)]
        order = [*range(sum(speaks), heard.ndim), *range(sum(speaks))]
        joint[(slice(None),) * n_tasks + cells] = rate * joint_from_products((1 + heard) / 2).transpose(order)
    return joint


def total_votes(witnesses: Sequence[Witness], n_votes: int) -> FloatArray:
    """Counts of the votes alone, from the row with most of them."""
    tables = [w.counts.sum(axis=tuple(range(n_votes, w.counts.ndim))) for w in witnesses]
    return max(tables, key=lambda table: float(table.sum()))

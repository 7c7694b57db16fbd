"""Votes that were never seen while fitting are no evidence, instead of an impossibility.

A table estimated from votes gives a vote that never occurred the probability zero under every label. New votes may hold
it all the same; a tiny equal probability under all labels makes such a vote say nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dugong.law.parameters import Conditional, Factor, Parameters, Temporal
from dugong.types import FloatArray

_UNSEEN = 1e-12


def allow_unseen(parameters: Parameters) -> Parameters:
    """The same parameters, with room for votes that no label had explained."""
    return replace(parameters, factors=tuple(_allow(factor) for factor in parameters.factors))


def _allow(factor: Factor) -> Factor:
    changes: dict[str, Any] = {}
    if isinstance(factor, Temporal):
        changes = {"first": _lift(factor.first, (0,)), "step": _lift(factor.step, (0, 1))}
    elif isinstance(factor, Conditional):
        label = int(factor.by_position)
        changes["table"] = _lift(factor.table, (label,))
        if factor.marginal is not None:
            changes["marginal"] = _lift(factor.marginal, (label,))
    else:
        axes = (0,) if factor.table.ndim == 2 else (0, 1)
        changes["table"] = _lift(factor.table, axes)
    return replace(factor, **changes)


def _lift(table: FloatArray, labels: tuple[int, ...]) -> FloatArray:
    never = table.max(axis=labels, keepdims=True) == 0
    return np.where(never, _UNSEEN, table)

"""The tables that the SGD variant ends with, in the form that all estimators hand to `Assembly`.

`AccuracyTables` holds P(vote | label) of single sources after the first stage; `SgdTables` adds the joint tables of the
second. They are valid by construction; only ``signs="positive"`` can push one outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from dugong.estimate.design import Design
from dugong.estimate.laws import Laws
from dugong.estimate.sgd_units import Bank
from dugong.estimate.tables import project
from dugong.moments import Moments, Row, Slot
from dugong.tasks import Resolution
from dugong.types import FloatArray

Kind = Literal["clique", "temporal", "first", "crossed", "full"]


@dataclass(frozen=True, slots=True)
class JointKey:
    """What a joint table is about: how its votes hang together, and whose they are."""

    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccuracyTables:
    """P(vote | label) of all sources but those with full tables; `found` is (n_tables, 2, C) as in the bank."""

    design: Design
    moments: Moments
    laws: Laws
    bank: Bank
    found: FloatArray
    accuracies: Mapping[str, FloatArray]

    def raw(self, name: str) -> FloatArray:
        """P(vote | label), (positions, 2, C)."""
        if name in self.accuracies:
            known = np.asarray(self.accuracies[name], dtype=np.float64)
            return known if known.ndim == 3 else known[np.newaxis]
        return np.asarray(self.found[self.bank.places(self.design.key(name)), :, : self.columns(name)])

    def at(self, name: str, n_positions: int) -> FloatArray:
        """The valid table of a source at each of some positions, (n_positions, 2, C)."""
        valid, _ = project(self.raw(name))
        return np.asarray(valid[np.minimum(np.arange(n_positions), len(valid) - 1)])

    def columns(self, name: str) -> int:
        """Vote columns of a source."""
        row = Row(slots=(Slot(name),), by_position=self.design.levels[name] == "task")
        return int(self.moments.table(row).shape[-1])

    def chances(self, resolution: Resolution, *, by_position: bool = False) -> FloatArray:
        """P(label) of the tasks of a resolution, (positions or 1, 2)."""
        mean = self.laws.mean(resolution, by_position=by_position)
        return np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SgdTables(AccuracyTables):
    """The joint tables of the SGD variant (`assemble.JointTables`).

    Attributes
    ----------
    joints : P(votes | labels) by key, (positions, label patterns, vote patterns)
    label_laws : P(labels) by key, (positions, label patterns)
    first_votes : number of first votes by temporal source
    """

    joints: Mapping[JointKey, FloatArray]
    label_laws: Mapping[JointKey, FloatArray]
    first_votes: Mapping[str, float]

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), from the largest clique that holds it."""
        key = next(key for key in self.joints if key.kind == "clique" and set(names) <= set(key.names))
        table = self._joint(key, 1, key.names)
        places = [key.names.index(name) for name in names]
        dropped = tuple(2 + place for place in range(len(key.names)) if place not in places)
        kept = sorted(places)
        return np.transpose(table.sum(axis=dropped), (0, 1, *(2 + kept.index(place) for place in places)))

    def temporal(self, name: str, lag: int) -> FloatArray:  # noqa: ARG002  the table is of the declared lag
        """P(earlier label, label, earlier vote, vote)."""
        return np.asarray(self._joint(JointKey("temporal", (name,)), 2, (name, name))[0])

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label), and how many first votes there were."""
        return self.joints[JointKey("first", (name,))][0], self.first_votes[name]

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote)."""
        return np.asarray(self._joint(JointKey("crossed", (fine, coarse)), 2, (fine, coarse))[0])

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks)."""
        size = self.design.n_tasks[name]
        return np.asarray(self._joint(JointKey("full", (name,)), size, (name,) * size)[0])

    def _joint(self, key: JointKey, n_labels: int, names: tuple[str, ...]) -> FloatArray:
        """P(labels, votes) with one axis each: (positions, 2, ..., 2, C, ..., C)."""
        table, law = self.joints[key], self.label_laws[key]
        if len(law) != len(table):
            law = law.mean(axis=0, keepdims=True)
        joint = table * law[:, :, np.newaxis]
        joint = joint / joint.sum(axis=(1, 2), keepdims=True)
        columns = [self.columns(name) for name in names]
        assert joint.shape[1:] == (2**n_labels, prod(columns))
        return np.reshape(joint, (len(joint), *(2,) * n_labels, *columns))

"""The tables that the SGD variant ends with, in the form that all estimators hand to `Assembly`.

`AccuracyTables` holds P(vote | label) of single sources after the first stage; `SgdTables` adds the joint tables of the
second. `Assembly` makes them valid, and records by how much they had to be moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dugong.fit.joints import shrink_temporal
from dugong.fit.proxies import Tables
from dugong.tasks import Resolution
from dugong.types import FloatArray

Kind = Literal["clique", "temporal", "first", "crossed", "full"]


@dataclass(frozen=True, slots=True)
class JointKey:
    """What a joint table is about: how its votes hang together, and whose they are."""

    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccuracyTables(Tables):
    """P(vote | label) of all sources but those with full tables, from their slopes."""

    def at(self, name: str, n_positions: int) -> FloatArray:
        """The table of a source at each of some positions, (n_positions, 2, C); it need not be valid."""
        table = self.raw(name)
        return np.asarray(table[np.minimum(np.arange(n_positions), len(table) - 1)])

    def chances(self, resolution: Resolution, *, by_position: bool = False) -> FloatArray:
        """P(label) of the tasks of a resolution, (positions or 1, 2)."""
        mean = self.laws.mean(resolution, by_position=by_position)
        return np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SgdTables(AccuracyTables):
    """The joint tables of the SGD variant (`assemble.JointTables`).

    Attributes
    ----------
    joints : P(labels, votes) by key, (positions, label patterns, vote patterns)
    first_votes : number of first votes by temporal source
    """

    joints: Mapping[JointKey, FloatArray]
    first_votes: Mapping[str, float]

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), from the largest clique that holds it."""
        key = next(key for key in self.joints if key.kind == "clique" and set(names) <= set(key.names))
        table = self._joint(key, 1, key.names)
        places = [key.names.index(name) for name in names]
        dropped = tuple(2 + place for place in range(len(key.names)) if place not in places)
        kept = sorted(places)
        return np.transpose(table.sum(axis=dropped), (0, 1, *(2 + kept.index(place) for place in places)))

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote), drawn towards copying as in the closed form."""
        joint = np.asarray(self._joint(JointKey("temporal", (name,)), 2, (name, name))[0])
        return shrink_temporal(self, name, lag, joint)[0]

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(first vote | first label), and how many first votes there were."""
        chance = self.chances(self.design.info(name).resolution, by_position=True)[0]
        joint = self.joints[JointKey("first", (name,))][0]
        return joint / np.maximum(chance, 1e-12)[:, np.newaxis], self.first_votes[name]

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote)."""
        return np.asarray(self._joint(JointKey("crossed", (fine, coarse)), 2, (fine, coarse))[0])

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks)."""
        size = self.design.n_tasks[name]
        return np.asarray(self._joint(JointKey("full", (name,)), size, (name,) * size)[0])

    def _joint(self, key: JointKey, n_labels: int, names: tuple[str, ...]) -> FloatArray:
        """P(labels, votes) with one axis each: (positions, 2, ..., 2, C, ..., C)."""
        columns = [self.marginal(name).shape[1] for name in names]
        return np.reshape(self.joints[key], (-1, *(2,) * n_labels, *columns))

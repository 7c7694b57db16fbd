"""From joint tables to factors: the last stage that all closed-form estimators share.

In: a `JointTables`, which answers with P(votes, labels) of single sources, cliques, a source with itself in
time, a fine with a coarse source, or whole patterns. Out: one valid factor per source in elimination order,
the tables that people read, and a record of every repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.errors import RawTables
from dugong.fit.moments.equations import Given
from dugong.fit.moments.stages import Solution
from dugong.fit.result import FAR, Diagnostics, Estimate, Note
from dugong.fit.tables import ROUNDING, conditional, make_valid, project
from dugong.graph.design import crossed_edges
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.types import FloatArray

# Below this a table of first votes is mostly noise, and that of all votes is nearer to the truth.
FEWEST_FIRST_VOTES = 200
# What it means that shares of votes came out below 0 or above 1 and had to be moved, a little or far.
_MOVED = (
    "the estimated shares of votes of {!r} came out slightly impossible (below 0 or above 1), as happens by chance, "
    "and were moved to the nearest possible ones"
)
_IMPOSSIBLE = (
    "what {!r} says does not fit the other sources and the prior: its estimated shares of votes came out impossible "
    "(below 0 or above 1) and were moved to the nearest possible ones. Do not rely on its accuracy; look at some of "
    "its votes, at the prior, and at sources that may share its errors"
)


class JointTables(Protocol):
    """Where an estimator's tables come from; none of them need be valid yet."""

    @property
    def given(self) -> Given:
        """What they are made from."""

    @property
    def solved(self) -> Solution:
        """The slopes or agreements that they follow from."""

    def raw(self, name: str) -> FloatArray:
        """P(vote | label), (positions, 2, C)."""

    def clique(self, names: tuple[str, ...]) -> FloatArray:
        """P(label, votes of a clique on one task), (positions, 2, C, ..., C)."""

    def temporal(self, name: str, lag: int) -> FloatArray:
        """P(earlier label, label, earlier vote, vote), (2, 2, C, C)."""

    def first(self, name: str) -> tuple[FloatArray, float]:
        """P(vote | label) of first votes, (2, C), and how many there were."""

    def crossed(self, fine: str, coarse: str) -> FloatArray:
        """P(fine label, coarse label, fine vote, coarse vote), (2, 2, C, C)."""

    def full(self, name: str) -> FloatArray:
        """P(labels of all tasks, votes on all tasks), (2, ..., 2, C, ..., C)."""


def raw_tables(tables: JointTables) -> RawTables:
    """All tables as estimated, before any repair; those of replicates have an axis over these in front."""
    design = tables.given.design
    return RawTables(
        accuracies={name: raw_table(tables, name) for name in design.elimination.order},
        correlations={edge: raw_correlation(tables, edge) for edge in design.graph.edges},
    )


def raw_table(tables: JointTables, name: str) -> FloatArray:
    """P(vote | label) of one source in the shape of its sharing level."""
    level = tables.given.design.levels[name]
    if level == "full":
        return _full_table(tables, name)
    raw = tables.raw(name)
    return raw if level == "task" else np.asarray(raw[..., 0, :, :])


def raw_correlation(tables: JointTables, edge: tuple[str, str]) -> FloatArray:
    """P(vote a, vote b | label), (2, C, C), or by position; between resolutions (2, 2, C, C)."""
    design, (first, second) = tables.given.design, edge
    if design.infos[first].resolution != design.infos[second].resolution:
        ((fine, coarse),) = (pair for pair in crossed_edges(design.sources, design.graph) if set(pair) == {*edge})
        joint = tables.crossed(fine, coarse)
        return np.asarray(joint / np.maximum(joint.sum(axis=(-2, -1), keepdims=True), 1e-12))
    joint = tables.clique(edge)
    n_positions = joint.shape[-4]
    chance = tables.given.laws.chances(design.infos[first].resolution, by_position=n_positions > 1)[
        ..., :n_positions, :
    ]
    law = joint / np.maximum(chance, 1e-12)[..., np.newaxis, np.newaxis]
    return np.asarray(law[..., 0, :, :, :] if n_positions == 1 else law)


def _full_table(tables: JointTables, name: str) -> FloatArray:
    joint, size = tables.full(name), tables.given.design.n_tasks[name]
    labels = pattern_law(tables, name, size).reshape(-1, 1)
    flat = joint.reshape(*joint.shape[: joint.ndim - 2 * size], len(labels), -1)
    # Label patterns that the prior rules out are never used; any table will do there.
    return np.where(labels > 0, flat / np.where(labels > 0, labels, 1.0), 1 / flat.shape[-1])


def pattern_law(tables: JointTables, name: str, size: int) -> FloatArray:
    """P(labels of all tasks of a source) under the prior, one axis per task."""
    resolution = tables.given.design.infos[name].resolution
    length = int(tables.given.laws.shapes.lengths[-1])
    return tables.given.laws.prior.joint_law([(resolution, index) for index in range(size)], length)


def full_and_dependent(name: str) -> GraphError:
    """The error about a table over whole patterns that has a declared dependency as well."""
    return GraphError(
        f'source {name!r} has sharing="full" and a declared dependency; only one can be modelled.\n'
        '  Use sharing="tied" or "task" for it, or leave the dependency out.'
    )


class Assembly:
    """Collects one factor per source, and what had to be repaired on the way."""

    def __init__(self, tables: JointTables) -> None:
        self.tables, self.design = tables, tables.given.design
        self.accuracies: dict[str, FloatArray] = {}
        self.projections: dict[str, float] = {}
        self.notes: list[Note] = []
        self.crossed = self._coarser()
        order = self.design.elimination.order
        self.raw = {name: raw_table(tables, name) for name in order}
        self._add_singles()
        # In elimination order, because a factor may name as parents only what came before it.
        factors = tuple(self._factor(name) for name in order)
        self.parameters = Parameters(n_classes=tables.given.moments.n_classes, factors=factors)

    def estimate(self, notes: Iterable[Note] = (), learned: Mapping[str, Any] | None = None) -> Estimate:
        """All of it as one value."""
        solved = self.tables.solved
        residuals, support = solved.residuals()
        correlations = {edge: raw_correlation(self.tables, edge) for edge in self.design.graph.edges}
        moved = [
            Note(kind="projection", where=name, size=size, text=(_MOVED if size <= FAR else _IMPOSSIBLE).format(name))
            for name, size in self.projections.items()
        ]
        return Estimate(
            parameters=self.parameters,
            accuracies=self.accuracies,
            correlations={edge: project(table, axes=2)[0] for edge, table in correlations.items()},
            raw=self.raw,
            raw_correlations=correlations,
            diagnostics=Diagnostics(
                notes=(*notes, *solved.notes, *self.notes, *moved),
                residuals=residuals,
                support=support,
                signs=solved.signs,
                condition=solved.condition,
                projections=self.projections,
                learned=learned or {},
            ),
        )

    def _coarser(self) -> dict[str, str]:
        crossed: dict[str, str] = {}
        for fine, coarse in crossed_edges(self.design.sources, self.design.graph):
            tangled = fine in self.design.graph.temporal or self.design.levels[fine] == "full"
            if fine in crossed or self.design.elimination.parents[fine] or tangled:
                raise GraphError(
                    f"source {fine!r} depends on {coarse!r} at a coarser resolution and on something else as "
                    "well; only one of these dependencies can be modelled.\n  Declare the stronger one."
                )
            crossed[fine] = coarse
        return crossed

    def _project(self, names: Sequence[str], tables: FloatArray, votes: FloatArray, axes: int) -> FloatArray:
        """The nearest valid tables, with the votes that were seen possible, and a record of how far they moved."""
        valid, moved = make_valid(tables, votes, axes, 1)
        for name, size in zip(names, moved.tolist(), strict=True):
            if size > ROUNDING:
                self.projections[name] = max(size, self.projections.get(name, 0.0))
        return valid

    def _project_pair(self, name: str, joint: FloatArray) -> FloatArray:
        """The same for P(two labels, two votes)."""
        votes = joint.sum(axis=(0, 1), keepdims=True)
        return np.asarray(self._project((name,), joint[np.newaxis], votes[np.newaxis], joint.ndim)[0])

    def _add_singles(self) -> None:
        """P(vote | label) of every source as a valid table; all tables that are alike at once."""
        alike: dict[tuple[object, ...], list[str]] = {}
        for name, raw in self.raw.items():
            alone = name if self.design.levels[name] == "full" else None
            alike.setdefault((self.design.infos[name].resolution, raw.shape, alone), []).append(name)
        for names in alike.values():
            raw = np.stack([self.raw[name] for name in names])
            if self.design.levels[names[0]] == "full":
                labels = pattern_law(self.tables, names[0], self.design.n_tasks[names[0]]).reshape(-1)
                votes = (labels @ raw)[:, np.newaxis]
            else:
                by_position = raw if raw.ndim == 4 else raw[:, np.newaxis]
                where, n_positions = self.design.infos[names[0]].resolution, by_position.shape[1]
                chance = self.tables.given.laws.chances(where, by_position=n_positions > 1)[..., :n_positions, :]
                votes = (chance[..., np.newaxis] * by_position).sum(axis=-2).reshape(*raw.shape[:-2], 1, raw.shape[-1])
            self.accuracies.update(zip(names, self._project(names, raw, votes, 1), strict=True))
        self.accuracies = {name: self.accuracies[name] for name in self.raw}

    def _factor(self, name: str) -> Factor:
        level, table = self.design.levels[name], self.accuracies[name]
        if level == "full":
            return self._full(name, table)
        if name in self.design.graph.temporal:
            return self._temporal(name, table if level == "tied" else table.mean(axis=0))
        if name in self.crossed:
            return self._crossed(name, self.crossed[name], table if level == "tied" else table.mean(axis=0))
        return self._conditional(name, table if level == "task" else table[np.newaxis])

    def _conditional(self, name: str, table: FloatArray) -> Conditional:
        parents = self.design.elimination.parents[name]
        marginal = table
        if parents:
            joint = self.tables.clique((*parents, name))
            votes = joint.sum(axis=1, keepdims=True)
            joint = self._project((name,), joint[np.newaxis], votes[np.newaxis], joint.ndim - 1)[0]
            marginal = np.broadcast_to(table, (max(len(joint), len(table)), *table.shape[1:]))
            # Votes of the parents that never occur leave the vote to its own table.
            shape = (*marginal.shape[:2], *(1,) * len(parents), marginal.shape[-1])
            table = conditional(joint, marginal.reshape(shape))
        by_position = self.design.levels[name] == "task" or len(table) > 1
        return Conditional(
            source=name,
            resolution=self.design.infos[name].resolution,
            parents=parents,
            table=table if by_position else table[0],
            marginal=(marginal if by_position else marginal[0]) if parents else None,
            by_position=by_position,
        )

    def _temporal(self, name: str, table: FloatArray) -> Temporal:
        parents = self.design.elimination.parents[name]
        if parents:
            raise GraphError(
                f"source {name!r} depends on itself in time and on {parents[0]!r}; only one of these "
                "dependencies can be modelled.\n  Declare the stronger one."
            )
        lag = self.design.graph.temporal[name]
        # The joint table is projected before it is divided: a conditional of a negative table means nothing.
        joint = self._project_pair(name, self.tables.temporal(name, lag))
        first, support = self.tables.first(name)
        if support < FEWEST_FIRST_VOTES:
            first = table
            text = f"only {support:.0f} first votes of {name!r}: they are given the table of all its votes"
            self.notes.append(Note(kind="fallback", where=name, size=support, text=text))
        votes = self.tables.given.laws.chances(self.design.infos[name].resolution, by_position=True)[:1] @ first
        return Temporal(
            source=name,
            resolution=self.design.infos[name].resolution,
            first=self._project((name,), first[np.newaxis], votes[np.newaxis], 1)[0],
            step=conditional(joint, table[np.newaxis, :, np.newaxis, :]),
            lag=lag,
        )

    def _crossed(self, name: str, coarse: str, table: FloatArray) -> Crossed:
        joint = self._project_pair(name, self.tables.crossed(name, coarse))
        return Crossed(
            source=name,
            resolution=self.design.infos[name].resolution,
            parent=coarse,
            parent_resolution=self.design.infos[coarse].resolution,
            table=conditional(np.swapaxes(joint, 2, 3), table[:, np.newaxis, np.newaxis, :]),
            marginal=table,
        )

    def _full(self, name: str, table: FloatArray) -> FullTable:
        if self.design.elimination.parents[name] or name in self.design.graph.temporal:
            raise full_and_dependent(name)
        resolution = self.design.infos[name].resolution
        n_tasks = self.design.n_tasks[name]
        return FullTable(source=name, resolution=resolution, n_tasks=n_tasks, table=table)

"""The default estimator: centred moments, right for lopsided sources and abstains (METHOD 3.3 and 3.4).

In: moments, a prior, the design. Out: an `Estimate`. ``Cov(f, g) = beta_f beta_g Cov(y, y')`` needs no symmetry of the
sources; correlations, self-dependence and full tables follow through unbiased proxies.

Differs from the paper: the paper's factorisation of raw agreements needs sources without a preference for one class;
see docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.estimate.design import Design, crossed_edges
from dugong.estimate.joints import clique_joint, crossed_joint, first_table, full_joint, temporal_joint
from dugong.estimate.laws import Laws
from dugong.estimate.proxies import Tables
from dugong.estimate.result import Diagnostics, Estimate, Note
from dugong.estimate.slopes import Slopes, find_slopes
from dugong.estimate.tables import conditional, project
from dugong.exceptions import GraphError
from dugong.infer.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.moments import Moments
from dugong.types import FloatArray

FEWEST_FIRST_VOTES = 200


def estimate_centred(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    start: Slopes | None = None,
) -> tuple[Estimate, Slopes]:
    """Estimate all tables from counts; also returns the slopes, from which the jackknife starts."""
    slopes = find_slopes(design, moments, laws, signs=signs, accuracies=accuracies, start=start)
    tables = Tables(design=design, moments=moments, laws=laws, slopes=slopes, accuracies=accuracies or {})
    build = _Builder(tables)
    for name in design.elimination.order:
        build.add(name)
    correlations = {edge: build.correlation(edge) for edge in design.graph.edges}
    estimate = Estimate(
        parameters=Parameters(n_classes=moments.n_classes, factors=tuple(build.factors)),
        accuracies=build.accuracies,
        correlations={edge: project(table, axes=2)[0] for edge, table in correlations.items()},
        raw=build.raw,
        raw_correlations=correlations,
        diagnostics=_diagnose(design, moments, slopes, build),
    )
    return estimate, slopes


class _Builder:
    """Collects one factor per source, and what had to be repaired on the way."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.design = tables, tables.design
        self.factors: list[Conditional | Temporal | Crossed | FullTable] = []
        self.accuracies: dict[str, FloatArray] = {}
        self.raw: dict[str, FloatArray] = {}
        self.projections: dict[str, float] = {}
        self.notes: list[Note] = []
        self.crossed: dict[str, str] = {}
        for fine, coarse in crossed_edges(self.design.sources, self.design.graph):
            if fine in self.crossed or self.design.elimination.parents[fine] or fine in self.design.graph.temporal:
                raise GraphError(
                    f"source {fine!r} depends on {coarse!r} at a coarser resolution and on something else as well; "
                    "only one of these dependencies can be modelled.\n  Declare the stronger one."
                )
            self.crossed[fine] = coarse

    def add(self, name: str) -> None:
        """Make the factor of one source."""
        if self.design.levels[name] == "full":
            self._add_full(name)
            return
        raw = self.tables.raw(name)
        table = self._project(name, raw)
        by_position = self.design.levels[name] == "task"
        self.raw[name] = raw if by_position else raw[0]
        self.accuracies[name] = table if by_position else table[0]
        if name in self.design.graph.temporal:
            self._add_temporal(name, table[0])
        elif name in self.crossed:
            self._add_crossed(name, self.crossed[name], table[0])
        else:
            self._add_conditional(name, table, by_position)

    def _project(self, name: str, table: FloatArray, axes: int = 1) -> FloatArray:
        valid, moved = project(table, axes=axes)
        if moved > 0:
            self.projections[name] = max(moved, self.projections.get(name, 0.0))
        return valid

    def _add_conditional(self, name: str, table: FloatArray, by_position: bool) -> None:
        parents = self.design.elimination.parents[name]
        resolution = self.design.info(name).resolution
        marginal = table
        if parents:
            joint = clique_joint(self.tables, (*parents, name))
            joint = self._project(name, joint, axes=joint.ndim - 1)
            by_position = by_position or len(joint) > 1
            marginal = np.broadcast_to(table, (len(joint), *table.shape[1:]))
            shape = (*marginal.shape[:2], *(1,) * len(parents), marginal.shape[-1])
            table = conditional(joint, marginal.reshape(shape))
        self.factors.append(
            Conditional(
                source=name,
                resolution=resolution,
                parents=parents,
                table=table if by_position else table[0],
                marginal=(marginal if by_position else marginal[0]) if parents else None,
                by_position=by_position,
            )
        )

    def _add_temporal(self, name: str, table: FloatArray) -> None:
        if self.design.elimination.parents[name]:
            raise GraphError(
                f"source {name!r} depends on itself in time and on {self.design.elimination.parents[name][0]!r}; only "
                "one of these dependencies can be modelled.\n  Declare the stronger one."
            )
        lag = self.design.graph.temporal[name]
        joint = temporal_joint(self.tables, name, lag)
        joint = self._project(name, joint, axes=joint.ndim)
        first, support = first_table(self.tables, name)
        if support < FEWEST_FIRST_VOTES:
            first = table
            self.notes.append(
                Note(
                    kind="fallback",
                    where=name,
                    size=support,
                    text=f"only {support:.0f} first votes of {name!r}: its table for first votes is that of all votes",
                )
            )
        step = conditional(joint, table[np.newaxis, :, np.newaxis, :])
        self.factors.append(
            Temporal(
                source=name,
                resolution=self.design.info(name).resolution,
                first=self._project(name, first),
                step=step,
                lag=lag,
            )
        )

    def _add_crossed(self, name: str, coarse: str, table: FloatArray) -> None:
        joint = crossed_joint(self.tables, name, coarse)
        joint = self._project(name, joint, axes=joint.ndim)
        law = conditional(np.swapaxes(joint, 2, 3), table[:, np.newaxis, np.newaxis, :])
        self.factors.append(
            Crossed(
                source=name,
                resolution=self.design.info(name).resolution,
                parent=coarse,
                parent_resolution=self.design.info(coarse).resolution,
                table=law,
                marginal=table,
            )
        )

    def _add_full(self, name: str) -> None:
        joint = full_joint(self.tables, name)
        size = joint.ndim // 2
        labels = pattern_law(self.tables.laws, self.design, name, size).reshape(-1)
        flat = joint.reshape(len(labels), -1)
        possible = labels > 0
        raw = np.where(possible[:, np.newaxis], flat / np.where(possible, labels, 1.0)[:, np.newaxis], 1 / flat.shape[1])
        self.raw[name] = raw
        self.accuracies[name] = self._project(name, raw)
        self.factors.append(
            FullTable(source=name, resolution=self.design.info(name).resolution, table=self.accuracies[name])
        )

    def correlation(self, edge: tuple[str, str]) -> FloatArray:
        """P(vote a, vote b | label) before projection, (2, C, C); between resolutions (2, 2, C, C)."""
        first, second = edge
        if self.design.info(first).resolution != self.design.info(second).resolution:
            fine, coarse = (first, second) if first in self.crossed else (second, first)
            joint = crossed_joint(self.tables, fine, coarse)
            return np.asarray(joint / np.maximum(joint.sum(axis=(2, 3), keepdims=True), 1e-12))
        joint = clique_joint(self.tables, edge)
        mean = self.tables.laws.mean(self.design.info(first).resolution, len(joint) > 1)[: len(joint)]
        chance = np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)
        law = joint / np.maximum(chance, 1e-12)[:, :, np.newaxis, np.newaxis]
        return np.asarray(law[0] if len(law) == 1 else law)


def pattern_law(laws: Laws, design: Design, name: str, size: int) -> FloatArray:
    """P(labels of all tasks of a source) under the prior, one axis per task."""
    resolution = design.info(name).resolution
    length = int(laws.shapes.lengths[-1])
    return laws.prior.joint_law([(resolution, index) for index in range(size)], length)


def _diagnose(design: Design, moments: Moments, slopes: Slopes, build: _Builder) -> Diagnostics:
    equations = slopes.equations
    predicted = equations.scale * slopes.beta[equations.left] * slopes.beta[equations.right]
    spread = np.sqrt(np.where(equations.variance > 0, equations.variance, np.inf))
    standard = (equations.value - predicted) / spread
    residuals: dict[tuple[str, str], float] = {}
    support: dict[tuple[str, str], int] = {}
    for row, value in zip(slopes.origins, standard, strict=True):
        pair = (row.sources[0], row.sources[1])
        if abs(value) >= abs(residuals.get(pair, 0.0)):
            residuals[pair] = float(value)
        support[pair] = int(moments.table(row).sum()) if pair not in support else support[pair]
    notes = [*slopes.notes, *build.notes]
    for name, moved in build.projections.items():
        text = f"the table of {name!r} was moved by {moved:.3g} to become a valid one"
        notes.append(Note(kind="projection", where=name, size=moved, text=text))
    return Diagnostics(
        notes=tuple(notes),
        residuals=residuals,
        support=support,
        signs=slopes.signs,
        condition=slopes.condition,
        projections=build.projections,
    )

"""Standard errors by the delete-one-group jackknife: estimate again without each group of sequences.

In: moments by group, and a fitted estimate. Out: `StandardErrors` of every entry of every table. Groups may differ in
size, so the weighted form is used (Busing, Meijer and van der Leeden 1999); groups without any votes are skipped.
(METHOD 3.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dugong.fit.assemble import RawTables, raw_correlation, raw_table, raw_tables
from dugong.fit.equations import N_INDICATORS
from dugong.fit.errors import StandardErrors, weighted_error
from dugong.fit.fitting import Fitted
from dugong.fit.joints import CentredTables
from dugong.fit.paper import paper_tables
from dugong.fit.replicate_pairs import PairReplicates
from dugong.fit.replicates import left_out, replicate_slopes
from dugong.fit.slopes import Slopes
from dugong.graph.design import Design
from dugong.sums import Laws, Moments, Row, Slot
from dugong.tasks import Resolution
from dugong.types import FloatArray, IntArray

__all__ = ["StandardErrors", "jackknife"]


def jackknife(
    design: Design,
    moments: Moments,
    fitted: Fitted,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> StandardErrors:
    """Standard errors of all accuracies and correlations of a fitted estimate.

    Parameters
    ----------
    fitted : the estimate from all groups, with the laws and slopes that it was made from
    signs, accuracies : as given to the estimator
    """
    full = RawTables(accuracies=fitted.estimate.raw, correlations=fitted.estimate.raw_correlations)
    sizes = group_sizes(design, moments)
    groups = 1 + np.flatnonzero(sizes[1:])  # group 0 is what no group was drawn for
    known = accuracies or {}
    if len(groups) < 2:
        return unknown_errors(full, len(groups))
    laws = [_without(fitted, int(group)) for group in groups]
    if fitted.slopes is not None:
        replicates = _Replicates(
            design=design,
            moments=moments,
            laws=laws,
            slopes=fitted.slopes,
            accuracies=known,
            groups=groups,
        ).tables()
    else:
        replicates = (
            raw_tables(paper_tables(design, moments.without(int(group)), law, signs=signs, accuracies=known))
            for group, law in zip(groups, laws, strict=True)
        )
    return spread(full, list(replicates), sizes[groups] / sizes.sum())


def _without(fitted: Fitted, group: int) -> Laws:
    """Prior moments without one group: they change where the sample's own class balance was used."""
    if not fitted.balances:
        return fitted.laws
    return fitted.laws.with_balance({where: float(means[group]) for where, means in fitted.balances.items()})


def group_sizes(design: Design, moments: Moments) -> FloatArray:
    """Votes that were asked for in every group, shape (n_groups,)."""
    sizes = np.zeros(moments.n_groups)
    for info in design.sources:
        row = Row(slots=(Slot(info.name),), by_position=design.levels[info.name] == "task")
        counts = np.asarray(moments.counts[moments.plan.place(row)], dtype=np.float64)
        sizes += counts.reshape(len(sizes), -1).sum(axis=1)
    return sizes


def spread(full: RawTables, replicates: list[RawTables], shares: FloatArray) -> StandardErrors:
    """Standard errors from the estimates without each group."""
    return StandardErrors(
        accuracies={
            name: weighted_error(table, np.stack([r.accuracies[name] for r in replicates]), shares)
            for name, table in full.accuracies.items()
        },
        correlations={
            edge: weighted_error(table, np.stack([r.correlations[edge] for r in replicates]), shares)
            for edge, table in full.correlations.items()
        },
        raw=full.accuracies,
        raw_correlations=full.correlations,
        n_groups=len(replicates),
    )


def unknown_errors(full: RawTables, n_groups: int) -> StandardErrors:
    return StandardErrors(
        accuracies={name: np.full_like(table, np.inf) for name, table in full.accuracies.items()},
        correlations={edge: np.full_like(table, np.inf) for edge, table in full.correlations.items()},
        raw=full.accuracies,
        raw_correlations=full.correlations,
        n_groups=n_groups,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Replicates:
    """The centred estimate without each of some groups."""

    design: Design
    moments: Moments
    laws: Sequence[Laws]
    slopes: Slopes
    accuracies: Mapping[str, FloatArray]
    groups: IntArray
    _known_means: dict[tuple[Resolution, bool], FloatArray] = field(default_factory=dict)

    def tables(self) -> Iterable[RawTables]:
        """Tables of one replicate after the other; what can be is done for all replicates at once."""
        design = self.design
        beta = replicate_slopes(design, self.moments, self.laws, self.slopes, self.groups)
        single = {i.name: self._single(i.name, beta) for i in design.sources if design.levels[i.name] != "full"}
        pairs = self._pairs(single)
        full = [info.name for info in design.sources if design.levels[info.name] == "full"]
        crossed = [edge for edge in design.graph.edges if edge not in pairs]
        for place in range(len(self.groups)):
            accuracies = {n: t[place] if design.levels[n] == "task" else t[place, 0] for n, t in single.items()}
            correlations = {edge: tables[place] for edge, tables in pairs.items()}
            if full or crossed:
                joint = self._joint(place, beta[place])
                accuracies |= {name: raw_table(joint, name) for name in full}
                correlations |= {edge: raw_correlation(joint, edge) for edge in crossed}
            yield RawTables(accuracies=accuracies, correlations=correlations)

    def _pairs(self, single: Mapping[str, FloatArray]) -> dict[tuple[str, str], FloatArray]:
        """Correlations of all pairs of sources of one resolution, by replicate."""
        design = self.design
        same = [e for e in design.graph.edges if design.info(e[0]).resolution == design.info(e[1]).resolution]
        if not same:
            return {}
        full = CentredTables(
            design=design,
            moments=self.moments,
            laws=self.laws[0],
            slopes=self.slopes,
            accuracies=self.accuracies,
        )
        replicates = PairReplicates(full=full, laws=self.laws, accuracies=single, groups=self.groups)
        return {edge: replicates.correlation(edge) for edge in same}

    def _joint(self, place: int, beta: FloatArray) -> CentredTables:
        return CentredTables(
            design=self.design,
            moments=self.moments.without(int(self.groups[place])),
            laws=self.laws[place],
            slopes=replace(self.slopes, beta=beta),
            accuracies=self.accuracies,
        )

    def _means(self, where: Resolution, *, by_position: bool) -> FloatArray:
        """E[y] in every replicate, (n_groups or 1, positions or 1), found once for all sources of a resolution."""
        key = (where, by_position)
        if key not in self._known_means:
            laws = self.laws[:1] if all(law is self.laws[0] for law in self.laws) else self.laws
            self._known_means[key] = np.stack([law.mean(where, by_position=by_position) for law in laws])
        return self._known_means[key]

    def _single(self, name: str, beta: FloatArray) -> FloatArray:
        """P(vote | label) of one source in every replicate, (n_groups, positions or 1, 2, C)."""
        design, by_position = self.design, self.design.levels[name] == "task"
        if name in self.accuracies:
            known = np.asarray(self.accuracies[name], dtype=np.float64)
            known = known if known.ndim == 3 else known[np.newaxis]
            return np.broadcast_to(known, (len(self.groups), *known.shape))
        alike = [info.name for info in design.sources if design.key(info.name) == design.key(name)]
        rows = [Row(slots=(Slot(one),), by_position=by_position) for one in alike]
        counts = np.sum([left_out(self.moments, row, self.groups) for row in rows], axis=0)
        total = counts.sum(axis=2, keepdims=True)
        votes = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
        own = beta[:, self.slopes.unknowns.of_key(design.key(name))]
        slope = np.zeros_like(votes)
        slope[..., :N_INDICATORS] = own
        slope[..., N_INDICATORS] = -own.sum(axis=2)
        where = design.info(name).resolution
        mean = self._means(where, by_position=by_position)[:, : votes.shape[1]]
        shift = np.array([-1.0, 1.0]) - mean[:, :, np.newaxis]
        return np.asarray(votes[:, :, np.newaxis, :] + slope[:, :, np.newaxis, :] * shift[:, :, :, np.newaxis])

"""From counts and prior to moment equations: ``Cov(f, g) = beta_f beta_g Cov(y_i, y_i')`` (METHOD 3.3, equation 1).

Every pair row gives one equation per pair of indicators ``1[vote = z]``. All means run over the same pairs of votes.
Counts may be those of the whole sample or, with a further axis in front, those without each group of sequences: the
equations of all replicates of the jackknife are then made, and solved, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeVar

import numpy as np

from dugong.fit.beliefs import AnyBelief
from dugong.graph.design import Design
from dugong.priors import Prior
from dugong.sums import Laws, MomentRow, Moments
from dugong.sums.laws import PairMoments
from dugong.sums.sums import MOST_COLUMNS
from dugong.types import AnyArray, BoolArray, FloatArray, IntArray

# Indicators 1[vote = z] of the two classes; that of abstaining follows, because all three add up to one.
N_INDICATORS = 2
_SIGNS = np.array([-1.0, 1.0])

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What an estimate from moments is made from.

    Attributes
    ----------
    design : what is estimated, and from which rows
    moments : the counts of those rows
    laws : what the prior says about the labels of these sequences
    signs : {"group", "positive"}
        "group": connected sources are better than random on average; "positive": every single one is.
    accuracies : known P(vote | label) by source, taken as they are
    beliefs : what is believed about sources; it chooses signs here, its pseudo-votes come with E/M steps
    counted : what follows from the counts of some rows alone, once it was asked for
    """

    design: Design
    moments: Moments
    laws: Laws
    signs: str = field(default="group", kw_only=True)
    accuracies: Mapping[str, FloatArray] = field(default_factory=dict, kw_only=True)
    beliefs: Mapping[str, AnyBelief] = field(default_factory=dict, kw_only=True)
    counted: dict[Any, Any] = field(init=False, default_factory=dict, repr=False)

    def with_laws(self, laws: Laws) -> Given:
        """The same counts under other laws of the labels; what follows from counts alone is kept."""
        found = replace(self, laws=laws)
        object.__setattr__(found, "counted", self.counted)
        return found

    def once(self, key: object, make: Callable[[], Kept]) -> Kept:
        """What is made of the counts, once for all laws of the labels."""
        if key not in self.counted:
            self.counted[key] = make()
        found: Kept = self.counted[key]
        return found

    def votes(self) -> dict[str, FloatArray]:
        """P(vote) of every source, see `marginals`."""
        return self.once("marginals", lambda: marginals(self.design, self.moments))

    def sizes(self) -> FloatArray:
        """Votes that were asked for in every group, (n_groups,)."""
        counts = (self.moments.counts[self.moments.plan.place(row)] for row in self.design.singles.values())
        return np.asarray(sum(own.reshape(len(own), -1).sum(axis=1, dtype=np.float64) for own in counts))

    def known(self, name: str) -> FloatArray:
        """A known table, (positions or 1, K, C)."""
        table = np.asarray(self.accuracies[name], dtype=np.float64)
        return table if table.ndim == 3 else table[np.newaxis]

    @classmethod
    def under(
        cls,
        prior: Prior,
        design: Design,
        moments: Moments,
        class_names: tuple[str, ...] | None = None,
        signs: str = "group",
        accuracies: Mapping[str, FloatArray] | None = None,
        *,
        beliefs: Mapping[str, AnyBelief] | None = None,
    ) -> Given:
        """The same with the laws of a prior."""
        laws = Laws(prior, moments.shapes, class_names)
        return cls(design, moments, laws, signs=signs, accuracies=accuracies or {}, beliefs=beliefs or {})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equations:
    """One row per equation: ``value ~ scale * beta[left] * beta[right]``.

    Attributes
    ----------
    left, right : (n,) places of both unknowns
    value, scale : (..., n) what was observed, and what multiplies the product of the unknowns
    variance : (..., n) of the value; 0 where it says nothing
    total : (..., n) pairs of votes behind the value
    rows : the rows that they come from, each with the number of all its equations
    kept : (n,) place of each among all equations of the rows
    """

    left: IntArray
    right: IntArray
    value: FloatArray
    scale: FloatArray
    variance: FloatArray
    total: FloatArray
    rows: tuple[tuple[MomentRow, int], ...] = ()
    kept: IntArray

    def replicate(self, place: int) -> Equations:
        """The equations of one replicate of several; where there are none, there are no replicates either."""
        if not len(self.left):
            return self
        parts = {name: getattr(self, name)[place] for name in ("value", "scale", "variance", "total")}
        return replace(self, **parts)

    @property
    def useful(self) -> BoolArray:
        """(n,) which of them say something about their two unknowns, in any replicate."""
        found = (self.scale != 0) & (self.variance > 0)
        return np.asarray(found.any(axis=tuple(range(found.ndim - 1))))


def join_equations(parts: Iterable[tuple[AnyArray, ...]], rows: Iterable[tuple[MomentRow, int]]) -> Equations:
    """Equations from parts, each of which has left, right, value, scale, variance and total of some rows."""
    columns = [np.concatenate(c, axis=-1) for c in zip(*parts, strict=True)] or [np.zeros(0)] * 6
    left, right, value, scale, variance, total = columns
    return Equations(
        left=left.astype(np.int64),
        right=right.astype(np.int64),
        value=value,
        scale=scale,
        variance=variance,
        total=total,
        rows=tuple(rows),
        kept=np.arange(len(left)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationForm:
    """What the equations of an estimator are about: covariances of indicators, or products of votes.

    Attributes
    ----------
    width : unknowns of a source per position: two slopes (one per class that it can vote for), or one agreement
    columns : the votes that are counted, the first so many
    sums : from counts of two votes, (..., C, C'), to what is added up for their equations, (..., width, width)
    measure : from such counts to the value, the variance and the total of their equations, each (..., width, width)
    hidden : from moments of two labels to what multiplies the product of two unknowns, (..., positions)
    known : unknowns that follow from known tables, the others 0; which they are; and which can be other than zero
    """

    width: int
    columns: int
    sums: Callable[[FloatArray], FloatArray]
    measure: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
    hidden: Callable[[PairMoments], FloatArray]
    known: Callable[[Given, Unknowns], tuple[FloatArray, BoolArray, BoolArray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unknowns:
    """Where the unknowns of every source stand: `places` (positions, width) by name of its parameters.

    There are `size` of them in all, each with the number of its `table`, and the sign (`direction`) that it has if its
    source is better than random.
    """

    form: EquationForm
    places: Mapping[str, IntArray]
    size: int
    table: IntArray
    direction: FloatArray

    @classmethod
    def of(cls, design: Design, moments: Moments, form: EquationForm) -> Unknowns:
        """Give every source (or group of sources) its place, one per position where positions are kept apart."""
        places: dict[str, IntArray] = {}
        total, width = 0, form.width
        for info in design.sources:
            key, level = design.keys[info.name], design.levels[info.name]
            if key in places or level == "full":
                continue
            count = moments.placed(design.singles[info.name]).shape[-2]
            places[key] = total + np.arange(width * count).reshape(count, width)
            total += width * count
        return cls(
            form=form,
            places=places,
            size=total,
            table=np.arange(total) // width,
            direction=np.resize(_SIGNS[-width:], total),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counted:
    """Rows whose tables have the same shape, and all of their equations that the counts alone determine.

    `numbers` are left, right, value, variance and total of the equations; `cells` the shape that these have before
    they are flat: (..., rows, positions, width, width). Rows of one of `kinds` have the same labels; `kind` is that of
    each.
    """

    rows: list[MomentRow]
    numbers: tuple[AnyArray, ...]
    cells: tuple[int, ...]
    kinds: list[MomentRow]
    kind: IntArray


def make_equations(given: Given, unknowns: Unknowns, rows: Iterable[MomentRow]) -> Equations:
    """All equations of some pair rows that hold any votes."""
    rows = tuple(rows)
    form, parts = unknowns.form, []
    counted = given.once((form, rows), lambda: _count(given, unknowns, rows))
    for one in counted:
        # What multiplies every equation, by the laws of the labels.
        pairs = [given.laws.pair(row, *(given.design.infos[n].resolution for n in row.sources)) for row in one.kinds]
        by_kind = np.stack([form.hidden(pair)[..., : one.cells[-3]] for pair in pairs], axis=-2)
        cells = by_kind[..., one.kind, :, np.newaxis, np.newaxis]
        scale = np.broadcast_to(cells, one.cells).reshape(*one.cells[:-4], -1)
        parts.append((*one.numbers[:3], scale, *one.numbers[3:]))
    each = [(row, prod(one.cells[-3:])) for one in counted for row in one.rows]
    return join_equations(parts, each)


def _count(given: Given, unknowns: Unknowns, rows: tuple[MomentRow, ...]) -> list[_Counted]:
    # Tables of one shape go through together; the order of the equations is that of the shapes.
    alike: dict[tuple[int, ...], list[tuple[MomentRow, FloatArray]]] = {}
    for row in rows:
        if given.design.independence.valid(row):
            table = given.moments.placed(row)[..., : unknowns.form.columns, : unknowns.form.columns]
            alike.setdefault(table.shape, []).append((row, table))
    found = []
    for some in alike.values():
        tables = np.stack([table for _, table in some], axis=-4)  # (..., rows, positions, C, C')
        seen = np.flatnonzero(tables.any(axis=(*range(tables.ndim - 4), -3, -2, -1)))
        if len(seen):
            own = [some[place][0] for place in seen.tolist()]
            tables = tables if len(seen) == len(some) else tables[..., seen, :, :, :]
            found.append(_count_alike(given, unknowns, own, tables))
    return found


def _count_alike(given: Given, unknowns: Unknowns, rows: list[MomentRow], tables: FloatArray) -> _Counted:
    """Equations of rows whose tables have the same shape, all at once."""
    design, n_positions = given.design, tables.shape[-3]
    value, variance, total = unknowns.form.measure(tables)
    infos = {name: design.infos[name] for name in dict.fromkeys(name for row in rows for name in row.sources)}
    # Sources with one table for all positions repeat its unknowns.
    own = {name: unknowns.places[design.keys[name]] for name in infos}
    places = {name: one[np.minimum(np.arange(n_positions), len(one) - 1)] for name, one in own.items()}
    left, right = (np.array([places[row.sources[side]] for row in rows]) for side in (0, 1))
    # Every pair of unknowns of every row and position is an equation: their places are spread over these cells.
    cells, flat = value.shape[-4:], (*value.shape[:-4], -1)
    numbers = (
        np.broadcast_to(left[:, :, :, np.newaxis], cells).reshape(-1),
        np.broadcast_to(right[:, :, np.newaxis, :], cells).reshape(-1),
        *(part.reshape(flat) for part in (value, variance, total)),
    )
    where = {one: place for place, one in enumerate(dict.fromkeys(info.resolution for info in infos.values()))}
    at = {name: where[info.resolution] for name, info in infos.items()}
    kinds: dict[tuple[object, ...], MomentRow] = {}
    keys = [(row.relation, at[row.sources[0]], at[row.sources[1]], row.span, row.by_position) for row in rows]
    for key, row in zip(keys, rows, strict=True):
        kinds.setdefault(key, row)
    order = {key: place for place, key in enumerate(kinds)}
    kind = np.array([order[key] for key in keys], dtype=np.int64)
    return _Counted(rows=rows, numbers=numbers, cells=value.shape, kinds=list(kinds.values()), kind=kind)


def covariances(table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariances of the class indicators of two votes, the variances of these estimates, and pairs of votes behind.

    Parameters
    ----------
    table : (..., C, C') contingency counts

    Returns
    -------
    three (..., N_INDICATORS, N_INDICATORS) arrays; the variance is 0 where an indicator is constant
    """
    total = table.sum(axis=(-2, -1), keepdims=True)
    law = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    first = law.sum(axis=-1)[..., :N_INDICATORS, np.newaxis]
    second = law.sum(axis=-2)[..., np.newaxis, :N_INDICATORS]
    both = law[..., :N_INDICATORS, :N_INDICATORS]
    covariance = both - first * second
    # E[(f - Ef)^2 (g - Eg)^2] over the four cells of two indicators.
    fourth = (
        both * ((1 - first) * (1 - second)) ** 2
        + (first - both) * ((1 - first) * second) ** 2
        + (second - both) * (first * (1 - second)) ** 2
        + (1 - first - second + both) * (first * second) ** 2
    )
    variance = np.divide(fourth - covariance**2, total, out=np.zeros_like(fourth), where=total > 0)
    # A floor, because indicators that always agree would seem to be known without any error.
    spread = first * (1 - first) * second * (1 - second)
    floor = np.divide(spread, total, out=np.zeros_like(fourth), where=total > 0)
    # An indicator that never varies has covariance zero with everything, and tells nothing about its slope.
    constant = (first * (1 - first) <= 0) | (second * (1 - second) <= 0)
    variance = np.where(constant, 0.0, np.maximum(variance, 1e-3 * floor))
    return covariance, variance, np.broadcast_to(total, covariance.shape)


def known_slopes(given: Given, unknowns: Unknowns) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Slopes that follow from known tables, the others 0; which they are; and which slopes can be other than zero.

    An indicator that never varies has no slope to be found.
    """
    design, beta = given.design, np.zeros(unknowns.size)
    pinned, varies = np.zeros(unknowns.size, dtype=np.bool_), np.zeros(unknowns.size, dtype=np.bool_)
    for info in design.sources:
        if design.levels[info.name] == "full":
            continue
        places, law = unknowns.places[design.keys[info.name]], given.votes()[info.name][:, :N_INDICATORS]
        varies[places] |= (law > 0) & (law < 1)
        if info.name in given.accuracies:
            known = np.asarray(given.accuracies[info.name])[..., :N_INDICATORS]
            beta[places], pinned[places] = (known[..., 1, :] - known[..., 0, :]) / 2, True
    return beta, pinned, varies


CENTRED = EquationForm(
    width=N_INDICATORS,
    columns=MOST_COLUMNS,
    sums=lambda table: table[..., :N_INDICATORS, :N_INDICATORS],
    measure=covariances,
    hidden=lambda pair: pair.covariance,
    known=known_slopes,
)


def marginals(design: Design, moments: Moments) -> dict[str, FloatArray]:
    """P(vote) of every source, pooled over those that share its parameters; (..., positions or 1, C) each."""
    keys = {info.name: (design.keys[info.name], design.levels[info.name] == "task") for info in design.sources}
    tables: dict[tuple[str, bool], FloatArray] = {}
    for name, key in keys.items():
        table = moments.placed(design.singles[name])
        tables[key] = tables[key] + table if key in tables else table
    alike: dict[tuple[int, ...], list[tuple[str, bool]]] = {}
    for key, table in tables.items():
        alike.setdefault(table.shape, []).append(key)
    laws: dict[tuple[str, bool], FloatArray] = {}
    for some in alike.values():
        counts = np.stack([tables[key] for key in some])
        total = counts.sum(axis=-1, keepdims=True)
        laws |= zip(some, np.divide(counts, total, out=np.zeros_like(counts), where=total > 0), strict=True)
    return {name: laws[key] for name, key in keys.items()}

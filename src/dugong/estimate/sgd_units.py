"""What the SGD variant fits: observed contingency tables beside the laws that predict them.

In: design, moments, laws. Out: arrays. A *pair unit* is one row of the plan at one position; the votes of its two
sources are independent given the labels, so that ``P(z, z') = sum over y, y' of P(y, y') mu(z | y) mu'(z' | y')``.
A *marginal* is a source's own vote rates. Squared residuals are weighted as in a chi-square: by the number of vote
pairs over the chance of a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dugong.estimate.design import Design, valid_pair
from dugong.estimate.equations import N_INDICATORS, Unknowns, marginal
from dugong.estimate.laws import Laws
from dugong.moments import Moments, Row, Slot
from dugong.tasks import Resolution
from dugong.types import BoolArray, FloatArray, IntArray

# A tilt of the log-odds of every source towards being right: enough to choose between the two mirror images.
TILT = 0.2
_SIGNS = np.array([-1.0, 1.0])
_PER_UNIT = ("left", "right", "laws", "observed", "weights", "totals")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bank:
    """All tables P(vote | label) that are optimised, one per source (or group of sources) and position.

    Attributes
    ----------
    unknowns : place of every table, as in the closed form
    rates : (n_tables, C) observed vote rates; columns that a source cannot vote are padding
    n_votes : (n_tables,)
    chances : (n_tables, 2) P(label) over the tasks of the source
    spoken : (n_tables, C) whether a column was ever voted; the others have probability zero
    known : (n_tables, 2, C) given tables, zero elsewhere
    pinned : (n_tables,) whether a table is given
    """

    unknowns: Unknowns
    rates: FloatArray
    n_votes: FloatArray
    chances: FloatArray
    spoken: BoolArray
    known: FloatArray
    pinned: BoolArray

    @property
    def size(self) -> int:
        """Number of tables."""
        return len(self.rates)

    def places(self, key: str) -> IntArray:
        """Tables of a source by position."""
        return self.unknowns.of_key(key)[:, 0] // N_INDICATORS

    def start(self) -> FloatArray:
        """The observed vote rates, tilted a little towards sources that are right, (n_tables, 2, C)."""
        direction = np.zeros(self.rates.shape[1])
        direction[:N_INDICATORS] = -TILT / 2, TILT / 2
        tilted = self.rates[:, np.newaxis] * np.exp(np.outer(_SIGNS, direction))
        total = tilted.sum(axis=2, keepdims=True)
        even = self.spoken[:, np.newaxis] / self.spoken.sum(axis=1)[:, np.newaxis, np.newaxis]
        return np.where(total > 0, tilted / np.where(total > 0, total, 1.0), even)


def make_bank(design: Design, moments: Moments, laws: Laws, accuracies: Mapping[str, FloatArray]) -> Bank:
    """Collect vote rates and label chances of all sources but those with full tables."""
    unknowns = Unknowns.of(design, moments)
    size, width = unknowns.size // N_INDICATORS, n_columns(moments)
    bank = Bank(
        unknowns=unknowns,
        rates=np.zeros((size, width)),
        n_votes=np.zeros(size),
        chances=np.full((size, 2), 0.5),
        spoken=np.zeros((size, width), dtype=np.bool_),
        known=np.zeros((size, 2, width)),
        pinned=np.zeros(size, dtype=np.bool_),
    )
    for info in design.sources:
        if design.levels[info.name] != "full":
            _fill(bank, design, moments, laws, info.name)
    for name, table in accuracies.items():
        places = bank.places(design.key(name))
        bank.known[places, :, : np.shape(table)[-1]], bank.pinned[places] = table, True
    bank.spoken[~bank.spoken.any(axis=1), : N_INDICATORS + 1] = True
    return bank


def n_columns(moments: Moments) -> int:
    """The largest number of vote columns of any source."""
    return max(int(counts.shape[-1]) for counts in moments.counts)


def _fill(bank: Bank, design: Design, moments: Moments, laws: Laws, name: str) -> None:
    places, by_position = bank.places(design.key(name)), design.levels[name] == "task"
    rates = marginal(design, moments, name)
    row = Row(slots=(Slot(name),), by_position=by_position)
    bank.rates[places, : rates.shape[1]] = rates
    bank.spoken[places] |= bank.rates[places] > 0
    bank.n_votes[places] += moments.table(row).reshape(len(places), -1).sum(axis=1)
    mean = laws.mean(moments.resolution(name), by_position=by_position)[: len(places)]
    bank.chances[places] = np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairUnits:
    """Rows of two independent votes, by position.

    Attributes
    ----------
    rows : the row behind every run of units, and how many units (positions) it has
    kept : (n,) which of these units are left
    left, right : (n,) tables of the two votes
    laws : (n, 2, 2) joint law of the two labels
    observed : (n, C, C) share of every pair of votes
    weights : (n, C, C) of the squared residuals
    totals : (n,) pairs of votes
    """

    rows: tuple[tuple[Row, int], ...]
    kept: IntArray
    left: IntArray
    right: IntArray
    laws: FloatArray
    observed: FloatArray
    weights: FloatArray
    totals: FloatArray

    def counts(self, moments: Moments) -> FloatArray:
        """The counts of these units in other moments of the same plan, (n, C, C)."""
        width = self.observed.shape[-1]
        return np.concatenate([_padded(moments, row, size, width) for row, size in self.rows])[self.kept]

    def only(self, keep: BoolArray) -> PairUnits:
        """Some of the units."""
        owners = np.repeat(np.arange(len(self.rows)), [size for _, size in self.rows])
        used = set(owners[self.kept[keep]].tolist())
        rows = tuple(row for place, row in enumerate(self.rows) if place in used)
        left_over = np.flatnonzero(np.isin(owners, list(used)))
        arrays = {name: getattr(self, name)[keep] for name in _PER_UNIT}
        return PairUnits(rows=rows, kept=np.searchsorted(left_over, self.kept[keep]), **arrays)

    def names(self) -> list[tuple[str, str]]:
        """The two sources of every unit."""
        each = [(row.sources[0], row.sources[1]) for row, size in self.rows for _ in range(size)]
        return [each[place] for place in self.kept]

    @property
    def useful(self) -> BoolArray:
        """Units that say something about the slopes of both tables, (n,)."""
        first, second = self.laws.sum(axis=2), self.laws.sum(axis=1)
        covary = np.abs(self.laws[:, 1, 1] - first[:, 1] * second[:, 1]) > 1e-12
        return np.asarray(covary & self.weights.any(axis=(1, 2)))


def make_pairs(design: Design, moments: Moments, laws: Laws, bank: Bank, rows: Iterable[Row]) -> PairUnits:
    """The units of all rows that hold any votes and whose votes are independent given the labels."""
    width = bank.rates.shape[1]
    found: list[tuple[Row, int]] = []
    left: list[IntArray] = []
    right: list[IntArray] = []
    joint: list[FloatArray] = []
    for row in rows:
        if not valid_pair(design.independence, row, design.levels) or not moments.table(row).any():
            continue
        size = len(moments.table(row)) if row.by_position else 1
        law = pair_law(laws, row, *(moments.resolution(name) for name in row.sources))[:size]
        found.append((row, size))
        joint.append(law)
        for side, name in zip((left, right), row.sources, strict=True):
            places = bank.places(design.key(name))
            side.append(places[np.minimum(np.arange(size), len(places) - 1)])
    counts = [_padded(moments, row, size, width) for row, size in found]
    observed, weights, totals = standardise(np.concatenate(counts) if counts else np.zeros((0, width, width)))
    return PairUnits(
        rows=tuple(found),
        kept=np.arange(len(totals)),
        left=np.concatenate([*left, np.zeros(0, dtype=np.int64)]),
        right=np.concatenate([*right, np.zeros(0, dtype=np.int64)]),
        laws=np.concatenate([*joint, np.zeros((0, 2, 2))]),
        observed=observed,
        weights=weights,
        totals=totals,
    )


def pair_law(laws: Laws, row: Row, first: Resolution, second: Resolution) -> FloatArray:
    """Joint law of the labels of the first two slots of a row, (positions or 1, 2, 2), at the sample's balance."""
    found = laws.pair(row, first, second)
    left = (1 + found.first[:, np.newaxis] * _SIGNS) / 2
    right = (1 + found.second[:, np.newaxis] * _SIGNS) / 2
    law = left[:, :, np.newaxis] * right[:, np.newaxis, :]
    law = np.maximum(law + found.covariance[:, np.newaxis, np.newaxis] * np.outer(_SIGNS, _SIGNS) / 4, 0.0)
    return np.asarray(law / law.sum(axis=(1, 2), keepdims=True))


def _padded(moments: Moments, row: Row, size: int, width: int) -> FloatArray:
    """Counts of a pair row by position, with as many positions and columns as asked for."""
    table = moments.table(row) if row.by_position else moments.table(row)[np.newaxis]
    padded = np.zeros((size, width, width))
    padded[: len(table), : table.shape[1], : table.shape[2]] = table[:size]
    return padded


def standardise(counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares, weights of squared residuals and totals of contingency tables, (n, A, B).

    The weight of a cell is the number of pairs over its chance if the two sides were independent, which no noise
    can make zero; on the average over units the number of pairs counts as one.
    """
    totals = counts.sum(axis=(1, 2))
    shares = counts / np.maximum(totals, 1e-300)[:, np.newaxis, np.newaxis]
    chance = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    size = totals / max(float(totals.mean()) if len(totals) else 0.0, 1e-300)
    weights = np.divide(size[:, np.newaxis, np.newaxis], chance, out=np.zeros_like(chance), where=chance > 0)
    return shares, weights, totals

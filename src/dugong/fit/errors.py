"""Standard errors and intervals of every table entry, by the delete-one-group jackknife.

In: an estimate, and how it comes out without each group of sequences. That is all: sums of any kind that are kept by
group, moments and expected counts alike, are estimated again through the code that made the estimate. Groups may
differ in size, so the weighted form is used (Busing, Meijer and van der Leeden 1999). Intervals are those of METHOD
3.5: the unprojected estimate plus and minus a t quantile with G - 1 degrees of freedom, clipped to [0, 1]. (Intervals
around projected estimates cover far too rarely.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.special import stdtrit

from dugong.codec import Numbers, Restorable
from dugong.exceptions import FileError
from dugong.types import FloatArray, IntArray

Limits = tuple[FloatArray, FloatArray]
_Tables = Annotated[Mapping[str, FloatArray], Numbers(finite=False)]
_PairTables = Annotated[Mapping[tuple[str, str], FloatArray], Numbers(finite=False)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawTables:
    """Unprojected P(vote | label) by source and P(vote a, vote b | label) by edge: what intervals are about."""

    accuracies: Mapping[str, FloatArray]
    correlations: Mapping[tuple[str, str], FloatArray]

    @classmethod
    def stack(cls, tables: Sequence[RawTables]) -> RawTables:
        """The tables of several estimates, with an axis over these in front."""
        first = tables[0]
        return cls(
            accuracies={name: np.stack([one.accuracies[name] for one in tables]) for name in first.accuracies},
            correlations={edge: np.stack([one.correlations[edge] for one in tables]) for edge in first.correlations},
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandardErrors(Restorable):
    """Standard errors of accuracies and correlations.

    Attributes
    ----------
    accuracies : standard errors by source, in the shape of its table
    correlations : standard errors by pair of sources
    raw, raw_correlations : the unprojected estimates that they belong to
    n_groups : groups of sequences that were left out in turn
        With fewer than two nothing can be said: standard errors are infinite, and intervals are [0, 1].
    """

    accuracies: _Tables
    correlations: _PairTables
    raw: _Tables
    raw_correlations: _PairTables
    n_groups: int

    def __post_init__(self) -> None:
        _check_shapes(self.accuracies, self.raw)
        _check_shapes(self.correlations, self.raw_correlations)

    @property
    def intervals(self) -> dict[str, Limits]:
        """Limits of the 95 % intervals of all accuracies, by source."""
        return {name: self.interval(name) for name in self.accuracies}

    def interval(self, key: str | tuple[str, str], level: float = 0.95) -> Limits:
        """Lower and upper limits of every entry of the table of a source, or of a pair of sources."""
        raw = self.raw[key] if isinstance(key, str) else self.raw_correlations[key]
        error = self.accuracies[key] if isinstance(key, str) else self.correlations[key]
        if self.n_groups < 2:
            return np.zeros_like(raw), np.ones_like(raw)
        reach = float(stdtrit(self.n_groups - 1, (1 + level) / 2)) * error
        return np.clip(raw - reach, 0, 1), np.clip(raw + reach, 0, 1)

    def around(
        self, accuracies: Mapping[str, FloatArray], correlations: Mapping[tuple[str, str], FloatArray]
    ) -> StandardErrors:
        """The same standard errors around other tables: those that are shown, where these are not the raw ones."""
        return replace(
            self,
            raw={name: accuracies[name] for name in self.raw},
            raw_correlations={edge: correlations.get(edge, table) for edge, table in self.raw_correlations.items()},
        )


def _check_shapes(errors: Mapping[Any, FloatArray], raw: Mapping[Any, FloatArray]) -> None:
    for name, table in errors.items():
        if name not in raw or raw[name].shape != table.shape:
            raise FileError(f"the standard errors of {name!r} must have the shape of its estimate")


def jackknife(full: RawTables, sizes: FloatArray, without: Callable[[IntArray], RawTables]) -> StandardErrors:
    """Standard errors of an estimate, by estimating again without each group of sequences.

    Parameters
    ----------
    full : the estimate from all groups
    sizes : (n_groups,) how much data every group holds; group 0 is what no group was drawn for
    without : the estimates without each of some groups, with an axis over these groups in front
        Groups without any data are not asked for.
    """
    groups, shares = leave_out(sizes)
    # One group alone says nothing about how estimates vary.
    found = without(groups) if len(groups) > 1 else full

    def error(table: FloatArray, replicates: FloatArray) -> FloatArray:
        if len(groups) < 2:
            return np.full_like(table, np.inf)
        return weighted_error(table, np.broadcast_to(replicates, (len(groups), *table.shape)), shares)

    return StandardErrors(
        accuracies={name: error(table, found.accuracies[name]) for name, table in full.accuracies.items()},
        correlations={edge: error(table, found.correlations[edge]) for edge, table in full.correlations.items()},
        raw=full.accuracies,
        raw_correlations=full.correlations,
        n_groups=len(groups),
    )


def leave_out(sizes: FloatArray) -> tuple[IntArray, FloatArray]:
    """Groups that are left out in turn, and the share of all data that each of them holds.

    Group 0 is what no group was drawn for: it stays in every time, so that the shares add up to less than one.
    """
    groups = 1 + np.flatnonzero(sizes[1:] > 0)
    return groups, sizes[groups] / max(float(sizes.sum()), 1.0)


def weighted_error(full: FloatArray, without: FloatArray, shares: FloatArray) -> FloatArray:
    """Standard error from estimates without each group, for groups of different sizes.

    A group with a share s of the data has a pseudo-value, ``(full - (1 - s) * without) / s``, whose variance around
    their weighted mean is that of the estimate times ``1 / s - 1 / (sum of shares)``.

    Parameters
    ----------
    full : (...) the estimate from all data
    without : (n_groups, ...)
    shares : (n_groups,), or (n_groups, n_estimates) where the first axis of the estimate is of several
        What part of the data each group holds; their sum is below one where only some groups were drawn.
    """
    share = shares.reshape(*shares.shape, *(1,) * (full.ndim + 1 - shares.ndim))
    whole = share.sum(axis=0)
    pseudo = (full - (1 - share) * without) / share
    pseudo -= (share * pseudo).sum(axis=0) / whole
    variance = (pseudo**2 / (1 / share - 1 / whole)).sum(axis=0) / len(share)
    return np.asarray(np.sqrt(variance))

"""Standard errors and intervals of every table entry, as a value.

Intervals are those of METHOD 3.5: the unprojected estimate plus and minus a t quantile with G - 1 degrees of freedom,
clipped to [0, 1]. (Intervals around projected estimates cover far too rarely.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import stdtrit

from dugong.codec import Numbers, decode, encode
from dugong.exceptions import FileError
from dugong.types import FloatArray

Limits = tuple[FloatArray, FloatArray]
_Tables = Annotated[Mapping[str, FloatArray], Numbers(finite=False)]
_PairTables = Annotated[Mapping[tuple[str, str], FloatArray], Numbers(finite=False)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandardErrors:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` turns back into the same value."""
        return dict(encode(self))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StandardErrors:
        """Inverse of `to_dict`."""
        return decode(cls, plain)


def _check_shapes(errors: Mapping[Any, FloatArray], raw: Mapping[Any, FloatArray]) -> None:
    for name, table in errors.items():
        if name not in raw or raw[name].shape != table.shape:
            raise FileError(f"the standard errors of {name!r} must have the shape of its estimate")


def weighted_error(full: FloatArray, without: FloatArray, shares: FloatArray) -> FloatArray:
    """Standard error from estimates without each group, for groups of different sizes.

    A group with a share s of the data has a pseudo-value, ``(full - (1 - s) * without) / s``, whose variance around
    their weighted mean is that of the estimate times ``1 / s - 1 / (sum of shares)``.

    Parameters
    ----------
    full : (...) the estimate from all data
    without : (n_groups, ...)
    shares : (n_groups,)
        What part of the data each group holds; their sum is below one where only some groups were drawn.
    """
    share = shares.reshape(-1, *(1,) * full.ndim)
    pseudo = (full - (1 - share) * without) / share
    centre = (share * pseudo).sum(axis=0) / shares.sum()
    variance = ((pseudo - centre) ** 2 / (1 / share - 1 / shares.sum())).mean(axis=0)
    return np.asarray(np.sqrt(variance))

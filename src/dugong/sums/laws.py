"""What the prior says about pairs of tasks, averaged over the very pairs that were counted.

The moment equations need the mean joint law of two hidden labels over all vote pairs of a row: by position and given
the lengths of the sequences. The prior's class balance may be moved to that of the sample at hand, or, with an axis in
front, to that of the sample without each group of sequences: all answers then have that axis as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dugong.priors import Prior, pair_sums
from dugong.priors.base import kept_by_prior
from dugong.priors.pairs import PairOptions
from dugong.sums.sums import MomentRow, Relation, Shapes
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, read_only

_SIGNS = np.array([-1.0, 1.0])
Pair = tuple[Relation, Resolution, Resolution, int, bool]  # relation, two resolutions, lag, by position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairMoments:
    """E[y_i], E[y_i'] and Cov(y_i, y_i') over the pairs of a row, each (..., positions or 1)."""

    first: FloatArray
    second: FloatArray
    covariance: FloatArray

    def law(self) -> FloatArray:
        """P(y_i, y_i'), (..., positions or 1, 2, 2)."""
        left, right = ((1 + mean[..., np.newaxis] * _SIGNS) / 2 for mean in (self.first, self.second))
        shift = self.covariance[..., np.newaxis, np.newaxis] * np.outer(_SIGNS, _SIGNS) / 4
        # Means of a sample with correlations of a prior need not make a law: the nearest one has no negative cells.
        law = np.maximum(left[..., :, np.newaxis] * right[..., np.newaxis, :] + shift, 0.0)
        return np.asarray(law / law.sum(axis=(-2, -1), keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """Moments of hidden labels under a prior for sequences of given shapes, computed once each."""

    prior: Prior
    shapes: Shapes
    class_names: tuple[str, ...] | None = None
    balance: Mapping[Resolution, float | FloatArray] = field(default_factory=dict)
    _cache: dict[tuple[object, ...], FloatArray] = field(default_factory=dict, repr=False)
    _pairs: dict[tuple[object, ...], PairMoments] = field(default_factory=dict, repr=False)

    def with_balance(self, balance: Mapping[Resolution, float | FloatArray]) -> Laws:
        """The same laws, moved to the sample's own means E[y] by resolution; an array has one mean per replicate."""
        return Laws(self.prior, self.shapes, self.class_names, balance, self._cache)

    def joint(
        self, kind: Relation, first: Resolution, second: Resolution, *, lag: int = 0, by_position: bool = False
    ) -> FloatArray:
        """Mean joint law of two labels, (K_a, K_b), or (positions, K_a, K_b)."""
        key = (kind, first, second, lag, by_position)
        if key in self._cache:
            return self._cache[key]
        counted = self.shapes.lengths, self.shapes.counts
        if self.shapes.spans and not _is_one_element(key):
            options: PairOptions = {"lag": lag, "spans": self.shapes.spans, "class_names": self.class_names}
            sums = pair_sums(self.prior, kind, first, second, *counted, by_position=by_position, **options)
            self._cache[key] = sums.means()
        else:
            lengths, counts = (tuple(one.tolist()) for one in counted)
            self._cache[key] = _mean_law(self.prior, (lengths, counts), self.class_names, key)
        return self._cache[key]

    def pair(self, row: MomentRow, first: Resolution, second: Resolution) -> PairMoments:
        """Moments of the two tasks of a pair row, binary labels -1 and +1."""
        lag = row.slots[1].offset - row.slots[0].offset
        key = (row.relation, first, second, lag, row.by_position)
        if key in self._pairs:
            return self._pairs[key]
        law = self.joint(row.relation, first, second, lag=lag, by_position=row.by_position)
        law = law if row.by_position else law[np.newaxis]
        mean_first, mean_second = law.sum(axis=2) @ _SIGNS, law.sum(axis=1) @ _SIGNS
        covariance = law @ _SIGNS @ _SIGNS - mean_first * mean_second
        if first in self.balance or second in self.balance:
            # The means are moved to the sample's own; correlations between tasks stay those of the prior.
            before = (1 - mean_first**2) * (1 - mean_second**2)
            mean_first = np.clip(mean_first + self._shift(first), -1, 1)
            mean_second = np.clip(mean_second + self._shift(second), -1, 1)
            after = (1 - mean_first**2) * (1 - mean_second**2)
            # A covariance is a correlation times both standard deviations, and these move with the means.
            covariance = covariance * np.sqrt(np.divide(after, before, out=np.ones_like(after), where=before > 0))
        self._pairs[key] = PairMoments(first=mean_first, second=mean_second, covariance=covariance)
        return self._pairs[key]

    def mean(self, resolution: Resolution, *, by_position: bool = False) -> FloatArray:
        """E[y] of the tasks of a resolution, (..., positions or 1)."""
        law = self.joint("same", resolution, resolution, by_position=by_position)
        law = law if by_position else law[np.newaxis]
        mean: FloatArray = law.sum(axis=2) @ _SIGNS
        return mean + self._shift(resolution) if resolution in self.balance else mean

    def chances(self, resolution: Resolution, *, by_position: bool = False) -> FloatArray:
        """P(label) of the tasks of a resolution, (..., positions or 1, 2)."""
        return np.asarray((1 + self.mean(resolution, by_position=by_position)[..., np.newaxis] * _SIGNS) / 2)

    def _shift(self, resolution: Resolution) -> FloatArray:
        """How far the sample's own mean of y lies from the prior's, (..., 1)."""
        if resolution not in self.balance:
            return np.zeros(1)
        overall = float(self.joint("same", resolution, resolution).sum(axis=1) @ _SIGNS)
        return np.asarray(self.balance[resolution], dtype=np.float64)[..., np.newaxis] - overall


def _is_one_element(pair: Pair) -> bool:
    """Whether both labels are that of the same element, wherever it is."""
    kind, first, _, lag, by_position = pair
    return kind == "same" and lag == 0 and isinstance(first, Element) and not by_position


# Several parts of a fit ask for the same laws: the check that tables can be told, the estimate, the summary.
@kept_by_prior(maxsize=128)
def _mean_law(
    prior: Prior,
    shapes: tuple[tuple[int, ...], tuple[float, ...]],
    class_names: tuple[str, ...] | None,
    pair: Pair,
) -> FloatArray:
    (kind, first, second, lag, by_position), (lengths, counts) = pair, map(np.array, shapes)
    if _is_one_element(pair):
        # An element with itself: the mean over elements of P(class), on the diagonal.
        different, places = np.unique(lengths, return_inverse=True)
        expected = prior.count_moments(different)[0]
        sums = np.bincount(places, counts, len(different)) @ expected
        return read_only(np.diag(sums / max(float(sums.sum()), 1e-300)))
    found = pair_sums(
        prior, kind, first, second, lengths, counts, by_position=by_position, lag=lag, class_names=class_names
    )
    return read_only(found.means())

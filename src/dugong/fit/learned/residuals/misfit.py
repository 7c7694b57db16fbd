"""What a fitted model leaves unexplained: errors of two sources that still go together, and errors that last.

In: a panel, soft labels of a model. Out: residual correlations of errors, of having spoken at all, of errors of two
sources one element apart, and of one source with itself some elements apart, with their jackknife errors. Under the
model all of them are zero. Those of single pairs and lags are tested, with a bound on false discoveries; their size
beyond noise is the misfit that decides how far the model is trusted. The residual of a source that repeats itself is
taken against what its own earlier vote leads one to expect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtr

from dugong.fit.learned.panel import Panel
from dugong.fit.learned.residuals import _kernels as kernels
from dugong.fit.learned.rounds import Setting, State
from dugong.fit.learned.settings import (
    FALSE_DISCOVERIES,
    JACKKNIFE_BLOCK,
    LONGEST_LAG,
    SIGNIFICANT,
    STEADY,
)
from dugong.fit.learned.tables import count_tables
from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Misfit:
    """How far a fitted model is from the votes: each figure is worked out when it is asked for, because few are.

    Sums of residual products are (4, m, m) or (4, lags, m): the products, their scales, and the second and fourth
    powers of the sums of blocks; the root of the third is the jackknife error of the first.

    Attributes
    ----------
    panel, place : the votes, and the place of every element in its sequence
    state : the fitted model
    apart : (m, m) which pairs of sources have no edge between them
    fresh, usual : (2, m, K) rates of fresh votes, and of all votes
    """

    panel: Panel
    place: IntArray
    state: State
    apart: BoolArray
    fresh: FloatArray
    usual: FloatArray

    @cached_property
    def errors(self) -> FloatArray:
        """Residual errors of two sources on one element, below the diagonal; both figures begin with them."""
        return self._products(np.tri(len(self.apart), k=-1, dtype=np.bool_))

    @cached_property
    def worst(self) -> float:
        """Mean size beyond noise over pairs without an edge: of errors, of speaking, of errors one element apart."""
        apart, kept = np.tril(self.apart), self.state.kept
        below = np.tri(len(apart), k=-1, dtype=np.bool_)
        speaking = self._products(below, about=kernels.SPEAKING)
        here = max(_excess(self.errors, apart, STEADY / 2), _excess(speaking, apart, STEADY / 2))
        if kept is None:
            return here
        later = self._products(np.ones_like(apart), kept[np.newaxis], lag=1)
        return max(here, _excess(later, self.apart, STEADY))

    @cached_property
    def discovered(self) -> tuple[FloatArray, FloatArray]:
        """Correlations of errors that are discoveries, else zero: of two sources (m, m), of one some elements apart.

        Of one source with itself only those above zero, (n_lags, m).
        """
        below = np.tri(len(self.apart), k=-1, dtype=np.bool_)
        both, own = self.errors, self._own()
        tested = below, own[1] > 0
        p = [p_values(*sums[[0, 2, 3]])[places] for sums, places in zip((both, own), tested, strict=True)]
        found = np.split(discoveries(np.concatenate(p), FALSE_DISCOVERIES), [len(p[0])])
        # Steadied where there is little to see.
        pairs, lags = (sums[0] / (sums[1] + STEADY) for sums in (both, own))
        for correlations, places, shown in zip((pairs, lags), tested, found, strict=True):
            correlations[places] *= shown
        return pairs + pairs.T, np.maximum(lags, 0.0)

    def _own(self) -> FloatArray:
        """Residual errors of a source some elements apart, where the label stayed all the time, (4, lags, m)."""
        labels, kept, itself = self.state.labels, self.state.kept, np.eye(len(self.apart), dtype=np.bool_)
        sums = np.zeros((4, LONGEST_LAG, len(itself)))
        if labels is None or kept is None:
            return sums
        # P(same label one element earlier still | it stayed until here), by which one lag follows from the one before.
        weights, stays = labels.copy(), kept / np.maximum(labels, 1e-300)
        for lag in range(1, min(LONGEST_LAG, int(self.place.max(initial=0))) + 1):
            # Only where the label stayed: otherwise a change of label would look like a change of mind.
            weights[lag:] *= stays[1 : len(stays) - lag + 1]
            weights[self.place < lag] = 0.0
            sums[:, lag - 1] = np.diagonal(self._products(itself, weights[np.newaxis], lag=lag), axis1=1, axis2=2)
        return sums

    def _products(
        self, pairs: BoolArray, weights: FloatArray | None = None, *, lag: int = 0, about: int = kernels.ERRORS
    ) -> FloatArray:
        """Sums over some pairs of residuals of being wrong, or of speaking; under the fitted labels unless given."""
        panel, state, repeats = self.panel, self.state, self.state.repeats
        sums = np.zeros((4, *pairs.shape))
        if weights is None:
            assert state.labels is not None
            weights = state.labels[np.newaxis]
            if repeats.rates.any() and state.kept is not None:
                # A repeating source repeats itself less when the label changes: the two cases expect different votes.
                weights = np.stack([state.kept, state.labels - state.kept])
        fitted = weights, self.fresh, self.usual, lag, panel.coding.split <= 0, panel.coding.silent, about
        kernels.add_products(
            panel.codes, self.place, *fitted, repeats.rates, repeats.lags, JACKKNIFE_BLOCK, pairs, sums
        )
        return sums


def find_misfit(setting: Setting, state: State, apart: BoolArray) -> Misfit:
    """Compare a fitted model with the votes; `apart` says which pairs of sources have no edge between them."""
    folded = setting.folded
    everything, repeating = count_tables(folded.rows, state.weights, folded.every), state.repeats.rates[0] > 0
    usual = fresh = _rates(folded.panel, everything)
    if repeating.any() and state.single is not None:
        # The table of a repeating source is of its fresh votes; rates must be of the same votes as the table.
        counts = state.single * everything.sum(axis=2, keepdims=True)
        fresh = _rates(folded.panel, np.where(repeating[:, np.newaxis, np.newaxis], counts, everything))
        fresh[1, (usual[1] == 1).all(axis=1)] = 1.0
    place = folded.panel.places()
    return Misfit(panel=folded.panel, place=place, state=state, apart=apart, fresh=fresh, usual=usual)


def _excess(sums: FloatArray, mask: BoolArray, least: float) -> float:
    """Mean size of the correlations beyond noise, pair by pair or of their sum, whichever is larger."""
    total, scale, square, _ = sums[:, mask]
    if scale.sum() <= least:
        return 0.0
    # Single pairs show one strong dependence, their sum a weak one that all of them share.
    pairs = np.maximum(np.abs(total) - SIGNIFICANT * np.sqrt(square), 0).sum()
    whole = abs(total.sum()) - SIGNIFICANT * np.sqrt(square.sum())
    return float(max(pairs, whole) / scale.sum())


def _rates(panel: Panel, counts: FloatArray) -> FloatArray:
    """P(wrong | spoke, label) and P(spoke | label), (2, m, K)."""
    asked = counts.sum(axis=2)
    spoken = asked - counts[:, :, panel.coding.silent]
    right = (counts * (panel.coding.split > 0).T).sum(axis=2)
    speaks = (spoken + 0.5) / (asked + 1)
    # A source that never abstains has no residual of speaking: half a pseudo-vote would invent one.
    speaks[spoken.sum(axis=1) >= asked.sum(axis=1) - 1e-6] = 1.0
    return np.stack([np.clip(1 - (right + 0.5) / (spoken + 1), 1e-3, 1 - 1e-3), speaks])


# --- tests with a bound on false discoveries --------------------------------------------------------------------------
# Which of many residuals are more than chance: two-sided p-values by Student's t, and which of them the procedure of
# Benjamini and Yekutieli calls discoveries. Among these at most the given share is false on average, whatever the tests
# have to do with each other. Few blocks with rare joint errors may carry a sum, so the degrees of freedom are those of
# the blocks that matter.


def p_values(total: FloatArray, square: FloatArray, fourth: FloatArray) -> FloatArray:
    """Two-sided p-values of sums that are zero on average, from powers of the sums of their blocks.

    The number of blocks that matter is ``3 * square ** 2 / fourth``: all of them if their sums are normal, few if a few
    are much larger than the others.
    """
    some = fourth > 0
    # Three, because the fourth power of a normal variable is three times its squared variance on average.
    blocks = 3 * square**2 / np.where(some, fourth, 1.0)
    error = np.sqrt(np.where(some, square, 1.0))
    found = 2 * stdtr(np.maximum(blocks - 1, 1e-3), -np.abs(total) / error)
    return np.asarray(np.where(some & (blocks > 1), found, 1.0))


def discoveries(p: FloatArray, level: float) -> BoolArray:
    """Which p-values are discoveries if at most `level` of them may be false on average."""
    order = np.sort(p)
    n = len(order)
    if n == 0:
        return np.zeros(0, dtype=np.bool_)
    ranks = np.arange(1, n + 1)
    # The sum of 1 / rank is the price for tests that depend on each other in ways that nobody knows.
    below = order <= ranks * level / (n * (1 / ranks).sum())
    return np.asarray(p <= order[below].max(initial=-1.0))

"""What a fitted model leaves unexplained: errors of two sources that still go together.

In: a panel, soft labels of a model. Out: residual correlations of errors, of having spoken at all, and of errors one
element apart, with their standard errors. Under the model all of them are zero; their size beyond noise is the misfit
that decides how far the model is trusted. The residual of a source that repeats itself is taken against what its own
last vote leads one to expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.estimate.learned import _kernels as kernels
from dugong.estimate.learned.panel import Panel
from dugong.estimate.learned.repeats import Repeats
from dugong.estimate.learned.rounds import Setting, State
from dugong.estimate.learned.settings import SIGNIFICANT, SILENCE, STEADY, SURE
from dugong.estimate.learned.tables import count_tables
from dugong.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products:
    """Sums over elements of residual products of two sources, of their scales and of their squares; (m, m) each."""

    total: FloatArray
    scale: FloatArray
    square: FloatArray

    def correlation(self) -> FloatArray:
        """Residual correlations, steadied where there is little to see, zero on the diagonal."""
        found = self.total / (self.scale + STEADY)
        np.fill_diagonal(found, 0)
        return found

    def significant(self) -> BoolArray:
        """Whether a sum is far from zero: few of many pairs are by chance."""
        return np.asarray(np.abs(self.total) > SURE * np.sqrt(self.square))

    def excess(self, mask: BoolArray, *, symmetric: bool) -> float:
        """Mean size of the correlations beyond noise, pair by pair or of their sum, whichever is larger."""
        total, scale, square = self.total[mask], self.scale[mask], self.square[mask]
        if scale.sum() <= STEADY:
            return 0.0
        pairs = np.maximum(np.abs(total) - SIGNIFICANT * np.sqrt(square), 0).sum()
        whole = abs(total.sum()) - SIGNIFICANT * np.sqrt(square.sum() * (2.0 if symmetric else 1.0))
        return float(max(pairs, whole) / scale.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Misfit:
    """How far a fitted model is from the votes.

    Attributes
    ----------
    errors, speaking, lagged : residual correlations beyond noise, mean size over pairs without an edge
    persistence : median own-lag correlation of errors
    information : how much the votes say about pairs of errors, and of silences
    correlation : (m, m) residual correlation of errors
    significant : (m, m) whether it is beyond chance
    own : (m,) own-lag correlation of errors where it is beyond noise
    """

    errors: float
    speaking: float
    lagged: float
    persistence: float
    information: float
    correlation: FloatArray
    significant: BoolArray
    own: FloatArray

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.errors, self.speaking, self.lagged)


def find_misfit(setting: Setting, state: State, apart: BoolArray) -> Misfit:
    """Compare a fitted model with the votes; `apart` says which pairs of sources have no edge between them."""
    panel, folded = setting.panel, setting.folded
    everything = count_tables(folded.rows, state.weights, folded.everywhere())
    usual = _rates(panel, everything)
    fresh = usual
    if state.repeats and state.single is not None:
        counts = state.single * everything.sum(axis=2, keepdims=True)
        fresh = _rates(panel, np.where(state.repeats.sources[:, np.newaxis, np.newaxis], counts, everything))
        fresh[1, (usual[1] == 1).all(axis=1)] = 1.0
    errors, speaking = _same_element(setting, state, fresh)
    lagged, own, persistence = 0.0, np.zeros(panel.n_sources), 0.0
    if state.kept is not None:
        later = _next_element(panel, state.kept, state.repeats, fresh, usual)
        lagged = later.excess(apart, symmetric=False)
        total, scale = np.diag(later.total), np.diag(later.scale)
        own = np.where(np.diag(later.significant()) & (total > 0), total / (scale + STEADY), 0.0)
        persistence = max(float(np.median(own)), 0.0)
    return Misfit(
        errors=errors.excess(apart, symmetric=True),
        speaking=speaking.excess(apart, symmetric=True),
        lagged=lagged,
        persistence=persistence,
        information=float(errors.scale[apart].sum() + speaking.scale[apart].sum() / SILENCE) / 2,
        correlation=errors.correlation(),
        significant=errors.significant(),
        own=own,
    )


def _rates(panel: Panel, counts: FloatArray) -> FloatArray:
    """P(wrong | spoke, label) and P(spoke | label), (2, m, K)."""
    asked = counts.sum(axis=2)
    spoken = asked - counts[:, :, panel.coding.silent]
    right = (counts * (panel.coding.split > 0).T).sum(axis=2)
    speaks = (spoken + 0.5) / (asked + 1)
    speaks[spoken.sum(axis=1) >= asked.sum(axis=1) - 1e-6] = 1.0
    return np.stack([np.clip(1 - (right + 0.5) / (spoken + 1), 1e-3, 1 - 1e-3), speaks])


def _same_element(setting: Setting, state: State, rates: FloatArray) -> tuple[Products, Products]:
    """Of rows, or of elements where some source repeats itself."""
    panel, labels, kept = setting.folded.rows, state.weights, np.zeros((0, state.weights.shape[1]))
    if state.repeats and state.labels is not None and state.kept is not None:
        panel, labels, kept = setting.panel, state.labels, state.kept
    errors, speaking = np.zeros((2, 3, panel.n_sources, panel.n_sources))
    kernels.add_residuals(
        panel.codes,
        panel.starts,
        labels,
        kept,
        rates,
        panel.coding.split <= 0,
        panel.coding.silent,
        state.repeats.rates,
        errors,
        speaking,
    )
    return _symmetric(errors), _symmetric(speaking)


def _symmetric(lower: FloatArray) -> Products:
    total, scale, square = (table + np.tril(table, -1).T for table in lower)
    return Products(total=total, scale=scale, square=square)


def _next_element(panel: Panel, kept: FloatArray, repeats: Repeats, rates: FloatArray, usual: FloatArray) -> Products:
    sums = np.zeros((3, panel.n_sources, panel.n_sources))
    kernels.add_lagged(
        panel.codes,
        panel.starts,
        kept,
        rates,
        usual[0],
        panel.coding.split <= 0,
        panel.coding.silent,
        repeats.rates,
        sums,
    )
    return Products(total=sums[0], scale=sums[1], square=sums[2])

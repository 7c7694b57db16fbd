"""What a fitted model leaves unexplained: errors of two sources that still go together.

In: a panel, soft labels of a model. Out: residual correlations of errors, of having spoken at all, and of errors one
element apart, with their standard errors. Under the model all of them are zero; their size beyond noise is the misfit
that decides how far the model is trusted. (The residuals of METHOD (1), weighted by the posterior.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.estimate.learned.panel import Panel
from dugong.estimate.learned.settings import SELF_SIGNIFICANT, SIGNIFICANT, STEADY
from dugong.estimate.learned.tables import count_tables
from dugong.types import BoolArray, FloatArray, IntArray

_BLOCK = 1 << 14


@dataclass(slots=True, kw_only=True, eq=False)
class Products:
    """Sums over elements of residual products of two sources, their scales and their squares; (m, m) each."""

    total: FloatArray
    scale: FloatArray
    square: FloatArray

    @classmethod
    def zero(cls, n_sources: int) -> Products:
        """Nothing yet."""
        return cls(**{name: np.zeros((n_sources, n_sources)) for name in ("total", "scale", "square")})

    def add(self, here: FloatArray, there: FloatArray, weight: FloatArray, asked: FloatArray, past: FloatArray) -> None:
        """Add the products of residuals `here` and `there` of some elements with their weights."""
        weighted = here * weight
        self.total += weighted.T @ there
        self.square += (weighted * here).T @ (there * there)
        self.scale += (asked * weight).T @ past

    def correlation(self) -> FloatArray:
        """Residual correlations, steadied where there is little to see, zero on the diagonal."""
        found = self.total / (self.scale + STEADY)
        np.fill_diagonal(found, 0)
        return found

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
    information : how much the votes say about pairs of errors
    correlation : (m, m) residual correlation of errors
    own : (m,) own-lag correlation of errors where it is beyond noise
    """

    errors: float
    speaking: float
    lagged: float
    persistence: float
    information: float
    correlation: FloatArray
    own: FloatArray

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.errors, self.speaking, self.lagged)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rates:
    """P(wrong | spoke, label) and P(spoke | label), (m, K) each, and which (vote, label) are wrong."""

    wrong: FloatArray
    speaks: FloatArray
    is_wrong: BoolArray


def find_misfit(panel: Panel, labels: FloatArray, kept: FloatArray | None, use: BoolArray, apart: BoolArray) -> Misfit:
    """Compare a fitted model with the votes; `kept` is P(label before = label) by element, if there is a chain."""
    rates = _rates(panel, labels)
    errors, speaking = _same_element(panel, labels, rates, use)
    lagged, own, persistence = 0.0, np.zeros(panel.n_sources), 0.0
    if kept is not None:
        later = _next_element(panel, kept, rates)
        lagged = later.excess(apart, symmetric=False)
        total, scale, square = (np.diag(table) for table in (later.total, later.scale, later.square))
        own = np.where(total > SELF_SIGNIFICANT * np.sqrt(square), total / (scale + STEADY), 0.0)
        persistence = max(float(np.median(own)), 0.0)
    return Misfit(
        errors=errors.excess(apart, symmetric=True),
        speaking=speaking.excess(apart, symmetric=True),
        lagged=lagged,
        persistence=persistence,
        information=float(errors.scale[apart].sum() / 2),
        correlation=errors.correlation(),
        own=own,
    )


def _rates(panel: Panel, labels: FloatArray) -> _Rates:
    counts = count_tables(panel, labels, np.ones(len(panel), dtype=np.bool_))
    asked = counts.sum(axis=2)
    spoken = asked - counts[:, :, panel.coding.silent]
    allowed = panel.coding.split > 0
    right = (counts * allowed.T).sum(axis=2)
    speaks = (spoken + 0.5) / (asked + 1)
    speaks[spoken.sum(axis=1) >= asked.sum(axis=1) - 1e-6] = 1.0
    return _Rates(
        wrong=np.clip(1 - (right + 0.5) / (spoken + 1), 1e-3, 1 - 1e-3),
        speaks=speaks,
        is_wrong=~np.vstack([allowed, np.ones((1, allowed.shape[1]), dtype=np.bool_)]),
    )


def _deviation(rate: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(rate * (1 - rate)))


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]


def _same_element(panel: Panel, labels: FloatArray, rates: _Rates, use: BoolArray) -> tuple[Products, Products]:
    errors, speaking = Products.zero(panel.n_sources), Products.zero(panel.n_sources)
    for rows in _blocks(np.flatnonzero(use)):
        codes = panel.codes[rows]
        asked = (codes >= 0).astype(np.float64)
        spoken = asked * (codes != panel.coding.silent)
        for y in range(labels.shape[1]):
            weight = labels[rows, y][:, np.newaxis]
            wrong = spoken * (rates.is_wrong[codes, y] - rates.wrong[:, y])
            spread = spoken * _deviation(rates.wrong[:, y])
            errors.add(wrong, wrong, weight, spread, spread)
            silent = asked * (spoken - rates.speaks[:, y])
            spread = asked * _deviation(rates.speaks[:, y])
            speaking.add(silent, silent, weight, spread, spread)
    return errors, speaking


def _next_element(panel: Panel, kept: FloatArray, rates: _Rates) -> Products:
    """Errors of a source (row) and of another one element earlier (column), where the label stayed."""
    found = Products.zero(panel.n_sources)
    for rows in _blocks(np.flatnonzero(~panel.starts)):
        here, past = panel.codes[rows], panel.codes[rows - 1]
        speaks_here, spoke_before = (
            ((codes >= 0) & (codes != panel.coding.silent)).astype(np.float64) for codes in (here, past)
        )
        for y in range(kept.shape[1]):
            weight = kept[rows, y][:, np.newaxis]
            now = speaks_here * (rates.is_wrong[here, y] - rates.wrong[:, y])
            before = spoke_before * (rates.is_wrong[past, y] - rates.wrong[:, y])
            deviation = _deviation(rates.wrong[:, y])
            found.add(now, before, weight, speaks_here * deviation, spoke_before * deviation)
    return found

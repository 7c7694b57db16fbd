"""What a fitted model leaves unexplained: errors of two sources that still go together.

In: a panel, soft labels of a model. Out: residual correlations of errors, of having spoken at all, and of errors one
element apart, with their standard errors. Under the model all of them are zero; their size beyond noise is the misfit
that decides how far the model is trusted. The residual of a source that repeats itself is taken against what its own
last vote leads one to expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.estimate.learned.panel import Panel
from dugong.estimate.learned.repeats import Repeats
from dugong.estimate.learned.rounds import State
from dugong.estimate.learned.settings import SELF_SIGNIFICANT, SIGNIFICANT, STEADY
from dugong.estimate.learned.tables import count_tables
from dugong.types import BoolArray, FloatArray, Int8Array, IntArray

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


def find_misfit(panel: Panel, state: State, apart: BoolArray) -> Misfit:
    """Compare a fitted model with the votes; `apart` says which pairs of sources have no edge between them."""
    everything = count_tables(panel, state.labels, np.ones(len(panel), dtype=np.bool_))
    rates = _rates(panel, everything)
    fresh = rates
    if state.repeats and state.single is not None:
        counts = state.single * everything.sum(axis=2, keepdims=True)
        fresh = _rates(panel, np.where(state.repeats.sources[:, np.newaxis, np.newaxis], counts, everything))
    errors, speaking = _same_element(panel, state, fresh)
    lagged, own, persistence = 0.0, np.zeros(panel.n_sources), 0.0
    if state.kept is not None:
        later = _next_element(panel, state.kept, state.repeats, rates, fresh)
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


def _rates(panel: Panel, counts: FloatArray) -> _Rates:
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


def _expected(
    panel: Panel, rates: _Rates, y: int, past: Int8Array, repeat: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """P(wrong | spoke) and P(spoke) of every source, by what a repeating one said before; (m,) or (n, m)."""
    wrong, speaks = rates.wrong[:, y], rates.speaks[:, y]
    if not repeat.any():
        return wrong, speaks
    again = np.where(past >= 0, repeat, 0.0)
    spoke = (past >= 0) & (past != panel.coding.silent)
    speaking = (1 - again) * speaks + again * spoke
    joint = (1 - again) * speaks * wrong + again * (spoke & rates.is_wrong[past, y])
    return np.clip(joint / np.maximum(speaking, 1e-12), 1e-3, 1 - 1e-3), speaking


def _deviation(rate: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(rate * (1 - rate), 0.0)))


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]


def _past(panel: Panel, rows: IntArray) -> Int8Array:
    """Votes one element earlier; -1 where a sequence begins."""
    return np.where(panel.starts[rows][:, np.newaxis], np.int8(-1), panel.codes[rows - 1])


def _same_element(panel: Panel, state: State, rates: _Rates) -> tuple[Products, Products]:
    errors, speaking = Products.zero(panel.n_sources), Products.zero(panel.n_sources)
    for rows in _blocks(np.arange(len(panel))):
        codes, past = panel.codes[rows], _past(panel, rows)
        asked = (codes >= 0).astype(np.float64)
        spoken = asked * (codes != panel.coding.silent)
        for y in range(state.labels.shape[1]):
            is_wrong = rates.is_wrong[codes, y]
            for weight, repeat in _branches(state, rows, y):
                wrong, speaks = _expected(panel, rates, y, past, repeat)
                left, spread = spoken * (is_wrong - wrong), spoken * _deviation(wrong)
                errors.add(left, left, weight, spread, spread)
                left, spread = asked * (spoken - speaks), asked * _deviation(speaks)
                speaking.add(left, left, weight, spread, spread)
    return errors, speaking


def _branches(state: State, rows: IntArray, y: int) -> list[tuple[FloatArray, FloatArray]]:
    """Weights of a label and what sources repeat: one branch, or one for labels that stayed and one for changes."""
    every, rates = state.labels[rows, y][:, np.newaxis], state.repeats.rates
    if not state.repeats or state.kept is None:
        return [(every, np.zeros(rates.shape[1]))]
    stayed = state.kept[rows, y][:, np.newaxis]
    return [(stayed, rates[0]), (np.maximum(every - stayed, 0.0), rates[1])]


def _next_element(panel: Panel, kept: FloatArray, repeats: Repeats, rates: _Rates, fresh: _Rates) -> Products:
    """Errors of a source (row) and of another one element earlier (column), where the label stayed."""
    found = Products.zero(panel.n_sources)
    for rows in _blocks(np.flatnonzero(~panel.starts)):
        here, past = panel.codes[rows], panel.codes[rows - 1]
        speaks, spoke = (((codes >= 0) & (codes != panel.coding.silent)).astype(np.float64) for codes in (here, past))
        for y in range(kept.shape[1]):
            weight = kept[rows, y][:, np.newaxis]
            wrong, _ = _expected(panel, fresh, y, past, repeats.rates[0])
            now = speaks * (rates.is_wrong[here, y] - wrong)
            before = spoke * (rates.is_wrong[past, y] - rates.wrong[:, y])
            found.add(now, before, weight, speaks * _deviation(wrong), spoke * _deviation(rates.wrong[:, y]))
    return found

"""Votes as indicators: the covariances from which a low-rank-plus-sparse decomposition reads dependencies.

In: a panel. Out: for every source one indicator per class that it votes for, now and one element earlier, and the
correlations of all of them. Abstaining is the absence of all indicators, so it needs none of its own; votes that were
not asked for count in no mean and no product. With indicators of all values the inverse covariance of discrete
variables follows the graph (Loh and Wainwright 2013), which votes as numbers do not promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dugong.fit.learned.lowrank import decompose
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import LOW_RANK, MOST_CLASSES, RIDGE, SPARSE
from dugong.types import FloatArray, IntArray

_CHUNK = 1 << 14
_RAREST = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Indicators:
    """Correlations of indicators (p, p), the source of each (m.. means one element earlier), and how many elements."""

    correlation: FloatArray
    source: IntArray
    n_elements: int


def low_rank_strengths(
    panel: Panel, progress: Callable[[int, int], object] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Strength of the dependence of every pair (m, m), and of every source on its own last vote (m,).

    The strength is the largest partial correlation of the indicators of two sources, labels apart.
    """
    m = panel.codes.shape[1]
    found = count_indicators(panel)
    if len(found.source) < 2:
        return np.zeros((m, m)), np.zeros(m)
    # The size of the largest of so many sample correlations that are zero in truth.
    sparse = SPARSE * np.sqrt(np.log(len(found.source)) / max(found.n_elements, 2))
    same = found.source[:, np.newaxis] == found.source
    parts = decompose(found.correlation, sparse, LOW_RANK * sparse, free=same, progress=progress)
    blocks = _block_norms(parts.sparse, found.source, 2 * m)
    return blocks[:m, :m], np.diag(blocks[:m, m:]).copy()


def count_indicators(panel: Panel) -> Indicators:
    """Correlations of the indicators of all sources, now and one element earlier."""
    source, code = _chosen(panel)
    p, asked = len(source), panel.codes >= 0
    total = asked.sum(axis=0)[source]
    mean = np.array([(panel.codes[:, j] == z).sum() for j, z in zip(source, code, strict=True)]) / np.maximum(total, 1)
    now, later, both, both_later = np.zeros((4, p, p))
    for start in range(0, len(panel.codes), _CHUNK):
        rows = slice(max(start - 1, 0), start + _CHUNK)
        there = asked[rows][:, source].astype(np.float64)
        # Centred and masked, so that a vote that was not asked for adds nothing to any product.
        values = ((panel.codes[rows][:, source] == code) - mean) * there
        first = 0 if start == 0 else 1  # the element before a chunk is there only to be looked back at
        now += values[first:].T @ values[first:]
        both += there[first:].T @ there[first:]
        linked = (~panel.starts[rows][1:])[:, np.newaxis]
        later += (values[1:] * linked).T @ values[:-1]
        both_later += (there[1:] * linked).T @ there[:-1]
    return _normalised(
        now / np.maximum(both, 1), later / np.maximum(both_later, 1), source, len(panel.codes), panel.codes.shape[1]
    )


def _normalised(now: FloatArray, later: FloatArray, source: IntArray, n_elements: int, m: int) -> Indicators:
    whole = np.block([[now, later], [later.T, now]])
    spread = np.sqrt(np.maximum(np.diag(whole), 1e-12))
    # Products of different numbers of elements need not be positive definite; the ridge makes up for that.
    correlation = whole / np.outer(spread, spread) + RIDGE * np.eye(len(whole))
    return Indicators(correlation=correlation, source=np.concatenate([source, source + m]), n_elements=n_elements)


def _chosen(panel: Panel) -> tuple[IntArray, IntArray]:
    """Source and code of every indicator: the classes with most votes; one fewer for a source that never abstains."""
    n_classes = panel.coding.n_classes
    counts = np.stack([(panel.codes == z).sum(axis=0) for z in range(panel.coding.n_columns)], axis=1)
    common = np.sort(np.argsort(-counts[:, :n_classes].sum(axis=0), kind="stable")[:MOST_CLASSES])
    pairs = []
    for j in range(panel.codes.shape[1]):
        own = [z for z in common.tolist() if counts[j, z] >= _RAREST]
        # Indicators of all values add up to one, and their covariance would have no inverse.
        always = counts[j, own].sum() >= counts[j].sum() - _RAREST
        pairs += [(j, z) for z in (own[:-1] if always else own)]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _block_norms(sparse: FloatArray, source: IntArray, n: int) -> FloatArray:
    """Largest partial correlation between the indicators of two sources, (n, n)."""
    roots, norms = {}, np.zeros((n, n))
    for j in np.unique(source).tolist():
        values, vectors = np.linalg.eigh(sparse[np.ix_(source == j, source == j)])
        # Dividing by the own block makes partial correlations, whose size does not depend on the scale of votes.
        roots[j] = (vectors / np.sqrt(np.maximum(values, 1e-9))) @ vectors.T
    for j, left in roots.items():
        for k, right in roots.items():
            if k < j:
                norms[j, k] = norms[k, j] = np.linalg.norm(left @ sparse[np.ix_(source == j, source == k)] @ right, 2)
    return norms

"""Order of the sources by what they say, and how much each repeats another.

In: a panel. Out: an order that does not depend on the given one; for every pair a similarity from 0 (ordinary) to 1
(identical), from how rarely they disagree against the typical pair. A source with near-copies counts 1 / (1 + sum).
"""

from __future__ import annotations

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import NEAR, NEAR_ROUNDS
from dugong.types import FloatArray, IntArray


def content_order(panel: Panel, names: tuple[str, ...]) -> IntArray:
    """Places of the sources sorted by what they voted; ties go by name."""
    counts = np.zeros((2, panel.n_sources, panel.coding.n_columns + 1), dtype=np.int64)
    kernels.count_company(panel.codes, panel.coding.silent, counts)
    own, company = counts.tolist()
    keys = list(zip(own, company, names, strict=True))
    return np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=np.int64)


def find_copies(folded: Folded) -> FloatArray:
    """Similarity of every pair of sources, (m, m), zero on the diagonal."""
    panel = folded.rows
    m = panel.n_sources
    if m < 3:
        return np.zeros((m, m))
    both, same = np.zeros((m, m)), np.zeros((m, m))
    kernels.count_agreements(panel.codes, folded.sizes, panel.coding.silent, both, same)
    both, same = (np.tril(table) + np.tril(table, -1).T for table in (both, same))
    apart = 1 - same / np.maximum(both, 1)
    own = np.maximum(np.diag(both), 1)
    overlap = both / np.sqrt(np.outer(own, own))
    others = ~np.eye(m, dtype=np.bool_)
    similar = np.zeros((m, m))
    for _ in range(NEAR_ROUNDS):
        weight = copy_weights(similar)
        pairs = np.outer(weight, weight) * both * others
        typical = max(float((pairs * apart).sum()), 0.5) / max(float(pairs.sum()), 1.0)
        steadied = (apart * both + 5 * typical) / (both + 5)
        similar = np.clip(1 - steadied / (NEAR * typical), 0, 1) * overlap * others
    return similar


def copy_weights(similar: FloatArray) -> FloatArray:
    """What each source counts: one over one plus its near-copies."""
    return np.asarray(1 / (1 + similar.sum(axis=1)))

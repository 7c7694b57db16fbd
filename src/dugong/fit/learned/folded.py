"""Elements on which every source says the same, counted together.

In: a panel. Out: its different rows, each once, and which of them every element has. Whatever looks at one element
alone is then done once per row; only what runs in time is done element by element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.panel import Panel
from dugong.types import BoolArray, FloatArray, IntArray

_ROOM = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folded:
    """Different rows of a panel.

    Attributes
    ----------
    rows : the rows, as a panel of sequences of one element
    which : (n,) the row of every element
    sizes : (n_rows,) how many elements have it
    starts : (n,) whether an element is the first of its sequence
    """

    rows: Panel
    which: IntArray
    sizes: FloatArray
    starts: BoolArray

    @property
    def linked(self) -> bool:
        """Whether some element has one before it."""
        return not bool(self.starts.all())

    def everywhere(self) -> BoolArray:
        """Every row counts."""
        return np.ones(len(self.rows), dtype=np.bool_)

    def columns(self, sources: IntArray) -> Folded:
        """The same for some of the sources."""
        fewer = fold(self.rows.columns(sources))
        sizes = np.bincount(fewer.which, self.sizes, len(fewer.rows)).astype(np.float64)
        return replace(fewer, which=fewer.which.take(self.which), sizes=sizes, starts=self.starts)

    def weighted(self, labels: FloatArray) -> FloatArray:
        """Soft labels of rows (n_rows, K), summed over their elements."""
        return np.asarray(labels * self.sizes[:, np.newaxis])

    def summed(self, labels: FloatArray) -> FloatArray:
        """Soft labels of elements (n, K), summed by row, (n_rows, K)."""
        total = np.zeros((len(self.rows), labels.shape[1]))
        kernels.add_by_row(self.which, labels, total)
        return total


def fold(panel: Panel) -> Folded:
    """The different rows of a panel."""
    first, which = _unique_rows(panel)
    rows = replace(
        panel,
        codes=panel.codes.take(first, axis=0),
        starts=np.ones(len(first), dtype=np.bool_),
        known=panel.known[first],
    )
    sizes = np.bincount(which, minlength=len(first)).astype(np.float64)
    return Folded(rows=rows, which=which, sizes=sizes, starts=panel.starts)


def _unique_rows(panel: Panel) -> tuple[IntArray, IntArray]:
    """An element with every row, and the row of every element: columns are joined as digits of one number."""
    keys: IntArray = panel.known.astype(np.int64) + 1
    base, many = panel.coding.n_columns + 1, panel.coding.n_classes + 1
    for place in range(panel.n_sources):
        # Keys are numbered anew before they would overflow, which keeps them exact for any number of sources.
        if many > _ROOM // base:
            first, keys = _distinct(keys)
            many = len(first)
        keys *= base
        keys += panel.codes[:, place].astype(np.int64)
        many *= base
    return _distinct(keys)


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Where each of the different keys, in increasing order, first occurs, and which of them every key is."""
    table = np.full(1 << (2 * len(keys) + 1).bit_length(), -1, dtype=np.int64)
    first, which = np.empty_like(keys), np.empty_like(keys)
    first = first[: kernels.number_keys(keys, table, first, which)]
    # Only the different keys are sorted: their order must not depend on that of the elements.
    order = np.argsort(keys[first])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank.take(which)

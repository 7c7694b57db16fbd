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
    """A panel, and its different rows.

    Attributes
    ----------
    panel : the votes, element by element
    rows : its different rows, as a panel of sequences of one element
    which : (n,) the row of every element
    sizes : (n_rows,) how many elements have it
    every : (n_rows,) ones: every row counts
    linked : whether some element has one before it
    """

    panel: Panel
    rows: Panel
    which: IntArray
    sizes: FloatArray
    every: BoolArray
    linked: bool

    def columns(self, sources: IntArray) -> Folded:
        """The same for some of the sources."""
        fewer, panel = fold(self.rows.columns(sources)), self.panel.columns(sources)
        sizes = np.asarray(np.bincount(fewer.which, self.sizes, len(fewer.sizes)), dtype=np.float64)
        return replace(fewer, panel=panel, which=fewer.which.take(self.which), sizes=sizes, linked=self.linked)

    def summed(self, labels: FloatArray) -> FloatArray:
        """Soft labels of elements (n, K), summed by row, (n_rows, K)."""
        total = np.zeros((len(self.sizes), labels.shape[1]))
        kernels.add_by_row(self.which, labels, total)
        return total


def fold(panel: Panel) -> Folded:
    """The different rows of a panel: its columns are joined as digits of one number."""
    keys: IntArray = panel.known.astype(np.int64) + 1
    base, many = panel.coding.n_columns + 1, panel.coding.n_classes + 1
    for codes in panel.codes.T:
        # Keys are numbered anew before they would overflow, which keeps them exact for any number of sources.
        if many > _ROOM // base:
            first, keys = _distinct(keys)
            many = len(first)
        keys *= base
        keys += codes
        many *= base
    first, which = _distinct(keys)
    every = np.ones(len(first), dtype=np.bool_)
    rows = replace(panel, codes=panel.codes.take(first, axis=0), starts=every, known=panel.known[first])
    sizes = np.bincount(which, minlength=len(first)).astype(np.float64)
    linked = not bool(panel.starts.all())
    return Folded(panel=panel, rows=rows, which=which, sizes=sizes, every=every, linked=linked)


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

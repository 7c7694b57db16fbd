"""From soft labels to tables: P(vote | label), P(vote | label, vote of the parent), class balance, transitions.

All are counts with a few pseudo-votes: a table leans towards the source's own marginal (a source that was never heard
on a class says nothing about it), the table of an edge towards the table without the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import PSEUDO_PAIRS, PSEUDO_VOTES, UNSEEN
from dugong.tasks.bio import Possible
from dugong.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """Tables of all sources.

    Attributes
    ----------
    single : (m, K, C) P(vote | label)
    edges : (n_edges, K, C, C) P(vote | label, vote of the parent)
    slots : (m,) which of `edges` belongs to a source that has a parent
    """

    single: FloatArray
    edges: FloatArray
    slots: IntArray


def count_tables(panel: Panel, labels: FloatArray, use: BoolArray) -> FloatArray:
    """Expected votes by label, (m, K, C), with beliefs; the labels of rows are summed over their elements."""
    counts = np.zeros((panel.codes.shape[1], panel.coding.n_columns, panel.coding.n_classes))
    kernels.count_votes(panel.codes, labels, use, counts)
    counts = np.ascontiguousarray(counts.swapaxes(1, 2))
    if panel.ties is not None:  # sources that share a table have the counts of all of them
        counts = np.stack([counts[panel.ties == tie].sum(axis=0) for tie in panel.ties])
    if panel.beliefs is None:
        return counts
    return np.stack([one if b is None else b.held(one) for one, b in zip(counts, panel.beliefs, strict=True)])


def make_tables(
    panel: Panel,
    labels: FloatArray,
    use: BoolArray,
    parents: IntArray | None = None,
    pinned: FloatArray | None = None,
    counts: FloatArray | None = None,
) -> Tables:
    """Tables given soft labels; rows of `pinned` (m, K, C) that are not NaN are kept as they are.

    `counts` replace those of single sources, where some votes do not count.
    """
    counts = count_tables(panel, labels, use) if counts is None else counts
    single = smoothed(counts)
    if pinned is not None:
        single = np.where(np.isnan(pinned), single, pinned)
    n_classes, n_columns = counts.shape[1:]
    slots = np.zeros(len(counts), dtype=np.int64)
    children = np.flatnonzero(parents >= 0) if parents is not None else np.zeros(0, dtype=np.int64)
    if parents is None or not len(children):
        return Tables(single=single, edges=np.ones((1, n_classes, n_columns, n_columns)), slots=slots)
    slots[children] = np.arange(len(children))
    pairs = np.zeros((len(children), n_classes, n_columns, n_columns))
    kernels.count_edges(panel.codes, labels, use, children, parents[children], pairs)
    # Towards the table without the edge: pairs that hardly occur then say no more than the source alone.
    edges = pairs + PSEUDO_PAIRS * single[children][:, :, np.newaxis]
    return Tables(single=single, edges=edges / edges.sum(axis=-1, keepdims=True), slots=slots)


def smoothed(counts: FloatArray, least: float | None = None) -> FloatArray:
    """P(vote | label) from counts (m, K, C), with pseudo-votes spread like the votes of the source."""
    # A little of every vote (a tenth of a vote in all), so that a source which was never asked has a marginal too.
    marginal = counts.sum(axis=1, keepdims=True) + (0.1 / counts.shape[-1] if least is None else least)
    marginal /= marginal.sum(axis=-1, keepdims=True)
    total = counts + PSEUDO_VOTES * marginal
    return np.asarray(total / total.sum(axis=-1, keepdims=True))


def mute_unseen(table: FloatArray, never: BoolArray) -> FloatArray:
    """A table (..., C) in which votes that never occurred say nothing: equally improbable under every label."""
    if not never.any():
        return table
    if never.all():
        return np.full(table.shape, 1 / table.shape[-1])
    # Pseudo-votes gave these votes some evidence by rounding alone; what nobody saw must not decide a label.
    muted = np.where(never, 0.0, table)
    muted *= (1 - UNSEEN * never.sum()) / muted.sum(axis=-1, keepdims=True)
    return np.where(never, UNSEEN, muted)


def class_balance(labels: FloatArray, use: BoolArray) -> FloatArray:
    """Share of every class, with one pseudo-element each."""
    total = use.astype(np.float64) @ labels
    return np.asarray((total + 1) / (total.sum() + labels.shape[1]))


def steps_to_transition(steps: FloatArray, balance: FloatArray, possible: Possible | None) -> FloatArray:
    """P(next class | class) from expected steps, with one pseudo-step per row; impossible ones are zero."""
    # The pseudo-step goes where labels are common, because a rare class is rarely what comes next.
    rows = steps + balance
    if possible is not None:
        rows = np.where(possible.steps, rows, 0.0)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def logs_of(tables: FloatArray) -> FloatArray:
    """Logarithms of tables (..., K, ..., C) as kernels look them up: the label last."""
    return np.ascontiguousarray(np.log(np.maximum(np.moveaxis(tables, 1, -1), 1e-300)))


def softmax(logs: FloatArray) -> FloatArray:
    """Probabilities from log-likelihoods, row by row."""
    # Class by class, because numpy reduces rows of two or three places ten times as slowly as columns.
    most = reduce(np.maximum, logs.T)
    values = np.exp(logs - most[:, np.newaxis])
    values /= reduce(np.add, values.T)[:, np.newaxis]
    return np.asarray(values)


def clamp(logs: FloatArray, panel: Panel) -> FloatArray:
    """Log-likelihoods that leave known labels only one class (changed in place and returned)."""
    rows = np.flatnonzero(panel.known >= 0)
    logs[rows] = -1e30
    logs[rows, panel.known[rows]] = 0.0
    return logs

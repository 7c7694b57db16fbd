"""The robust answer at coarser resolutions.

In: votes and what the views know. Out: P(positive) of windows, spans and sequences: the average of the vote's answer
(the largest share inside for *any*, the smallest for *all*, else the mean) and of the exact posterior under discounted
factors, whose weights are the mean discounts of the votes.
"""

from __future__ import annotations

import numpy as np

from dugong.estimate.learned.panel import Panel, Reader
from dugong.estimate.learned.robust import Views, vote_shares, vote_weights
from dugong.estimate.learned.settings import BLOCK, PERSISTENCE, SHARED_ERRORS
from dugong.estimate.learned.tables import smoothed
from dugong.infer.blocks import block_bounds
from dugong.infer.parameters import Conditional, Factor, Parameters
from dugong.tasks import Element, Resolution, TaskFinder
from dugong.tasks.layout import ranges
from dugong.types import FloatArray, IntArray
from dugong.votes import SourceInfo, Votes, class_indices, positive_class


def coarse_shares(reader: Reader, views: Views, resolution: Resolution) -> FloatArray:
    """What the vote says about every task of a resolution, (n_tasks, 2)."""
    votes = reader.votes
    assert not isinstance(resolution, Element)
    finder = TaskFinder(votes.layout(resolution))
    positive = votes.classes.index(positive_class(votes, resolution))
    shares = np.zeros(votes.layout(resolution).n_tasks)
    for first, last in block_bounds(votes.lengths, BLOCK):
        begin, end = int(reader.offsets[first]), int(reader.offsets[last])
        if begin == end:
            continue
        share = vote_shares(reader.read(begin, end), views.similar, views.background).share[:, positive]
        run = finder.touching(begin, end)
        if len(run.starts):
            sizes = run.stops - run.starts
            inside = share[ranges(run.starts - begin, sizes)]
            edges = np.cumsum(sizes) - sizes
            shares[run.first : run.last] = _reduced(resolution.link, inside, edges, sizes)
    return np.stack([1 - shares, shares], axis=1)


def _reduced(link: str, inside: FloatArray, edges: IntArray, sizes: IntArray) -> FloatArray:
    if link == "any":
        return np.asarray(np.maximum.reduceat(inside, edges))
    if link == "all":
        return np.asarray(np.minimum.reduceat(inside, edges))
    return np.asarray(np.add.reduceat(inside, edges) / sizes)


def discounted_parameters(votes: Votes, sources: tuple[SourceInfo, ...], views: Views, panel: Panel) -> Parameters:
    """Independent factors with the mean discount of each source as weight."""
    weights = vote_weights(panel, views.similar, SHARED_ERRORS)
    asked = panel.codes >= 0
    means = np.where(asked, weights, 0.0).sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    reader = Reader(votes, sources, panel.coding)
    factors: list[Factor] = []
    for place, info in enumerate(sources):
        table = views.tables[place]
        if not isinstance(info.resolution, Element):
            table = _coarse_table(votes, info, coarse_shares(reader, views, info.resolution))
        weight = PERSISTENCE * float(means[place])
        factors.append(Conditional(source=info.name, resolution=info.resolution, table=table, weight=weight))
    return Parameters(n_classes=panel.coding.n_classes, factors=tuple(factors))


def _coarse_table(votes: Votes, info: SourceInfo, labels: FloatArray) -> FloatArray:
    codes = class_indices(votes, votes.column(info.name), 2)
    asked = codes >= 0
    counts = np.stack([np.bincount(codes[asked], weights=labels[asked, y], minlength=3) for y in range(2)])
    return np.asarray(smoothed(counts[np.newaxis].astype(np.float64))[0])

"""The robust answer at coarser resolutions.

In: votes and what the views know. Out: P(positive) of windows, spans and sequences: the average of the vote's answer
(the largest share inside for *any*, the smallest for *all*, else the mean) and of the exact posterior under discounted
factors, whose weights are the mean discounts of the votes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel, Reader
from dugong.fit.learned.robust import Views, vote_shares, vote_weights
from dugong.fit.learned.settings import BLOCK, PERSISTENCE, SHARED_ERRORS
from dugong.fit.learned.tables import mute_unseen, pooled, smoothed
from dugong.infer.blocks import block_bounds
from dugong.law.parameters import Conditional, Parameters
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
    for first, last in block_bounds(reader.offsets, BLOCK):
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


def discounted_parameters(
    votes: Votes, sources: tuple[SourceInfo, ...], views: Views, folded: Folded, pinned: Mapping[str, FloatArray]
) -> Parameters:
    """Independent factors with the mean discount of each source as weight."""
    panel, sizes = folded.rows, folded.sizes
    weights = vote_weights(panel, views.similar, SHARED_ERRORS)
    asked = panel.codes >= 0
    means = sizes @ np.where(asked, weights, 0.0) / np.maximum(sizes @ asked, 1)
    coarse = _coarse_tables(votes, sources, views, panel)
    tables = {info.name: views.tables[place] for place, info in enumerate(sources)} | coarse | dict(pinned)
    factors = tuple(
        Conditional(
            source=info.name, resolution=info.resolution, table=tables[info.name], weight=PERSISTENCE * float(mean)
        )
        for info, mean in zip(sources, means, strict=True)
    )
    return Parameters(n_classes=panel.coding.n_classes, factors=factors)


def _coarse_tables(votes: Votes, sources: tuple[SourceInfo, ...], views: Views, panel: Panel) -> dict[str, FloatArray]:
    """P(vote | label) of sources on coarser tasks, (2, 3), whose labels are those of the vote."""
    places = [place for place, info in enumerate(sources) if not isinstance(info.resolution, Element)]
    if not places:
        return {}
    reader = Reader(votes, sources, panel.coding)
    counts = np.stack(
        [_coarse_counts(votes, sources[p], coarse_shares(reader, views, sources[p].resolution)) for p in places]
    )
    counts = pooled(counts, None if panel.ties is None else panel.ties[places])
    tables = smoothed(counts)
    return {
        sources[p].name: mute_unseen(table, own.sum(axis=0) <= 0)
        for p, table, own in zip(places, tables, counts, strict=True)
    }


def _coarse_counts(votes: Votes, info: SourceInfo, labels: FloatArray) -> FloatArray:
    codes = class_indices(votes, votes.column(info.name), 2)
    asked = codes >= 0
    counts = [np.bincount(codes[asked], weights=labels[asked, y], minlength=3) for y in range(2)]
    return np.stack(counts).astype(np.float64)

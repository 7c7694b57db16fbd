"""First factors of the exact model: what the rounds on elements found, in the form that the engine reads.

In: tables of the sources on elements, who depends on whom. Out: one factor per source in an order with parents first.
Sources on windows, spans and sequences begin with a table that says nothing: the first exact E-step then sees only the
elements, and fills it. With a given graph every dependence begins as none and is filled in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.learned.repeats import Repeats
from dugong.fit.learned.settings import LARGEST_GROUP
from dugong.graph.design import Design, crossed_edges
from dugong.law.parameters import Conditional, Crossed, Factor, Temporal
from dugong.tasks import Element
from dugong.types import FloatArray, IntArray
from dugong.votes import SourceInfo, Votes, class_indices


def forest_factors(
    names: tuple[str, ...],
    parents: IntArray,
    repeats: Repeats,
    single: FloatArray,
    edges: Mapping[int, FloatArray],
    most_cells: float,
) -> list[Factor]:
    """Factors of sources on elements whose dependencies are a forest; `edges` by place of the child.

    In a small tree every source is given all that come before it, beginning with what the edge says: three or four
    sources that depend on each other in a ring or all together are then modelled without further search. `most_cells`
    bounds the size of such a table.
    """
    factors: list[Factor] = []
    for tree in ([root] for root in np.flatnonzero(parents < 0).tolist()):
        for place in tree:  # which grows on the way: parents before children
            tree.extend(np.flatnonzero(parents == place).tolist())
        whole = len(tree) <= LARGEST_GROUP and single[0].size * single.shape[2] ** (len(tree) - 1) <= most_cells
        for rank, place in enumerate(tree):
            above = int(parents[place])
            if above >= 0:
                earlier = tree[:rank] if whole else [above]
                factors.append(_dependent(names, place, earlier, edges[place], earlier.index(above), single[place]))
            elif repeats.rates[0, place] > 0:
                lag, rates = int(repeats.lags[place]), repeats.rates[:, place]
                factors.append(repeating(names[place], single[place], rates, lag))
            else:
                factors.append(Conditional(source=names[place], resolution=Element(), table=single[place]))
    return factors


def _dependent(
    names: tuple[str, ...], place: int, earlier: list[int], edge: FloatArray, axis: int, marginal: FloatArray
) -> Conditional:
    """P(vote | label, votes of earlier sources), the same for all of them but the parent in the tree."""
    n_classes, n_columns = marginal.shape
    narrow = [1] * len(earlier)
    narrow[axis] = n_columns
    shape = n_classes, *(n_columns,) * len(earlier), n_columns
    table = np.broadcast_to(edge.reshape(n_classes, *narrow, n_columns), shape)
    above = tuple(names[other] for other in earlier)
    return Conditional(source=names[place], resolution=Element(), parents=above, table=table, marginal=marginal)


def repeating(name: str, table: FloatArray, rates: FloatArray, lag: int) -> Temporal:
    """A source that gives its earlier vote again with one probability if the label stays, another if it changes."""
    n_classes, n_columns = table.shape
    repeat = np.where(np.eye(n_classes, dtype=np.bool_), rates[0], rates[1])[:, :, np.newaxis, np.newaxis]
    step = (1 - repeat) * table[np.newaxis, :, np.newaxis] + repeat * np.eye(n_columns)
    return Temporal(source=name, resolution=Element(), first=table, step=step, lag=lag)


def flat_table(votes: Votes, info: SourceInfo) -> FloatArray:
    """A table (2, 3) that says nothing: how often a source on coarser tasks gives each vote, whatever the label."""
    codes = class_indices(votes, votes.column(info.name), 2)
    counts = np.bincount(codes[codes >= 0], minlength=3) + 1.0
    return np.tile(counts / counts.sum(), (2, 1))


def coarse_factors(votes: Votes, tables: Mapping[str, FloatArray], weights: Mapping[str, float]) -> list[Factor]:
    """Factors of sources on coarser tasks that depend on nothing; a table that is not known says nothing."""
    return [
        Conditional(
            source=info.name,
            resolution=info.resolution,
            table=tables[info.name] if info.name in tables else flat_table(votes, info),
            weight=weights.get(info.name, 1.0),
        )
        for info in votes.sources
        if not isinstance(info.resolution, Element)
    ]


def crossed(fine: SourceInfo, coarse: SourceInfo, table: FloatArray, width: int) -> Crossed:
    """A source that follows a coarser one with so many votes, and does so without any effect as yet."""
    return Crossed(
        source=fine.name,
        resolution=fine.resolution,
        parent=coarse.name,
        parent_resolution=coarse.resolution,
        table=np.tile(table[:, np.newaxis, np.newaxis], (1, 2, width, 1)),
        marginal=table,
    )


def graph_factors(design: Design, tables: Mapping[str, FloatArray]) -> list[Factor]:
    """Factors along the elimination of a given graph, each beginning without its dependence."""
    follows = dict(crossed_edges(design.sources, design.graph))
    factors: list[Factor] = []
    for name in design.elimination.order:
        info, table = design.infos[name], tables[name]
        parents = design.elimination.parents[name]
        lag = design.graph.temporal.get(name)
        if (lag is not None) + bool(parents) + (name in follows) > 1:
            raise GraphError(
                f"source {name!r} depends on itself in time, on another source, or on a coarser one, more than one of "
                "these; only one can be modelled.\n  Declare the strongest."
            )
        n_classes, n_columns = table.shape
        if lag is not None:
            step = np.tile(table[np.newaxis, :, np.newaxis], (n_classes, 1, n_columns, 1))
            factors.append(Temporal(source=name, resolution=info.resolution, first=table, step=step, lag=lag))
        elif name in follows:
            above = design.infos[follows[name]]
            factors.append(crossed(info, above, table, tables[above.name].shape[1]))
        elif parents:
            widths = [tables[parent].shape[1] for parent in parents]
            wide = np.broadcast_to(
                table.reshape(n_classes, *(1,) * len(parents), n_columns), (n_classes, *widths, n_columns)
            )
            factors.append(
                Conditional(source=name, resolution=info.resolution, parents=parents, table=wide, marginal=table)
            )
        else:
            factors.append(Conditional(source=name, resolution=info.resolution, table=table))
    return sorted(factors, key=lambda factor: isinstance(factor, Crossed))

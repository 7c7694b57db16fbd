"""Several factors as one look-up table: the votes of a group of sources, packed into one number, are its row.

In: flat factors at the elements. Out: `Group`s; the table of a group is the product of its factors' tables. A
factor with parents lies in one group together with its parents' votes, so correlated sources cost nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.factors import FlatFactor
from dugong.types import AnyArray, FloatArray, read_only
from dugong.votes import Votes

# Cells of one table: 64 KB of float64, so that two tables stay in the nearest caches.
MOST_CELLS = 8192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Some factors whose votes are looked up together.

    Attributes
    ----------
    columns : places of the sources in the votes
    sizes : values of each column, "not asked" included
    places : (n_columns, 256) uint16, value by unsigned byte, times the column's stride
    members : places of the factors
    axes : for each member, which columns it reads; members count inside the factors given to `make_groups`
    table : (rows, K) product of the members' tables
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    places: AnyArray
    members: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    table: FloatArray


def fits_table(flat: FlatFactor) -> bool:
    """Whether a factor is small enough for a table of a group."""
    return flat.table.size <= MOST_CELLS


def make_groups(factors: tuple[FlatFactor, ...]) -> tuple[Group, ...]:
    """Groups of factors that fit a table each, filled one after the other."""
    # First fit: sources have few values each, so that the bins fill up whatever the order.
    limits = [MOST_CELLS // max(1, flat.n_codes) for flat in factors]
    bins: list[tuple[dict[int, int], list[int]]] = []
    for place, flat in enumerate(factors):
        sizes = {reading.column: reading.size for reading in flat.readings}
        for known, members in bins:
            merged = known | sizes
            if np.prod([float(size) for size in merged.values()]) <= limits[place]:
                known.update(sizes)
                members.append(place)
                break
        else:
            bins.append((dict(sizes), [place]))
    return tuple(_group(factors, sizes, members) for sizes, members in _balanced(factors, bins))


def _balanced(
    factors: tuple[FlatFactor, ...], bins: list[tuple[dict[int, int], list[int]]]
) -> list[tuple[dict[int, int], list[int]]]:
    """The same number of groups with factors spread evenly, where every factor reads its own vote only."""
    # Correlated sources must stay in the bin of their parents.
    if not bins or any(len(flat.readings) > 1 for flat in factors):
        return bins
    parts = [members.tolist() for members in np.array_split(np.arange(len(factors)), len(bins))]
    sizes = [{factors[m].readings[0].column: factors[m].readings[0].size for m in part} for part in parts]
    return list(zip(sizes, parts, strict=True))


def _group(factors: tuple[FlatFactor, ...], sizes: dict[int, int], members: list[int]) -> Group:
    columns = tuple(sizes)
    shape = tuple(sizes.values())
    n_codes = factors[members[0]].n_codes
    table = np.ones((*shape, n_codes))
    places, axes = np.zeros((len(columns), 256), dtype=np.int64), []
    for member in members:
        flat = factors[member]
        own = tuple(columns.index(reading.column) for reading in flat.readings)
        axes.append(own)
        order = np.argsort(own)
        wide = [1] * len(shape)
        for axis in own:
            wide[axis] = shape[axis]
        table *= flat.table[0].transpose(*order, len(own)).reshape(*wide, n_codes)
        for axis, reading in zip(own, flat.readings, strict=True):
            # With the stride in it, packing is one look-up and one addition per vote.
            places[axis] = reading.places * int(np.prod(shape[axis + 1 :]))
    return Group(
        columns=columns,
        sizes=shape,
        places=read_only(places.astype(np.uint16)),
        members=tuple(members),
        axes=tuple(axes),
        table=read_only(table.reshape(-1, n_codes)),
    )


def pack_columns(votes: Votes, columns: tuple[int, ...], places: AnyArray, tasks: slice, rows: AnyArray) -> None:
    """Add to `rows` the places of the votes of some sources on a run of tasks."""
    kernel = kernels.pack_binary if votes.n_classes == 2 and not votes.partial else kernels.pack
    for column, own in zip(columns, places, strict=True):
        kernel(votes.columns[column][tasks], own, rows)


def split_counts(group: Group, counts: FloatArray) -> list[FloatArray]:
    """Expected counts by row of a group of sources, (G, rows * codes), as (G, *flat table) of each member."""
    cells = counts.reshape(len(counts), *group.sizes, -1)
    found = []
    for own in group.axes:
        others = tuple(1 + axis for axis in range(len(group.sizes)) if axis not in own)
        # The remaining axes are in the order of columns; the member reads them in its own order.
        order = (1 + np.argsort(np.argsort(own))).tolist()
        found.append(cells.sum(axis=others).transpose(0, *order, 1 + len(own))[:, None])
    return found

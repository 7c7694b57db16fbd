"""From parameters to flat look-up tables: what both engines read.

Every factor becomes a table with one axis per vote it reads (its own last) and a last axis over *codes*:
small integers that say what the factor needs to know about the labels (its own label; the pair of labels `lag`
tasks apart; its own label and the containing task's). Every vote axis has one more place than there are votes,
for "not asked", so that missing votes need no case of their own. Factors that read the same codes share a
*channel*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from dugong.exceptions import VoteError
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.tasks import Element, Resolution, describe
from dugong.types import FloatArray, IntArray, read_only
from dugong.votes import SourceInfo, Votes, class_indices
from dugong.votes.codes import code_columns

_GIVEN = (slice(0, -1),)  # the part of an axis of a flat table where the vote was given


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What some factors at one resolution need to know about the labels.

    The code is ``label``, or ``earlier label * K + label`` with a `lag`, or ``label * 2 + containing label``
    with a `parent` resolution.
    """

    resolution: Resolution
    lag: int = 0
    parent: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """One vote that a factor reads: whose, where, and at which place of the table each int8 value lies.

    Attributes
    ----------
    column : place of the source in the votes; -1 if it is not there, so that it was never asked
    lag : tasks back from the factor's own task
    container : resolution of the task that contains the factor's own task; None for the own resolution
    places : (256,) place on the table's axis of every vote, by its unsigned byte; the last is "not asked"
    size : length of the table's axis
    """

    column: int
    places: IntArray
    size: int
    lag: int = 0
    container: Resolution | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlatFactor:
    """A factor as one table: (positions, one axis per reading, codes), discounted by its weight."""

    factor: Factor
    channel: Channel
    readings: tuple[Reading, ...]
    table: FloatArray


def flatten(votes: Votes, parameters: Parameters) -> tuple[FlatFactor, ...]:
    """All factors whose source is among the votes, as flat tables.

    Raises
    ------
    VoteError
        If a source has no factor, votes at another resolution, or uses a code that its table does not have.
    """
    known_sources, places = set(parameters.sources), {name: place for place, name in enumerate(votes.source_names)}
    for info in votes.sources:
        if info.name not in known_sources:
            known = ", ".join(map(repr, parameters.sources))
            raise VoteError(
                f"every source needs parameters; found none for {info.name!r}, only for {known}.\n"
                "  Leave it out with votes.select(sources=...), or fit again with it."
            )
    # A source that is absent was not asked, and its factor sums to one: it can be left out.
    present = [factor for factor in parameters.factors if factor.source in places]
    for factor in present:
        _check_source(votes, factor, votes.sources[places[factor.source]])
    return tuple(_flatten_one(places, votes.n_classes, factor) for factor in present)


def _check_source(votes: Votes, factor: Factor, info: SourceInfo) -> None:
    if info.resolution != factor.resolution:
        raise VoteError(
            f"source {factor.source!r} has parameters for {describe(factor.resolution)}; "
            f"found votes on {describe(info.resolution)}."
        )
    # Only underspecified codes can exceed a table, because classes and abstain are in every one.
    if isinstance(factor.resolution, Element) and votes.partial:
        places = class_indices(votes, votes.column(factor.source), votes.n_classes)
        if places.size and int(places.max()) >= factor.n_columns:
            raise VoteError(
                f"the table of source {factor.source!r} has {factor.n_columns} columns; "
                f"found the underspecified vote {int(places.max())}.\n  Fit with votes that contain it."
            )


def _flatten_one(columns: Mapping[str, int], n_classes: int, factor: Factor) -> FlatFactor:
    """One factor, reading the columns of votes with these places."""

    def reading(name: str, size: int, lag: int = 0, container: Resolution | None = None) -> Reading:
        on_elements = isinstance(factor.resolution if container is None else container, Element)
        places = code_places(n_classes if on_elements else 2, size)
        return Reading(column=columns.get(name, -1), places=places, size=size + 1, lag=lag, container=container)

    own = reading(factor.source, factor.n_columns)
    channel = Channel(resolution=factor.resolution)
    if isinstance(factor, Temporal):
        readings: tuple[Reading, ...] = (reading(factor.source, factor.n_columns, factor.lag), own)
        channel = Channel(resolution=factor.resolution, lag=factor.lag)
        table = _temporal_table(factor)
    # Without the votes of its parent the label of the containing task tells nothing, and needs no channel.
    elif isinstance(factor, Crossed) and factor.parent not in columns:
        readings, table = (own,), _alone_table(factor)
    elif isinstance(factor, Crossed):
        coarse = factor.parent_resolution
        readings = (reading(factor.parent, factor.table.shape[2], container=coarse), own)
        channel = Channel(resolution=factor.resolution, parent=coarse)
        table = _crossed_table(factor)
    elif isinstance(factor, FullTable):
        readings = (own,) * factor.n_tasks
        table = _full_table(factor)
    else:
        sizes = factor.table.shape[1 + factor.by_position : -1]
        readings = (*(reading(name, size) for name, size in zip(factor.parents, sizes, strict=True)), own)
        table = _conditional_table(factor)
    table = table if factor.weight == 1 else table**factor.weight
    return FlatFactor(factor=factor, channel=channel, readings=readings, table=read_only(table))


@lru_cache(maxsize=64)
def code_places(n_classes: int, n_columns: int) -> IntArray:
    """Table column of every int8 vote by its unsigned byte, shape (256,); the one after the last for "not asked"."""
    places = code_columns(n_classes).astype(np.int64)
    # Whatever has no column of its own was not asked, as far as this table can say.
    places[(places < 0) | (places >= n_columns)] = n_columns
    return read_only(places)


def _conditional_table(factor: Conditional) -> FloatArray:
    law = factor.table if factor.by_position else factor.table[None]
    law = np.moveaxis(law, 1, -1)
    # Ones, because a factor that is left out multiplies by one.
    table = np.ones([law.shape[0], *(size + 1 for size in law.shape[1:-1]), law.shape[-1]])
    if factor.marginal is not None:
        marginal = factor.marginal if factor.by_position else factor.marginal[None]
        wide = np.moveaxis(marginal, 1, -1).reshape(law.shape[0], *(1,) * len(factor.parents), *law.shape[-2:])
        table[..., :-1, :] = wide
    table[:, *_GIVEN * (table.ndim - 2)] = law
    return table


def _temporal_table(factor: Temporal) -> FloatArray:
    first, step = (table if factor.by_position else table[None] for table in (factor.first, factor.step))
    n_positions, classes, columns = first.shape
    table = np.ones((n_positions, columns + 1, columns + 1, classes, classes))
    # Without an earlier vote the earlier label says nothing, so all earlier labels have the same law.
    table[:, -1, :-1] = first.swapaxes(1, 2)[:, :, None]
    table[:, :-1, :-1] = step.transpose(0, 3, 4, 1, 2)
    return table.reshape(n_positions, columns + 1, columns + 1, classes * classes)


def _crossed_table(factor: Crossed) -> FloatArray:
    classes, _, parent_columns, columns = factor.table.shape
    table = np.ones((1, parent_columns + 1, columns + 1, classes, 2))
    if factor.marginal is not None:
        table[0, -1, :-1] = factor.marginal.T[:, :, None]
    table[0, :-1, :-1] = factor.table.transpose(2, 3, 0, 1)
    return table.reshape(1, parent_columns + 1, columns + 1, classes * 2)


def _alone_table(factor: Crossed) -> FloatArray:
    """The table of a crossed factor whose parent never voted."""
    table = np.ones((1, factor.n_columns + 1, factor.n_classes))
    if factor.marginal is not None:
        table[0, :-1] = factor.marginal.T
    return table


def _full_table(factor: FullTable) -> FloatArray:
    """Missing votes are summed out, which is exact."""
    table = factor.table.T.reshape(*(factor.n_columns,) * factor.n_tasks, -1)
    for axis in range(factor.n_tasks):
        # After the votes, because a missing one may be any of them.
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    return table[None]


def fold_counts(flat: FlatFactor, counts: FloatArray) -> dict[str, FloatArray]:
    """Expected counts by cell of a flat table, as counts by cell of the factor's own tables.

    Parameters
    ----------
    counts : (G, *the shape of ``flat.table``), by group of sequences

    Returns
    -------
    dict
        "table" and, where the factor has one, "marginal"; "step" and "first" for a temporal factor; by group too.
    """
    factor, n_groups, full = flat.factor, len(counts), counts[:, :, *_GIVEN * (counts.ndim - 3)]
    if isinstance(factor, Temporal):
        classes, columns = factor.first.shape[-2:]
        step = full.reshape(n_groups, -1, columns, columns, classes, classes).transpose(0, 1, 4, 5, 2, 3)
        first = counts[:, :, -1, :-1].reshape(n_groups, -1, columns, classes, classes).sum(axis=3).swapaxes(2, 3)
        found = {"step": step, "first": first}
        return found if factor.by_position else {name: value[:, 0] for name, value in found.items()}
    if isinstance(factor, Crossed) and len(flat.readings) == 1:
        return {"table": np.zeros((n_groups, *factor.table.shape)), "marginal": full[:, 0].swapaxes(1, 2)}
    if isinstance(factor, Crossed):
        classes, _, parent_columns, columns = factor.table.shape
        table = full.reshape(n_groups, parent_columns, columns, classes, 2).transpose(0, 3, 4, 1, 2)
        marginal = counts[:, 0, -1, :-1].reshape(n_groups, columns, classes, 2).sum(axis=3).swapaxes(1, 2)
        return {"table": table, "marginal": marginal}
    if isinstance(factor, FullTable):
        return {"table": full.reshape(n_groups, -1, full.shape[-1]).swapaxes(1, 2)}
    folded = {"table": np.moveaxis(full, -1, 2)}
    if factor.parents:
        folded["marginal"] = np.moveaxis(_missing_parents(counts), -1, 2)
    return folded if factor.by_position else {name: value[:, 0] for name, value in folded.items()}


def _missing_parents(counts: FloatArray) -> FloatArray:
    """Counts by own vote where at least one parent's vote is missing, shape (G, positions, C, K)."""
    n_parents = counts.ndim - 4
    total = np.zeros((*counts.shape[:2], counts.shape[-2] - 1, counts.shape[-1]))
    # One parent that was not asked is enough for the marginal to take the place of the table.
    for missing in product((False, True), repeat=n_parents):
        if any(missing):
            gaps = (-1 if gone else slice(0, -1) for gone in missing)
            part = counts[(slice(None), slice(None), *gaps, slice(0, -1))]
            total += part.sum(axis=tuple(range(2, part.ndim - 2)))
    return total

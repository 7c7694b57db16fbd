"""All label patterns of short sequences of one shape, and their prior probability.

In: a `Joint` table or a label chain, and where the tasks lie. Out: `LabelPatterns`: one row per value of all labels
that the prior leaves free; other tasks follow from their elements by the link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer.factors import Channel
from dugong.priors.chain import LabelChain, positive_class
from dugong.priors.joint import Joint
from dugong.tasks import Element, Layout, Resolution, describe
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

MOST_PATTERNS = 1 << 16  # sixteen tasks of two classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelPatterns:
    """All label patterns of sequences of one shape.

    Attributes
    ----------
    labels : mapping of resolution to (n_patterns, n_tasks) class indices
    log_prior : (n_patterns,)
    """

    labels: dict[Resolution, IntArray]
    log_prior: FloatArray


def list_patterns(
    votes: Votes, prior: Joint | LabelChain, layouts: dict[Resolution, Layout], sequence: int
) -> LabelPatterns:
    """All patterns of a sequence and of those that have the same shape; impossible ones are left out."""
    length = int(votes.lengths[sequence])
    if isinstance(prior, Joint):
        prior.check_length(length)
        shape: tuple[int, ...] = prior.shape
    else:
        shape = (prior.n_classes,) * length
    n_patterns = float(np.prod(np.array(shape, dtype=np.float64)))
    if n_patterns > MOST_PATTERNS:
        raise TaskError(
            f"a joint prior or a full table takes sequences with at most {MOST_PATTERNS} label patterns; found "
            f"{n_patterns:.3g} for the {length} elements of sequence {votes.sequence_ids[sequence]!r}.\n"
            '  Cut the sequences, or use a Markov or Patterns prior with sharing="tied".'
        )
    # All at once: patterns are few, because their number was checked.
    grid = np.indices(shape).reshape(len(shape), -1)
    if isinstance(prior, Joint):
        law = prior.table().reshape(-1)
        elements = grid[[_axis(prior, Element(), place) for place in range(length)]]
    else:
        law, elements = chain_law(prior, grid), grid
    labels: dict[Resolution, IntArray] = {Element(): elements.T}
    for resolution, layout in layouts.items():
        if not isinstance(resolution, Element):
            labels[resolution] = _coarse_labels(votes, prior, layout, sequence, elements, grid)
    # Constraints often leave few patterns, and every later table has one column for each.
    possible = law > 0
    return LabelPatterns(
        labels={resolution: own[possible] for resolution, own in labels.items()}, log_prior=np.log(law[possible])
    )


def _axis(prior: Joint, resolution: Resolution, index: int) -> int:
    axis = prior.place(resolution, index)
    assert axis is not None
    return axis


def chain_law(chain: LabelChain, elements: IntArray) -> FloatArray:
    """Prior probability of every column of element labels."""
    law = np.tile(chain.initial[:, None], (1, elements.shape[1]))
    for place, labels in enumerate(elements):
        law = chain.transition.T @ law if place else law
        # Several states may have one label, so the chain is followed by states and summed at the end.
        law = np.where(chain.labels[:, None] == labels[None], law, 0.0)
    return np.asarray(law.sum(axis=0))


def _coarse_labels(
    votes: Votes, prior: Joint | LabelChain, layout: Layout, sequence: int, elements: IntArray, grid: IntArray
) -> IntArray:
    """Labels of the tasks of a coarse resolution, shape (n_patterns, n_tasks): by the table, or by the link."""
    resolution = layout.resolution
    assert not isinstance(resolution, Element)
    found = link_labels(layout, sequence, elements, positive_class(resolution, votes.n_classes, votes.class_names))
    for place in range(found.shape[1]):
        axis = prior.place(resolution, place) if isinstance(prior, Joint) else None
        if axis is not None:
            found[:, place] = grid[axis]
        elif resolution.link == "joint":
            raise TaskError(
                f"labels of {describe(resolution)} follow from no element: its link is joint, and the prior does "
                f"not name task {place}.\n  Add the task to the priors.Joint table, or use another link."
            )
    return found


def link_labels(layout: Layout, sequence: int, elements: IntArray, positive: int) -> IntArray:
    """Labels of the tasks of a coarse resolution by its link, (n_patterns, n_tasks), from (n_elements, n_patterns)."""
    resolution, rows = layout.resolution, layout.rows(sequence)
    assert not isinstance(resolution, Element)
    columns = []
    for start, stop in zip(*(bounds[rows].tolist() for bounds in layout.bounds()), strict=True):
        inside = elements[start:stop] == positive
        rule = {"any": inside.any(axis=0), "all": inside.all(axis=0)}
        columns.append(rule.get(resolution.link, 2 * inside.sum(axis=0) > len(inside)).astype(np.int64))
    return np.stack(columns, axis=1) if columns else np.zeros((elements.shape[1], 0), dtype=np.int64)


def channel_codes(
    channel: Channel,
    n_classes: int,
    patterns: LabelPatterns,
    layouts: dict[Resolution, Layout],
    sequence: int,
    task: int,
) -> IntArray:
    """What a channel needs to know about every pattern, at one task."""
    labels = patterns.labels[channel.resolution]
    own = labels[:, task]
    if channel.lag:
        return np.asarray(own + (labels[:, task - channel.lag] * n_classes if task >= channel.lag else 0))
    if channel.parent is not None:
        inside = find_container(layouts, channel.resolution, channel.parent, sequence, task)
        return np.asarray(own * 2 + (patterns.labels[channel.parent][:, inside] if inside >= 0 else 0))
    return np.asarray(own)


def find_container(
    layouts: dict[Resolution, Layout], fine: Resolution, coarse: Resolution, sequence: int, task: int
) -> int:
    """Task of the coarse resolution that holds the first element of a fine one; -1 if none does."""
    begin = int(layouts[fine].bounds()[0][layouts[fine].rows(sequence)][task])
    rows = layouts[coarse].rows(sequence)
    starts, stops = (bounds[rows] for bounds in layouts[coarse].bounds())
    found = np.flatnonzero((starts <= begin) & (begin < stops))
    return int(found[0]) if len(found) else -1


def one_hot(codes: IntArray, size: int) -> FloatArray:
    """Indicator of every code, shape (n, size)."""
    return np.asarray(codes[:, None] == np.arange(size), dtype=np.float64)

"""What a source that repeats itself does, drawn towards plain copying wherever the votes do not tell more.

P(earlier label, label, earlier vote, vote) has many cells, and those with a change of label are nearly empty. A model
with one parameter more than no memory says almost the same: the last vote again with probability c, else a fresh one,

    P(vote | earlier vote, label) = late(vote) + c (1[vote = earlier vote] - expected(vote)),

where late is P(vote | label) and expected is P(earlier vote | label), both margins of the table. Deviations from it
are kept as far as they exceed their standard errors: the shrinkage vanishes as sequences grow in number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dugong.fit.errors import leave_out, weighted_error
from dugong.fit.tables import MOST_SOFTENED, make_valid, project
from dugong.types import FloatArray

FEWEST_GROUPS = 4
# Standard deviations by which a chi-square must exceed its mean before cells may differ from copying.
CLEARLY = 3.0
_LABELS, _VOTES, _CELLS = (-4, -3), (-2, -1), (-4, -3, -2, -1)  # axes of a joint table


def shrink_to_copying(
    joint: FloatArray, errors: FloatArray, labels: FloatArray, n_groups: int
) -> tuple[FloatArray, FloatArray]:
    """The table drawn towards copying, and what share of its deviations from that was kept.

    Parameters
    ----------
    joint : (..., 2, 2, C, C) P(earlier label, label, earlier vote, vote), unbiased; one table per source
    errors : (..., 2, 2, C, C) its standard errors
    labels : (..., 2, 2) P(earlier label, label)
    n_groups : how many groups the standard errors are from
    """
    if n_groups < FEWEST_GROUPS:
        return joint, np.ones(joint.shape[:-4])
    # Cells are compared as conditionals: a rare pair of labels would otherwise seem to fit whatever it does.
    target, given = copying(joint, labels)
    known = (errors > 0) & (given[..., np.newaxis] > 0)
    unit = np.where(known, given[..., np.newaxis], 0.0)
    scale, beside = np.where(known, unit, 1.0), joint - target
    deviation, error = np.where(known, beside / scale, 0.0), np.where(known, errors / scale, 1.0)
    kept = _excess(deviation, error, unit, n_groups) * known
    share = (unit * kept).sum(axis=_CELLS) / np.maximum(unit.sum(axis=_CELLS), 1e-300)
    found = target + kept * beside
    # Noise can make zeros by which labels would rule out a pair of votes that was seen.
    chance = labels[..., np.newaxis, np.newaxis] * joint.sum(axis=_LABELS)[..., np.newaxis, np.newaxis, :, :]
    ruled_out = ((chance > 0) & (found <= 0)).any(axis=_CELLS, keepdims=True)
    if ruled_out.any():
        possible = (1 - MOST_SOFTENED) * np.maximum(found, 0.0) + MOST_SOFTENED * chance
        found = np.where(ruled_out, possible, found)
    return found, share


def _excess(deviation: FloatArray, error: FloatArray, unit: FloatArray, n_groups: int) -> FloatArray:
    """Share of each deviation that is more than noise, by its size in all cells of one pair of labels.

    Deviations of spread tau that are seen with an error s are best multiplied by tau^2 / (tau^2 + s^2).
    """
    n_cells = (unit > 0).sum(axis=_VOTES, keepdims=True)
    variance, size = error**2, deviation**2
    square = (size / variance).sum(axis=_VOTES, keepdims=True)
    # The errors are estimates themselves: squares of t-distributed numbers.
    expected = n_cells * (n_groups - 1) / (n_groups - 3)
    clear = square > expected + CLEARLY * np.sqrt(2 * n_cells)
    if not clear.any():
        return np.zeros_like(variance)
    mass = np.maximum(unit.sum(axis=_VOTES, keepdims=True), 1e-300)
    # Squared deviations hold their own errors: what is left is the spread of the true ones.
    spread = np.maximum((unit * (size - variance)).sum(axis=_VOTES, keepdims=True) / mass, 0.0)
    return np.asarray(np.where(clear, spread / (spread + variance), 0.0))


def copying(joint: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The source that copies its last vote at one rate and has the margins of `joint`; and P(labels, earlier vote).

    Its earlier votes depend on the earlier label alone, as they do if labels form a chain.
    """
    labels = np.broadcast_to(labels, joint.shape[:-2])
    before, now = labels.sum(axis=-1), labels.sum(axis=-2)
    margins = np.stack([joint.sum(axis=(-3, -1)), joint.sum(axis=(-4, -2))])
    margins /= np.maximum(np.stack([before, now]), 1e-12)[..., np.newaxis]
    early, late = project(margins)[0]
    given = labels[..., np.newaxis] * early[..., np.newaxis, :]
    expected = given.sum(axis=-3) / np.maximum(now, 1e-12)[..., np.newaxis]
    seen = joint.sum(axis=_LABELS)
    chance = (now * (expected * late).sum(axis=-1)).sum(axis=-1)
    most = 1 - (now * (expected**2).sum(axis=-1)).sum(axis=-1)
    # How often votes repeat beyond what their margins explain, over the most that they could.
    repeats = np.trace(seen, axis1=-2, axis2=-1) - chance
    rate = np.where(most > 0, repeats / np.where(most > 0, most, 1.0), 0.0)
    again = np.eye(seen.shape[-1]) - expected[..., np.newaxis, :]
    step = late[..., np.newaxis, :] + rate[..., np.newaxis, np.newaxis, np.newaxis] * again
    step, _ = make_valid(step, seen.sum(axis=-2)[..., np.newaxis, np.newaxis, :], 1, seen.ndim - 2)
    return given[..., np.newaxis] * step[..., np.newaxis, :, :, :], given


def shrink_counts(steps: Sequence[FloatArray]) -> list[tuple[FloatArray, float]]:
    """Expected counts of transition tables by group, summed and drawn towards copying, and the share that was kept.

    Parameters
    ----------
    steps : (n_groups, 2, 2, C, C) for each source; group 0 is what no group was drawn for
    """
    sizes = [table.sum(axis=(1, 2, 3, 4)) for table in steps]
    kinds = [(table.shape, (size > 0).tobytes()) for table, size in zip(steps, sizes, strict=True)]
    found: dict[int, tuple[FloatArray, float]] = {}
    for kind in dict.fromkeys(kinds):  # sources that were asked in the same groups go through together
        places = [place for place, own in enumerate(kinds) if own == kind]
        tables, shares = _shrink_alike(np.stack([steps[p] for p in places], 1), np.stack([sizes[p] for p in places], 1))
        found |= {p: (table, float(share)) for p, table, share in zip(places, tables, shares, strict=True)}
    return [found[place] for place in range(len(steps))]


def _shrink_alike(steps: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for sources whose counts are in the same groups, (n_groups, n_sources, 2, 2, C, C)."""
    total, size = steps.sum(axis=0), sizes.sum(axis=0)
    groups, _ = leave_out(sizes[:, 0])
    if len(groups) < FEWEST_GROUPS:
        return total, np.ones(len(total))
    joint = total / size.reshape(-1, 1, 1, 1, 1)
    without = (total - steps[groups]) / (size - sizes[groups])[..., np.newaxis, np.newaxis, np.newaxis, np.newaxis]
    errors = weighted_error(joint, without, sizes[groups] / np.maximum(size, 1.0))
    joint, share = shrink_to_copying(joint, errors, joint.sum(axis=_VOTES), len(groups))
    return np.maximum(joint, 0.0) * size.reshape(-1, 1, 1, 1, 1), share

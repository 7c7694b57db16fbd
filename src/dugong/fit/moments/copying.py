"""What a source that repeats itself does, drawn towards plain copying wherever the votes do not tell more.

P(earlier label, label, earlier vote, vote) has many cells, and those with a change of label are nearly empty. A model
with one parameter more than no memory says almost the same: the last vote again with probability c, else a fresh one,

    P(vote | earlier vote, label) = late(vote) + c (1[vote = earlier vote] - expected(vote)),

where late is P(vote | label) and expected is P(earlier vote | label), both margins of the table. Deviations from it
are kept as far as they exceed their standard errors: the shrinkage vanishes as sequences grow in number.
"""

from __future__ import annotations

import numpy as np

from dugong.fit.errors import leave_out, weighted_error
from dugong.fit.tables import MOST_SOFTENED, ROUNDING, project, soften
from dugong.types import FloatArray

FEWEST_GROUPS = 4
# Standard deviations by which a chi-square must exceed its mean before cells may differ from copying.
CLEARLY = 3.0


def shrink_to_copying(
    joint: FloatArray, errors: FloatArray, labels: FloatArray, n_groups: int
) -> tuple[FloatArray, float]:
    """The table drawn towards copying, and what share of its deviations from that was kept.

    Parameters
    ----------
    joint : (2, 2, C, C) P(earlier label, label, earlier vote, vote), unbiased
    errors : (2, 2, C, C) its standard errors
    labels : (2, 2) P(earlier label, label)
    n_groups : how many groups the standard errors are from
    """
    if n_groups < FEWEST_GROUPS:
        return joint, 1.0
    # Cells are compared as conditionals: a rare pair of labels would otherwise seem to fit whatever it does.
    target, given = copying(joint, labels)
    known = (errors > 0) & (given[..., np.newaxis] > 0)
    unit = np.where(known, given[..., np.newaxis], 0.0)
    scale = np.where(known, unit, 1.0)
    deviation, error = np.where(known, (joint - target) / scale, 0.0), np.where(known, errors / scale, 1.0)
    kept = _excess(deviation, error, unit, n_groups) * known
    share = float((unit * kept).sum() / max(unit.sum(), 1e-300))
    return _keep_possible(target + kept * (joint - target), joint.sum(axis=(0, 1)), labels), share


def _keep_possible(joint: FloatArray, seen: FloatArray, labels: FloatArray) -> FloatArray:
    """A table under which no pair of votes that was seen is ruled out by labels: noise can make such zeros."""
    chance = labels[:, :, np.newaxis, np.newaxis] * seen
    if not ((chance > 0) & (joint <= 0)).any():
        return joint
    return (1 - MOST_SOFTENED) * np.maximum(joint, 0.0) + MOST_SOFTENED * chance


def _excess(deviation: FloatArray, error: FloatArray, unit: FloatArray, n_groups: int) -> FloatArray:
    """Share of each deviation that is more than noise, by its size in all cells of one pair of labels.

    Deviations of spread tau that are seen with an error s are best multiplied by tau^2 / (tau^2 + s^2).
    """
    votes = (2, 3)
    n_cells = (unit > 0).sum(axis=votes, keepdims=True)
    square = ((deviation / error) ** 2).sum(axis=votes, keepdims=True)
    # The errors are estimates themselves: squares of t-distributed numbers.
    expected = n_cells * (n_groups - 1) / (n_groups - 3)
    clear = square > expected + CLEARLY * np.sqrt(2 * n_cells)
    mass = np.maximum(unit.sum(axis=votes, keepdims=True), 1e-300)
    # Squared deviations hold their own errors: what is left is the spread of the true ones.
    spread = np.maximum((unit * (deviation**2 - error**2)).sum(axis=votes, keepdims=True) / mass, 0.0)
    return np.asarray(np.where(clear, spread / (spread + error**2), 0.0))


def copying(joint: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The source that copies its last vote at one rate and has the margins of `joint`; and P(labels, earlier vote).

    Its earlier votes depend on the earlier label alone, as they do if labels form a chain.
    """
    before, now = labels.sum(axis=1), labels.sum(axis=0)
    early = project(joint.sum(axis=(1, 3)) / np.maximum(before, 1e-12)[:, np.newaxis])[0]
    late = project(joint.sum(axis=(0, 2)) / np.maximum(now, 1e-12)[:, np.newaxis])[0]
    given = labels[:, :, np.newaxis] * early[:, np.newaxis, :]
    expected = given.sum(axis=0) / np.maximum(now, 1e-12)[:, np.newaxis]
    seen = joint.sum(axis=(0, 1))
    chance, most = now @ (expected * late).sum(axis=1), 1 - now @ (expected**2).sum(axis=1)
    # How often votes repeat beyond what their margins explain, over the most that they could.
    rate = (np.trace(seen) - chance) / most if most > 0 else 0.0
    again = np.eye(len(seen)) - expected[:, np.newaxis, :]
    step, moved = project(late[:, np.newaxis, :] + rate * again)
    if moved > ROUNDING:
        step = soften(step, seen.sum(axis=0)[np.newaxis, np.newaxis], 1, min(moved, MOST_SOFTENED))
    return given[..., np.newaxis] * step[np.newaxis], given


def shrink_counts(steps: FloatArray) -> tuple[FloatArray, float]:
    """Expected counts of a transition table by group, summed and drawn towards copying, and the share that was kept.

    Parameters
    ----------
    steps : (n_groups, 2, 2, C, C); group 0 is what no group was drawn for
    """
    total, sizes = steps.sum(axis=0), steps.sum(axis=(1, 2, 3, 4))
    groups, shares = leave_out(sizes)
    if len(groups) < FEWEST_GROUPS:
        return total, 1.0
    joint = total / sizes.sum()
    without = (total - steps[groups]) / (sizes.sum() - sizes[groups]).reshape(-1, 1, 1, 1, 1)
    errors = weighted_error(joint, without, shares)
    joint, share = shrink_to_copying(joint, errors, joint.sum(axis=(2, 3)), len(groups))
    return np.maximum(joint, 0.0) * sizes.sum(), share

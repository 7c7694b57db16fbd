"""How far approximate labels are from exact ones: a walk whose law is the posterior itself, on a sample.

In: a window engine that is not exact. Out: `Audit`. Pieces of sequences are taken as sequences of their own, with the
windows inside; both the approximation and a Metropolis-Hastings walk (whose proposals come from the approximation, and
whose acceptance corrects them) answer about these. Two walks from different seeds tell error from noise: what one of
them misses by chance, the other does not, so that the product of both differences is free of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.infer.grouped import _kernels as kernels
from dugong.infer.grouped.engine import WindowEngine
from dugong.infer.grouped.ep import CLOSE, propagate_all
from dugong.infer.grouped.local import LocalChain, WindowGroup, only, spread
from dugong.infer.grouped.passes import Pass
from dugong.infer.prepare import read_block
from dugong.tasks import describe
from dugong.types import FloatArray, Int8Array

LARGE = 0.0075  # a mean error that is worth a warning
_ELEMENTS, _PIECE, _UPDATES = 1600, 200, 8_000_000
_RUN = np.array([3, 40], dtype=np.int64)  # shortest and longest run of states that is proposed at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found about approximate labels.

    Attributes
    ----------
    error : mean absolute error of the probabilities of elements
    window_error : the same of windows
    unsettled : share of sequences whose probabilities still changed when propagation was stopped
    n_elements : how many were looked at
    groups : how many groups of windows exchange what they know
    accepted : share of the walk's proposals that were accepted; near zero, the error is not known
    about : the resolutions, in words
    """

    error: float
    window_error: float
    unsettled: float
    n_elements: int
    groups: int
    accepted: float
    about: str

    @property
    def warns(self) -> bool:
        """Whether somebody should look."""
        return max(self.error, self.window_error) > LARGE or self.unsettled > 0.05 or self.accepted < 0.05

    def text(self) -> str:
        """The finding in a sentence."""
        found = (
            f"labels near {self.about} are approximate, by about {self.error:.4f} (the windows themselves by about "
            f"{self.window_error:.4f}): {self.groups} groups of overlapping windows exchange what they know; checked "
            f"by sampling {self.n_elements} elements"
        )
        if self.unsettled > 0:
            found += f"; in {self.unsettled:.0%} of the sequences the last round still changed something"
        if self.accepted < 0.05:
            found += "; the check itself hardly moved, so the error may be larger"
        if self.warns:
            found += '. Use a larger stride, fewer coarse resolutions or shorter windows, or inference="exact"'
        return found


def audit(engine: WindowEngine, rng: np.random.Generator) -> Audit:
    """Compare the approximation with two walks on pieces of some sequences."""
    pieces = _choose(engine)
    differences: list[FloatArray] = []
    window_differences: list[FloatArray] = []
    accepted, unsettled = [], []
    n_elements = sum(len(local.steps) for local, _ in pieces)
    for local, groups in pieces:
        known, found = propagate_all(local, groups, engine.prepared.votes, 0)
        unsettled.append(float((found.change > CLOSE).mean()))
        # The same work for every piece and element, whatever the number of windows.
        sweeps = max(_UPDATES // (2 * max(n_elements, 1)), 100)
        drawn = Pass.over(local, None).trace(found.steps, rng.random((2, len(local.steps))), engine.prepared.votes, 0)
        seeds = rng.integers(1 << 31, size=2).tolist()
        walks = [_walk(local, groups, found.steps, *start, sweeps) for start in zip(drawn, seeds, strict=True)]
        states = found.pairs.sum(axis=1)
        windows = _windows(groups, known, found.positive)
        accepted += [share for share, _, _ in walks]
        differences.append(np.stack([states - shares for _, shares, _ in walks]).reshape(2, -1))
        window_differences.append(np.stack([windows - positive for _, _, positive in walks]))
    prepared = engine.prepared
    return Audit(
        error=_mean_error(differences),
        window_error=_mean_error(window_differences),
        unsettled=float(np.mean(unsettled)) if unsettled else 0.0,
        n_elements=n_elements,
        groups=engine.n_groups,
        accepted=float(np.mean(accepted)) if accepted else 1.0,
        about=" and ".join(describe(one) for one in prepared.voted),
    )


def _windows(groups: list[WindowGroup], known: list[WindowGroup], positive: list[FloatArray]) -> FloatArray:
    """Probabilities of the windows of all groups, from those that are known."""
    found = []
    for place in dict.fromkeys(group.place for group in groups):
        own = [group.tasks for group in groups if group.place == place]
        some = [(group.tasks, chance) for group, chance in zip(known, positive, strict=True) if group.place == place]
        first = min((int(tasks.min()) for tasks in own if len(tasks)), default=0)
        tasks, chances = (np.concatenate(part) for part in zip(*some, strict=True))
        law = spread(tasks - first, chances, np.zeros(sum(map(len, own)), dtype=np.int64))
        found += [law[one - first] for one in own]
    return np.concatenate(found)


def _mean_error(differences: list[FloatArray]) -> float:
    """Mean absolute difference to the mean of both walks, without the part that is their noise."""
    both = np.concatenate([np.zeros((2, 0)), *differences], axis=1)
    if not both.size:
        return 0.0
    mean = both.mean(axis=0)
    # Noise of two walks is independent: its product averages out, that of a real difference does not.
    real = max(float((both[0] * both[1]).sum()), 0.0)
    return float(np.abs(mean).mean() * np.sqrt(min(real / max(float((mean**2).sum()), 1e-300), 1.0)))


# --- pieces --------------------------------------------------------------------------------------------------------
def _choose(engine: WindowEngine) -> list[tuple[LocalChain, list[WindowGroup]]]:
    """Pieces of sequences all over the votes, about `_ELEMENTS` elements in all."""
    prepared = engine.prepared
    lengths = prepared.votes.lengths
    widest = engine.widest
    size = max(_PIECE, 4 * widest)
    # Several windows to a piece, because those at its ends see less than they would in the whole.
    n_pieces = max(1, _ELEMENTS // int(min(size, lengths.mean() + 1)))
    order = np.flatnonzero(lengths > 0)
    if len(order) == 0:
        return []
    places = np.sort(order[np.linspace(0, len(order) - 1, n_pieces).astype(np.int64)])
    found = []
    for copy, sequence in enumerate(places.tolist()):
        local, groups = engine.model(read_block(prepared, sequence, sequence + 1))
        free = max(int(lengths[sequence]) - size, 0)
        begin = int(free * copy / max(len(places) - 1, 1))
        found.append(_cut(local, groups, begin, begin + min(size, int(lengths[sequence]))))
    return found


def _cut(local: LocalChain, groups: list[WindowGroup], begin: int, end: int) -> tuple[LocalChain, list[WindowGroup]]:
    """Elements begin..end of the only sequence, as one of their own, with the windows that lie inside."""
    steps = local.steps[begin:end].copy()
    if begin > 0:  # the label before is not known: any
        steps[0, 0] = steps[0].mean(axis=0)
        steps[0, 1:] = 0.0
    piece = replace(local, steps=steps, offsets=np.array([0, end - begin]), logs=np.zeros(1))
    shift = np.array([begin, begin, 0])
    inside = [(group.windows[:, 0] >= begin) & (group.windows[:, 1] <= end) for group in groups]
    kept = [only(group, keep) for group, keep in zip(groups, inside, strict=True)]
    return piece, [replace(group, windows=group.windows - shift) for group in kept]


# --- walks ---------------------------------------------------------------------------------------------------------
def _walk(
    local: LocalChain, groups: list[WindowGroup], steps: FloatArray, states: Int8Array, seed: int, sweeps: int
) -> tuple[float, FloatArray, FloatArray]:
    """Walk over the states of one sequence, from given ones, by proposals of the chain `steps`.

    Returns the share of proposals that were accepted, and how often every element was in every state and every window
    above its threshold.
    """
    counted, kinds = np.unique(np.stack([group.counted for group in groups]), axis=0, return_inverse=True)
    ends = np.cumsum([0, *(len(group.windows) for group in groups)])
    space = kernels.WalkSpace(
        base=local.steps,
        total=steps,
        windows=np.concatenate([group.windows for group in groups]),
        groups=np.column_stack([ends[:-1], ends[1:], kinds.reshape(-1)]).astype(np.int64),
        counted=counted,
        logs=np.log(np.maximum(np.concatenate([group.factors for group in groups]), 1e-30)),
    )
    counts, tallies, longest = np.zeros(ends[-1], dtype=np.int64), np.zeros(local.steps.shape[:2]), int(_RUN[1])
    room, new = np.zeros((longest + 1) * (local.n_states + len(counted))), np.zeros(longest, dtype=np.int8)
    positive = np.zeros(ends[-1])
    accepted = kernels.walk(space, counts, states.copy(), sweeps, _RUN, seed, room, new, tallies, positive)
    n_kept = int((5 * np.arange(sweeps) >= sweeps).sum())
    return accepted, tallies / n_kept, positive / n_kept

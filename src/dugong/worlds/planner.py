"""How many sequences are needed until every accuracy is known well enough: by simulation of the configuration itself.

In: a world (a user's own sources, prior and lengths, as far as they are known) and a wanted half-width of intervals.
Out: a `SamplePlan`. The world is sampled and estimated again and again. Errors fall as one over the square root of the
number of sequences, so the sizes that were simulated predict the size that is needed, which is simulated next, until
the two agree. Theorem 1 of the paper, a worst case, stands beside it. (METHOD section 5.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from dugong.exceptions import GraphError, TaskError
from dugong.fit.fitting import fit_moments
from dugong.fit.moments.equations import Given
from dugong.fit.passes import InMemory
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.graph.theory import tied_sequences_needed
from dugong.sums import count
from dugong.texts import text_table
from dugong.types import FloatArray
from dugong.votes import Votes
from dugong.worlds.world import World

Fit = Callable[[Votes], Mapping[str, FloatArray]]

_AGREE = 1.5  # prediction and simulated size within this factor: no further step is needed
_FIRST = 200
_FEWEST = 20
_SMALL = 8  # sizes smaller than the largest by more than this factor are left out of the prediction
_MOST_STEPS = 6
_MOST_ELEMENTS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """One source: half-width of its widest interval at the largest simulated size, and sequences for the wanted one."""

    name: str
    resolution: str
    half_width: float
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One size that was simulated, and the half-width of the widest interval of all sources there."""

    n_sequences: int
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """How many sequences are needed.

    Attributes
    ----------
    width : the wanted half-width of intervals
    level : their coverage
    n_sequences, n_elements, repeats : the largest size that was simulated: sequences, elements on average, how often
    sources : one row per source
    needed : sequences for all sources
    steps : every size that was simulated
    bound : sequences from which on Theorem 1 promises the width; None where it does not apply
    """

    width: float
    level: float
    n_sequences: int
    n_elements: int
    repeats: int
    sources: tuple[SourcePlan, ...]
    needed: int
    steps: tuple[PlanStep, ...]
    bound: int | None

    @property
    def extrapolated(self) -> bool:
        """Whether no size near the needed one was simulated, so that only the square-root law speaks for it."""
        return not any(_near(step.n_sequences, self.needed) for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"extrapolated": self.extrapolated}

    def __str__(self) -> str:
        head = ("source", "votes on", f"+- at {self.n_sequences:,}", f"sequences for +-{self.width:g}")
        rows = [(s.name, s.resolution, f"{s.half_width:.3f}", f"{s.needed:,}") for s in self.sources]
        bound = "does not apply here" if self.bound is None else f"asks for {self.bound:,}"
        return "\n".join(
            [
                text_table(head, rows, left=(0, 1), rule=True),
                "",
                f"{self.needed:,} sequences for all of them (by {self.repeats} simulations of up to "
                f"{self.n_sequences:,} sequences with {self.n_elements:,} elements"
                f"{', extrapolated' if self.extrapolated else ''}).",
                f"Theorem 1 of the paper, a worst case, {bound}.",
            ]
        )


def plan(
    world: World,
    *,
    width: float = 0.05,
    level: float = 0.95,
    n_sequences: int | None = None,
    repeats: int = 20,
    fit: Fit | None = None,
    seed: int = 0,
) -> SamplePlan:
    """Find how many sequences it takes until every accuracy is known to plus or minus `width`.

    Parameters
    ----------
    world : World
        The configuration. A fitted model makes one, see ``dugong plan``.
    level : coverage of the intervals
    n_sequences : int, optional
        Simulate this size only; by default sizes are tried until prediction and simulation agree.
    repeats : how often each size is simulated, at least 2
    fit : votes -> P(vote | label) by source
        The estimator; the centred one with the world's own prior and dependencies by default.
    """
    if not 0 < width < 1 or not 0 < level < 1 or repeats < 2:
        raise GraphError(
            "a plan needs 0 < width < 1, 0 < level < 1 and two repeats; "
            f"found width={width}, level={level}, repeats={repeats}."
        )
    estimate, rng = fit or centred_fit(world), np.random.default_rng(seed)
    scale = float(ndtri((1 + level) / 2)) / width
    trials: list[_Trial] = []
    size: int | None = n_sequences or _FIRST
    while size is not None:
        trials.append(_simulate(world, estimate, size, repeats, rng))
        needed = {name: max(1, ceil(scale**2 * v)) for name, v in _pooled_variance(trials).items()}
        size = None if n_sequences else _following(trials, max(needed.values()))
    largest = max(trials, key=lambda trial: trial.n_sequences)
    return SamplePlan(
        width=width,
        level=level,
        n_sequences=largest.n_sequences,
        n_elements=largest.n_elements,
        repeats=repeats,
        sources=tuple(
            SourcePlan(
                name=info.name,
                resolution=info.resolution.name,
                half_width=width * sqrt(needed[info.name] / largest.n_sequences),
                needed=needed[info.name],
            )
            for info in world.sources
        ),
        needed=max(needed.values()),
        steps=tuple(
            PlanStep(n_sequences=t.n_sequences, half_width=width * scale * max(t.spread.values())) for t in trials
        ),
        bound=theorem_bound(world, width, max(round(largest.n_elements / largest.n_sequences), 1)),
    )


def centred_fit(world: World) -> Fit:
    """The centred estimator with the prior and the dependencies of a world."""
    if world.n_classes != 2:
        raise TaskError(
            f"planning with the closed-form estimator needs two classes; found {world.n_classes}.\n"
            "  Pass fit=, a function from votes to tables by source."
        )

    def fit(votes: Votes) -> Mapping[str, FloatArray]:
        design = make_design(votes.sources, SourceGraph.of(votes.source_names, world.dependencies))
        moments = count(votes, design.plan)
        passes = InMemory(votes=votes, n_threads=1)
        given = Given.under(world.prior, design, moments, votes.class_names)
        return fit_moments(given, passes=passes).estimate.raw

    return fit


def theorem_bound(world: World, width: float, n_elements: int) -> int | None:
    """Sequences that Theorem 1 asks for; None where it does not apply (K > 2, fewer than three or useless sources)."""
    if world.n_classes != 2 or len(world.sources) < 3:
        return None
    tables = world.accuracies(min(n_elements, 8))
    agreements, chances = [], []
    for info in world.sources:
        positive = (1 + world.prior.mean((info.resolution, 0), n_elements)) / 2
        table = tables[info.name].reshape(-1, *tables[info.name].shape[-2:]).mean(axis=0)
        right = positive * (table[1, 1] - table[1, 0]) + (1 - positive) * (table[0, 0] - table[0, 1])
        agreements.append(abs(right))
        chances.append(min(positive, 1 - positive))
    if min(agreements) <= 0 or min(chances) <= 0:
        return None
    return tied_sequences_needed(
        width, len(world.sources), n_elements, smallest_prior=min(chances), smallest_agreement=min(agreements)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One simulated size: standard deviation over the repeats of the least certain entry of every source."""

    n_sequences: int
    n_elements: int
    spread: Mapping[str, float]


def _simulate(world: World, fit: Fit, n_sequences: int, repeats: int, rng: np.random.Generator) -> _Trial:
    tables: dict[str, list[FloatArray]] = {name: [] for name in world.source_names}
    n_elements = 0
    for _ in range(repeats):
        votes, _ = world.sample(n_sequences, rng=rng)
        found = fit(votes)
        n_elements += votes.n_elements
        for name, kept in tables.items():
            kept.append(np.asarray(found[name]))
    spread = {name: float(np.std(np.stack(kept), axis=0, ddof=1).max()) for name, kept in tables.items()}
    return _Trial(n_sequences=n_sequences, n_elements=round(n_elements / repeats), spread=spread)


def _pooled_variance(trials: list[_Trial]) -> dict[str, float]:
    """Variance times number of sequences by source, over the larger sizes (small ones are not yet on the law)."""
    largest = max(trial.n_sequences for trial in trials)
    used = [trial for trial in trials if trial.n_sequences * _SMALL >= largest]
    names = used[0].spread
    return {name: float(np.mean([t.n_sequences * t.spread[name] ** 2 for t in used])) for name in names}


def _following(trials: list[_Trial], needed: int) -> int | None:
    """The next size to simulate; None if one near the needed size was, or if the next one would take too long."""
    if len(trials) >= _MOST_STEPS or any(_near(trial.n_sequences, needed) for trial in trials):
        return None
    last = trials[-1]
    longest = max(int(_MOST_ELEMENTS * last.n_sequences / max(last.n_elements, 1)), _FEWEST)
    # A prediction from few sequences may be wild; go there in steps of at most sixteen.
    low, high = max(_FEWEST, last.n_sequences // 16), min(longest, 16 * last.n_sequences)
    size = int(np.clip(needed, low, max(low, high)))
    return None if size in {trial.n_sequences for trial in trials} else size


def _near(simulated: int, needed: int) -> bool:
    return 1 / _AGREE <= needed / simulated <= _AGREE

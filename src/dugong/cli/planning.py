"""How many sequences are needed: simulate a configuration again and again, and see how much the estimates scatter.

In: a fitted model (or a world), a number of sequences, a wanted half-width. Out: a `SamplePlan`. The spread of every
table entry over the repeats falls as one over the square root of the number of sequences, which gives the number that
is needed; Theorem 1 of the paper, a worst case, stands beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, cast

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.graph.theory import tied_sequences_needed
from dugong.infer.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.model import LabelModel
from dugong.tasks import Spans
from dugong.types import FloatArray, IntArray
from dugong.worlds import Block, CrossedBlock, FullBlock, TemporalBlock, World
from dugong.worlds.blocks import AnyBlock

INTERVAL = 1.96  # half-width of a 95 % interval, in standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """One source: half-width of its widest 95 % interval at the simulated size, and sequences for the wanted one."""

    name: str
    resolution: str
    half_width: float
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """How many sequences are needed.

    Attributes
    ----------
    width : float
        The wanted half-width of 95 % intervals.
    n_sequences, n_elements, repeats : int
        What was simulated: sequences, elements of all of them on average, how often.
    sources : tuple of SourcePlan
    needed : int
        Sequences for all sources.
    bound : int or None
        Sequences from which on Theorem 1 promises the width; None where it does not apply.
    """

    width: float
    n_sequences: int
    n_elements: int
    repeats: int
    sources: tuple[SourcePlan, ...]
    needed: int
    bound: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def make_plan(
    world: World, model: LabelModel, *, n_sequences: int, width: float, repeats: int, seed: int
) -> SamplePlan:
    """Simulate a world and estimate it anew, `repeats` times.

    Parameters
    ----------
    model : settings with which every sample is fitted; it is not changed
    """
    tables: dict[str, list[FloatArray]] = {name: [] for name in world.source_names}
    generator, n_elements = np.random.default_rng(seed), 0
    for _ in range(repeats):
        votes, _ = world.sample(n_sequences, rng=generator)
        fitted = LabelModel(**model.get_params()).fit(votes)
        n_elements += votes.n_elements
        for name, found in tables.items():
            found.append(fitted.standard_errors_.raw[name])
    rows = []
    for info in world.sources:
        spread = float(np.std(np.stack(tables[info.name]), axis=0, ddof=1).max())
        needed = max(1, ceil(n_sequences * (INTERVAL * spread / width) ** 2))
        rows.append(
            SourcePlan(name=info.name, resolution=info.resolution.name, half_width=INTERVAL * spread, needed=needed)
        )
    return SamplePlan(
        width=width,
        n_sequences=n_sequences,
        n_elements=round(n_elements / repeats),
        repeats=repeats,
        sources=tuple(rows),
        needed=max(row.needed for row in rows),
        bound=theorem_bound(world, width, round(n_elements / repeats / n_sequences)),
    )


def theorem_bound(world: World, width: float, n_elements: int) -> int | None:
    """Sequences that Theorem 1 asks for; None where it does not apply (K > 2, too few or useless sources)."""
    if world.n_classes != 2 or len(world.sources) < 3:
        return None
    agreements, chances = [], []
    for info in world.sources:
        positive = (1 + world.prior.mean((info.resolution, 0), max(n_elements, 1))) / 2
        table = _mean_table(world.block(info.name), info.name)
        means = table[:, 1] - table[:, 0]
        agreements.append(abs(positive * means[1] - (1 - positive) * means[0]))
        chances.append(min(positive, 1 - positive))
    if min(agreements) <= 0 or min(chances) <= 0:
        return None
    return tied_sequences_needed(
        width, len(world.sources), max(n_elements, 1), smallest_prior=min(chances), smallest_agreement=min(agreements)
    )


def _mean_table(block: AnyBlock, name: str) -> FloatArray:
    """P(vote | label) of one source, (K, C), as far as its own task says."""
    if isinstance(block, Block):
        return np.asarray(block.marginal((name,)).mean(axis=0))
    if isinstance(block, TemporalBlock):
        return block.first
    if isinstance(block, CrossedBlock):
        return np.asarray(block.table.mean(axis=(1, 2)))
    raise GraphError(f"source {name!r} has a table over whole patterns, which no bound is for.")


# --- from a fitted model to a world --------------------------------------------------------------------------------
def world_of(model: LabelModel, lengths: IntArray | int) -> World:
    """The world in which a fitted model is true; sequences are as long as the given ones, drawn at random."""
    if any(isinstance(info.resolution, Spans) for info in model.sources_):
        raise TaskError(
            "spans cannot be simulated: where they lie is not in the model.\n"
            "  Fit a model of the sources that vote on elements, windows and sequences, and plan with that one."
        )
    law: Any = lengths if isinstance(lengths, int) else _Resampled(lengths)
    blocks = _blocks(model.parameters_)
    return World(prior=model.prior_, blocks=blocks, lengths=law, class_names=model.class_names_, name="fitted")


def settings_of(model: LabelModel) -> LabelModel:
    """A model with the settings under which the given one can be estimated again."""
    repeating = [TemporalDependency(f.source, f.lag) for f in model.parameters_.factors if isinstance(f, Temporal)]
    dependencies: list[Dependency] = [*model.correlations_, *repeating]
    settings = model.get_params() | {"prior": model.prior_, "dependencies": dependencies}
    return LabelModel(**settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Resampled:
    """Lengths drawn from given ones."""

    lengths: IntArray

    def __call__(self, n_sequences: int, rng: np.random.Generator) -> IntArray:
        return rng.choice(self.lengths, size=n_sequences)


def _blocks(parameters: Parameters) -> tuple[AnyBlock, ...]:
    """Factors as blocks: sources that depend on each other on the same task are put together again."""
    blocks: list[AnyBlock] = []
    for factor in parameters.factors:
        if isinstance(factor, Temporal):
            blocks.append(
                TemporalBlock(
                    name=factor.source,
                    first=factor.first,
                    step=factor.step,
                    resolution=factor.resolution,
                    lag=factor.lag,
                )
            )
        elif isinstance(factor, Crossed):
            blocks.append(
                CrossedBlock(
                    name=factor.source,
                    parent=factor.parent,
                    table=factor.table,
                    resolution=factor.resolution,
                    marginal=factor.marginal,
                )
            )
        elif isinstance(factor, FullTable):
            blocks.append(
                FullBlock(name=factor.source, n_tasks=factor.n_tasks, table=factor.table, resolution=factor.resolution)
            )
        else:
            blocks = _joined(blocks, factor)
    return tuple(blocks)


def _joined(blocks: list[AnyBlock], factor: Conditional) -> list[AnyBlock]:
    """Add a source to the block that its parents have made; blocks that it connects become one."""
    touched = [block for block in blocks if set(block.names) & set(factor.parents)]
    names = tuple(name for block in touched for name in block.names)
    table = factor.table if factor.by_position else factor.table[np.newaxis]
    letters = {name: chr(ord("c") + place) for place, name in enumerate((*names, factor.source))}
    terms = ["ab" + "".join(letters[name] for name in block.names) for block in touched]
    terms.append("ab" + "".join(letters[name] for name in (*factor.parents, factor.source)))
    out = "ab" + "".join(letters[name] for name in (*names, factor.source))
    arrays = _stretched([*(cast("Block", block).tables() for block in touched), table])
    joint = np.einsum(f"{','.join(terms)}->{out}", *arrays)
    by_position = len(joint) > 1
    edges = (*(e for b in touched for e in cast("Block", b).edges or ()), *((p, factor.source) for p in factor.parents))
    made = Block(
        names=(*names, factor.source),
        table=joint if by_position else joint[0],
        resolution=factor.resolution,
        by_position=by_position,
        edges=edges,
    )
    return [*(block for block in blocks if block not in touched), made]


def _stretched(tables: list[FloatArray]) -> list[FloatArray]:
    """The same number of positions in all tables; the last one goes on."""
    longest = max(len(table) for table in tables)
    return [np.concatenate([table, np.repeat(table[-1:], longest - len(table), axis=0)]) for table in tables]

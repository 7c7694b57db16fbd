"""What `dugong plan` simulates: the world in which a fitted model is true, estimated with the model's own settings.

In: a fitted model, a wanted half-width. Out: a `SamplePlan` of `dugong.worlds.planner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dugong.exceptions import TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.infer.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.model import LabelModel
from dugong.tasks import Spans
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes
from dugong.worlds import Block, CrossedBlock, FullBlock, TemporalBlock, World
from dugong.worlds.blocks import AnyBlock
from dugong.worlds.planner import SamplePlan, plan


def make_plan(
    world: World, model: LabelModel, *, n_sequences: int | None, width: float, repeats: int, seed: int
) -> SamplePlan:
    """Simulate a world and estimate it anew with the settings of a model, which is not changed."""

    def fit(votes: Votes) -> Mapping[str, FloatArray]:
        return LabelModel(**model.get_params()).fit(votes).standard_errors_.raw

    return plan(world, width=width, n_sequences=n_sequences, repeats=repeats, fit=fit, seed=seed)


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

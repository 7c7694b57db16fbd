"""The tables of a world as factors for inference: every source given its label and the votes of its parents.

Joint tables of several sources are taken apart along an elimination order of their edges; the product of
the parts is the table again, which is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dugong.exceptions import GraphError
from dugong.graph import SourceGraph, eliminate
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.types import FloatArray
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock


def world_parameters(blocks: Sequence[AnyBlock], n_classes: int) -> Parameters:
    """One factor per source, blocks in order."""
    where = {name: block.resolution for block in blocks for name in block.names}
    factors: list[Factor] = []
    for block in blocks:
        if isinstance(block, Block):
            factors += conditionals(block)
        elif isinstance(block, TemporalBlock):
            factors.append(
                Temporal(
                    source=block.name,
                    resolution=block.resolution,
                    first=block.first,
                    step=block.step,
                    lag=block.lag,
                )
            )
        elif isinstance(block, FullBlock):
            factors.append(
                FullTable(source=block.name, resolution=block.resolution, n_tasks=block.n_tasks, table=block.table)
            )
        elif isinstance(block, CrossedBlock):
            factors.append(
                Crossed(
                    source=block.name,
                    resolution=block.resolution,
                    parent=block.parent,
                    parent_resolution=where[block.parent],
                    table=block.table,
                    marginal=block.marginal,
                )
            )
    return Parameters(n_classes=n_classes, factors=tuple(factors))


def conditionals(block: Block) -> list[Factor]:
    """P(vote | label, votes of the parents) for every source of a block, in elimination order."""
    order = eliminate(SourceGraph.of(block.names, block.edges or ()))
    factors = [_conditional(block, name, order.parents[name]) for name in order.order]
    _check_product(block, factors)
    return list(factors)


def _conditional(block: Block, name: str, parents: tuple[str, ...]) -> Conditional:
    joint = block.marginal((*parents, name))
    alone = block.marginal((name,))
    given = joint.sum(axis=-1, keepdims=True)
    # Votes of the parents that never occur leave the vote to its marginal law.
    spare = alone.reshape(*alone.shape[:2], *(1,) * len(parents), alone.shape[-1])
    table = np.where(given > 0, joint / np.where(given > 0, given, 1), spare)
    return Conditional(
        source=name,
        resolution=block.resolution,
        table=table if block.by_position else table[0],
        parents=parents,
        marginal=(alone if block.by_position else alone[0]) if parents else None,
        by_position=block.by_position,
    )


def _check_product(block: Block, factors: list[Conditional]) -> None:
    letters = {name: chr(ord("c") + place) for place, name in enumerate(block.names)}
    terms = ["ab" + "".join(letters[n] for n in (*f.parents, f.source)) for f in factors]
    tables: list[FloatArray] = [f.table if block.by_position else f.table[np.newaxis] for f in factors]
    out = "ab" + "".join(letters[name] for name in block.names)
    product = np.einsum(f"{','.join(terms)}->{out}", *tables)
    if np.abs(product - block.tables()).max() > 1e-9:
        raise GraphError(
            f"the joint table of {', '.join(block.names)} has dependencies that its edges {block.edges} do not "
            "name.\n  Leave out edges= to allow all of them."
        )

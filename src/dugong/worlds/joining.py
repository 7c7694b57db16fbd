"""Factors for inference as blocks of a world: the inverse of `factors`.

In: the parameters of a fitted model. Out: the blocks of a world in which that model is true, to simulate from.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dugong.law.parameters import Conditional, Crossed, FullTable, Parameters, Temporal
from dugong.types import FloatArray
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock


def blocks_of(parameters: Parameters) -> tuple[AnyBlock, ...]:
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

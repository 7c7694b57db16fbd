"""The tables of a world as factors for inference, and back.

Joint tables of several sources are taken apart along an elimination order of their edges: every source given its label
and the votes of its parents. The product of the parts is the table again, which is checked. `blocks_of` is the inverse:
from the parameters of a fitted model to the blocks of a world in which that model is true, to simulate from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from dugong.exceptions import GraphError
from dugong.graph import SourceGraph, eliminate
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.types import FloatArray
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock

# Blocks of one source are factors under another name: they share all fields but their names.
_FACTORS: dict[type, Any] = {TemporalBlock: Temporal, FullBlock: FullTable, CrossedBlock: Crossed}
_BLOCKS: dict[type, Any] = {factor: block for block, factor in _FACTORS.items()}


def world_parameters(blocks: Sequence[AnyBlock], n_classes: int) -> Parameters:
    """One factor per source, blocks in order."""
    where = {name: block.resolution for block in blocks for name in block.names}
    factors: list[Factor] = []
    for block in blocks:
        if isinstance(block, Block):
            factors += conditionals(block)
            continue
        options = {one.name: getattr(block, one.name) for one in fields(block) if one.name != "name"}
        if isinstance(block, CrossedBlock):
            options["parent_resolution"] = where[block.parent]
        factors.append(_FACTORS[type(block)](source=block.name, **options))
    return Parameters(n_classes=n_classes, factors=tuple(factors))


def blocks_of(parameters: Parameters) -> tuple[AnyBlock, ...]:
    """Factors as blocks: sources that depend on each other on the same task are put together again."""
    blocks: list[AnyBlock] = []
    for factor in parameters.factors:
        if isinstance(factor, Conditional):
            blocks = _joined(blocks, factor)
            continue
        kind = _BLOCKS[type(factor)]
        options = {one.name: getattr(factor, one.name) for one in fields(kind) if one.name != "name"}
        blocks.append(kind(name=factor.source, **options))
    return tuple(blocks)


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
